"""The prompt of the answer-equivalence judge: its frozen bytes, and what fills its slots."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache

from mustsee.prompts import Prompts

PROMPT = "judge/equivalence"
OPENING = "EQUIVALENT:"  # what the model's turn begins with; the next token is the verdict
LABELS = (" TRUE", " FALSE")
MAX_CANDIDATE_WORDS = 100  # of the candidate (Neptune D.3)

_FORGED = re.compile(
    r"\b(EQUIVALENT|ANSWERS_ARE_EQUIVALENT|(?:Reference|Candidate)\s+Answer|Question|Verdict)\s*:",
    re.IGNORECASE,
)
_MARK = re.compile(
    r"\[/?(?:CLS|SEP|MASK|PAD|UNK|INST)\]|<\|\w{1,20}\|>|</?s>"
    r"|<(?:bos|eos|pad|(?:start|end)_of_turn)>",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"\b(equivalent|verdict|question|(?:reference|candidate)(?: answer)?)\s*[:=]", re.IGNORECASE
)
_TITLE = re.compile(
    r"^[\s#*]*(?:reference|candidate)(?: answer)?[\s*]*(?:[:=]|$)", re.IGNORECASE | re.MULTILINE
)
_CONTROL = re.compile(
    r"[\x00-\x08\x0e-\x1b\x7f\x80-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


@dataclass(frozen=True)
class Triple:
    """One question, candidate and reference, cleaned by `triple`."""

    question: str
    candidate: str
    reference: str


def plain(text: str) -> str:
    """A slot's text on one line, without a heading or a verdict that it forges; the prompt file
    takes away control tokens and fences.
    """
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\x00", " ")
    return _FORGED.sub(r"\1 -", " ".join(text.split()))


def blank(text: str) -> bool:
    """Nothing that a reader would see."""
    return not any(c.isprintable() and not c.isspace() for c in text)


def strip_special_tokens(candidate: str) -> str:
    """Without the special tokens at its end, which generation leaves there."""
    text = candidate.rstrip()
    while found := re.search(rf"(?:{_MARK.pattern})$", text[-30:], re.IGNORECASE):
        text = text[: len(text) - len(found.group())].rstrip()
    return text


def is_forged(candidate: str) -> bool:
    """A candidate that is written at the judge and not at the question: it has control characters
    (line ends and tabs are none), a model's special tokens before its end, or headings of a judge's
    prompt.

    None of the 15,294 answers that people labelled in EVOUNA's NQ and NQ301 is.
    """
    text = strip_special_tokens(candidate)
    named = {m.group(1).lower() for m in _HEADING.finditer(text)}
    headings = any(n.endswith("answer") or n == "equivalent" for n in named) or len(named) > 1
    return headings or any(p.search(text) for p in (_CONTROL, _MARK, _TITLE))


def triple(question: str, candidate: str, reference: str) -> tuple[Triple, bool]:
    """The cleaned triple, and whether the candidate was cut at 100 words."""
    words = plain(strip_special_tokens(candidate)).split(" ")
    cut = Triple(plain(question), " ".join(words[:MAX_CANDIDATE_WORDS]), plain(reference))
    return cut, len(words) > MAX_CANDIDATE_WORDS


def render(triple: Triple) -> str:
    """The user's turn of the prompt."""
    slots = dataclasses.asdict(triple)
    return _prompts().render(PROMPT, **slots).user


@cache
def _prompts() -> Prompts:
    return Prompts()


@cache
def prompt_hash() -> str:
    """SHA-256 of the prompt as rendered, with the model's opening and the limits: what a checkpoint
    and its threshold are bound to.
    """
    frozen = [render(Triple("{question}", "{candidate}", "{reference}")), OPENING, *LABELS]
    return hashlib.sha256(json.dumps([*frozen, MAX_CANDIDATE_WORDS]).encode()).hexdigest()
