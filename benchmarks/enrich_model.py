"""The proving set's scripted model as a writer: additions to questions, half of them with a fault.

Which fault is planted is drawn from the question's own words, so the benchmark knows it and the
verifier does not.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from benchmarks.harness import user_content
from benchmarks.sight_model import Scripted, Shot, find_things, frames_shown, vocabulary
from mustsee.enrich.traces import AXES
from mustsee.records import Span
from mustsee.verify.look_replies import RIGHT, WRONG, OptionVerdict, say

TWINS = ("another answer", "another moment", "a wrong variant", "gives it away")
PARAPHRASES, CONSEQUENCES = ("another fact",), ("the wrong way round",)
TRACES = ("a wrong step", "another moment", "a leap")
SOUND = "sound"
_OPTION = re.compile(r"^([A-Z])\. (.*)$", re.MULTILINE)
STATED = "The shape there is "


def planted_fault(question: str, kinds: Sequence[str]) -> str:
    """Return the fault planted in an addition to a question, or `SOUND` for half of them."""
    rng = random.Random(f"{question}/planted/{kinds}")
    return rng.choice(kinds) if rng.random() < 0.5 else SOUND


@dataclass(frozen=True)
class EnrichReplies(Scripted):
    """Replies that write additions, besides those that verify and guess."""

    def __call__(self, payload: Mapping[str, Any]) -> str:
        parts, text = user_content(payload)
        if "Ask for the same thing without the options." in text:
            return twin(text)
        if "Write its siblings" in text:
            return siblings(text, frames_shown(parts, text))
        if "Write the steps by which" in text:
            return steps(text)
        if "The way to the answer." in text:
            return grade_trace(text)
        if STATED in text:
            rng = random.Random(f"{payload.get('seed')}/{text}")
            return judge_step(text, frames_shown(parts, text), noisy=rng.random() < self.noise)
        return super().__call__(payload)


def parse_question(text: str) -> tuple[str, str, list[str]]:
    """Return the question in a prompt, its answer and its wrong answers."""
    question = re.findall(r"^QUESTION: (.*)$", text, re.MULTILINE)[0]
    answer = re.findall(r"^CORRECT ANSWER: (.*)$", text, re.MULTILINE)[0]
    wrong = re.findall(r"^WRONG ANSWER \d+: (.*)$", text, re.MULTILINE)
    return question, answer, [w for w in wrong if w != "..."]


def twin(text: str) -> str:
    """Write the question without options, or with a fault."""
    question, answer, wrong = parse_question(text)
    rng = random.Random(f"{question}/twin")
    other = rng.choice([v for v in vocabulary(question, (answer,)) if v not in (answer, *wrong)])
    also = ""
    match planted_fault(question, TWINS):
        case "another answer":
            answer = other
        case "another moment":
            question = _elsewhere(question)
        case "a wrong variant":
            also = f"\nALSO RIGHT: {other}"
        case "gives it away":
            question = question.replace("?", f", {answer} as it is?")
        case _:
            also = f"\nALSO RIGHT: it is {answer}"
    return f"QUESTION: {question}\nANSWER: {answer}{also}"


def siblings(text: str, shots: Sequence[Shot]) -> str:
    """Write a paraphrase, and a question on two stops where a later stop shows in the frames."""
    question, answer, wrong = parse_question(text)
    evidence = re.findall(r"^EVIDENCE: (.*)$", text, re.MULTILINE)[0]
    rng = random.Random(f"{question}/siblings")
    sibling = question.replace("the shape at", "the shape that one sees at")
    if planted_fault(question, PARAPHRASES) != SOUND:
        sibling = _elsewhere(sibling)
    blocks = [_block("paraphrase", sibling, answer, wrong, evidence)]
    if later := _later(question, answer, text, shots):
        stop, value, where = later
        pair = (answer, value)
        others = [p for p in product(vocabulary(question, (answer,)), repeat=2) if p[0] != p[1]]
        others = [p for p in others if {*p} != {*pair}]
        if planted_fault(question, CONSEQUENCES) != SOUND:
            pair = (value, answer)
        sibling = question.replace("?", f", and what is it later, at {stop}?")
        wrong = [", then ".join(p) for p in rng.sample(others, len(wrong))]
        right, spans = ", then ".join(pair), f"{evidence}; {where}"
        blocks.append(_block("consequence", sibling, right, wrong, spans))
    return "\n\n".join(blocks)


def _elsewhere(question: str) -> str:
    """Return the question about a stop that no video has."""
    return re.sub(r"\bat [A-Z]\w+", "at Nowhere", question)


def _later(
    question: str, answer: str, text: str, shots: Sequence[Shot]
) -> tuple[str, str, str] | None:
    """Return a later stop that is visited once and shows another value, the value, and when."""
    stop = re.findall(r"\bat ([A-Z]\w+)", question)[0]
    lines = re.findall(r"^\[(\d+\.\d)-(\d+\.\d)\] .*?([A-Z]\w+)(?: now)?\.$", text, re.MULTILINE)
    names = [name for _, _, name in lines]
    begun = max(float(a) for a, _, name in lines if name == stop)
    for start, end, name in lines:
        values = find_things(question.replace(stop, name), text, shots).values
        after = float(start) - begun > 30 and names.count(name) == 1
        if after and len(values) == 1 and values != {answer}:
            return name, values.pop(), f"{start}-{end}"
    return None


def _block(kind: str, question: str, answer: str, wrong: Sequence[str], evidence: str) -> str:
    lines = [f"WRONG ANSWER {n}: {text}" for n, text in enumerate(wrong, 1)]
    return "\n".join(
        (f"QUESTION 1: ({kind}) {question}", f"CORRECT ANSWER: {answer}", *lines,
         f"EVIDENCE: {evidence}")
    )  # fmt: skip


def steps(text: str) -> str:
    """Write the step that shows the answer and the conclusion, or the same with a fault."""
    question, answer = (
        re.findall(rf"^{label}: (.*)$", text, re.MULTILINE)[0]
        for label in ("QUESTION", "CORRECT ANSWER")
    )
    start, end = map(float, re.findall(r"^EVIDENCE: ([\d.]+)-([\d.]+)", text, re.MULTILINE)[0])
    other = next(v for v in vocabulary(question, (answer,)) if v != answer)
    fault = planted_fault(question, TRACES)
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
