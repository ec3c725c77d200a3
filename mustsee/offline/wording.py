"""Texts compared and written by rules of several prompts."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from mustsee.questions.checks import normal


def without_spaces(text: str) -> str:
    """Return `text` without its whitespace."""
    return "".join(text.split())


def likeness(one: str, other: str) -> float:
    """Return the share of letters that two readings have in common, in order (0 to 1)."""
    a, b = without_spaces(normal(one)), without_spaces(normal(other))
    return SequenceMatcher(None, a, b, autojunk=False).ratio()


def sentence(text: str) -> str:
    """Return `text` with a capital at the start, and with "I" for a single "i"."""
    text = re.sub(r"\bi\b(?=$|[ '’])", "I", text)
    return text[:1].upper() + text[1:]
