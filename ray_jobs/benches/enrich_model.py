"""The proving set's model as a writer: what it makes of questions that passed, some of it at fault.

What is planted in which question is drawn from the question's own words, so that whoever counts
knows it too; the model that looks does not.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ray_jobs.benches import sight_films as films
from ray_jobs.benches.sight_model import Scripted, vocabulary

TWINS = ("another answer", "another moment", "a wrong variant", "gives it away")
SOUND = "sound"


def planted(question: str, kinds: Sequence[str]) -> str:
    """What is wrong with what is made of a question; of two, one is sound."""
    rng = random.Random(f"{question}/planted/{kinds}")
    return rng.choice(kinds) if rng.random() < 0.5 else SOUND


@dataclass(frozen=True)
class Writing(Scripted):
    """Besides looking and guessing, it writes."""

    def __call__(self, payload: Mapping[str, Any]) -> str:
        asked: Any = next(m["content"] for m in payload["messages"] if m["role"] == "user")
        parts: Any = [{"type": "text", "text": asked}] if isinstance(asked, str) else asked
        text = "\n".join(p["text"] for p in parts if p["type"] == "text")
        if "Ask for the same thing without the options." in text:
            return twin(text)
        if "Give the answer that is most probably right." in text:
            return in_words(text, random.Random(f"{payload.get('seed')}/{text}"))
        return super().__call__(payload)


def in_words(text: str, rng: random.Random) -> str:
    """A guess, as good as any."""
    question = text.partition("<<<")[2].strip().splitlines()[0]
    values = vocabulary(question, (", then " if "later, at" in question else "",))
    return f"* ANSWER: {rng.choice(values)}\n* EXPLANATION: A guess."


def told(text: str) -> tuple[str, str, list[str]]:
    """The question that is shown, its answer and its wrong answers."""
    question = re.findall(r"^QUESTION: (.*)$", text, re.MULTILINE)[0]
    answer = re.findall(r"^CORRECT ANSWER: (.*)$", text, re.MULTILINE)[0]
    return question, answer, re.findall(r"^WRONG ANSWER \d+: (.*)$", text, re.MULTILINE)


def twin(text: str) -> str:
    """The question as it is, needing no options, or with a fault."""
    question, answer, wrong = told(text)
    rng = random.Random(f"{question}/twin")
    other = rng.choice([v for v in vocabulary(question, (answer,)) if v not in (answer, *wrong)])
    also = ""
    match planted(question, TWINS):
        case "another answer":
            answer = other
        case "another moment":
            stops = re.findall(r"\bat ([A-Z]\w+)", question)
            for stop in stops or films.RARE:
                question = question.replace(stop, rng.choice([n for n in films.NAMES if n != stop]))
        case "a wrong variant":
            also = f"\nALSO RIGHT: {other}"
        case "gives it away":
            question = question.replace("?", f", {answer} as it is?")
        case _:
            also = f"\nALSO RIGHT: it is {answer}"
    return f"QUESTION: {question}\nANSWER: {answer}{also}"
