"""The scripted model of the planted set: it answers from the frames and lines that it receives.

It measures the shape in each frame, takes their order for the video's, and reads the lines. What
neither shows it guesses: half of the questions by content, half by choosing the first option. A
share of its replies is another letter.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import sight_videos
from benchmarks.harness import user_content
from benchmarks.sight_model import LETTERS, FrameFacts, measure_frame

_OPTION = re.compile(r"^([A-Z])\. (.*)$", re.MULTILINE)
_NEXT = re.compile(
    rf"the (first|second) shape (after|before) the ({'|'.join(sight_videos.RARE)})\?"
)
_LONE = re.compile(rf"what colour is the ({'|'.join(sight_videos.RARE)})\?")
_SAID = re.compile(r"The shape at (\w+) is ([a-z ]+)\.")


@dataclass(frozen=True)
class AuditReplies:
    """Reply to chat payloads; a share `noise` of the replies is another letter."""

    noise: float = 0.03

    def __call__(self, payload: Mapping[str, Any]) -> str:
        content = json.dumps(payload, sort_keys=True)
        dice = random.Random(hashlib.sha256(content.encode()).hexdigest())
        parts, text = user_content(payload)
        question = next(x for x in text.splitlines() if x.startswith("On the way from"))
        options = [option for _, option in _OPTION.findall(text)]
        shots = [measure_frame(p["image_url"]["url"]) for p in parts if p["type"] == "image_url"]
        choice = pick(question, options, known_value(question, text, shots))
        if choice is None:
            choice = guess_option(question, options)
        if dice.random() < self.noise:
            choice = dice.choice([n for n in range(len(options)) if n != choice])
        return LETTERS[choice]


def known_value(question: str, text: str, shots: Sequence[FrameFacts]) -> str | None:
    """Return the value that decides the question; None where it is not shown."""
    like = re.search(r"the same as ([^?]+)\?", question)
    if like:
        return next(colour for colour, thing in sight_videos.LIKE.items() if thing == like[1])
    stop = re.search(r"the shape at (\w+)", question)
    if stop:
        return dict(_SAID.findall(text)).get(stop[1])
    if "the bar along" in question:
        return shots[0].bar if shots else None
    lone = _LONE.search(question)
    if lone:
        return next((s.colour for s in shots if s.form == lone[1]), None)
    neighbour = _NEXT.search(question)
    if not neighbour:
        return None
    steps = (1 if neighbour[1] == "first" else 2) * (1 if neighbour[2] == "after" else -1)
    place = "where in" in question or "is it at the" in question
    return neighbour_of(neighbour[3], steps, shots, place=place)


def neighbour_of(form: str, steps: int, shots: Sequence[FrameFacts], *, place: bool) -> str | None:
    """Return the colour or place of the shape `steps` after the one of a form; None where that one
    is not seen, or seen twice because the frames are out of order.
    """
    runs: list[FrameFacts] = []
    for shot in shots:
        if not runs or (shot.form, shot.colour, shot.place) != (
            runs[-1].form, runs[-1].colour, runs[-1].place,
        ):  # fmt: skip
            runs.append(shot)
    at = [n for n, run in enumerate(runs) if run.form == form]
    if len(at) != 1:
        return None
    other = at[0] + steps
    if not 0 <= other < len(runs):
        return None
    return runs[other].place if place else runs[other].colour


def pick(question: str, options: Sequence[str], value: str | None) -> int | None:
    """Return the number of the option that states the value, if exactly one does."""
    if value is None:
        return None
    if "yes" in options:
        meant = re.search(r"is it (?:at the )?([a-z ]+),", question)
        return list(options).index("yes" if meant and meant[1] == value else "no")
    matches = [n for n, o in enumerate(options) if re.search(rf"\b{value}\b", o)]
    return matches[0] if len(matches) == 1 else None


def guess_option(question: str, options: Sequence[str]) -> int:
    """Guess by content for half of the questions, by place for the others."""
    dice = random.Random(f"{question}/{sorted(options)}")
    if dice.random() < 0.5:
        return list(options).index(dice.choice(sorted(options)))
    return 0
