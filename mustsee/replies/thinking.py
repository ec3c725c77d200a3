"""What a thinking model thinks, told apart from what it says.

Endpoints send thoughts in a field of their own, or in the text: in tags at its very beginning, or
on channels (gpt-oss), where the text as a whole is written in them. Such marks anywhere else are
words of the reply: a model that tells what it reads on a screen may write them, and what a video
shows decides no reply. Thoughts are paid for and kept, and never read as a reply.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TAGS = r"think|thinking|thought|reasoning|reflection|analysis"
_BLOCK = re.compile(
    rf"\s*(?:<({_TAGS})>(.*?)</\1>|◁think▷(.*?)◁/think▷)", re.DOTALL | re.IGNORECASE
)
_OPENS = re.compile(rf"\s*(?:<(?:{_TAGS})>|◁think▷)", re.IGNORECASE)
_CLOSES = re.compile(rf"</(?:{_TAGS})>|◁/think▷", re.IGNORECASE)
_CHANNELS = re.compile(r"\s*(?:<\|start\|>assistant)?<\|channel\|>")
_FINAL = re.compile(
    r"(?:^\s*|<\|end\|>\s*|<\|start\|>assistant)<\|channel\|>final[^<]*<\|message\|>"
)
_CHANNEL = re.compile(
    r"(?:<\|start\|>assistant)?<\|channel\|>\w+<\|message\|>|<\|(?:end|return|start)\|>(?:assistant)?"
)
_ENDS = re.compile(r"\s*(?:<\|(?:end|return|call)\|>\s*)+$")


@dataclass(frozen=True, kw_only=True)
class SplitReply:
    """`said`: the reply. `thoughts`: what came before it. `unfinished`: the thoughts never ended,
    and nothing is said.
    """

    said: str
    thoughts: str = ""
    unfinished: bool = False


def split_reasoning(text: str, *, opened: bool = False) -> SplitReply:
    """The thoughts at the beginning of a model's text, and the rest. `opened`: the chat template
    has written the opening tag, so that the text begins in the midst of thoughts.

    >>> apart("<think>Two dogs.</think>The answer is B.")
    Spoken(said='The answer is B.', thoughts='Two dogs.', unfinished=False)
    """
    if _CHANNELS.match(text):
        return _channels(text)
    found: list[str] = []
    rest = text
    if opened and not _OPENS.match(text):
        thoughts, end, rest = _partition(_CLOSES, text)
        found.append(thoughts.strip())
        if not end:
            return SplitReply(said="", thoughts=found[0], unfinished=True)
    while match := _BLOCK.match(rest):
        found.append((match[2] or match[3] or "").strip())
        rest = rest[match.end() :]
    if opening := _OPENS.match(rest):
        found.append(rest[opening.end() :].strip())
        return SplitReply(said="", thoughts="\n".join(found), unfinished=True)
    said = rest.strip() if found else rest
    return SplitReply(said=said, thoughts="\n".join(t for t in found if t))


def ends_in_open_tag(prompt: str) -> bool:
    """Whether a prompt ends with the opening tag of thoughts, as some chat templates write it."""
    return re.search(rf"(?:{_OPENS.pattern})\s*$", prompt, re.IGNORECASE) is not None


def has_only_closing_tag(text: str) -> bool:
    """Whether a text has the closing tag of thoughts on a line of its own, and no opening one: what
    comes of a server that does not tell thoughts apart, where the chat template opens them.
    """
    closing = re.search(rf"^[ \t]*(?:{_CLOSES.pattern})[ \t]*$", text, re.MULTILINE | re.IGNORECASE)
    return closing is not None and not _OPENS.search(text)


def _channels(text: str) -> SplitReply:
    """A reply on channels: the message of the one that is called final, to its end. Where a second
    one follows, it cannot be told which is meant, and nothing is said; within JSON it is a text.
    """
    thoughts, final, said = _partition(_FINAL, text)
    said = _ENDS.sub("", said).strip()
    if not final or ("<|channel|>final" in said and not said.startswith(("{", "["))):
        return SplitReply(said="", thoughts=_CHANNEL.sub(" ", text).strip(), unfinished=True)
    return SplitReply(said=said, thoughts=_CHANNEL.sub(" ", thoughts).strip())


def _partition(mark: re.Pattern[str], text: str) -> tuple[str, str, str]:
    """`str.partition` at the first match."""
    match = mark.search(text)
    return (text[: match.start()], match[0], text[match.end() :]) if match else (text, "", "")
