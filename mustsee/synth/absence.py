"""Checks that what a probe shows is absent from the background; otherwise it is not a needle.

In MLVU people checked this (F.4, F.8); here similarity is measured, and the nearest places are
listed for a person. Frames are compared by their descriptors (`mustsee.media.samples`): the
probe's as they are, fitted into the background's shape (with bars), and both mirrored. The probe's
caption, or else the label of its action, is compared with the captions of the background: by
embeddings, and by words ("people dance zumba" shows "zumba").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mustsee.nn.vectors import unit
from mustsee.records import Caption, Frame
from mustsee.text import STOP_WORDS, stem, terms, words

if TYPE_CHECKING:
    from mustsee.media.frames import Thumbnail, TimedFrame

LUMA_NUMBERS = 64  # values of a descriptor that are brightness
FITTED_PIXELS = 96  # pixels: longer side of the frame that a probe is fitted into
MAX_PLAIN_SPREAD = 0.03  # standard deviation of brightness, 0-1, below which a frame is plain

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, kw_only=True)
class Absence:
    """Thresholds of the checks; null turns a check off.

    `apart`: root mean square distance of descriptors (0 to 1) below which two frames look the same.
    `alike`: cosine of captions from which two texts mean the same. `called`: cosine of an action's
    label and a caption from which the caption shows the action, as a caption with the words of the
    label does. `every`: seconds between the compared frames.
    """

    apart: float | None = 0.06
    alike: float | None = 0.75
    called: float | None = 0.5
    every: float = 1.0


@dataclass(frozen=True, kw_only=True)
class NearestMoments:
    """The places in a background that are most similar to a probe; null where they were not
    compared.

    `distance`: of the most similar frame, at `time`. `likeness`: of the most similar caption
    `text`, at `text_time`; from `max_likeness` on the probe is not absent. `mention`: a caption
    that has the words of the probe's label.
    """

    rule: Absence
    time: float | None = None
    distance: float | None = None
    text_time: float | None = None
    likeness: float | None = None
    text: str = ""
    max_likeness: float | None = None
    mention: Caption | None = None

    @property
    def absent(self) -> bool:
        """Whether the probe is absent from the background, as far as was compared."""
        rule = self.rule
        looks_absent = rule.apart is None or self.distance is None or self.distance >= rule.apart
        max_likeness = self.max_likeness
        text_absent = max_likeness is None or self.likeness is None or self.likeness < max_likeness
        return looks_absent and text_absent and self.mention is None

    @property
    def failed_setting(self) -> str:
        """The setting by which the probe is not absent."""
        limit, distance = self.rule.apart, self.distance
        if limit is not None and distance is not None and distance < limit:
            return "apart"
        return (
            "alike" if self.mention is None and self.max_likeness == self.rule.alike else "called"
        )

    def __str__(self) -> str:
        evidence: list[str] = []
        if self.distance is not None:
            evidence.append(f"nearest frame at {self.time:.1f} s, distance {self.distance:.3f}")
        if self.likeness is not None:
            evidence.append(
                f"nearest caption at {self.text_time:.1f} s, similarity {self.likeness:.2f}: "
                f"{self.text}"
            )
        if self.mention is not None:
            evidence.append(
                f"mentioned in the caption at {self.mention.time:.1f} s: {self.mention.text}"
            )
        return "; ".join(evidence)


def frame_descriptors(
    uri: str, every: float, start: float = 0.0, end: float | None = None
) -> list[Frame]:
    """Return a descriptor every `every` seconds of a video. Raises BadRow and Transient."""
    from mustsee.media.frames import Thumbnails

    small = Thumbnails()
    return [
        _frame(p.time, small(p.decoded), p.turn) for p in _sampled_frames(uri, every, start, end)
    ]


def fitted_descriptors(
    uri: str, every: float, start: float, end: float, size: tuple[int, int]
) -> list[Frame]:
    """Return the descriptors that a probe may have in a video whose frames are shown at `size`
    (width, height): as it is, fitted into them with black around, and both mirrored.

    Plain frames have none. Raises BadRow and Transient.
    """
    from mustsee.media.frames import Thumbnails
    from mustsee.synth.encoding import CodedShape, FrameFitter

    scale = FITTED_PIXELS / max(size)
    width, height = (max(2, round(side * scale / 2) * 2) for side in size)
    fit = FrameFitter(
        CodedShape(width=width, height=height, rate=Fraction(25), tick=Fraction(1, 25))
    )
    small, fitted_thumbnail, frames = Thumbnails(), Thumbnails(FITTED_PIXELS), list[Frame]()
    for timed in _sampled_frames(uri, every, start, end):
        original = _without_plain([_frame(timed.time, small(timed.decoded), timed.turn)])
        if original:
            fitted = _frame(timed.time, fitted_thumbnail(fit(timed)), 0)
            frames += [
                frame for variant in (*original, fitted) for frame in (variant, _mirrored(variant))
            ]
    return frames


def _sampled_frames(
    uri: str, every: float, start: float, end: float | None
) -> Iterator[TimedFrame]:
    from mustsee.media.video import frames_at, open_video

    with open_video(uri) as video:
        duration = video.facts().duration
    last = duration if end is None else min(end, duration)
    yield from frames_at(uri, np.arange(start, last, every).tolist())


def _frame(time: float, thumbnail: Thumbnail, turn: int) -> Frame:
    from mustsee.media.samples import brightness, describe

    descriptor = describe(thumbnail, turn)
    return Frame(time=time, brightness=brightness(thumbnail), motion=0.0, descriptor=descriptor)


def _mirrored(frame: Frame) -> Frame:
    """The same frame with left and right exchanged."""
    descriptor = np.asarray(frame.descriptor)
    planes = (
        descriptor[:LUMA_NUMBERS].reshape(1, 8, 8),
        descriptor[LUMA_NUMBERS:].reshape(2, 4, 4),
    )
    mirrored = np.concatenate([plane[:, :, ::-1].ravel() for plane in planes])
    return replace(frame, descriptor=tuple(mirrored.tolist()))


def nearest(probe: Sequence[Frame], background: Sequence[Frame]) -> tuple[float, float]:
    """Return (time in the background, distance) of the two frames that look most alike.

    The distance is infinite where one side has no frames.
    """
    probe, background = _without_plain(probe), _without_plain(background)
    if not probe or not background:
        return 0.0, float("inf")
    from scipy.spatial.distance import cdist

    distances = cdist([f.descriptor for f in probe], [f.descriptor for f in background])
    distances /= math.sqrt(len(probe[0].descriptor))
    best = int(distances.min(0).argmin())
    return background[best].time, float(distances[:, best].min())


def _without_plain(frames: Sequence[Frame]) -> list[Frame]:
    """The frames with content: plain ones, as black, all look alike."""
    return [f for f in frames if float(np.std(f.descriptor[:LUMA_NUMBERS])) >= MAX_PLAIN_SPREAD]


def find_nearest(
    rule: Absence,
    *,
    frames: tuple[Sequence[Frame], Sequence[Frame]] = ((), ()),
    caption: str = "",
    label: str = "",
    captions: Sequence[Caption] = (),
    embed: Embed | None = None,
) -> NearestMoments:
    """Return the places of a background that are nearest to a probe.

    `frames`: those of the probe and those of the background. The probe's `caption`, or else its
    `label`, is compared with the background's `captions`; by embeddings only where `embed` is
    given.
    """
    nearest_moments = NearestMoments(rule=rule)
    time, distance = nearest(*frames)
    if distance < float("inf"):
        nearest_moments = replace(nearest_moments, time=time, distance=distance)
    max_likeness, description = (rule.alike, caption) if caption else (rule.called, label)
    if max_likeness is None or not description or not captions:
        return nearest_moments
    if label and rule.called is not None:
        nearest_moments = replace(
            nearest_moments,
            mention=next((c for c in captions if mentions_label(label, c.text)), None),
        )
    if embed is not None:
        vectors = unit(embed([description, *(c.text for c in captions)]))
        scores = vectors[1:] @ vectors[0]
        best = captions[int(scores.argmax())]
        nearest_moments = replace(
            nearest_moments,
            text_time=best.time,
            likeness=float(scores.max()),
            text=best.text,
            max_likeness=max_likeness,
        )
    return nearest_moments


_LIGHT = frozenset(map(stem, STOP_WORDS))  # "making jewelry" is shown where a text has "jewelry"


def _roots(text: str) -> list[str]:
    return [w[:-3] if w.endswith("ing") and len(w) > 5 else w for w in terms(text)]


def mentions_label(label: str, text: str) -> bool:
    """Return whether a text has all words of an action's label, in any form ("tosses a coin" for
    "tossing coin", "jet skis" for "jetskiing").
    """
    (label_words, joined_label), text_words = _label_words(label), _roots(text)
    if label_words and all(any(_same_stem(w, s) for s in text_words) for w in label_words):
        return True
    return len(joined_label) >= 6 and joined_label in "".join(words(text))


@lru_cache(maxsize=1024)
def _label_words(label: str) -> tuple[tuple[str, ...], str]:
    """The words of a label that carry its meaning, and the whole label as one word."""
    stems = _roots(label)
    content_words = [w for w in stems if not any(_same_stem(w, light) for light in _LIGHT)]
    return tuple(content_words or stems), stem("".join(words(label)))


def _same_stem(one: str, other: str) -> bool:
    """Two stems of one word: "tos" and "toss", "mak" and "make"."""
    short, long = sorted((one, other), key=len)
    return one == other or (
        len(short) >= 3
        and len(long) == len(short) + 1
        and long.startswith(short)
        and long[-1] in ("e", short[-1])
    )
