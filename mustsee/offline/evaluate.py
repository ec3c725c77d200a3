"""Rules for the prompts that answer and grade: the honest baseline that any model must beat.

From the transcript, the option most alike in words to what is said near the question's own words;
without one, the option most alike to all others (decoys are variations of the answer).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from mustsee.llm import Request
from mustsee.text import LETTERS, Terms, terms


def best_option(question: str, options: Sequence[str], transcript: str | None) -> int:
    """The option that the rules hold most probable; the first of equals."""
    said = [line for line in (transcript or "").splitlines() if terms(line)]
    central = Terms(options).mutual.sum(axis=1)
    if not said:
        return max(range(len(options)), key=lambda i: (central[i], -i))
    known = Terms(said)
    near = known.likeness(question)
    scores = [float((known.likeness(option) * (0.2 + near)).sum()) for option in options]
    return max(range(len(options)), key=lambda i: (scores[i], central[i], -i))


def _letter(request: Request) -> str:
    given = request.variables
    return LETTERS[best_option(given["question"], given["options"], given["transcript"])]


def choice(request: Request) -> str:
    return _letter(request)


def neptune(request: Request) -> str:
    return f"[{_letter(request)}]: its words are the nearest."


def cinepile(request: Request) -> str:
    return f"Answer: {_letter(request)}"


def mlvu(request: Request) -> str:
    return f"Best option: ({_letter(request)})"


def written(request: Request) -> str:
    """The line of the transcript that is nearest to the question."""
    said = [x for x in (request.variables["transcript"] or "").splitlines() if terms(x)]
    if not said:
        return "That cannot be told without the video."
    near = Terms(said).likeness(request.variables["question"])
    best = max(range(len(said)), key=lambda i: (near[i], -i))
    return " ".join(said[best].split("] ")[-1].split()[: request.variables["words"]])


def _covered(candidate: str, wanted: str) -> float:
    """The share of the wanted words that the candidate has."""
    have, need = set(terms(candidate)), set(terms(wanted))
    return len(have & need) / len(need) if need else 0.0


def scene(request: Request) -> str:
    given: Any = request.variables
    shares = [_covered(given["candidate"], p) for p in given["points"]]
    points = [5 if s > 0.66 else 3 if s > 0.33 else 1 for s in shares]
    relevance = 1 + 4 * _covered(given["reference"], given["candidate"])
    mean = sum(points) / len(points)
    return json.dumps({"accuracy": round(mean, 2), "relevance": round(relevance, 2)})


def summary(request: Request) -> str:
    given = request.variables
    there = 1 + 4 * _covered(given["candidate"], given["reference"])
    sound = 1 + 4 * _covered(given["reference"], given["candidate"])
    return json.dumps({"completeness": round(there, 2), "reliability": round(sound, 2)})


RULES: dict[str, Callable[[Request], str]] = {
    "evaluate/choice": choice,
    "evaluate/neptune": neptune,
    "evaluate/cinepile": cinepile,
    "evaluate/egoschema": choice,
    "evaluate/mlvu": mlvu,
    "evaluate/open": written,
    "evaluate/scene": scene,
    "evaluate/summary": summary,
}
