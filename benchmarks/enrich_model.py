"""The proving set's scripted model as a writer: traces of questions, half of them with a fault.

Which fault is planted is drawn from the question's own words, so the benchmark knows it and the
verifier does not.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.harness import user_content
from benchmarks.sight_model import Scripted, Shot, frames_shown, vocabulary
from mustsee.enrich.traces import AXES
from mustsee.records import Span
from mustsee.verify.look_replies import RIGHT, WRONG, OptionVerdict, say

TRACES = ("a wrong step", "another moment", "a leap")
SOUND = "sound"
_OPTION = re.compile(r"^([A-Z])\. (.*)$", re.MULTILINE)
STATED = "The shape there is "


def planted_fault(question: str) -> str:
    """Return the fault planted in the trace of a question, or `SOUND` for half of them."""
    rng = random.Random(f"{question}/planted/{TRACES}")
    return rng.choice(TRACES) if rng.random() < 0.5 else SOUND


@dataclass(frozen=True)
class EnrichReplies(Scripted):
    """Replies that write and grade traces, besides those that verify."""

    def __call__(self, payload: Mapping[str, Any]) -> str:
        parts, text = user_content(payload)
        if "Write the steps by which" in text:
            return steps(text)
        if "The way to the answer." in text:
            return grade_trace(text)
        if STATED in text:
            rng = random.Random(f"{payload.get('seed')}/{text}")
            return judge_step(text, frames_shown(parts, text), noisy=rng.random() < self.noise)
        return super().__call__(payload)


def steps(text: str) -> str:
    """Write the step that shows the answer and the conclusion, or the same with a fault."""
    question, answer = (
        re.findall(rf"^{label}: (.*)$", text, re.MULTILINE)[0]
        for label in ("QUESTION", "CORRECT ANSWER")
    )
    start, end = map(float, re.findall(r"^EVIDENCE: ([\d.]+)-([\d.]+)", text, re.MULTILINE)[0])
    other = next(v for v in vocabulary(question, (answer,)) if v != answer)
    fault = planted_fault(question)
    stated = other if fault == "a wrong step" else answer
    if fault == "another moment":
        start, end = (start - 9, start - 1) if start > 20 else (end + 1, end + 9)
    so = other if fault == "a leap" else answer
    return (
        f"STEP 1: {start:.1f}-{end:.1f}: {STATED}{stated}.\n"
        f"CONCLUSION: It is there that we are asked about, so the answer is: {so}."
    )


def judge_step(text: str, shots: Sequence[Shot], *, noisy: bool) -> str:
    """Judge whether the frames show a shape as the step states it."""
    value = re.findall(rf"{re.escape(STATED)}(.*)\.$", text, re.MULTILINE)[0]
    options = [option for _, option in _OPTION.findall(text)]
    there = [shape for _, shape in shots if shape.form != "none"]
    shows = bool(there) and all(value in (shape.form, shape.colour) for shape in there)
    shows = shows != noisy
    spans = (Span(shots[0][0], shots[-1][0]),) if shots else ()
    fits, right = "Yes" if shows else "No", OptionVerdict(RIGHT, spans)
    return say([right if o == fits else OptionVerdict(WRONG) for o in options], "A shape.")


def grade_trace(text: str) -> str:
    """Give full marks, except for a conclusion that differs from the answer."""
    answer = re.findall(r"^CORRECT ANSWER: (.*)$", text, re.MULTILINE)[0]
    conclusion = re.findall(r"^Conclusion: (.*)$", text, re.MULTILINE)[0]
    levels = dict.fromkeys(AXES, 2) | {"logic": 2 * (answer in conclusion)}
    return "\n".join(f"{a.upper()} REASON: so\n{a.upper()}: {n}" for a, n in levels.items())
