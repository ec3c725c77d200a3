"""The filters' prompts answered by rules: a guesser without the video, and one with what is said.

The first knows what gives badly made questions away: an option that shares words with the question,
one that all others resemble, one that is longer. The second also looks the options up in the
transcript. Seeds vary how much each of these counts.
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
from mustsee.questions.checks import holds, is_order
from mustsee.text import LETTERS, NUMBERS, TermVectors, terms, words

Scores = NDArray[np.float64]
_LINE = re.compile(r"^\[[\d.]+-[\d.]+\] (.*)$")
_QUOTE = re.compile(r"[“\"]([^”\"]+)[”\"]")
_EDGE = re.compile(r"\b(?:beginning|start|first words|very end|last words|close)\b", re.IGNORECASE)
_BEFORE = re.compile(r"\bbefore\b", re.IGNORECASE)
_AFTER = re.compile(r"\b(?:after|next|follow)", re.IGNORECASE)


def blind(request: Request) -> str:
    """A ranking from the question and its options alone."""
    question, options = request.variables["question"], request.variables["options"]
    return _ranked(giveaway(question, options, request.seed), "by wording, likeness and length")


def pick(request: Request) -> str:
    """The first of that ranking, as a letter."""
    question, options = request.variables["question"], request.variables["options"]
    scores = giveaway(question, options, request.seed)
    return LETTERS[max(range(len(options)), key=lambda i: (scores[i], -i))]


def asr(request: Request) -> str:
    """A ranking from these and the transcript."""
    question, options = request.variables["question"], request.variables["options"]
    lines = tuple(
        m[1] for x in request.variables["transcript"].splitlines() if (m := _LINE.match(x))
    )
    hints = giveaway(question, options, request.seed)
    heard = option_scores(question, options, lines, request.seed) if lines else hints * 0
    return _ranked(0.1 * hints + heard, "by what is said" if heard.any() else "by wording alone")


def guess_open(request: Request) -> str:
    """What is said nearest to the question; without that, the question's own words."""
    question, transcript = request.variables["question"], request.variables["transcript"]
    said = [m[1] for x in (transcript or "").splitlines() if (m := _LINE.match(x))]
    if not said:
        return f"* ANSWER: {' '.join(terms(question)) or question}\n* EXPLANATION: as it is asked."
    near = _terms(tuple(said)).likeness(question)
    return f"* ANSWER: {said[int(near.argmax())]}\n* EXPLANATION: the nearest that is said."


def _ranked(scores: Scores, how: str) -> str:
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    ranking = " > ".join(LETTERS[i] for i in order)
    return f"* ANSWER: {ranking}\n* EXPLANATION: {how}, {LETTERS[order[0]]} fits best."


def giveaway(question: str, options: Sequence[str], seed: int) -> Scores:
    """How much each option gives itself away: 0 to about 3."""
    rng = random.Random(f"{seed}/{question}/{sorted(options)}")
    known = TermVectors([question, *options])
    asked = known.cosines[0, 1:]
    alike = (known.cosines[1:, 1:].sum(axis=1) - 1) / max(1, len(options) - 1)
    figures = [_number(option) for option in options]
    if all(f is not None for f in figures):
        values = np.array([f or 0.0 for f in figures])
        alike = -np.abs(values - np.median(values))
    length = np.array([float(len(words(option))) for option in options])
    total = np.zeros(len(options))
    for feature, weight in ((asked, 1.0), (alike, 0.6), (length, 0.4)):
        total += weight * rng.uniform(0.5, 1.5) * _scaled(feature)
    return total + np.array([rng.uniform(0, 0.3) for _ in options])


def _number(text: str) -> float | None:
    bare = text.strip().lower()
    if bare in NUMBERS:
        return float(NUMBERS[bare])
    return float(bare) if re.fullmatch(r"\d+(?:\.\d+)?", bare) else None


def _scaled(values: Scores) -> Scores:
    """From 0 for the least to 1 for the greatest; 0 where all are equal."""
    spread = float(values.max() - values.min())
    return (values - values.min()) / spread if spread > 1e-9 else values * 0


def option_scores(
    question: str, options: Sequence[str], lines: tuple[str, ...], seed: int
) -> Scores:
    """How well each option goes with the transcript, 0 to 1: an order by whether its things are
    said in it; a number by the words around it; anything else by the lines that hold it and how
    near they are to what the question quotes, or to the beginning or end that it speaks of.
    """
    if is_order(question, options[0]):
        return np.array([_in_order(re.split(r"\s*;\s*", option), lines) for option in options])
    if all(_number(option) is not None for option in options):
        return np.array([_counted(question, option, lines) for option in options])
    rng = random.Random(f"{seed}/{question}/heard")
    spoken = _terms(lines)
    quote = _QUOTE.search(question)
    asked = spoken.likeness(quote[1] if quote else question)
    place = _edge(question, len(lines))
    if place is None and asked.max() > 0.35:
        place = int(asked.argmax())
    found = np.zeros(len(options))
    for index, option in enumerate(options):
        held = spoken.likeness(option)
        if place is None:
            found[index] = float((held * (1 + rng.uniform(0.5, 1.5) * asked)).max())
        else:
            near = np.array([_near(question, i - place) for i in range(len(lines))])
            found[index] = float((held * (0.2 + near)).max())
    return _scaled(found)


@lru_cache(maxsize=8)
def _terms(lines: tuple[str, ...]) -> TermVectors:
    return TermVectors(lines)


def _edge(question: str, count: int) -> int | None:
    """The line at the beginning or at the end, where the question speaks of it."""
    match = _EDGE.search(question)
    if match is None:
        return None
    return 0 if match[0].lower().startswith(("begin", "start", "first")) else count - 1


def _near(question: str, steps: int) -> float:
    """How near a line is, `steps` lines on from the quoted one, to where the question points."""
    if _BEFORE.search(question):
        return math.exp(-abs(steps + 1))
    if _AFTER.search(question):
        return math.exp(-abs(steps - 1))
    return math.exp(-abs(steps) / 2)


def _in_order(things: Sequence[str], lines: tuple[str, ...]) -> float:
    """Share of the pairs of things that are said in their order; 0 where none is found."""
    spoken = _terms(lines)
    places: list[int] = []
    for thing in things:
        likeness = spoken.likeness(thing)
        if likeness.max() > 0.2:
            places.append(int(likeness.argmax()))
    pairs = [(a, b) for i, a in enumerate(places) for b in places[i + 1 :] if a != b]
    return sum(a < b for a, b in pairs) / len(pairs) if pairs else 0.0


def _counted(question: str, option: str, lines: tuple[str, ...]) -> float:
    """The greatest share of the question's words in a line that says the number."""
    wanted, value = set(terms(question)), _number(option)
    best = 0.0
    for line in lines:
        said = words(line)
        for i, word in enumerate(said):
            if _number(word) == value:
                near = set(terms(" ".join(said[i : i + 4])))
                best = max(best, len(near & wanted) / max(1, len(wanted)))
    return best


def repair(request: Request) -> str:
    """Of a guessed question on a described scene, the same with harder decoys: lines of its kind
    that are nearest in words to question and answer; at later tries (by seed) others of them. What
    else they wrote the rules cannot mend.
    """
    variables = request.variables
    if not variables["described"] or variables["fault"] != "guessed":
        return "NONE"
    now, question = variables["now"], variables["now"].question
    lines = [(" ".join(x.text.split()), x.speaker) for x in variables["lines"] if x.text.strip()]
    kinds = [kind for text, kind in lines if holds(text, now.answer)]
    pool = [x for x, kind in lines if kind == (kinds or [kind])[0] and x != now.answer]
    likeness = TermVectors(pool).likeness(f"{question} {now.answer}") if pool else []
    rng = random.Random(f"{request.seed}/repair")
    order = sorted(range(len(pool)), key=lambda i: -likeness[i] - 0.3 * rng.random())
    decoys: list[str] = []
    for text in (*(pool[i] for i in order), *now.wrong):
        clash = any(holds(a, text) or holds(text, a) for a in (now.answer, *decoys))
        if not clash and not holds(question, text) and len(decoys) < len(now.wrong):
            decoys.append(text)
    listed = [f"WRONG ANSWER {n}: {text}" for n, text in enumerate(decoys, 1)]
    return "\n".join((f"QUESTION 1: {question}", f"CORRECT ANSWER: {now.answer}", *listed))


RULES: dict[str, Callable[[Request], str]] = {
    "filters/blind": blind,
    "filters/pick": pick,
    "filters/asr": asr,
    "filters/guess_open": guess_open,
    "filters/repair": repair,
}
