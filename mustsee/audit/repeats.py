"""Questions and videos that occur twice: within a dataset, and in others that it should not share.

Two questions are the same exactly where their words and those of their answer are; nearly where the
questions differ in small words and endings alone; by embedding where a sentence encoder says so of
question and answer. Across videos half of the options must be the same, too: "What does he do
then?" and "Nothing." are no copy. Words that decide (first, before, left, two, not) must be the
same everywhere: to an encoder they are hardly a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mustsee.audit.guessers import plain
from mustsee.layouts.reading import answer_of
from mustsee.records import Question, Video
from mustsee.text import NUMBERS, terms, words
from mustsee.vectors import unit

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
How = Literal["exact", "near", "embedding"]
# root mean square of descriptors, of pictures at equal distances: the same video
MAX_SAME_DISTANCE = 0.03
COMPARED_FRAMES = 16  # pictures of a video that are compared
DECIDING = frozenset(
    words(
        "first second third fourth fifth last next before after during while until left right "
        "upper lower top bottom above below up down inside outside more less most least not no "
        "never always without except beginning middle end start"
    )
) | set(NUMBERS)


@dataclass(frozen=True, kw_only=True)
class RepeatedPair:
    """Two questions that are the same, the later one first. `video`: whether of one video;
    `dataset`: where `other` is from, empty for this one.
    """

    question: str
    other: str
    how: How
    likeness: float
    video: bool
    dataset: str = ""


@dataclass(frozen=True, kw_only=True)
class SharedVideo:
    """A video that another dataset has, too: by its id, its content's digest, or its looks."""

    video: str
    other: str
    how: Literal["id", "digest", "looks"]
    dataset: str


def repeats_within(
    questions: Sequence[Question], embed: Embed | None = None, *, alike: float = 0.95
) -> list[RepeatedPair]:
    """The pairs in one dataset, each once, by the first way that finds it."""
    found: dict[tuple[int, int], tuple[How, float]] = {}
    for how, key in KEYS.items():
        families: dict[tuple[str, ...], list[int]] = {}
        for number, question in enumerate(questions):
            families.setdefault(key(question), []).append(number)
        for same in families.values():
            for a, b in combinations(same, 2):
                if _offered(questions[a], questions[b]):
                    found.setdefault((a, b), (how, 1.0))
    if embed is not None and len(questions) > 1:
        for a, b, cosine in _embedded(questions, questions, embed, alike):
            if a < b and _same(questions[a], questions[b]):
                found.setdefault((a, b), ("embedding", cosine))
    return [
        _pair(questions[b], questions[a], how, likeness)
        for (a, b), (how, likeness) in sorted(found.items())
    ]


def _exact(question: Question) -> tuple[str, ...]:
    return plain(question.question), plain(answer_of(question))


def _near(question: Question) -> tuple[str, ...]:
    """The stems of the words that carry meaning, and the words that decide."""
    stems = " ".join(terms(question.question))
    return stems, " ".join(_deciding(question)), plain(answer_of(question))


KEYS: Mapping[How, Callable[[Question], tuple[str, ...]]] = {"exact": _exact, "near": _near}


def _deciding(question: Question) -> list[str]:
    return [w for w in words(question.question) if w in DECIDING or w.isdecimal()]


def _same(one: Question, two: Question) -> bool:
    """Whether they may be one question, if their words are alike."""
    return sorted(_deciding(one)) == sorted(_deciding(two)) and _offered(one, two)


def _offered(one: Question, two: Question) -> bool:
    """Whether they are asked of one video, or have half of their options in common."""
    if one.video_id == two.video_id or not one.options or not two.options:
        return True
    own, others = set(map(plain, one.options)), set(map(plain, two.options))
    return 2 * len(own & others) >= len(own | others)


def overlap(
    questions: Sequence[Question],
    others: Sequence[Question],
    dataset: str,
    embed: Embed | None = None,
    *,
    alike: float = 0.95,
) -> list[RepeatedPair]:
    """Questions that another dataset has, too, each with the likest of them."""
    found: dict[int, tuple[int, How, float]] = {}
    for how, key in KEYS.items():
        known: dict[tuple[str, ...], list[int]] = {}
        for number, question in enumerate(others):
            known.setdefault(key(question), []).append(number)
        for number, question in enumerate(questions):
            for at in known.get(key(question), ()):
                if _offered(question, others[at]):
                    found.setdefault(number, (at, how, 1.0))
    left = [n for n in range(len(questions)) if n not in found]
    if embed is not None and left and others:
        for a, b, cosine in _embedded([questions[n] for n in left], others, embed, alike):
            known_better = left[a] in found and found[left[a]][2] >= cosine
            if _same(questions[left[a]], others[b]) and not known_better:
                found[left[a]] = b, "embedding", cosine
    return [
        _pair(questions[n], others[b], how, likeness, dataset)
        for n, (b, how, likeness) in sorted(found.items())
    ]


def _pair(
    one: Question, two: Question, how: How, likeness: float, dataset: str = ""
) -> RepeatedPair:
    return RepeatedPair(
        question=one.question_id,
        other=two.question_id,
        how=how,
        likeness=round(likeness, 4),
        video=one.video_id == two.video_id,
        dataset=dataset,
    )


def _embedded(
    questions: Sequence[Question], others: Sequence[Question], embed: Embed, alike: float
) -> list[tuple[int, int, float]]:
    """Where the questions' and the answers' vectors both are alike."""
    asked, given = (unit(embed(t)) for t in _both(questions))
    same = questions is others
    asked_too, given_too = (asked, given) if same else (unit(embed(t)) for t in _both(others))
    found: list[tuple[int, int, float]] = []
    for low in range(0, len(asked), 512):
        cosines = asked[low : low + 512] @ asked_too.T
        alikes = (cosines >= alike) & (given[low : low + 512] @ given_too.T >= alike)
        found += [(low + int(a), int(b), float(cosines[a, b])) for a, b in np.argwhere(alikes)]
    return found


def _both(questions: Sequence[Question]) -> tuple[list[str], list[str]]:
    return [q.question for q in questions], [answer_of(q) for q in questions]


def shared_videos(
    videos: Sequence[Video],
    others: Sequence[Video],
    dataset: str,
    looks: Mapping[str, NDArray[np.float32]] | None = None,
) -> list[SharedVideo]:
    """Videos that another dataset has, too. `looks`: address -> descriptors of `COMPARED_FRAMES`
    pictures.
    """
    ids = {v.video_id for v in others} | {v.source for v in others if v.source}
    digests = {v.digest: v.video_id for v in others if v.digest}
    seen = [(v.video_id, looks[v.uri]) for v in others if looks and v.uri in looks]
    found: list[SharedVideo] = []
    for video in videos:
        own = next((i for i in (video.video_id, video.source) if i in ids), None)
        mine = looks.get(video.uri) if looks else None
        if own is not None:
            found.append(SharedVideo(video=video.video_id, other=own, how="id", dataset=dataset))
        elif video.digest in digests:
            other = digests[video.digest]
            found.append(
                SharedVideo(video=video.video_id, other=other, how="digest", dataset=dataset)
            )
        elif mine is not None:
            near = [
                n for n, d in seen if float(np.sqrt(np.mean((mine - d) ** 2))) < MAX_SAME_DISTANCE
            ]
            found += [
                SharedVideo(video=video.video_id, other=n, how="looks", dataset=dataset)
                for n in near[:1]
            ]
    return found
