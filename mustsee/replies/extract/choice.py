"""Which option a reply to a multiple-choice question picks: a letter by a named rule, or none.

    >>> extract("I considered A, but the answer is (B).", ["Mystery", "Action", "Comedy"])
    Extraction(letter='B', rule='declaration', ambiguous=False)

Never a guess: a refusal, two letters at once, a letter beside another option's text, or a letter
that the question does not have give no letter. The valid letters are those of the question's own
options. Option text is looked for before letters, because options may begin with "A ..." or, in
EgoSchema, with "C ..." (the camera wearer). Of several declarations the last one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from mustsee.replies.extract.explained import meant_options
from mustsee.replies.extract.extraction import Extraction, merge_extractions
from mustsee.replies.extract.languages import tongue
from mustsee.replies.extract.text import (
    begins,
    label_ordinals,
    mentions,
    norm,
    plain,
    remove_quoted,
    remove_wrapped,
    strip_reasoning,
    wrapped_answers,
)
from mustsee.replies.extract.words import (
    BUT,
    CHOOSING,
    DOUBT,
    ELIMINATED,
    HEAD,
    HEDGE,
    IT_IS,
    JOIN,
    LABELLED,
    NEGATION,
    NEGATIVE_TAIL,
    NOT_ONLY,
    POSITIVE_TAIL,
    REASON,
    REFUSAL,
    TICK,
    VERB,
)
from mustsee.text import LETTERS

_CLOSE = r"[\)\]\}>\"'|]"
_CERTAINTY = r"\((?:confiden(?:ce|t)|certain(?:ty)?|sure|\d{1,3}\s?%)"
_DECLARING = ("letter", "label", "declaration", "declared text", "option text", "last line")
_GAP = re.compile(r"[\s)\]}\"'.]*")


def extract(reply: str, options: Sequence[str], *, digits: int | None = None) -> Extraction:
    """The option that `reply` picks among `options`.

    `digits`: the number of the first option (0 or 1) where the prompt labelled them with numbers;
    without it numbers are never taken for labels. Raises ValueError for no or over 26 options.
    """
    if not 1 <= len(options) <= len(LETTERS):
        raise ValueError(f"{len(options)} options: expected 1 to {len(LETTERS)}")
    text = strip_reasoning(reply)
    if text is None:
        return Extraction(None, "unclosed reasoning")
    if (foreign := tongue(text)) is not None:
        text, options = foreign.english(text), [*map(foreign.english, options)]
    question = _Question(tuple(options), digits)
    text = label_ordinals(text, len(options), digits)
    found, own = _read(question, text), remove_quoted(text)
    if own == text or not own.strip():
        return found
    return merge_extractions([found, _read(question, own)])


def _read(question: _Question, text: str) -> Extraction:
    """What a reply picks in a wrapper, unless it declares another option outside of it; else what
    it picks in its words.
    """
    for kind, contents in wrapped_answers(text):
        inner = merge_extractions([question.read(plain(content)) for content in contents])
        inner = replace(inner, rule=f"{kind}, {inner.rule}")
        rest = remove_wrapped(text)
        if kind == "json" and not rest.strip(" \n`"):
            return inner
        outer = question.read(plain(rest))
        if inner.letter or inner.ambiguous:
            return merge_extractions([inner, outer]) if outer.rule in _DECLARING else inner
    return question.read(plain(text))


@dataclass(frozen=True)
class _Said:
    """One place where the reply names options: `index` is None for a label out of range."""

    at: int
    index: int | None
    rule: str
    several: bool = False


@dataclass(frozen=True)
class _Question:
    options: tuple[str, ...]
    digits: int | None

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(norm(option) for option in self.options)

    @cached_property
    def reach(self) -> int:
        """How far an option's text may go, with marks between its words."""
        return 4 * max(map(len, self.options)) + 200

    @cached_property
    def label(self) -> str:
        """A pattern with one group: a label with its boundaries."""
        body = r"\d{1,2}" if self.digits is not None else "[A-Za-z]"
        return rf"(?<![A-Za-z0-9])(?<![A-Za-z]')({body})(?![A-Za-z0-9]|['-][A-Za-z])"

    @cached_property
    def words(self) -> frozenset[str]:
        """Letters that are words too: the article, the pronoun, and those that options use."""
        used = re.findall(r"(?<![\w'])[A-Z](?![\w'])", " ".join(self.options))
        return frozenset({"A", "I", *used})

    def index(self, label: str) -> int | None:
        number = int(label) - self.digits if self.digits is not None else None
        number = LETTERS.index(label.upper()) if number is None else number
        return number if 0 <= number < len(self.options) else None

    def read(self, text: str) -> Extraction:
        if not text:
            return Extraction(None, "empty")
        for rule in (  # in order: the first that finds anything decides
            self._equal,  # "Slow motion."
            self._single,  # "(B)"
            self._ranked,  # "C > A > B"
            self._declared,  # "The answer is B.", "It is not A, B or C, but D."
            self._ticked,  # "B. slow motion ✓"
            self._labelled,  # "Caption B: ...", "B because ..."
        ):
            if (found := rule(text)) is not None:
                return found
        return self._inside(text)  # "It plays in slow motion. There is no sign of a time-lapse."

    def _answer(self, index: int | None, rule: str) -> Extraction:
        if index is None:
            return Extraction(None, "out of range")
        return Extraction(LETTERS[index], rule)

    def _equal(self, text: str) -> Extraction | None:
        """The reply is one option's text."""
        whole = norm(text)
        same = [i for i, t in enumerate(self.texts) if begins(whole, t) == len(whole)]
        if len(same) > 1:
            same = [i for i in same if self.options[i].strip() == text.strip()] or same
        if len(whole) == 1 and re.fullmatch(self.label, whole) and same != [self.index(whole)]:
            return Extraction(None, "conflict", ambiguous=True) if same else None
        if len(same) == 1:
            return self._answer(same[0], "option text")
        return Extraction(None, "several", ambiguous=True) if same else None

    def _single(self, text: str) -> Extraction | None:
        """The reply is a label and nothing else, perhaps more than one."""
        count = r"(?:q?\d+[.):]\s*)?" if self.digits is None else ""
        if match := re.fullmatch(rf"{count}[^\w]*{self.label}[^\w]*", text):
            return self._answer(self.index(match[1]), "letter")
        match = re.match(rf"[^\w]*(?:(?:either|both)\s+)?{self.label}", text, re.IGNORECASE)
        if match and self.index(match[1]) is not None and self._joined(text, match):
            return Extraction(None, "several", ambiguous=True)
        return None

    def _ranked(self, text: str) -> Extraction | None:
        """ "C > A > B": best first."""
        pattern = rf"{self.label}(?:\s*>\s*{self.label})+"
        found = list(re.finditer(pattern, text))
        return self._answer(self.index(found[-1][1]), "ranking") if found else None

    def _declared(self, text: str) -> Extraction | None:
        said = sorted(self._sayings(text), key=lambda s: s.at)
        if not said:
            return None
        last, denied = said[-1], self._denied(text)
        if last.several:
            return Extraction(None, last.rule, ambiguous=True)
        if last.index is not None and denied.get(last.index, -1) > last.at:
            return Extraction(None, "negated", ambiguous=True)
        return self._answer(last.index, last.rule)

    def _sayings(self, text: str) -> Iterator[_Said]:
        """Every declaration in the text."""
        for match in HEAD.finditer(text):
            yield from self._after(text, match, firm=bool(match["firm"] or VERB.search(match[0])))
        for match in CHOOSING.finditer(text):
            before = text[max(0, match.start() - 30) : match.start()]
            if not NEGATION.search(re.split(r"[.!?;\n]", before)[-1]):
                yield from self._after(text, match, firm=True)
        for pattern in (IT_IS, HEDGE):
            for match in pattern.finditer(text):
                yield from self._after(text, match, firm=False)
        for match in BUT.finditer(text):
            before = re.split(r"[.!?;\n]", text[: match.start()])[-1]
            if NEGATION.search(before) and not NOT_ONLY.search(before):
                yield from self._after(text, match, firm=False)
        for match in re.finditer(rf"(option |choice )?([(\[\"']?){self.label}", text, re.I):
            if POSITIVE_TAIL.match(text, match.end()) and self._sure(
                match[3], match[1] or match[2]
            ):
                joined = re.search(
                    rf"{self.label}\W*\s(?:or|and)\s+(?:the )?$", text[: match.start()]
                )
                said = self._said(text, match, match[3])
                yield replace(said, several=True, rule="several") if joined else said
        lines = [m for m in re.finditer(r"[^\n]+", text) if m[0].strip()]
        if len(lines) > 1 and (match := re.fullmatch(rf"\W*{self.label}\W*", lines[-1][0])):
            yield _Said(lines[-1].start(), self.index(match[1]), "last line")

    def _sure(self, label: str, marked: object) -> bool:
        return (
            bool(marked)
            or self.digits is not None
            or (label.isupper() and (label == "A" or label not in self.words))
        )

    def _after(self, text: str, head: re.Match[str], *, firm: bool) -> Iterator[_Said]:
        """What follows the head of a declaration: an option's text, or a label."""
        if NEGATION.search(head[0]) or DOUBT.search(text[max(0, head.start() - 60) : head.start()]):
            return
        if firm and (index := self._text_at(text, head.end())) is not None:
            yield _Said(head.end(), index, "declared text")
            return
        match = re.compile(self.label).match(text, head.end())
        if match is None or not self._stands(text, match, firm=firm):
            return
        yield self._said(text, match, match[1])

    def _said(self, text: str, match: re.Match[str], label: str) -> _Said:
        index = self.index(label)
        if index is not None and self._joined(text, match):
            return _Said(match.start(), index, "several", several=True)
        if index is not None and self._contradicted(text, match.end(), index):
            return _Said(match.start(), index, "conflict", several=True)
        return _Said(match.start(), index, "declaration")

    def _stands(self, text: str, match: re.Match[str], *, firm: bool) -> bool:
        """Whether the letter is a label here, and not the article, the pronoun or a name."""
        label, rest = match[1], text[match.end() :]
        opened = match.start() > 0 and text[match.start() - 1] in "([{<\"'"
        if opened and re.match(rf"\s*{_CLOSE}", rest):
            return True
        ends = re.match(rf"\s*(?:$|{_CLOSE}|[.,;:!?/&+=-]|\n)", rest)
        if not firm:
            ends = ends or re.match(r"\s+(?:rather|instead|because|since|not)\b", rest)
            return bool(ends) and not re.match(r"\s*\?", rest) and self._sure(label, opened)
        if ends or re.match(rf"\s+(?:{REASON}|and|or)\b", rest, re.IGNORECASE):
            return True
        if label.isdigit():
            return False
        own = self.index(label)
        follows = own is not None and self._starts(norm(rest[: self.reach]), own)
        return follows or (label.isupper() and label not in self.words)

    def _joined(self, text: str, match: re.Match[str]) -> bool:
        """Another label is named in the same breath: "A or B", "A, C"; not the same one again."""
        index = self.index(match[match.lastindex or 1])
        while True:
            first = match[match.lastindex or 1]
            own = self.options[index].strip().rstrip(".").lower() if index is not None else ""
            other = self._next(text, match.end(), own)
            if other is None or (first.isupper() and other[1].islower()):
                return False
            second = self.index(other[1])
            if second != index:
                return second is not None
            match = other

    def _next(self, text: str, at: int, own: str) -> re.Match[str] | None:
        """The label that is joined on at a place, perhaps behind the first one's own text."""
        ends = rf"(?=\s*(?:$|{_CLOSE}|[.,;:!?/&+-]|\n|and\b|or\b))"
        joined = re.compile(rf"[\s.\"')]*{JOIN}{self.label}{ends}", re.IGNORECASE)
        gap = _GAP.match(text, at)
        places = range(gap.end() if gap else at, at - 1, -1)
        behind = (p + len(own) for p in places if own and text[p : p + len(own)].lower() == own)
        found = (joined.match(text, place) for place in (*behind, *places))
        return next((match for match in found if match), None)

    def _starts(self, text: str, index: int) -> bool:
        return begins(text, self.texts[index]) is not None

    def _clause(self, text: str, index: int) -> bool:
        """The text begins with the option's, and that ends a clause there."""
        end = begins(text, self.texts[index])
        return end is not None and not re.match(r"\s*\w|['-]\w", text[end:])

    def _text_at(self, text: str, at: int) -> int | None:
        """The option whose text stands at a place, the longest one; never a bare letter, and a
        digit (of a counting question) only where its line ends: "1. First ..." is a list.
        """
        rest = norm(text[at : at + self.reach])
        alone = re.match(r"[^\w\n]*(\d)[^\w\n]*(?:\n|$)", text[at:])
        digit = alone[1] if alone and self.digits is None else None
        said = [i for i, t in enumerate(self.texts) if len(t) > 1 or t == digit]
        found = [i for i in said if self._clause(rest, i)]
        longest = max((len(self.texts[i]) for i in found), default=0)
        found = [i for i in found if len(self.texts[i]) == longest]
        return found[0] if len(found) == 1 else None

    def _contradicted(self, text: str, at: int, index: int) -> bool:
        """The text behind the label is another option's (CinePile, sec. 5: both must match)."""
        other = self._text_at(text, at)
        return other is not None and self.texts[other] != self.texts[index]

    def _denied(self, text: str) -> dict[int, int]:
        """Option -> where the reply last says that it is not the answer."""
        found: dict[int, int] = {}
        label = re.compile(self.label)
        places = [m for h in HEAD.finditer(text) if NEGATION.search(h[0])
                  for m in [label.match(text, h.end())] if m]  # fmt: skip
        places += [m for h in ELIMINATED.finditer(text)
                   for m in [label.match(text, h.end())] if m]  # fmt: skip
        places += [m for m in label.finditer(text) if NEGATIVE_TAIL.match(text, m.end())]
        for match in places:
            index = self.index(match[1])
            if index is not None and not (match[1].islower() and match[1] in "ai"):
                found[index] = max(found.get(index, -1), match.start())
        return found

    def _ticked(self, text: str) -> Extraction | None:
        """A list of the options in which one bears a tick."""
        line = re.compile(rf"^\W*(?:option\s*)?{self.label}.*$", re.MULTILINE)
        ticked = [m for m in line.finditer(text) if TICK.search(m[0])]
        return self._answer(self.index(ticked[0][1]), "tick") if len(ticked) == 1 else None

    def _labelled(self, text: str) -> Extraction | None:
        """A label at the start: "B) ...", "Option B: ...", "B because ..."."""
        head = rf"\W*(?:(?:{LABELLED})\s*[(\[\"']?\s*)?{self.label}"
        match = re.match(head, text, re.IGNORECASE)
        if match is None:
            return None
        index, rest = self.index(match[1]), text[match.end() :]
        marked = re.match(rf"\s*(?:{_CLOSE}|[.:](?:\s|$)|-\s|\n|$|{_CERTAINTY})", rest)
        if not marked and not (
            index is not None
            and match[1].isupper()
            and (
                self._clause(norm(rest[: self.reach]), index)
                or (
                    re.match(rf",?\s+{REASON}\b", rest, re.IGNORECASE)
                    and not self._acts(match[1], text, match.end())
                )
            )
        ):
            return None
        line = re.compile(
            rf"^\W*(?:(?:{LABELLED})\s*)?{self.label}\s*(?:{_CLOSE}|[.:](?=\s|$)|\()", re.M | re.I
        )
        labels = {m[1].upper() for m in line.finditer(text)}
        if index is None:
            return Extraction(None, "out of range")
        if len(labels) > 1:
            return Extraction(None, "several", ambiguous=True)
        if index in self._denied(text):
            return Extraction(None, "negated")
        if self._contradicted(text, match.end(), index):
            return Extraction(None, "conflict", ambiguous=True)
        return self._answer(index, "label")

    def _acts(self, label: str, text: str, at: int) -> bool:
        """Whether the letter is one that the options tell of, doing something: "C is cooking"."""
        if label not in self.words - {"A"} or not re.match(r"\s+(?:is|was)\b", text[at:], re.I):
            return False
        praised = POSITIVE_TAIL.match(text, at)
        ends = r"\s*(?:$|[.,;:!\n]|(?:answer|option|choice|because|since|as)\b)"
        return praised is None or not re.match(ends, text[praised.end() :], re.IGNORECASE)

    def _inside(self, text: str) -> Extraction:
        """The one option whose text the reply contains, or nearly, or that the reply begins."""
        found = meant_options(text.casefold(), self.texts)
        if len(found) > 1:
            return Extraction(None, "several", ambiguous=True)
        if found and not REFUSAL.search(norm(text)):
            marks = {self.index(m) for m in re.findall(rf"[(\[]{self.label}[)\]]", text)}
            if marks - {*found, None}:
                return Extraction(None, "conflict", ambiguous=True)
            written = any(mentions(text.casefold(), self.texts[found[0]]))
            return self._answer(found[0], "text inside" if written else "other words")
        whole = norm(text)
        cut = [i for i, own in enumerate(self.texts) if own.startswith(whole)]
        if not found and len(whole.split()) >= 4 and len(cut) == 1:
            return self._answer(cut[0], "cut text")
        return Extraction(None, "nothing")
