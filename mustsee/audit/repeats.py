"""Questions and videos that occur twice: within a dataset, and in others that it should not share.

Two questions are the same exactly where their words and those of their answer are; nearly where the
words of question, answer and options are alike by tf-idf; by embedding where a sentence encoder
says so of question and answer. Across videos half of the options must be the same, too: "What does
he do then?" and "Nothing." are no copy. Words that decide (first, before, left, two, not) must be
the same everywhere: to both measures they are hardly a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mustsee.audit.guessers import plain
from mustsee.layouts.reading import answer_of
from mustsee.records import Question, Video
from mustsee.text import NUMBERS, Terms, words
from mustsee.vectors import unit

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
How = Literal["exact", "near", "embedding"]
NEAR = 0.92  # cosine of tf-idf: one or two words of twenty differ
APART = 0.03  # root mean square of descriptors, of pictures at equal distances: the same film
LOOKS = 16  # pictures of a film that are compared
DECIDING = frozenset(
    words(
        "first second third fourth fifth last next before after during while until left right "
        "upper lower top bottom above below up down inside outside more less most least not no "
        "never always without except beginning middle end start"
    )
) | set(NUMBERS)


@dataclass(frozen=True, kw_only=True)
class Pair:
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
class SameFilm:
    """A film that another dataset has, too: by its id, its content's digest, or its looks."""

    video: str
    other: str
    how: Literal["id", "digest", "looks"]
    dataset: str


def within(
    questions: Sequence[Question], embed: Embed | None = None, *, alike: float = 0.95
) -> list[Pair]:
    """The pairs in one dataset, each once, by the first way that finds it."""
    texts = [_text(q) for q in questions]
    found: dict[tuple[int, int], tuple[How, float]] = {}
    for same in _exact(questions):
        pairs = ((a, b) for n, a in enumerate(same) for b in same[n + 1 :])
        found |= {(a, b): ("exact", 1.0) for a, b in pairs if _offered(questions[a], questions[b])}
    for a, b, cosine in _near(texts, texts):
        one, two = questions[a], questions[b]
        if a < b and _agree(one, two) and _same(one, two):
            found.setdefault((a, b), ("near", cosine))
    if embed is not None and len(questions) > 1:
        for a, b, cosine in _embedded(questions, questions, embed, alike):
            if a < b and _same(questions[a], questions[b]):
                found.setdefault((a, b), ("embedding", cosine))
    return [
        _pair(questions[b], questions[a], how, likeness)
        for (a, b), (how, likeness) in sorted(found.items())
    ]


def _exact(questions: Sequence[Question]) -> list[list[int]]:
    """Those of the same question and answer."""
    found: dict[tuple[str, ...], list[int]] = {}
    for number, q in enumerate(questions):
        asked, answer = plain(q.question), plain(answer_of(q))
        found.setdefault((asked, answer), []).append(number)
    return [same for same in found.values() if len(same) > 1]


def _agree(one: Question, two: Question) -> bool:
    """Whether the answers have the same words in the same order."""
    return plain(answer_of(one)) == plain(answer_of(two))


def _same(one: Question, two: Question) -> bool:
    """Whether they may be one question, if their words are alike."""
    mine, other = (
        sorted(w for w in words(q.question) if w in DECIDING or w.isdecimal()) for q in (one, two)
    )
    return mine == other and _offered(one, two)


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
) -> list[Pair]:
    """Questions that another dataset has, too, each with the likest of them."""
    known: dict[tuple[str, str], list[int]] = {}
    for number, q in enumerate(others):
        known.setdefault((plain(q.question), plain(answer_of(q))), []).append(number)
    found: dict[int, tuple[int, How, float]] = {}
    for number, q in enumerate(questions):
        for at in known.get((plain(q.question), plain(answer_of(q))), ()):
            if _offered(q, others[at]):
                found.setdefault(number, (at, "exact", 1.0))
    left = [n for n in range(len(questions)) if n not in found]
    for a, b, cosine in _near([_text(questions[n]) for n in left], [_text(q) for q in others]):
        if _agree(questions[left[a]], others[b]) and _same(questions[left[a]], others[b]):
            _better(found, left[a], b, "near", cosine)
    left = [n for n in left if n not in found]
    if embed is not None and left and others:
        for a, b, cosine in _embedded([questions[n] for n in left], others, embed, alike):
            if _same(questions[left[a]], others[b]):
                _better(found, left[a], b, "embedding", cosine)
    return [
        _pair(questions[n], others[b], how, likeness, dataset)
        for n, (b, how, likeness) in sorted(found.items())
    ]


def _better(
    found: dict[int, tuple[int, How, float]], number: int, other: int, how: How, likeness: float
) -> None:
    if number not in found or likeness > found[number][2]:
        found[number] = other, how, likeness


def _pair(one: Question, two: Question, how: How, likeness: float, dataset: str = "") -> Pair:
    return Pair(
        question=one.question_id,
        other=two.question_id,
        how=how,
        likeness=round(likeness, 4),
        video=one.video_id == two.video_id,
        dataset=dataset,
    )


def _text(question: Question) -> str:
    return " ".join((question.question, *sorted(question.options)))


def _near(texts: Sequence[str], others: Sequence[str]) -> list[tuple[int, int, float]]:
    if not texts or not others:
        return []
    terms = Terms(others)
    found: list[tuple[int, int, float]] = []
    for number, text in enumerate(texts):
        likeness = terms.likeness(text)
        found += [(number, int(b), float(likeness[b])) for b in np.flatnonzero(likeness >= NEAR)]
    return found


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


def films(
    videos: Sequence[Video],
    others: Sequence[Video],
    dataset: str,
    looks: Mapping[str, NDArray[np.float32]] | None = None,
) -> list[SameFilm]:
    """Films that another dataset has, too. `looks`: address -> descriptors of `LOOKS` pictures."""
    ids = {v.video_id for v in others} | {v.source for v in others if v.source}
    digests = {v.digest: v.video_id for v in others if v.digest}
    seen = [(v.video_id, looks[v.uri]) for v in others if looks and v.uri in looks]
    found: list[SameFilm] = []
    for video in videos:
        own = next((i for i in (video.video_id, video.source) if i in ids), None)
        mine = looks.get(video.uri) if looks else None
        if own is not None:
            found.append(SameFilm(video=video.video_id, other=own, how="id", dataset=dataset))
        elif video.digest in digests:
            other = digests[video.digest]
            found.append(SameFilm(video=video.video_id, other=other, how="digest", dataset=dataset))
        elif mine is not None:
            near = [n for n, d in seen if float(np.sqrt(np.mean((mine - d) ** 2))) < APART]
            found += [
                SameFilm(video=video.video_id, other=n, how="looks", dataset=dataset)
                for n in near[:1]
            ]
    return found
