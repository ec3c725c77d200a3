"""The frozen prompt of the answer-equivalence judge, and the cleaning of its slots."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache

from mustsee.prompts import Prompts

PROMPT = "judge/equivalence"
OPENING = "EQUIVALENT:"  # beginning of the model's turn; the next token is the verdict
LABELS = (" TRUE", " FALSE")
MAX_CANDIDATE_WORDS = 100  # further words of a candidate are cut off (Neptune D.3)

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
    """A question, a candidate and a reference, cleaned by `triple`."""

    question: str
    candidate: str
    reference: str


def plain(text: str) -> str:
    """Return a slot's text on one line, without forged headings and verdicts.

    The prompt file removes control tokens and fences.
    """
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\x00", " ")
    return _FORGED.sub(r"\1 -", " ".join(text.split()))


def blank(text: str) -> bool:
    """Return whether the text has no visible character."""
    return not any(c.isprintable() and not c.isspace() for c in text)


def strip_special_tokens(candidate: str) -> str:
    """Return the candidate without special tokens at its end, which generation may leave."""
    text = candidate.rstrip()
    while token := re.search(rf"(?:{_MARK.pattern})$", text[-30:], re.IGNORECASE):
        text = text[: len(text) - len(token.group())].rstrip()
    return text


def is_forged(candidate: str) -> bool:
    """Return whether a candidate tries to manipulate the judge.

    It then has control characters (except line ends and tabs), special tokens before its end, or
    headings of a judge's prompt. None of the 15,294 human-labelled answers in EVOUNA's NQ and NQ301
    has any.
    """
    text = strip_special_tokens(candidate)
    named = {m.group(1).lower() for m in _HEADING.finditer(text)}
    headings = any(n.endswith("answer") or n == "equivalent" for n in named) or len(named) > 1
    return headings or any(p.search(text) for p in (_CONTROL, _MARK, _TITLE))


def triple(question: str, candidate: str, reference: str) -> tuple[Triple, bool]:
    """Return the cleaned triple, and whether the candidate was cut at 100 words."""
    words = plain(strip_special_tokens(candidate)).split(" ")
    cleaned = Triple(plain(question), " ".join(words[:MAX_CANDIDATE_WORDS]), plain(reference))
    return cleaned, len(words) > MAX_CANDIDATE_WORDS


def render(triple: Triple) -> str:
    """Return the user's turn of the prompt."""
    slots = dataclasses.asdict(triple)
    return _prompts().render(PROMPT, **slots).user


@cache
def _prompts() -> Prompts:
    return Prompts()


@cache
def prompt_hash() -> str:
    """Return the SHA-256 of the rendered prompt, the opening, the labels and the word limit.

    Checkpoints and thresholds are valid for one such hash.
    """
    frozen = [render(Triple("{question}", "{candidate}", "{reference}")), OPENING, *LABELS]
    return hashlib.sha256(json.dumps([*frozen, MAX_CANDIDATE_WORDS]).encode()).hexdigest()
