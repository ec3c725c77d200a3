"""Splits a model's text into its reasoning and its reply.

Endpoints send reasoning in a field of its own, or in the text: in tags at its very beginning, or in
channels (gpt-oss), which then make up the whole text. Such marks anywhere else belong to the reply,
because a model that quotes on-screen text may write them. Reasoning is paid for and kept, and never
read as a reply.
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
    """A model's text, split.

    `reply`: the text behind the reasoning. `thoughts`: the reasoning. `unfinished`: the reasoning
    never ended, and `reply` is empty.
    """

    reply: str
    thoughts: str = ""
    unfinished: bool = False


def split_reasoning(text: str, *, opened: bool = False) -> SplitReply:
    """Split the reasoning at the beginning of a model's text from the reply.

    `opened`: the chat template has written the opening tag, so the text begins within reasoning.

    >>> split_reasoning("<think>Two dogs.</think>The answer is B.")
    SplitReply(reply='The answer is B.', thoughts='Two dogs.', unfinished=False)
    """
    if _CHANNELS.match(text):
        return _split_channels(text)
    blocks: list[str] = []
    rest = text
    if opened and not _OPENS.match(text):
        thoughts, end, rest = _partition(_CLOSES, text)
        blocks.append(thoughts.strip())
        if not end:
            return SplitReply(reply="", thoughts=blocks[0], unfinished=True)
    while match := _BLOCK.match(rest):
        blocks.append((match[2] or match[3] or "").strip())
        rest = rest[match.end() :]
    if opening := _OPENS.match(rest):
        blocks.append(rest[opening.end() :].strip())
        return SplitReply(reply="", thoughts="\n".join(blocks), unfinished=True)
    reply = rest.strip() if blocks else rest
    return SplitReply(reply=reply, thoughts="\n".join(block for block in blocks if block))


def ends_in_open_tag(prompt: str) -> bool:
    """Whether a prompt ends with the opening tag of reasoning, as some chat templates write it."""
    return re.search(rf"(?:{_OPENS.pattern})\s*$", prompt, re.IGNORECASE) is not None


def has_only_closing_tag(text: str) -> bool:
    """Whether a text has the closing tag of reasoning on its own line, without an opening one.

    Servers that do not split reasoning send this where the chat template writes the opening tag.
    """
    closing = re.search(rf"^[ \t]*(?:{_CLOSES.pattern})[ \t]*$", text, re.MULTILINE | re.IGNORECASE)
    return closing is not None and not _OPENS.search(text)


def _split_channels(text: str) -> SplitReply:
    """Return the message of the final channel as the reply, and the others as reasoning.

    Two final channels are ambiguous and give no reply, unless the second one is within JSON, where
    it is a quotation.
    """
    thoughts, final, reply = _partition(_FINAL, text)
    reply = _ENDS.sub("", reply).strip()
    if not final or ("<|channel|>final" in reply and not reply.startswith(("{", "["))):
        return SplitReply(reply="", thoughts=_CHANNEL.sub(" ", text).strip(), unfinished=True)
    return SplitReply(reply=reply, thoughts=_CHANNEL.sub(" ", thoughts).strip())


def _partition(mark: re.Pattern[str], text: str) -> tuple[str, str, str]:
    """Split a text at the first match, as `str.partition` does."""
    match = mark.search(text)
    return (text[: match.start()], match[0], text[match.end() :]) if match else (text, "", "")
