"""Which option a reply to a multiple-choice question picks: a letter by a named rule, or none.

    >>> extract("I considered A, but the answer is (B).", ["Mystery", "Action", "Comedy"])
    Extraction(letter='B', rule='declaration', ambiguous=False)

`RULES` run in this order, from the surest form to the loosest. The first rule that returns an
extraction decides, even when the extraction has no letter:

    1. whole_option_text  "Slow motion."
    2. lone_label         "(B)"
    3. ranking            "C > A > B"
    4. shares             "A (10%), B (85%), C (5%)"
    5. marked_list        "A ✗ B ✓ C ✗", "[ ] A / [x] B / [ ] C", "A: no. B: yes. C: no."
    6. declaration        "The answer is B.", "It is not A, B or C, but D."
    7. ticked_line        "B. slow motion ✓"
    8. leading_label      "Caption B: ...", "B because ..."
    9. possibility        "It could be B."
    10. named_option      "It plays in slow motion. There is no sign of a time-lapse."

Before the rules, `extract` removes reasoning, translates declaring phrases into English, and splits
off JSON, answer tags and boxes. An answer in one of these wins, unless the words outside declare
another option.

A reply is never guessed at: a refusal, two letters at once, a letter beside another option's text,
and a letter that the question does not have give no letter. Only the letters of the question's own
options are valid. Option text is compared before letters, because options may begin with "A ..."
or, in EgoSchema, with "C ..." (the camera wearer). Of several declarations the last one counts; one
that only calls an option possible ("it could be C") never overrides another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mustsee.replies.extract.languages import reply_language
from mustsee.replies.extract.rules import Extraction, OptionReader, merge_extractions
from mustsee.replies.extract.text import (
    label_ordinals,
    plain,
    remove_quoted,
    remove_wrapped,
    strip_reasoning,
    wrapped_answers,
)
from mustsee.text import LETTERS

RULES: tuple[Callable[[OptionReader, str], Extraction | None], ...] = (
    OptionReader.whole_option_text,
    OptionReader.lone_label,
    OptionReader.ranking,
    OptionReader.shares,
    OptionReader.marked_list,
    OptionReader.declaration,
    OptionReader.ticked_line,
    OptionReader.leading_label,
    OptionReader.possibility,
    OptionReader.named_option,
)
# The values of `Extraction.rule` that may overrule an answer in JSON, a tag or a box.
_DECLARING = ("letter", "label", "declaration", "declared text", "option text", "last line")


def extract(reply: str, options: Sequence[str], *, digits: int | None = None) -> Extraction:
    """Return the option that `reply` picks among `options`.

    `digits`: the number of the first option (0 or 1) where the prompt labelled options with
    numbers. Without it, numbers are never read as labels. Raises ValueError for no options, and for
    more than 26.
    """
    if not 1 <= len(options) <= len(LETTERS):
        raise ValueError(f"{len(options)} options: expected 1 to {len(LETTERS)}")
    text = strip_reasoning(reply)
    if text is None:
        return Extraction(None, "unclosed reasoning")
    if (language := reply_language(text)) is not None:
        text, options = language.to_english(text), [*map(language.to_english, options)]
    reader = OptionReader(tuple(options), digits)
    text = label_ordinals(text, len(options), digits)
    whole, unquoted = _read_wrapped(reader, text), remove_quoted(text)
    if unquoted == text or not unquoted.strip():
        return whole
    return merge_extractions([whole, _read_wrapped(reader, unquoted)])


def _read_wrapped(reader: OptionReader, text: str) -> Extraction:
    """Return the answer in a wrapper, or the one in the words where no wrapper holds any.

    The result is ambiguous where the words outside of a wrapper declare another option.
    """
    for kind, contents in wrapped_answers(text):
        inner = merge_extractions([_read_plain(reader, plain(content)) for content in contents])
        inner = replace(inner, rule=f"{kind}, {inner.rule}")
        rest = remove_wrapped(text)
        if kind == "json" and not rest.strip(" \n`"):
            return inner
        outer = _read_plain(reader, plain(rest))
        if inner.letter or inner.ambiguous:
            return merge_extractions([inner, outer]) if outer.rule in _DECLARING else inner
    return _read_plain(reader, plain(text))


def _read_plain(reader: OptionReader, text: str) -> Extraction:
    """Return what the first rule of `RULES` that applies to the text reads."""
    if not text:
        return Extraction(None, "empty")
    for rule in RULES:
        if (extraction := rule(reader, text)) is not None:
            return extraction
    return Extraction(None, "nothing")
