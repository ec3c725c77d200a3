"""Repeated questions and videos: within a dataset, and between a dataset and benchmarks.

Two questions are an exact repeat if they and their answers have the same words; a near repeat if
the questions differ only in stop words and endings; a repeat by embedding if a sentence encoder
finds both questions and answers similar. Across videos at least half of the options must be the
same too: "What does he do then?" with "Nothing." is not a copy. Deciding words (first, before,
left, two, not) must always be the same, because an encoder hardly distinguishes them.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mustsee.audit.guessers import plain
from mustsee.errors import BadRow, NotInstalled, Transient
from mustsee.layouts.reading import answer_of
from mustsee.media.frames import Thumbnails
from mustsee.media.samples import describe
from mustsee.media.video import facts, frames_at
from mustsee.nn.vectors import unit
from mustsee.records import OPEN, Question, Span, Video, group_pairs
from mustsee.text import NUMBERS, terms, words
from mustsee.verify.conditions.seen import spread

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
How = Literal["exact", "near", "embedding"]
DUPLICATE = "duplicate"  # first word of the drop reason of a question that repeats another one
MAX_SAME_DISTANCE = 0.03  # root mean square distance of the descriptors of one video's copies
COMPARED_FRAMES = 16  # evenly spread frames of a video that are compared
BLOCK_QUESTIONS = 512  # questions compared with all others at once
FEW_QUESTIONS = 100  # questions compared in pairs, to spare them the encoder
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


def open_encoder(model: str | None) -> Embed | None:
    """Return the sentence encoder in a folder or package; None, with a line on stderr, if it is not
    installed: then only words are compared.
    """
    if model is None:
        return None
    from mustsee.nn.bert import Encoder

    try:
        encoder = Encoder.load(model)
    except NotInstalled as error:
        print(f"repeated questions are found by their words only: {error}", file=sys.stderr)
        return None
    return lambda texts: encoder.encode(list(texts))


def repeats_among_kept(
    questions: Sequence[Question], embed: Embed | None, *, alike: float
) -> list[RepeatedPair]:
    """Return the repeats among the questions that are kept. Those that passed every filter are
    compared first, so that of two it is the other one that repeats. The open form of a question is
    no repeat of it.
    """
    ids = {q.question_id for q in questions if q.drop is None}
    kept = [
        q for q in questions
        if q.drop is None and not (q.relation == OPEN and q.sibling_of in ids)
    ]  # fmt: skip
    kept.sort(key=lambda q: bool(q.failed_filters or q.unverified_by))
    return repeats_within(kept, embed, alike=alike)


def drop_repeats(
    questions: Sequence[Question], pairs: Sequence[RepeatedPair]
) -> tuple[Question, ...]:
    """Return the questions, with the one that it repeats as the reason of each that is dropped. The
    open form of a dropped question goes with it.
    """
    reasons = {
        pair.question: f"{DUPLICATE}: repeats {pair.other} ({pair.how}, {pair.likeness:.2f})"
        for pair in pairs
    }
    kept = list[Question]()
    for question in questions:
        of = question.sibling_of if question.relation == OPEN else None
        reason = reasons.get(question.question_id) or reasons.get(of or "")
        kept.append(replace(question, drop=reason, subsets=()) if reason else question)
    return tuple(kept)


def needs_vectors(questions: Sequence[Question]) -> bool:
    """Whether vectors can find repeats in one dataset: some two questions have the same deciding
    words and share options. More than `FEW_QUESTIONS` are taken to.
    """
    return len(questions) > FEW_QUESTIONS or any(
        _share_options(questions[a], questions[b])
        for numbers in _by_deciding_words(questions).values()
        for a, b in combinations(numbers, 2)
    )


def repeats_within(
    questions: Sequence[Question], embed: Embed | None = None, *, alike: float = 0.95
) -> list[RepeatedPair]:
    """Return the repeated questions of one dataset, each once, with the first question that it
    repeats and that repeats no other itself, and the first method that finds it.
    """
    pairs: dict[int, tuple[int, How, float]] = {}
    groups = _by_deciding_words(questions)  # questions that differ in these never repeat another
    vectors = _vectors(questions, embed) if embed is not None and len(questions) > 1 else None
    for numbers in groups.values():
        families: dict[How, dict[tuple[str, ...], _Family]] = {
            how: dict[tuple[str, ...], _Family]() for how in KEYS
        }
        rows = _similar_rows(vectors, numbers, vectors, numbers, alike) if vectors else ()
        similar = {row: (others, cosines) for row, others, cosines in rows}
        for number in numbers:
            question = questions[number]
            own: list[tuple[How, _Family]] = [
                (how, families[how].setdefault(key(question), _Family()))
                for how, key in KEYS.items()
            ]
            for how, family in own:
                if (other := family.first(question)) is not None:
                    pairs[number] = other, how, 1.0
                    break
            if number in pairs:
                continue
            for n, cosine in zip(*similar.get(number, ((), ())), strict=True):
                if n < number and n not in pairs and _share_options(question, questions[n]):
                    pairs[number] = int(n), "embedding", float(cosine)
                    break
            else:
                for _, family in own:
                    family.add(number, question)
    return [
        _pair(questions[number], questions[other], how, likeness)
        for number, (other, how, likeness) in sorted(pairs.items(), key=lambda p: (p[1][0], p[0]))
    ]


class _Family:
    """Questions with the same words, in which the first that shares a question's options is found
    without comparing it with each.
    """

    def __init__(self) -> None:
        self._first: int | None = None
        self._by_video: dict[str, int] = {}
        self._by_options: dict[frozenset[str], int] = {}

    def add(self, number: int, question: Question) -> None:
        self._first = number if self._first is None else self._first
        self._by_video.setdefault(question.video_id, number)
        self._by_options.setdefault(frozenset(map(plain, question.options)), number)

    def first(self, question: Question) -> int | None:
        """Return the first member that `_share_options` accepts; None if there is none."""
        options = frozenset(map(plain, question.options))
        if not options:
            return self._first
        members = [n for own, n in self._by_options.items() if not own or _share_half(own, options)]
        members += [n for n in [self._by_video.get(question.video_id)] if n is not None]
        return min(members, default=None)


def _exact_key(question: Question) -> tuple[str, ...]:
    return plain(question.question), plain(answer_of(question))


def _near_key(question: Question) -> tuple[str, ...]:
    """Return the stems of the content words, the deciding words, and the answer."""
    stems = " ".join(terms(question.question))
    return stems, " ".join(_deciding_words(question)), plain(answer_of(question))


KEYS: Mapping[How, Callable[[Question], tuple[str, ...]]] = {"exact": _exact_key, "near": _near_key}


def _deciding_words(question: Question) -> list[str]:
    return [w for w in words(question.question) if w in DECIDING or w.isdecimal()]


def _by_deciding_words(questions: Sequence[Question]) -> dict[tuple[str, ...], list[int]]:
    """Return the numbers of the questions by their deciding words, in any order."""
    return group_pairs((tuple(sorted(_deciding_words(q))), n) for n, q in enumerate(questions))


def _share_options(one: Question, two: Question) -> bool:
    """Whether two questions are on one video, or have at least half of their options in common."""
    if one.video_id == two.video_id or not one.options or not two.options:
        return True
    return _share_half(frozenset(map(plain, one.options)), frozenset(map(plain, two.options)))


def _share_half(own: frozenset[str], others: frozenset[str]) -> bool:
    return 2 * len(own & others) >= len(own | others)


def near_duplicates(
    questions: Sequence[Question], embed: Embed, *, alike: float, seed: int
) -> dict[str, str]:
    """Return id -> id of the question that it repeats, within a clip and across clips (EgoSchema,
    11.1, edge case 2). Dropped questions are ignored.

    Two questions are near duplicates if the cosine of their vectors is at least `alike`, and so is
    that of their answers. Of those that are linked one is kept: the first in a seeded order, so
    that no clip is favoured.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    kept = sorted(
        (q for q in questions if q.drop is None),
        key=lambda q: random.Random(f"{seed}/{q.question_id}").random(),
    )
    if len(kept) < 2:
        return {}
    vectors, numbers = _vectors(kept, embed), range(len(kept))
    rows = _similar_rows(vectors, numbers, vectors, numbers, alike)
    links = np.array([(row, other) for row, others, _ in rows for other in others]).reshape(-1, 2)
    size = (len(kept), len(kept))
    _, groups = connected_components(coo_array((np.ones(len(links)), links.T), size))
    first: dict[int, str] = {}
    leaders = [first.setdefault(int(g), q.question_id) for g, q in zip(groups, kept, strict=True)]
    return {
        q.question_id: own for q, own in zip(kept, leaders, strict=True) if own != q.question_id
    }


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
        by_key = group_pairs((key(other), number) for number, other in enumerate(others))
        for number, question in enumerate(questions):
            for match in by_key.get(key(question), ()):
                if _share_options(question, others[match]):
                    best.setdefault(number, (match, how, 1.0))
    left = [n for n in range(len(questions)) if n not in best]
    if embed is not None and left and others:
        vectors, other_vectors = _vectors(questions, embed), _vectors(others, embed)
        others_by_words = _by_deciding_words(others)
        for words_of_group, numbers in _by_deciding_words(questions).items():
            rows = [n for n in numbers if n not in best]
            matches = others_by_words.get(words_of_group, [])
            for a, found, cosines in _similar_rows(vectors, rows, other_vectors, matches, alike):
                for n in np.argsort(-cosines, kind="stable"):
                    if _share_options(questions[a], others[int(found[n])]):
                        best[a] = int(found[n]), "embedding", float(cosines[n])
                        break
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


Vectors = tuple[NDArray[np.float32], NDArray[np.float32]]  # of the questions, of the answers


def _vectors(questions: Sequence[Question], embed: Embed) -> Vectors:
    texts, answers = (unit(embed(texts)) for texts in _texts_and_answers(questions))
    return texts, answers


def _similar_rows(
    vectors: Vectors, rows: Sequence[int], others: Vectors, columns: Sequence[int], alike: float
) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.float32]]]:
    """Yield each row that is similar to some columns: the row, these columns in order, and the
    cosines of the questions. Similar: the cosines of questions and of answers are at least `alike`.
    """
    if not rows or not columns:
        return
    where = np.array(columns)
    (texts, answers), (other_texts, other_answers) = vectors, (v[where] for v in others)
    for low in range(0, len(rows), BLOCK_QUESTIONS):
        block = list(rows[low : low + BLOCK_QUESTIONS])
        cosines = texts[block] @ other_texts.T
        similar = (cosines >= alike) & (answers[block] @ other_answers.T >= alike)
        for place in np.flatnonzero(similar.any(axis=1)):
            yield block[place], where[similar[place]], cosines[place][similar[place]]


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
        how: Literal["id", "digest", "looks"] = "id"
        if own is None and video.digest in digests:
            own, how = digests[video.digest], "digest"
        elif own is None and mine is not None:
            near = (
                n for n, v in described if np.sqrt(np.mean((mine - v) ** 2)) < MAX_SAME_DISTANCE
            )
            own, how = next(near, None), "looks"
        if own is not None:
            shared.append(SharedVideo(video=video.video_id, other=own, how=how, dataset=dataset))
    return shared


def fingerprint(uri: str) -> NDArray[np.float32] | None:
    """Return the descriptors of `COMPARED_FRAMES` evenly spread frames as one vector; None for a
    video that cannot be read.
    """
    thumbnail = Thumbnails()
    try:
        seconds = facts(uri).duration
        times = spread((Span(0.0, seconds),), COMPARED_FRAMES)
        descriptors = [describe(thumbnail(f.decoded), f.turn) for f in frames_at(uri, times)]
    except (BadRow, Transient):
        return None
    return np.asarray(descriptors, dtype=np.float32).reshape(-1)
