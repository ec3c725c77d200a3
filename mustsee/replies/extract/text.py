"""The text of a reply as `extract` compares it: without reasoning, control tokens and markup."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, cast

from mustsee.replies.extract.words import BY_ORDINAL, ORDINALS
from mustsee.replies.thinking import split_reasoning
from mustsee.text import LETTERS, UNSPACED

_BEGIN = re.compile(r"<s>|<bos>|<\|begin_of_text\|>|<\|im_start\|>(?:assistant)?", re.IGNORECASE)
_END = re.compile(
    r"</s>|<eos>|<pad>|<end_of_turn>|<\|(?:im_end|endoftext|eot_id|end|end_of_text|eom_id)\|>"
    r"|<｜end▁of▁sentence｜>|\[/?INST\]",
    re.IGNORECASE,
)
_TURN = re.compile(  # where a model goes on into the next turn
    rf"(?:{_END.pattern})\s*(?:<s>|<bos>|<\|im_start\|>|<start_of_turn>|<\|start_header_id\|>|\[INST\])",
    re.IGNORECASE,
)
_QUOTED = re.compile(  # a block, or words in quotation marks that speak of an answer
    r"```.*?```|[\"“][^\"“”\n]*\b(?:answer|option|choice)\b[^\"“”\n]*[\"”]",
    re.DOTALL | re.IGNORECASE,
)
_ROLE = re.compile(r"^\s*(?:assistant|gpt|model|ai|bot|response|output)\s*:\s*", re.IGNORECASE)
_TAG = re.compile(
    r"<(answer|final_answer|choice|option|final|response)>(.*?)(?:</\1>|$)",
    re.DOTALL | re.IGNORECASE,
)
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_KEYS = frozenset(
    re.split(
        r"\s+",
        "answer choice option letter final_answer best_option best_answer prediction selected "
        "selected_option correct_answer correct_option response result output choice_letter",
    )
)
_LATEX = re.compile(r"\\(?:text|textbf|mathrm|mathbf|rm|bf|boxed)\s*\{([^{}]*)\}")
_QUOTES = str.maketrans(dict.fromkeys("“”„«»", '"') | dict.fromkeys("‘’‚`´", "'"))
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—―−", "-"))
_OUTER = " \t\n.,;:!?\"'()[]{}<>…"
_BETWEEN = re.compile(r"([\s,;:\"'()]*[\s,;][\s,;:\"'()]*|(?<=[^\W\d])-(?=[^\W\d]))")
_LEFT = r"(?<!\w)(?<!counter-)(?<!anti-)(?<!non-)(?<!un-)"  # "counter-clockwise" is no clockwise
_JOINED = r"[\s,;:\"'()-]+"
_LISTED = _JOINED + r"(?:(?:and|then)\s+)?"


def strip_reasoning(reply: str) -> str | None:
    """The reply without reasoning and control tokens; None when the reasoning never ended."""
    heard = split_reasoning(reply)
    if heard.unfinished:
        return None
    text = html.unescape(unicodedata.normalize("NFKC", heard.said))
    text = re.sub(r"[\u200b-\u200f\u2060\ufeff]", "", text)
    if re.match(r"\s*\{", text):  # within JSON, all marks are words
        return text
    text = _TURN.split(_BEGIN.sub(" ", text, count=1) if _BEGIN.match(text.lstrip()) else text)[0]
    return _ROLE.sub("", _END.sub(" ", text))


def remove_quoted(text: str) -> str:
    """A reply without the blocks and the answers that it quotes; JSON as it is."""
    return text if _is_object(text) else _QUOTED.sub(" ", text)


def _is_object(text: str) -> bool:
    found = [(start, end) for _, start, end in _objects(text)]
    return len(found) == 1 and not text[: found[0][0]].strip() and not text[found[0][1] :].strip()


def label_ordinals(text: str, options: int, digits: int | None) -> str:
    """A reply with "option A" in place of "first option", where there is such an option."""

    def label_ordinal(match: re.Match[str]) -> str:
        place = ORDINALS.index(match[1].lower())
        label = LETTERS[place] if digits is None else str(place + digits)
        return f"{match[2]} {label}" if place < options else match[0]

    return BY_ORDINAL.sub(label_ordinal, text)


def remove_wrapped(text: str) -> str:
    """A reply without its JSON objects, answer tags and boxes."""
    for _, start, end in reversed(list(_objects(text))):
        text = f"{text[:start]} {text[end:]}"
    return re.sub(r"```(?:json)?\s*```", " ", _BOX.sub(" ", _TAG.sub(" ", text)))


def wrapped_answers(text: str) -> Iterator[tuple[str, list[str]]]:
    """What a reply puts into JSON, answer tags or boxes: of each kind all that differ."""
    found: list[str] = []
    for value, _, _ in _objects(text):
        named = [v for k, v in value.items() if k.lower().replace(" ", "_") in _KEYS]
        for item in named[-1:]:
            items = cast(list[Any], item) if isinstance(item, list) else [item]
            if items and all(isinstance(i, str | int) for i in items):
                found.append(" and ".join(str(i) for i in items))
    if found:
        yield "json", list(dict.fromkeys(found))
    if tags := [t[1].strip() for t in _TAG.findall(text) if t[1].strip()]:
        yield "tag", list(dict.fromkeys(tags))
    if boxes := [b for b in _BOX.findall(text) if b.strip()]:
        yield "box", list(dict.fromkeys(boxes))


def _objects(text: str) -> Iterator[tuple[Mapping[str, Any], int, int]]:
    """The JSON objects in a text with their places, those within others left out."""
    decoder, position = json.JSONDecoder(), text.find("{")
    while position >= 0:
        try:
            start = position
            value, position = decoder.raw_decode(text, position)
        except RecursionError:  # deeper than any reply; each of its braces would be tried for long
            return
        except ValueError:  # also a number of 5,000 digits
            position += 1
        else:
            if isinstance(value, dict):
                yield cast(Mapping[str, Any], value), start, position
        position = text.find("{", position)


def plain(text: str) -> str:
    """Without markdown and LaTeX dress; quotes and dashes in one form."""
    for _ in range(3):
        text = _LATEX.sub(r"\1", text)
    text = re.sub(
        r"\\(?:begin|end)\{\w+\}|\\item\b|\\[()\[\]]|\\left|\\right|[*$]|~~|__|^#+ |```\w*",
        "",
        text,
        flags=re.M,
    )
    text = re.sub(r"(?<!\w)_(\w[^_]*)_(?!\w)", r"\1", text)
    return text.translate(_QUOTES).translate(_DASHES).strip()


def norm(text: str) -> str:
    """For comparing texts: NFKC, lower case, single spaces, no outer punctuation."""
    text = plain(unicodedata.normalize("NFKC", text)).casefold()
    return re.sub(r"\s+", " ", text).strip(_OUTER)


@lru_cache(maxsize=4096)
def option_pattern(own: str) -> re.Pattern[str]:
    """A pattern that finds a normalised option text as whole words, however it is punctuated: a
    reply's "pollution, and" is the option's "pollution and", its "twenty one" a "twenty-one".
    """
    left = r"(?<![\w+.-])" if own[0].isdigit() else _LEFT if _parted(own[0]) else ""
    right = r"(?![.,:]?\d)(?!\w)" if own[-1].isdigit() else r"(?!\w)" if _parted(own[-1]) else ""
    pieces = _BETWEEN.split(own)
    joins = [_LISTED if "," in gap or ";" in gap else _JOINED for gap in pieces[1::2]]
    words = (re.escape(word) + join for word, join in zip(pieces[::2], [*joins, ""], strict=True))
    return re.compile(left + "".join(words) + right)


def _parted(letter: str) -> bool:
    """Whether a letter is of a script that parts its words."""
    return letter.isalnum() and not UNSPACED.match(letter)


def mentions(text: str, own: str) -> Iterator[tuple[int, int]]:
    """Where a normalised text names a normalised option. Patterns of options are not compiled where
    they cannot be found: that took half the time of an evaluation.
    """
    if own and _BETWEEN.split(own, 1)[0] in text:
        yield from (match.span() for match in option_pattern(own).finditer(text))


def begins(text: str, own: str) -> int | None:
    """Where a normalised option text ends that a normalised text begins with, as whole words."""
    if not own or not text.startswith(_BETWEEN.split(own, 1)[0]):
        return None
    match = option_pattern(own).match(text)
    return match.end() if match else None
