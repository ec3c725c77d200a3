"""Checks that what a question asks about is absent from the background, or it is no needle.

MLVU had people look (F.4, F.8); here likeness is measured, and the nearest moments are listed for a
person. Pictures are compared by their descriptors (`mustsee.media.descriptors`): those of a probe
as they are, as they are fitted into the background's shape (with bars), and both mirrored. What a
probe is called, by its caption or else by the label of its action, is held against what is said of
the background: by embeddings, and by words ("people dance zumba" shows "zumba").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mustsee.records import Caption, Frame
from mustsee.text import STOP_WORDS, stem, terms, words

if TYPE_CHECKING:
    from mustsee.media.pictures import Thumbnail, TimedFrame

LUMA_NUMBERS = 64  # numbers of a descriptor that are brightness
FITTED_PIXELS = 96  # pixels of the longer side of a picture that a probe is fitted into
MAX_PLAIN_SPREAD = 0.03  # spread of brightness below which a picture is plain

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, kw_only=True)
class Absence:
    """`apart`: root mean square distance of descriptors (0 to 1) below which two pictures look the
    same; `alike`: cosine of captions from which two texts say the same; `called`: cosine of an
    action's label and a caption from which that shows the action, as does a caption with the words
    of the label. Null: not looked at. `every`: seconds between the pictures that are compared.
    """

    apart: float | None = 0.06
    alike: float | None = 0.75
    called: float | None = 0.5
    every: float = 1.0


@dataclass(frozen=True, kw_only=True)
class NearestMoments:
    """The moments of a background that are most like a probe: by looks (`distance` at `time`) and
    by what is said of them (`likeness` of `text` at `told`; `least` is too much). Null where they
    were not compared. `says`: a caption that has the words of what the probe shows.
    """

    rule: Absence
    time: float | None = None
    distance: float | None = None
    told: float | None = None
    likeness: float | None = None
    text: str = ""
    least: float | None = None
    says: Caption | None = None

    @property
    def absent(self) -> bool:
        """Is the probe nowhere in the background, as far as was looked?"""
        rule = self.rule
        looks = rule.apart is None or self.distance is None or self.distance >= rule.apart
        least = self.least
        unlike = least is None or self.likeness is None or self.likeness < least
        return looks and unlike and self.says is None

    @property
    def failed_setting(self) -> str:
        """The setting by which the probe is not absent, as far as it is not."""
        apart, distance = self.rule.apart, self.distance
        if apart is not None and distance is not None and distance < apart:
            return "apart"
        return "alike" if self.says is None and self.least == self.rule.alike else "called"

    def __str__(self) -> str:
        parts: list[str] = []
        if self.distance is not None:
            parts.append(f"nearest picture at {self.time:.1f} s, {self.distance:.3f} apart")
        if self.likeness is not None:
            parts.append(
                f"nearest caption at {self.told:.1f} s, {self.likeness:.2f} alike: {self.text}"
            )
        if self.says is not None:
            parts.append(f"said at {self.says.time:.1f} s: {self.says.text}")
        return "; ".join(parts)


def looks(uri: str, every: float, start: float = 0.0, end: float | None = None) -> list[Frame]:
    """A descriptor every so many seconds of a video. Raises BadRow and Transient."""
    from mustsee.media.pictures import Thumbnails

    small = Thumbnails()
    return [_frame(p.time, small(p.decoded), p.turn) for p in _pictures(uri, every, start, end)]


def fitted_looks(
    uri: str, every: float, start: float, end: float, size: tuple[int, int]
) -> list[Frame]:
    """The descriptors that a probe may have in a video whose pictures are shown at `size` (width,
    height): as it is, fitted into them with black around, and both mirrored; of plain pictures
    none. Raises BadRow and Transient.
    """
    from mustsee.media.pictures import Thumbnails
    from mustsee.synth.pictures import CodedShape, FrameFitter

    scale = FITTED_PIXELS / max(size)
    width, height = (max(2, round(side * scale / 2) * 2) for side in size)
    fit = FrameFitter(
        CodedShape(width=width, height=height, rate=Fraction(25), tick=Fraction(1, 25))
    )
    small, framed, found = Thumbnails(), Thumbnails(FITTED_PIXELS), list[Frame]()
    for picture in _pictures(uri, every, start, end):
        whole = _told([_frame(picture.time, small(picture.decoded), picture.turn)])
        if whole:
            inside = _frame(picture.time, framed(fit(picture)), 0)
            found += [look for one in (*whole, inside) for look in (one, _mirrored(one))]
    return found


def _pictures(uri: str, every: float, start: float, end: float | None) -> Iterator[TimedFrame]:
    from mustsee.media.video import frames_at, open_video

    with open_video(uri) as watched:
        duration = watched.facts().duration
    last = duration if end is None else min(end, duration)
    yield from frames_at(uri, np.arange(start, last, every).tolist())


def _frame(time: float, tiny: Thumbnail, turn: int) -> Frame:
    from mustsee.media.descriptors import brightness, describe

    look = describe(tiny, turn)
    return Frame(time=time, brightness=brightness(tiny), motion=0.0, descriptor=look)


def _mirrored(frame: Frame) -> Frame:
    """The same picture with left and right exchanged."""
    look = np.asarray(frame.descriptor)
    planes = (look[:LUMA_NUMBERS].reshape(1, 8, 8), look[LUMA_NUMBERS:].reshape(2, 4, 4))
    turned = np.concatenate([plane[:, :, ::-1].ravel() for plane in planes])
    return replace(frame, descriptor=tuple(turned.tolist()))


def nearest(probe: Sequence[Frame], background: Sequence[Frame]) -> tuple[float, float]:
    """(time in the background, distance) of the two frames that look most alike; an infinite
    distance where one side has none.
    """
    probe, background = _told(probe), _told(background)
    if not probe or not background:
        return 0.0, float("inf")
    ours = np.asarray([f.descriptor for f in probe], np.float32)
    theirs = np.asarray([f.descriptor for f in background], np.float32)
    distances = np.sqrt(
        np.maximum(
            (ours**2).mean(1)[:, None]
            + (theirs**2).mean(1)[None]
            - 2 * ours @ theirs.T / ours.shape[1],
            0,
        )
    )
    at = int(distances.min(0).argmin())
    return background[at].time, float(distances[:, at].min())


def _told(frames: Sequence[Frame]) -> list[Frame]:
    """Frames with something in them: black and plain ones are alike and say nothing."""
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
    """The nearest moments. `frames`: those of the probe and those of the background. The probe's
    `caption`, and its `label` where it has none, is held against the background's `captions`, by
    embeddings where `embed` is given.
    """
    found = NearestMoments(rule=rule)
    time, distance = nearest(*frames)
    if distance < float("inf"):
        found = replace(found, time=time, distance=distance)
    least, what = (rule.alike, caption) if caption else (rule.called, label)
    if least is None or not what or not captions:
        return found
    if label and rule.called is not None:
        found = replace(found, says=next((c for c in captions if shows(label, c.text)), None))
    if embed is not None:
        vectors = embed([what, *(c.text for c in captions)])
        unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        scores = unit[1:] @ unit[0]
        best = captions[int(scores.argmax())]
        found = replace(
            found, told=best.time, likeness=float(scores.max()), text=best.text, least=least
        )
    return found


_LIGHT = frozenset(map(stem, STOP_WORDS))  # "making jewelry" is shown where jewelry is said


def _roots(text: str) -> list[str]:
    return [w[:-3] if w.endswith("ing") and len(w) > 5 else w for w in terms(text)]


def shows(label: str, text: str) -> bool:
    """Whether a text has all the words of an action's label, in any form ("tosses a coin" for
    "tossing coin", "jet skis" for "jetskiing").
    """
    (wanted, one), said = _wanted(label), _roots(text)
    if wanted and all(any(_same(w, s) for s in said) for w in wanted):
        return True
    return len(one) >= 6 and one in "".join(words(text))


@lru_cache(maxsize=1024)
def _wanted(label: str) -> tuple[tuple[str, ...], str]:
    """The words that tell an action, and all of its label as one."""
    found = _roots(label)
    heavy = [w for w in found if not any(_same(w, light) for light in _LIGHT)]
    return tuple(heavy or found), stem("".join(words(label)))


def _same(one: str, other: str) -> bool:
    """Two stems of one word: "tos" and "toss", "mak" and "make"."""
    short, long = sorted((one, other), key=len)
    return one == other or (
        len(short) >= 3
        and len(long) == len(short) + 1
        and long.startswith(short)
        and long[-1] in ("e", short[-1])
    )
