"""Faults of a server, named from what it saw, heard and counted.

A fault is named only from replies that could be read. Frames that a model misreads are its own
affair, and so is a rate of frames of one a second or more; what is said of frames that are not
listed stays true where the model, not the server, overlooked them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from mustsee.server_probe.record import (
    NumeralsResult,
    ReportedUsage,
    SeenNumerals,
    ServerFault,
    SoundResult,
    TimesResult,
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
