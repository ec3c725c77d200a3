"""What the steps of a probe found, the faults named from it, and the record composed of both.

A fault is named only from replies that could be read. Frames that a model misreads are its own
affair, and so is a rate of frames of one a second or more; what is said of frames that are not
listed stays true where the model, not the server, overlooked them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from mustsee.calls.image_tokens import UNKNOWN, Detail, image_rule
from mustsee.calls.usage import Price
from mustsee.server_probe.record import (
    HourPrice,
    NumeralsResult,
    RampStep,
    ReportedUsage,
    SeenNumerals,
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


MAX_MEDIAN_ERROR_S = 2.5  # error of times above which they count as wrong
MIN_TIMES = 3  # times told, below which nothing is said of their error
DROPPED_SHARE = 0.34  # share of the digits or tones that is right by chance, at most
CHARACTERS_PER_TOKEN = (2.5, 7.0)  # range for plain English, by any tokenizer that is in use
MAX_DRIFT = 0.05  # share by which counts of equally long prompts may differ
MAX_UNEVEN = 1.5  # factor by which the tokens of an image may differ with their number
MIN_TOKENS = 1.0  # tokens of an image or a second of video that is counted
CHARACTERS_OF_REPLY = 20  # characters of a reply for each of its tokens, at most
NAMES = {"images": "images", "video": "video", "file_url": "video by file URL",
         "video_as_image_url": "video sent as image_url", "fast_video": "fast video"}  # fmt: skip


def numeral_faults(
    result: NumeralsResult, before: Sequence[NumeralsResult] = ()
) -> Iterator[ServerFault]:
    """Yield the faults of one request. `before`: shorter requests of its kind."""
    frames = result.frames
    if frames is None or not frames.sent:
        return
    about = "images" if result.kind == "images" else "video"
    what = _describe(result)
    if frames.missing:
        share = frames.missing / frames.sent
        read = frames.seen + frames.misread
        was_complete = any(b.frames and not b.frames.missing for b in before)
        if not read:
            kind, says = "nothing seen", f"{what}: the server answers, but nothing of it is seen"
        elif was_complete:
            kind = "capped"
            says = (
                f"{what}: capped at {read}; {_where(frames)} not seen, while fewer are seen whole"
            )
        else:
            kind = "frames dropped"
            says = f"{what}: {_where(frames)} not seen"
        yield ServerFault(kind=kind, about=about, says=says, share=share)
    if not frames.keeps_order:
        kept = f"{100 * (frames.in_order or 0.0):.0f} % of pairs in the order sent"
        says = f"{what}: the order is not kept, {kept}"
        yield ServerFault(kind="shuffled", about=about, says=says)


def _describe(result: NumeralsResult) -> str:
    if not result.seconds:
        return f"{result.count} images in one request"
    return f"{NAMES[result.kind]} of {result.seconds:g} s with {result.count} numerals"


def _where(frames: SeenNumerals) -> str:
    """Say which of the frames sent are not listed: the last ones, the first ones, or others."""
    missing = frames.missing_places
    if frames.misread or not missing:
        return f"{frames.missing} of them are"
    if missing == tuple(range(frames.sent - len(missing), frames.sent)):
        return f"the last {len(missing)} are"
    if missing == tuple(range(len(missing))):
        return f"the first {len(missing)} are"
    gaps = [b - a for a, b in pairwise(missing)]
    spread = "evenly spread" if gaps and max(gaps) - min(gaps) <= 1 else "here and there"
    return f"{len(missing)} {spread} are"


def time_faults(result: TimesResult) -> Iterator[ServerFault]:
    """Yield a fault if the times that a server tells are wrong."""
    errors = result.errors
    if errors is None or errors.median is None or errors.asked - errors.unseen < MIN_TIMES:
        return
    if errors.median > MAX_MEDIAN_ERROR_S:
        scale = f"; they are {result.scale:.2g} times the true ones" if result.scale else ""
        says = f"times in a video of {result.seconds:g} s are wrong by {errors.median:.1f} s"
        yield ServerFault(kind="times wrong", about="times", says=f"{says} (median){scale}")


def sound_faults(digits: SoundResult, tones: SoundResult | None) -> Iterator[ServerFault]:
    """Yield a fault if the sound of a video is not heard, or only part of it."""
    sounds = digits.sounds
    heard_tones = tones is not None and tones.sounds is not None and tones.sounds.is_heard
    if sounds is None or sounds.is_heard:
        return
    share = 1 - sounds.heard / sounds.sent
    if sounds.heard / sounds.sent > DROPPED_SHARE:
        says = f"{sounds.heard} of {sounds.sent} spoken digits are heard"
        yield ServerFault(kind="sound cut", about="sound", says=says, share=share)
    elif not heard_tones:
        says = "the sound of a video is dropped without a word: "
        said = f"{sounds.heard} of {sounds.sent}" if sounds.listed else f"none of {sounds.sent}"
        says += f"{said} spoken digits heard"
        yield ServerFault(kind="sound dropped", about="sound", says=says, share=share)


def text_usage_faults(
    prefixes: Sequence[ReportedUsage], short: ReportedUsage, characters: int
) -> Iterator[ServerFault]:
    """Yield what is wrong in the counts of text: of several prompts of one length, `characters`
    longer than a short one.
    """
    counts = [u.prompt for u in prefixes if u.prompt is not None]
    if not counts or short.prompt is None:
        yield _usage("usage missing", "replies do not count the tokens of their prompts")
        return
    if max(counts) - min(counts) > MAX_DRIFT * max(counts):
        yield _usage(
            "usage wrong",
            f"prompts of one length are counted as {min(counts)} to {max(counts)} tokens",
        )
        return
    added = counts[0] - short.prompt
    low, high = (characters / per for per in reversed(CHARACTERS_PER_TOKEN))
    if not low <= added <= high:
        yield _usage(
            "usage wrong",
            f"{characters} further characters of text are counted as {added} tokens; by any "
            f"tokenizer they are {low:.0f} to {high:.0f}",
        )


def reply_usage_faults(usage: ReportedUsage, characters: int) -> Iterator[ServerFault]:
    """Yield what contradicts itself in the counts of one reply of `characters`."""
    if usage.prompt is None:
        return
    if usage.reply is not None and usage.reply * CHARACTERS_OF_REPLY < characters:
        says = f"a reply of {characters} characters is counted as {usage.reply} tokens"
        yield _usage("usage wrong", says)
    if usage.total is not None and usage.total < usage.prompt + (usage.reply or 0):
        says = f"{usage.total} tokens in total, {usage.prompt} in and {usage.reply or 0} out"
        yield _usage("usage wrong", says)
    if usage.cached is not None and usage.cached > usage.prompt:
        says = f"{usage.cached} tokens from the cache, of {usage.prompt} in all"
        yield _usage("usage wrong", says)


def image_usage_faults(
    results: Sequence[NumeralsResult], base: int | None
) -> Iterator[ServerFault]:
    """Yield what is wrong in the counts of images that were seen. `base`: tokens without any."""
    per_image = [
        (r.count, (r.tokens - base) / r.count)
        for r in results
        if base is not None and r.tokens is not None and r.frames and r.frames.seen
        and not r.frames.missing
    ]  # fmt: skip
    if per_image and max(each for _, each in per_image) < MIN_TOKENS:
        yield _usage("usage wrong", "images that are seen are not counted")
        return
    values = [each for _, each in per_image]
    if values and max(values) > MAX_UNEVEN * max(min(values), MIN_TOKENS):
        listed = ", ".join(f"{each:.0f} in a request with {count}" for count, each in per_image)
        yield _usage("usage wrong", f"tokens of one image differ with their number: {listed}")


def counted_notes(results: Sequence[NumeralsResult], base: int | None) -> Iterator[str]:
    """Yield how many of the frames sent are counted, where not all of them are seen: it tells a
    server that drops them from a model that overlooks them. `base`: tokens without any.
    """
    counted = [
        (r, (r.tokens - base) / r.count)
        for r in results
        if base is not None and r.tokens is not None and r.frames and r.kind in ("images", "video")
    ]
    whole = [each for r, each in counted if r.frames and not r.frames.missing]
    for result, each in counted:
        if whole and whole[-1] >= MIN_TOKENS and result.frames and result.frames.missing:
            share = each / whole[-1]
            told = (
                "all are counted" if share > 1 - MAX_DRIFT else f"{100 * share:.0f} % are counted"
            )
            yield f"{_describe(result)}: {told} by usage"
            return


def video_usage_faults(
    results: Sequence[NumeralsResult], base: int | None
) -> Iterator[ServerFault]:
    """Yield a fault if seconds of a video that were seen are not counted."""
    per_second = [
        (r.tokens - base) / r.seconds
        for r in results
        if base is not None and r.tokens is not None and r.seconds and r.frames and r.frames.seen
    ]
    if per_second and max(per_second) < MIN_TOKENS:
        yield _usage("usage wrong", "a video that is seen is not counted")


def _usage(kind: str, says: str) -> ServerFault:
    return ServerFault(kind=kind, about="usage", says=says)


def confirm(first: Sequence[ServerFault], second: Sequence[ServerFault]) -> list[ServerFault]:
    """Return the faults of a first draw that a second one shows, too."""
    again = {(f.kind, f.about) for f in second}
    return [replace(f, confirmed=True) for f in first if (f.kind, f.about) in again]
