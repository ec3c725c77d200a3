"""Repeated questions and videos: within a dataset, and between a dataset and benchmarks.

Two questions are an exact repeat if they and their answers have the same words; a near repeat if
the questions differ only in stop words and endings; a repeat by embedding if a sentence encoder
finds both questions and answers similar. Across videos at least half of the options must be the
same too: "What does he do then?" with "Nothing." is not a copy. Deciding words (first, before,
left, two, not) must always be the same, because an encoder hardly distinguishes them.
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
MAX_SAME_DISTANCE = 0.03  # root mean square distance of the descriptors of one video's copies
COMPARED_FRAMES = 16  # evenly spread frames of a video that are compared
BLOCK_QUESTIONS = 512  # questions compared with all others at once
DECIDING = frozenset(
    words(
        "first second third fourth fifth last next before after during while until left right "
        "upper lower top bottom above below up down inside outside more less most least not no "
        "never always without except beginning middle end start"
    )
) | set(NUMBERS)


@dataclass(frozen=True, kw_only=True)
class RepeatedPair:
    """Two equal questions, the later one first.

    `video`: whether both are on one video. `dataset`: of `other`; empty for the same dataset.
    """

    question: str
    other: str
    how: How
    likeness: float
    video: bool
    dataset: str = ""


@dataclass(frozen=True, kw_only=True)
class SharedVideo:
    """A video that another dataset has too, by its id, its digest, or its frames (`looks`)."""

    video: str
    other: str
    how: Literal["id", "digest", "looks"]
    dataset: str


def repeats_within(
    questions: Sequence[Question], embed: Embed | None = None, *, alike: float = 0.95
) -> list[RepeatedPair]:
    """Return the repeated pairs in one dataset, each once, with the first method that finds it."""
    pairs: dict[tuple[int, int], tuple[How, float]] = {}
    for how, key in KEYS.items():
        families: dict[tuple[str, ...], list[int]] = {}
        for number, question in enumerate(questions):
            families.setdefault(key(question), []).append(number)
        for same in families.values():
            for a, b in combinations(same, 2):
                if _share_options(questions[a], questions[b]):
                    pairs.setdefault((a, b), (how, 1.0))
    if embed is not None and len(questions) > 1:
        for a, b, cosine in _similar_pairs(questions, questions, embed, alike):
            if a < b and _may_repeat(questions[a], questions[b]):
                pairs.setdefault((a, b), ("embedding", cosine))
    return [
        _pair(questions[b], questions[a], how, likeness)
        for (a, b), (how, likeness) in sorted(pairs.items())
    ]


def _exact_key(question: Question) -> tuple[str, ...]:
    return plain(question.question), plain(answer_of(question))


def _near_key(question: Question) -> tuple[str, ...]:
    """Return the stems of the content words, the deciding words, and the answer."""
    stems = " ".join(terms(question.question))
    return stems, " ".join(_deciding_words(question)), plain(answer_of(question))


KEYS: Mapping[How, Callable[[Question], tuple[str, ...]]] = {
    "exact": _exact_key,
    "near": _near_key,
}


def _deciding_words(question: Question) -> list[str]:
    return [w for w in words(question.question) if w in DECIDING or w.isdecimal()]


def _may_repeat(one: Question, two: Question) -> bool:
    """Whether two questions with similar embeddings may be equal."""
    return sorted(_deciding_words(one)) == sorted(_deciding_words(two)) and _share_options(one, two)


def _share_options(one: Question, two: Question) -> bool:
    """Whether two questions are on one video, or have at least half of their options in common."""
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
    """Return the questions that another dataset has too, each with the most similar one there."""
    best: dict[int, tuple[int, How, float]] = {}
    for how, key in KEYS.items():
        by_key: dict[tuple[str, ...], list[int]] = {}
        for number, question in enumerate(others):
            by_key.setdefault(key(question), []).append(number)
        for number, question in enumerate(questions):
            for match in by_key.get(key(question), ()):
                if _share_options(question, others[match]):
                    best.setdefault(number, (match, how, 1.0))
    left = [n for n in range(len(questions)) if n not in best]
    if embed is not None and left and others:
        for a, b, cosine in _similar_pairs([questions[n] for n in left], others, embed, alike):
            has_better = left[a] in best and best[left[a]][2] >= cosine
            if _may_repeat(questions[left[a]], others[b]) and not has_better:
                best[left[a]] = b, "embedding", cosine
    return [
        _pair(questions[n], others[b], how, likeness, dataset)
        for n, (b, how, likeness) in sorted(best.items())
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


def _similar_pairs(
    questions: Sequence[Question], others: Sequence[Question], embed: Embed, alike: float
) -> list[tuple[int, int, float]]:
    """Return the index pairs with a cosine of at least `alike` of both questions and answers, and
    the questions' cosine.
    """
    texts, answers = (unit(embed(t)) for t in _texts_and_answers(questions))
    other_texts, other_answers = (
        (texts, answers)
        if questions is others
        else (unit(embed(t)) for t in _texts_and_answers(others))
    )
    pairs: list[tuple[int, int, float]] = []
    for low in range(0, len(texts), BLOCK_QUESTIONS):
        block = slice(low, low + BLOCK_QUESTIONS)
        cosines = texts[block] @ other_texts.T
        similar = (cosines >= alike) & (answers[block] @ other_answers.T >= alike)
        pairs += [(low + int(a), int(b), float(cosines[a, b])) for a, b in np.argwhere(similar)]
    return pairs


def _texts_and_answers(questions: Sequence[Question]) -> tuple[list[str], list[str]]:
    return [q.question for q in questions], [answer_of(q) for q in questions]


def shared_videos(
    videos: Sequence[Video],
    others: Sequence[Video],
    dataset: str,
    looks: Mapping[str, NDArray[np.float32]] | None = None,
) -> list[SharedVideo]:
    """Return the videos that another dataset has too. `looks`: `uri` -> descriptors of
    `COMPARED_FRAMES` frames.
    """
    ids = {v.video_id for v in others} | {v.source for v in others if v.source}
    digests = {v.digest: v.video_id for v in others if v.digest}
    described = [(v.video_id, looks[v.uri]) for v in others if looks and v.uri in looks]
    shared: list[SharedVideo] = []
    for video in videos:
        own = next((i for i in (video.video_id, video.source) if i in ids), None)
        mine = looks.get(video.uri) if looks else None
        if own is not None:
            shared.append(SharedVideo(video=video.video_id, other=own, how="id", dataset=dataset))
        elif video.digest in digests:
            other = digests[video.digest]
            shared.append(
                SharedVideo(video=video.video_id, other=other, how="digest", dataset=dataset)
            )
        elif mine is not None:
            near = [
                name
                for name, other in described
                if float(np.sqrt(np.mean((mine - other) ** 2))) < MAX_SAME_DISTANCE
            ]
            shared += [
                SharedVideo(video=video.video_id, other=n, how="looks", dataset=dataset)
                for n in near[:1]
            ]
    return shared
