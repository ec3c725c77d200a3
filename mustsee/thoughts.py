"""What a thinking model thinks, told apart from what it says.

Endpoints send thoughts in a field of their own, or in the text: in tags, before a closing tag whose
opening one the chat template wrote, or on a channel (gpt-oss). They are paid for and kept, and
never read as a reply.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TAGS = r"think|thinking|thought|reasoning|reflection|analysis"
_WHOLE = re.compile(rf"<({_TAGS})>(.*?)</\1>|◁think▷(.*?)◁/think▷", re.DOTALL | re.IGNORECASE)
_OPENS = re.compile(rf"<(?:{_TAGS})>|◁think▷", re.IGNORECASE)
_CLOSES = re.compile(rf"</(?:{_TAGS})>|◁/think▷", re.IGNORECASE)
_CHANNEL = re.compile(
    r"(?:<\|start\|>assistant)?<\|channel\|>\w+<\|message\|>|<\|(?:end|return|start)\|>(?:assistant)?"
)
_FINAL = "<|channel|>final<|message|>"


@dataclass(frozen=True, kw_only=True)
class Spoken:
    """`said`: the reply. `thoughts`: what came before it. `unfinished`: the thoughts never ended,
    and nothing is said.
    """

    said: str
    thoughts: str = ""
    unfinished: bool = False


def apart(text: str) -> Spoken:
    """The thoughts in a model's text, and the rest.

    >>> apart("<think>Two dogs.</think>The answer is B.")
    Spoken(said='The answer is B.', thoughts='Two dogs.', unfinished=False)
    """
    if "<|channel|>" in text:
        thoughts, final, said = text.rpartition(_FINAL)
        if not final:
            return Spoken(said="", thoughts=_CHANNEL.sub(" ", text).strip(), unfinished=True)
        said = said.partition("<|")[0].strip()
        return Spoken(said=said, thoughts=_CHANNEL.sub(" ", thoughts).strip())
    found = [(m[2] or m[3] or "").strip() for m in _WHOLE.finditer(text)]
    rest = _WHOLE.sub(" ", text) if found else text
    if closings := list(_CLOSES.finditer(rest)):
        found.append(rest[: closings[-1].start()].strip())
        rest = rest[closings[-1].end() :]
    if opening := _OPENS.search(rest):
        found.append(rest[opening.end() :].strip())
        return Spoken(said="", thoughts="\n".join(found), unfinished=True)
    said = rest.strip() if found else rest
    return Spoken(said=said, thoughts="\n".join(t for t in found if t))
