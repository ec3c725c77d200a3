"""What the steps of a probe found, and the record composed of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mustsee.calls.image_tokens import UNKNOWN, Detail, image_rule
from mustsee.calls.usage import Price
from mustsee.server_probe.record import (
    HourPrice,
    NumeralsResult,
    RampStep,
    ReportedUsage,
    ServerFault,
    SoundResult,
    TimesResult,
    TokenCounts,
)
from mustsee.server_probe.stimuli import SIZE

HOUR_S = 3600
RATE_KINDS = ("video", "fast_video")  # videos that say how many frames are seen of a second


@dataclass
class Findings:
    """What the steps found so far; `mustsee.server_probe.record.ProbeRecord` explains the fields.
    `images_base`, `videos_base`: tokens of the same words without images and video.
    """

    faults: list[ServerFault] = field(default_factory=list[ServerFault])
    notes: list[str] = field(default_factory=list[str])
    images: list[NumeralsResult] = field(default_factory=list[NumeralsResult])
    videos: list[NumeralsResult] = field(default_factory=list[NumeralsResult])
    times: list[TimesResult] = field(default_factory=list[TimesResult])
    sounds: list[SoundResult] = field(default_factory=list[SoundResult])
    ramp: list[RampStep] = field(default_factory=list[RampStep])
    images_base: int | None = None
    videos_base: int | None = None
    part: str = ""
    structured: str = "untold"
    logprobs: str = "untold"
    prefixes: list[ReportedUsage] = field(default_factory=list[ReportedUsage])
    characters: float | None = None
    ended: str = ""  # why the probe ended early

    @property
    def whole_videos(self) -> list[NumeralsResult]:
        """Videos of a numeral a second of which all was seen, by length."""
        whole = [v for v in self.videos if v.kind == "video" and v.frames and not v.frames.missing]
        return sorted(whole, key=lambda v: v.seconds or 0.0)

    @property
    def longest(self) -> float | None:
        """Seconds of the longest video of which all was seen."""
        return self.whole_videos[-1].seconds if self.whole_videos else None

    @property
    def rate(self) -> tuple[float | None, bool]:
        """Frames seen of a second of video, and whether it may be more."""
        short = [v for v in self.videos if v.frames and v.seconds and _is_short(v, self)]
        fast = [v for v in short if v.kind == "fast_video"]
        rates = [_read(v) / v.seconds for v in short if v.seconds and v.kind in RATE_KINDS]
        is_least = any(v.frames is not None and not v.frames.missing for v in fast or short)
        return max(rates, default=None), is_least

    def count_tokens(self, model: str, detail: Detail) -> TokenCounts:
        """Return what the replies count, beside the rules of the model's family."""
        images = [i for i in self.images if i.frames and i.tokens is not None]
        image = _per_unit([(i.count, i.tokens) for i in images], self.images_base)
        whole = [v for v in self.whole_videos if v.tokens is not None and v.seconds is not None]
        second = _per_unit([(v.seconds or 0.0, v.tokens) for v in whole], self.videos_base)
        rate, rule = self.rate[0], image_rule(model)
        frame = rule.frame(*SIZE, detail)
        return TokenCounts(
            image=image,
            image_rule=None if rule is UNKNOWN else rule.image(*SIZE, detail),
            second=second,
            second_rule=None if frame is None else rule.fps * frame,
            frame=second / rate if second is not None and rate else None,
            sound_second=_sound_second(self.sounds),
            characters=self.characters,
        )


def _is_short(video: NumeralsResult, found: Findings) -> bool:
    """Whether a video is as long as the shortest one, so that no cap shows in its rate."""
    return video.seconds == min(v.seconds or 0.0 for v in found.videos)


def _read(result: NumeralsResult) -> int:
    return result.frames.seen + result.frames.misread if result.frames else 0


def _per_unit(counts: Iterable[tuple[float, int | None]], base: int | None) -> float | None:
    """Tokens of a unit: by the two most different numbers of units, or by one and none."""
    known = sorted((units, tokens) for units, tokens in counts if tokens is not None and units)
    if base is not None:
        known = [(0.0, base), *known]
    if len(known) < 2 or known[0][0] == known[-1][0]:
        return None
    (few, least), (many, most) = known[0], known[-1]
    return max(0.0, (most - least) / (many - few))


def _sound_second(sounds: Sequence[SoundResult]) -> float | None:
    by_kind = {s.kind: s for s in reversed(sounds) if s.tokens is not None}
    spoken, silent = by_kind.get("digits"), by_kind.get("silent")
    if spoken is None or silent is None or spoken.tokens is None or silent.tokens is None:
        return None
    return max(0.0, (spoken.tokens - silent.tokens) / spoken.seconds)


def price_hour(tokens: TokenCounts, price: Price | None, source: str) -> HourPrice:
    """Return the price of an hour of video by the measured tokens, or where these are not known by
    the rules of the family.
    """
    if price is None:
        return HourPrice(source=source)
    second = tokens.second if tokens.second is not None else tokens.second_rule
    image = tokens.image if tokens.image is not None else tokens.image_rule
    sound = tokens.sound_second or 0.0
    return HourPrice(
        video=None if second is None else price.tokens_in * HOUR_S * (second + sound) / 1e6,
        images=None if image is None else price.tokens_in * HOUR_S * image / 1e6,
        per_million=price.tokens_in,
        source=source,
    )
