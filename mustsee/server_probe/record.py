"""What a probe found: the content of `probe.json`, and the measures in it, which compare what a
server saw and heard with what it was sent.

Numerals, digits and tones are drawn at random, so that a reply can be right only by seeing or
hearing them. What a model misread is kept apart from what it did not list.

Probes are kept in a file, and in a store by model and address, where an evaluation of the same
model finds the newest one. Decision 0117.
"""

from __future__ import annotations

import json
import statistics
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from mustsee.errors import MustseeError, UserError
from mustsee.files.store import Store, digest

VERSION = 1  # version of the form of probe.json
FILE = "probe.json"
PAGE = "probe.html"
STORE_KIND = "server_probe"  # the store's folder of probes
OTHER_NAME = "video dropped"  # kind of the fault of a video that is seen under another name only
MAX_INVERTED_SHARE = 0.05  # share of all pairs of numerals; above it the order counts as not kept
MAX_MISPLACED_SHARE = 0.2  # share of the numerals seen, likewise, also where some are misread
MAX_MISREAD_SHARE = 0.25  # share of the numerals; above it nothing is said of their order
HEARD_SHARE = 0.6  # share of the digits or tones, in order, from which the sound counts as heard


@dataclass(frozen=True, kw_only=True)
class SeenNumerals:
    """Numerals that were sent, and those that a reply lists.

    `sent`, `listed`: their numbers. `seen`: of those sent, the ones listed. `misread`: listed in
    place of one that was sent. `missing`: sent, and nothing is listed for them. `invented`: listed
    beyond those sent. `in_order`: share of pairs of seen numerals in the order sent; None with
    fewer than two. `misplaced`: seen numerals that must be moved for the rest to be in order.
    `missing_places`: positions (from 0) of the numerals sent that are not listed.
    """

    sent: int
    listed: int
    seen: int
    misread: int
    missing: int
    invented: int
    in_order: float | None
    misplaced: int
    missing_places: tuple[int, ...]

    @property
    def is_legible(self) -> bool:
        """Whether the model reads most of the numerals right."""
        return self.misread <= MAX_MISREAD_SHARE * self.sent

    @property
    def keeps_order(self) -> bool:
        """Whether the order is kept, but for slips of the model; True where it cannot be told."""
        if self.in_order is None or not self.is_legible:
            return True
        if self.misplaced > MAX_MISPLACED_SHARE * self.seen:
            return False
        # A numeral that is misread as another one that was sent seems to be far from its place.
        return self.misread > 0 or 1 - self.in_order <= MAX_INVERTED_SHARE


def compare_numerals(sent: Sequence[int], listed: Sequence[int]) -> SeenNumerals:
    """Compare the numerals sent, all different, with those that a reply lists. One that is listed
    several times in a row counts once, unless the model misreads as many others; elsewhere the
    further ones count as misread, because a numeral may be misread as another that was sent.
    """
    entries = [n for n, _ in groupby(listed)]
    places = {numeral: place for place, numeral in enumerate(sent)}
    at: dict[int, int] = {}  # place in `sent` -> index of its entry
    for index, numeral in enumerate(entries):
        place = places.get(numeral)
        if place is not None and (place not in at or abs(index - place) < abs(at[place] - place)):
            at[place] = index
    order = sorted(at, key=lambda place: at[place])
    unlisted = [place for place in range(len(sent)) if place not in at]
    others, repeats = len(entries) - len(at), len(listed) - len(entries)
    others += repeats if repeats <= others else 0
    misread = min(len(unlisted), others)
    pairs = len(order) * (len(order) - 1) // 2
    inverted = sum(b < a for n, a in enumerate(order) for b in order[n + 1 :])
    return SeenNumerals(
        sent=len(sent), listed=len(listed), seen=len(at), misread=misread,
        missing=len(unlisted) - misread, invented=others - misread,
        in_order=1 - inverted / pairs if pairs else None,
        misplaced=len(order) - _longest_rise(order),
        missing_places=tuple(unlisted),
    )  # fmt: skip


def _longest_rise(values: Sequence[int]) -> int:
    """The length of the longest rising subsequence of different numbers."""
    ends: list[int] = []  # smallest last value of a rise of each length
    for value in values:
        at = bisect_left(ends, value)
        ends[at : at + 1] = [value]
    return len(ends)


@dataclass(frozen=True, kw_only=True)
class TimeErrors:
    """How far the times of a reply are from those at which numerals were shown, in seconds.
    `unseen`: numerals that the reply says are not shown.
    """

    asked: int
    unseen: int
    median: float | None
    largest: float | None


def compare_times(shown: Mapping[int, float], told: Mapping[int, float]) -> TimeErrors:
    """Compare the seconds at which numerals are first shown with those of a reply."""
    errors = [abs(told[n] - second) for n, second in shown.items() if told[n] >= 0]
    return TimeErrors(
        asked=len(shown),
        unseen=len(shown) - len(errors),
        median=statistics.median(errors) if errors else None,
        largest=max(errors, default=None),
    )


@dataclass(frozen=True, kw_only=True)
class HeardSounds:
    """Digits or tones that were sent, and those of a reply that are among them in order."""

    sent: int
    listed: int
    heard: int

    @property
    def is_heard(self) -> bool:
        """Whether so much is right that it cannot be a guess."""
        return self.heard >= HEARD_SHARE * self.sent and self.listed <= 2 * self.sent


def compare_sounds(sent: Sequence[object], listed: Sequence[object]) -> HeardSounds:
    """Compare digits with those of a reply. Some may be lacking or added: what counts is the
    longest common order.
    """
    matcher = SequenceMatcher(None, list(sent), list(listed), autojunk=False)
    heard = sum(block.size for block in matcher.get_matching_blocks())
    return HeardSounds(sent=len(sent), listed=len(listed), heard=heard)


def compare_tones(sent: Sequence[str], listed: Sequence[str]) -> HeardSounds:
    """Compare tones with those of a reply, place by place: of two kinds half are right by chance,
    so that they count only if all are.
    """
    right = sum(a == b for a, b in zip(sent, listed, strict=False))
    return HeardSounds(
        sent=len(sent), listed=len(listed), heard=right if list(sent) == list(listed) else 0
    )


# answered: the reply was read. untold: there is a reply that could not be read. refused: the
# endpoint refuses the content. failed: there was no reply. unasked: the budget was reached, or
# an earlier step made it needless.
State = Literal["answered", "untold", "refused", "failed", "unasked"]
Kind = Literal["images", "video", "video_as_image_url", "file_url", "fast_video"]


@dataclass(frozen=True, kw_only=True)
class ReportedUsage:
    """The tokens that a reply counts, as it says them; None: it does not. `cached`: of `prompt`.
    `thought`: of `reply`.
    """

    prompt: int | None = None
    reply: int | None = None
    total: int | None = None
    cached: int | None = None
    thought: int | None = None


NO_USAGE = ReportedUsage()


@dataclass(frozen=True, kw_only=True)
class ServerFault:
    """A fault of the server. `kind`: a short name. `about`: images, video, sound, times or usage.
    `says`: one sentence with its figures. `share`: of what was sent, what is affected, 0 to 1.
    `confirmed`: whether a second draw of the same request shows it, too; None: not asked again.
    """

    kind: str
    about: str
    says: str
    share: float = 1.0
    confirmed: bool | None = None


@dataclass(frozen=True, kw_only=True)
class NumeralsResult:
    """One request with numerals. `count`: numerals sent; `seconds`: of the video. `why`: why there
    is no figure. `frames`: what was seen; None: not told.
    """

    kind: Kind
    count: int
    seconds: float | None = None
    draw: int = 0
    state: State
    why: str = ""
    frames: SeenNumerals | None = None
    tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class TimesResult:
    """The request for times. `scale`: the told times as a multiple of the true ones."""

    seconds: float
    draw: int = 0
    state: State
    why: str = ""
    errors: TimeErrors | None = None
    scale: float | None = None


@dataclass(frozen=True, kw_only=True)
class SoundResult:
    """One request with sound. `kind`: digits, silent (the same clip without sound) or tones."""

    kind: Literal["digits", "silent", "tones"]
    seconds: float
    draw: int = 0
    state: State
    why: str = ""
    sounds: HeardSounds | None = None
    tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class TokenCounts:
    """Tokens by the endpoint's `usage`; None: not measured. `image`: of one image. `image_rule`,
    `second_rule`: by the rule of the model's family (`mustsee.calls.image_tokens`). `second`: of
    a second of video without sound. `frame`: of one of the frames that the server takes of it.
    `sound_second`: of a second of sound. `characters`: of plain text, per token.
    """

    image: float | None = None
    image_rule: float | None = None
    second: float | None = None
    second_rule: float | None = None
    frame: float | None = None
    sound_second: float | None = None
    characters: float | None = None


@dataclass(frozen=True, kw_only=True)
class RefusedParameter:
    """`instead`: the name under which its value is sent; "": it is left out. `says`: the endpoint's
    words.
    """

    name: str
    instead: str
    says: str


@dataclass(frozen=True, kw_only=True)
class RampStep:
    """Calls that were sent at once. `refused`: of them, the ones told to wait. `failed`: the ones
    that failed otherwise.
    """

    in_flight: int
    answered: int
    refused: int
    failed: int
    seconds: float
    retry_after: float | None = None


@dataclass(frozen=True, kw_only=True)
class HourPrice:
    """What an hour of video costs as input, in USD; None: not known. `video`: as a video. `images`:
    as images, one a second. `source`: where the price of a token comes from.
    """

    video: float | None = None
    images: float | None = None
    per_million: float | None = None
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class ProbeRecord:
    """All of it. `taken`: date and time, ISO, UTC. `replied`: models that the replies name. `part`:
    the name under which the server takes a video; "": none. `rate`: frames that it sees of a second
    of video; `rate_is_least`: it may be more. `longest`: seconds of the longest video of which
    all was seen; `longest_is_least`: no longer one was sent. `structured`: kept, around (JSON with
    words around it), wrong (its content), ignored, refused, off or untold. `logprobs`: given, none,
    or untold. `cached`: tokens from the cache in each of several calls with one long prefix; None:
    not reported.
    `shutdown`: day on which the model stops, by its maker. `served`: what is wrong with it by the
    server's list of models and the table. `calls`, `usd`: made by this probe.
    """

    version: int = VERSION
    model: str
    base_url: str
    taken: str
    mustsee: str
    seed: int
    replied: Sequence[str] = ()
    faults: Sequence[ServerFault] = ()
    notes: Sequence[str] = ()
    images: Sequence[NumeralsResult] = ()
    videos: Sequence[NumeralsResult] = ()
    part: str = ""
    rate: float | None = None
    rate_is_least: bool = False
    longest: float | None = None
    longest_is_least: bool = False
    times: Sequence[TimesResult] = ()
    sounds: Sequence[SoundResult] = ()
    tokens: TokenCounts = TokenCounts()
    structured: str = "untold"
    logprobs: str = "untold"
    parameters: Sequence[RefusedParameter] = ()
    parameters_tried: Sequence[str] = ()
    prefix_tokens: int | None = None
    cached: Sequence[int | None] = ()
    ramp: Sequence[RampStep] = ()
    limits: Mapping[str, float] | None = None
    price: HourPrice = HourPrice()
    shutdown: str | None = None
    served: Sequence[str] = ()
    calls: int = 0
    usd: float = 0.0

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    def dump(self) -> str:
        """Return the text of `probe.json`."""
        return json.dumps(self.plain(), indent=2, ensure_ascii=False) + "\n"


@dataclass(frozen=True, kw_only=True)
class SentMaterial:
    """What an evaluation sends of each video. `images`: the most images in one request. `video`:
    whether a video is sent, under the name `part`; `sound`: with its sound.
    """

    images: int = 0
    video: bool = False
    sound: bool = False
    part: str = ""


def keep_in_store(store: Store, record: ProbeRecord) -> None:
    """Keep a probe in place of an earlier one of the same model at the same address."""
    store.put(STORE_KIND, _key(record.model, record.base_url), record.dump().encode())


def find_in_store(store: Store, model: str, base_url: str) -> Mapping[str, Any] | None:
    """Return the newest probe of a model at an address; None if the store has none."""
    try:
        content = store.get(STORE_KIND, _key(model, base_url))
        return None if content is None else _check(json.loads(content), store.root)
    except (MustseeError, ValueError):
        return None


def read_probe(path: str, model: str, base_url: str) -> Mapping[str, Any]:
    """Return the probe in a folder, or in a file. Raises UserError if it is not one of this model
    at this address.
    """
    file = Path(path) if Path(path).is_file() else Path(path) / FILE
    try:
        record = _check(json.loads(file.read_text(encoding="utf-8")), path)
    except (OSError, ValueError) as error:
        raise UserError(
            f"server_probe={path!r}: {file} cannot be read ({error}); give the out= of a "
            "mustsee probe"
        ) from error
    if (record["model"], record["base_url"]) != (model, base_url):
        raise UserError(
            f"server_probe={path!r} is of model {record['model']!r} at {record['base_url']}, but "
            f"this evaluation asks {model!r} at {base_url}: probe that one, or leave it out"
        )
    return record


def _check(record: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(record, dict) or record.get("version") != VERSION:
        raise UserError(f"{path!r} holds no probe of this version: run mustsee probe again")
    return record


def _key(model: str, base_url: str) -> str:
    return digest([model, base_url])


def warn(record: Mapping[str, Any], sent: SentMaterial) -> Iterator[str]:
    """Yield a sentence for everything that a probe says the server does to what is sent."""
    about = {"images": sent.images > 0, "video": sent.video, "times": sent.video,
             "sound": sent.sound}  # fmt: skip
    for fault in record["faults"]:
        concerns = about.get(fault["about"], False) and fault["kind"] != OTHER_NAME
        if fault["kind"] == "capped" and fault["about"] == "images":
            concerns = sent.images > _most_images(record)
        if fault["kind"] == "shuffled" and fault["about"] == "images":
            concerns = sent.images > 1
        if concerns:
            yield fault["says"]
    if refusal := _refusal(record["images"], sent.images):
        yield refusal
    states = {video["state"] for video in record["videos"]}
    if sent.video and record["part"] and record["part"] != sent.part:
        advice = f"set llm.video.part={record['part']}"
        yield f"videos are seen as {record['part']}, not as {sent.part}: {advice}"
    elif sent.video and not record["part"] and "refused" in states:
        yield "the server refuses videos"


def _most_images(record: Mapping[str, Any]) -> int:
    """The most images of one request that were seen, by the probe."""
    frames = [image["frames"] for image in record["images"] if image["frames"]]
    return max((f["seen"] + f["misread"] for f in frames), default=0)


def _refusal(images: Sequence[Mapping[str, Any]], most: int) -> str:
    """What the probe says of images that were refused, if this evaluation sends more than were
    taken.
    """
    refused = [i for i in images if i["state"] == "refused"]
    taken = max((i["count"] for i in images if i["frames"]), default=0)
    if not refused or most <= taken:
        return ""
    return f"a request with {refused[0]['count']} images is refused ({refused[0]['why']})"
