"""Rules for the prompts that answer and grade: the honest baseline that any model must beat.

From the transcript, the option most alike in words to what is said near the question's own words;
without one, the option most alike to all others (decoys are variations of the answer).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mustsee.calls.llm import Request
from mustsee.text import LETTERS, TermVectors, terms


def best_option(question: str, options: Sequence[str], transcript: str | None) -> int:
    """The option that the rules hold most probable; the first of equals."""
    said = [line for line in (transcript or "").splitlines() if terms(line)]
    central = TermVectors(options).cosines.sum(axis=1)
    if not said:
        return max(range(len(options)), key=lambda i: (central[i], -i))
    known = TermVectors(said)
    near = known.likeness(question)
    scores = [float((known.likeness(option) * (0.2 + near)).sum()) for option in options]
    return max(range(len(options)), key=lambda i: (scores[i], central[i], -i))


def choice_letter(request: Request) -> str:
    """Return the letter of the best option."""
    given = request.variables
    return LETTERS[best_option(given["question"], given["options"], given["transcript"])]


def nearest_line(request: Request) -> str:
    """The line of the transcript that is nearest to the question."""
    said = [x for x in (request.variables["transcript"] or "").splitlines() if terms(x)]
    if not said:
        return "That cannot be told without the video."
    near = TermVectors(said).likeness(request.variables["question"])
    best = max(range(len(said)), key=lambda i: (near[i], -i))
    return " ".join(said[best].split("] ")[-1].split()[: request.variables["words"]])


def _covered(candidate: str, wanted: str) -> float:
    """The share of the wanted words that the candidate has."""
    have, need = set(terms(candidate)), set(terms(wanted))
    return len(have & need) / len(need) if need else 0.0


def retell_lines(request: Request) -> str:
    """The lines of the transcript in their order, up to `MAX_SUMMARY_WORDS` words: the nearest to a
    scene's task, or evenly spread ones where it is about the whole.
    """
    given = request.variables
    lines = [x.split("] ")[-1] for x in (given["transcript"] or "").splitlines() if terms(x)]
    if not lines:
        return "That cannot be told without the video."
    near = TermVectors(lines).likeness(given["question"])
    rank = sorted(range(len(lines)), key=lambda i: (-near[i], i))
    if not near.max():
        rank = [i for start in range(8) for i in range(start, len(lines), 8)]
    kept, room = list[int](), MAX_SUMMARY_WORDS
    for i in rank:
        room -= len(lines[i].split())
        if room < 0 and kept:
            break
        kept.append(i)
    return " ".join(lines[i] for i in sorted(kept))


MAX_SUMMARY_WORDS = 112  # words; MLVU's summaries have as many on average


def _level(share: float) -> int:
    """A share from 0 to 1 as one of five levels."""
    return 1 + min(4, int(5 * share))


def scene(request: Request) -> str:
    given: Any = request.variables
    lines: list[str] = []
    for n, point in enumerate(given["points"], 1):
        share = _covered(given["candidate"], point)
        lines += [f"POINT {n} REASON: {share:.0%} of its words are there",
                  f"POINT {n}: {5 if share > 0.66 else 3 if share > 0.33 else 1}"]  # fmt: skip
    share = _covered(" ".join([given["question"], *given["points"]]), given["candidate"])
    lines += [f"RELEVANCE REASON: {share:.0%} of its words are asked for",
              f"RELEVANCE: {_level(share)}"]  # fmt: skip
    return "\n".join(lines)


def summary(request: Request) -> str:
    given = request.variables
    there = _covered(given["candidate"], given["reference"])
    sound = _covered(given["reference"], given["candidate"])
    return (
        f"COMPLETENESS REASON: {there:.0%} of the reference's words are there\n"
        f"COMPLETENESS: {_level(there)}\n"
        f"RELIABILITY REASON: {sound:.0%} of its words are in the reference\n"
        f"RELIABILITY: {_level(sound)}"
    )


RULES: dict[str, Callable[[Request], str]] = {
    "evaluate/choice": choice_letter,
    "evaluate/open": nearest_line,
    "evaluate/mlvu_open": retell_lines,
    "evaluate/scene": scene,
    "evaluate/summary": summary,
}
