"""Replies as `extract` compares them: without reasoning, control tokens and markup."""

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
_TOKEN = (
    r"<\|(?!(?:begin|end)_of_box\|)\w[\w▁ ]*\|>"  # in NFKC, so of DeepSeek's full-width bars too
)
_END = re.compile(rf"</s>|<eos>|<pad>|<end_of_turn>|\[EOS\]|{_TOKEN}|\[/?INST\]", re.IGNORECASE)
_TURN = re.compile(  # the start of a further turn that a model generates
    rf"(?:{_END.pattern})\s*(?:<s>|<bos>|<\|im_start\|>|<start_of_turn>|<\|start_header_id\|>|\[INST\])"
    r"|<\|(?:user|observation|system|im_user|User)\|>",
    re.IGNORECASE,
)
_HEADING = re.compile(r"[【〖〔]\s*([^【】〖〗〔〕\n]{1,20}?)\s*[】〗〕][:：]?\s*")  # "【答案】D"
_IN_BRACKETS = re.compile(
    r"[【〖〔「『《〈]\s*([A-Za-z](?![A-Za-z])[^】〗〕」』》〉\n]*)[】〗〕」』》〉]"
)
_QUOTED = re.compile(  # a code block, closed or not, or quoted words that mention an answer
    r"```.*?(?:```|\Z)|[\"“][^\"“”\n]*\b(?:answer|option|choice)\b[^\"“”\n]*[\"”]",
    re.DOTALL | re.IGNORECASE,
)
_ROLE = re.compile(r"^\s*(?:assistant|gpt|model|ai|bot|response|output)\s*:\s*", re.IGNORECASE)
_TAG = re.compile(
    r"<(answer|final_answer|choice|option|final|response|conclusion|ans)>(.*?)(?:(</\1>)|$)",
    re.DOTALL | re.IGNORECASE,
)
_BOX = re.compile(  # LaTeX's, and the tokens of GLM, of which the last may be missing
    r"\\(?:boxed|fbox)\s*\{((?:[^{}]|\{[^{}]*\})*)\}"
    r"|<\|begin_of_box\|>(.*?)(?:<\|end_of_box\|>|$)",
    re.DOTALL | re.IGNORECASE,
)
_KEYS = frozenset(
    re.split(
        r"\s+",
        "answer choice option letter final_answer best_option best_answer prediction selected "
        "selected_option correct_answer correct_option response result output choice_letter",
    )
)
_LATEX = re.compile(r"\\(?:text|textbf|mathrm|mathbf|rm|bf|boxed)\s*\{([^{}]*)\}")
_QUOTES = str.maketrans(dict.fromkeys("“”„«»「」『』", '"') | dict.fromkeys("‘’‚`´", "'"))
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—―−", "-"))
_OUTER = " \t\n.,;:!?\"'()[]{}<>…"
_BETWEEN = re.compile(r"([\s,;:\"'()]*[\s,;][\s,;:\"'()]*|(?<=[^\W\d])-(?=[^\W\d]))")
_LEFT = r"(?<!\w)(?<!counter-)(?<!anti-)(?<!non-)(?<!un-)"  # "counter-clockwise" is another word
_JOINED = r"[\s,;:\"'()-]+"
_LISTED = _JOINED + r"(?:(?:and|then)\s+)?"


def strip_reasoning(reply: str) -> str | None:
    """Return the reply without reasoning and control tokens; None if the reasoning never ends."""
    split = split_reasoning(reply)
    if split.unfinished:
        return None
    text = html.unescape(unicodedata.normalize("NFKC", split.reply))
    text = re.sub(r"[\u200b-\u200f\u2060\ufeff]", "", text)
    if re.match(r"\s*\{", text):  # control tokens within JSON are part of its strings
        return text
    text = _TURN.split(_BEGIN.sub(" ", text, count=1) if _BEGIN.match(text.lstrip()) else text)[0]
    text = re.sub(r"^([^<]*)<\|end_of_box\|>", r"\1 ", _END.sub(" ", text))
    text = _HEADING.sub(r"\1: ", _IN_BRACKETS.sub(r"(\1)", text))
    return _ROLE.sub("", text)


def remove_quoted(text: str) -> str:
    """Return a reply without the blocks and answers that it quotes; a JSON object stays whole."""
    return text if _is_object(text) else _QUOTED.sub(" ", text)


def _is_object(text: str) -> bool:
    spans = [(start, end) for _, start, end in _objects(text)]
    return len(spans) == 1 and not text[: spans[0][0]].strip() and not text[spans[0][1] :].strip()


def label_ordinals(text: str, options: int, digits: int | None) -> str:
    """Return a reply with "option A" in place of "first option", if the option exists."""

    def label_ordinal(match: re.Match[str]) -> str:
        place = ORDINALS.index(match[1].lower())
        label = LETTERS[place] if digits is None else str(place + digits)
        return f"{match[2]} {label}" if place < options else match[0]

    return BY_ORDINAL.sub(label_ordinal, text)


def remove_wrapped(text: str) -> str:
    """Return a reply without its JSON objects, answer tags and boxes."""
    for _, start, end in reversed(list(_objects(text))):
        text = f"{text[:start]} {text[end:]}"
    return re.sub(r"```(?:json)?\s*```", " ", _BOX.sub(" ", _TAG.sub(" ", text)))


def wrapped_answers(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield "json", "tag" and "box", each with the distinct answers that a reply wraps so. Of tags
    that are all closed only the last one counts.
    """
    values: list[str] = []
    for value, _, _ in _objects(text):
        named = [v for k, v in value.items() if k.lower().replace(" ", "_") in _KEYS]
        for item in named[-1:]:
            items = cast(list[Any], item) if isinstance(item, list) else [item]
            if items and all(isinstance(i, str | int) for i in items):
                values.append(" and ".join(str(i) for i in items))
    if values:
        yield "json", list(dict.fromkeys(values))
    if tags := [tag for tag in _TAG.finditer(text) if tag[2].strip()]:
        last = tags[-1:] if all(tag[3] for tag in tags) else tags  # closed ones: a correction
        yield "tag", list(dict.fromkeys(tag[2].strip() for tag in last))
    boxes = [box[1] or box[2] or "" for box in _BOX.finditer(text)]
    if boxes := [box for box in boxes if box.strip()]:
        yield "box", list(dict.fromkeys(boxes))


def _objects(text: str) -> Iterator[tuple[Mapping[str, Any], int, int]]:
    """Yield the outermost JSON objects in a text, each with its start and end."""
    decoder, position = json.JSONDecoder(), text.find("{")
    while position >= 0:
        try:
            start = position
            value, position = decoder.raw_decode(text, position)
        except RecursionError:  # not a real reply, and trying each of its braces would take long
            return
        except ValueError:  # also raised for a number of 5,000 digits
            position += 1
        else:
            if isinstance(value, dict):
                yield cast(Mapping[str, Any], value), start, position
        position = text.find("{", position)


def plain(text: str) -> str:
    """Return the text without Markdown and LaTeX markup, with uniform quotes and dashes."""
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
    """Normalise a text for comparison: NFKC, lower case, single spaces, no outer punctuation."""
    text = plain(unicodedata.normalize("NFKC", text)).casefold()
    return re.sub(r"\s+", " ", text).strip(_OUTER)


@lru_cache(maxsize=4096)
def option_pattern(option: str) -> re.Pattern[str]:
    """Return a pattern for a normalised option as whole words, with any punctuation between them.

    A reply's "pollution, and" matches the option "pollution and", and "twenty one" matches
    "twenty-one".
    """
    first, last = option[0], option[-1]
    left = r"(?<![\w+.-])" if first.isdigit() else _LEFT if _is_spaced(first) else ""
    right = r"(?![.,:]?\d)(?!\w)" if last.isdigit() else r"(?!\w)" if _is_spaced(last) else ""
    words_and_gaps = _BETWEEN.split(option)
    words, gaps = words_and_gaps[::2], words_and_gaps[1::2]
    joins = [_LISTED if "," in gap or ";" in gap else _JOINED for gap in gaps]
    body = (re.escape(word) + join for word, join in zip(words, [*joins, ""], strict=True))
    return re.compile(left + "".join(body) + right)


def _is_spaced(letter: str) -> bool:
    """Whether a letter is of a script with spaces between words."""
    return letter.isalnum() and not UNSPACED.match(letter)


def mentions(text: str, option: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each place where a normalised text names a normalised option."""
    # The first word is looked up before a pattern is compiled: compiling took half the time of an
    # evaluation.
    if option and _BETWEEN.split(option, 1)[0] in text:
        yield from (match.span() for match in option_pattern(option).finditer(text))


def match_beginning(text: str, option: str) -> int | None:
    """Return where a normalised option ends that the normalised text begins with, else None."""
    if not option or not text.startswith(_BETWEEN.split(option, 1)[0]):
        return None
    match = option_pattern(option).match(text)
    return match.end() if match else None
