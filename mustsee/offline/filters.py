"""The filters' prompts answered by rules: a guesser without the video, and one with the transcript.

The first uses what gives an answer away: words shared with the question, similarity to all other
options, length, known sequences. The second also compares the options with the transcript. Seeds
vary the weights.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mustsee.calls.llm import Request
from mustsee.questions.checks import is_order
from mustsee.questions.orders import naturalness
from mustsee.text import LETTERS, NUMBERS, TermVectors, terms, words

COURSE_WEIGHT = 3.0  # weight of following a known sequence, above all other hints
Scores = NDArray[np.float64]
_LINE = re.compile(r"^\[[\d.]+-[\d.]+\] (.*)$")
_QUOTE = re.compile(r"[“\"]([^”\"]+)[”\"]")
_EDGE = re.compile(r"\b(?:beginning|start|first words|very end|last words|close)\b", re.IGNORECASE)
_BEFORE = re.compile(r"\bbefore\b", re.IGNORECASE)
_AFTER = re.compile(r"\b(?:after|next|follow)", re.IGNORECASE)


def blind(request: Request) -> str:
    """Rank the options by the question and the options alone."""
    question, options = request.variables["question"], request.variables["options"]
    return _ranked(giveaway(question, options, request.seed), "by wording, likeness and length")


def options_alone(request: Request) -> str:
    """Rank the options by these alone."""
    return _ranked(giveaway("", request.variables["options"], request.seed), "by likeness, length")


def pick(request: Request) -> str:
    """Name the first option of that ranking."""
    question, options = request.variables["question"], request.variables["options"]
    scores = giveaway(question, options, request.seed)
    return LETTERS[max(range(len(options)), key=lambda i: (scores[i], -i))]


def asr(request: Request) -> str:
    """Rank the options by these and the transcript."""
    question, options = request.variables["question"], request.variables["options"]
    scores, how = _heard(question, options, request.variables["transcript"], request.seed)
    return _ranked(scores, how)


def _heard(question: str, options: Sequence[str], transcript: str, seed: int) -> tuple[Scores, str]:
    """Score options by these and the transcript; say by what."""
    lines = tuple(m[1] for x in transcript.splitlines() if (m := _LINE.match(x)))
    hints = giveaway(question, options, seed)
    from_lines = option_scores(question, options, lines, seed) if lines else hints * 0
    return 0.1 * hints + from_lines, "by what is said" if from_lines.any() else "by wording alone"


def guess_set(request: Request) -> str:
    """Rank the options of each question as if it stood alone."""
    transcript, ranked = request.variables.get("transcript"), list[str]()
    for number, one in enumerate(request.variables["asked"], 1):
        question, options = one["question"], one["options"]
        scores, how = giveaway(question, options, request.seed), "by wording, likeness and length"
        if transcript is not None:
            scores, how = _heard(question, options, transcript, request.seed)
        ranked.append(f"QUESTION {number}: {ranking_of(scores)} | {how}")
    return "\n".join(ranked)


def match(request: Request) -> str:
    """Match questions and answers so that the sum of the answers' scores is the greatest."""
    from scipy.optimize import linear_sum_assignment

    transcript, answers = request.variables["transcript"], request.variables["answers"]
    scores = np.array(
        [
            giveaway(question, answers, request.seed)
            if transcript is None
            else _heard(question, answers, transcript, request.seed)[0]
            for question in request.variables["asked"]
        ]
    )
    _, columns = linear_sum_assignment(-scores)
    return "\n".join(
        f"QUESTION {number}: {LETTERS[column]}" for number, column in enumerate(columns, 1)
    )


def guess_open(request: Request) -> str:
    """Answer with the most similar transcript line, or without one with the question's words."""
    question, transcript = request.variables["question"], request.variables["transcript"]
    lines = [m[1] for x in (transcript or "").splitlines() if (m := _LINE.match(x))]
    if not lines:
        return f"* ANSWER: {' '.join(terms(question)) or question}\n* EXPLANATION: as it is asked."
    scores = _terms(tuple(lines)).likeness(question)
    return f"* ANSWER: {lines[int(scores.argmax())]}\n* EXPLANATION: the nearest that is said."


def _ranked(scores: Scores, how: str) -> str:
    ranking = ranking_of(scores)
    return f"* ANSWER: {ranking}\n* EXPLANATION: {how}, {ranking[0]} fits best."


def ranking_of(scores: Scores) -> str:
    """Write the letters of options by their scores, the highest first."""
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    return " > ".join(LETTERS[i] for i in order)


def giveaway(question: str, options: Sequence[str], seed: int) -> Scores:
    """Score how much each option gives itself away, from 0 to about 3, or 6 by a known order."""
    rng = random.Random(f"{seed}/{question}/{sorted(options)}")
    vectors = TermVectors([question, *options])
    question_likeness = vectors.cosines[0, 1:]
    option_likeness = (vectors.cosines[1:, 1:].sum(axis=1) - 1) / max(1, len(options) - 1)
    numbers = [_number(option) for option in options]
    if all(f is not None for f in numbers):
        values = np.array([f or 0.0 for f in numbers])
        option_likeness = -np.abs(values - np.median(values))
    length = np.array([float(len(words(option))) for option in options])
    total = np.array([COURSE_WEIGHT * naturalness(question, option) for option in options])
    for feature, weight in ((question_likeness, 1.0), (option_likeness, 0.6), (length, 0.4)):
        total += weight * rng.uniform(0.5, 1.5) * _scaled(feature)
    return total + np.array([rng.uniform(0, 0.3) for _ in options])


def _number(text: str) -> float | None:
    bare = text.strip().lower()
    if bare in NUMBERS:
        return float(NUMBERS[bare])
    return float(bare) if re.fullmatch(r"\d+(?:\.\d+)?", bare) else None


def _scaled(values: Scores) -> Scores:
    """Scale values to 0 (the least) to 1 (the greatest); 0 if all are equal."""
    spread = float(values.max() - values.min())
    return (values - values.min()) / spread if spread > 1e-9 else values * 0


def option_scores(
    question: str, options: Sequence[str], lines: tuple[str, ...], seed: int
) -> Scores:
    """Score how well each option fits the transcript, from 0 to 1. An order is scored by the order
    of its things in the transcript, a number by the words around it, and other options by lines
    that contain them and their distance from the question's quote, beginning or end.
    """
    if is_order(question, options[0]):
        return np.array([_in_order(re.split(r"\s*;\s*", option), lines) for option in options])
    if all(_number(option) is not None for option in options):
        return np.array([_counted(question, option, lines) for option in options])
    rng = random.Random(f"{seed}/{question}/heard")
    vectors = _terms(lines)
    quote = _QUOTE.search(question)
    question_likeness = vectors.likeness(quote[1] if quote else question)
    index_asked = _edge(question, len(lines))
    if index_asked is None and question_likeness.max() > 0.35:
        index_asked = int(question_likeness.argmax())
    scores = np.zeros(len(options))
    for index, option in enumerate(options):
        likeness = vectors.likeness(option)
        if index_asked is None:
            scores[index] = float(
                (likeness * (1 + rng.uniform(0.5, 1.5) * question_likeness)).max()
            )
        else:
            nearness = np.array([_near(question, i - index_asked) for i in range(len(lines))])
            scores[index] = float((likeness * (0.2 + nearness)).max())
    return _scaled(scores)


@lru_cache(maxsize=8)
def _terms(lines: tuple[str, ...]) -> TermVectors:
    return TermVectors(lines)


def _edge(question: str, count: int) -> int | None:
    """Return the index of the first or last line if the question names that end, else null."""
    match = _EDGE.search(question)
    if match is None:
        return None
    return 0 if match[0].lower().startswith(("begin", "start", "first")) else count - 1


def _near(question: str, steps: int) -> float:
    """Score a line that is `steps` lines after the quoted one by the question's direction."""
    if _BEFORE.search(question):
        return math.exp(-abs(steps + 1))
    if _AFTER.search(question):
        return math.exp(-abs(steps - 1))
    return math.exp(-abs(steps) / 2)


def _in_order(things: Sequence[str], lines: tuple[str, ...]) -> float:
    """Return the share of pairs of things that are in order in the transcript; 0 without pairs."""
    vectors = _terms(lines)
    indices: list[int] = []
    for thing in things:
        likeness = vectors.likeness(thing)
        if likeness.max() > 0.2:
            indices.append(int(likeness.argmax()))
    pairs = [(a, b) for i, a in enumerate(indices) for b in indices[i + 1 :] if a != b]
    return sum(a < b for a, b in pairs) / len(pairs) if pairs else 0.0


def _counted(question: str, option: str, lines: tuple[str, ...]) -> float:
    """Return the greatest share of the question's words behind the number in a line."""
    question_words, value = set(terms(question)), _number(option)
    best = 0.0
    for line in lines:
        line_words = words(line)
        for i, word in enumerate(line_words):
            if _number(word) == value:
                following = set(terms(" ".join(line_words[i : i + 4])))
                best = max(best, len(following & question_words) / max(1, len(question_words)))
    return best


def repair(request: Request) -> str:
    """Write NONE: the rules rewrite no question."""
    return "NONE"


RULES: dict[str, Callable[[Request], str]] = {
    "filters/blind": blind,
    "filters/options_alone": options_alone,
    "filters/pick": pick,
    "filters/asr": asr,
    "filters/guess_open": guess_open,
    "filters/guess_set": guess_set,
    "filters/match": match,
    "filters/repair": repair,
}
