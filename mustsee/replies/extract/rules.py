"""The rules of `mustsee.replies.extract.choice`, as methods of `OptionReader`.

Each rule takes the reply as plain text and returns an `Extraction`, or None where it does not
apply. `choice.RULES` holds their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from mustsee.replies.extract.explained import meant_options
from mustsee.replies.extract.text import match_beginning, mentions, norm
from mustsee.replies.extract.words import (
    AT_FIRST,
    BUT,
    CHOOSING,
    DOUBT,
    ELIMINATED,
    HEAD,
    HEDGE,
    IT_IS,
    JOIN,
    LABELLED,
    LAST_VERDICT,
    MARK,
    NEGATION,
    NEGATIVE_TAIL,
    NOT_ONLY,
    OF_OTHERS,
    POSITIVE_TAIL,
    POSSIBLE,
    REASON,
    REFUSAL,
    SHARE,
    TICK,
    TURNS,
    VERB,
    VERDICT,
)
from mustsee.text import LETTERS

_CLOSE = r"[\)\]\}>\"'|]"
_CERTAINTY = r"\((?:confiden(?:ce|t)|certain(?:ty)?|sure|\d{1,3}\s?%)"
# What may stand between a label and the text of its own option.
_GAP = re.compile(r"[\s)\]}\"'.]*")
# What may stand between a label, its option and a value.
_LIST_GAP = r"[ \t.,:;()\]|=~\"'\ufe0f→-]{0,6}"


@dataclass(frozen=True)
class Extraction:
    """The letter that a reply picks.

    `letter`: "A", "B", ..., or None. `rule`: the rule that decided, or why there is no letter.
    `ambiguous`: the reply names several options or contradicts itself.
    """

    letter: str | None
    rule: str
    ambiguous: bool = False


def merge_extractions(extractions: Sequence[Extraction]) -> Extraction:
    """Return the letter on which the extractions from parts of a reply agree, if they do."""
    letters = {one.letter for one in extractions if one.letter}
    if len(letters) > 1:
        return Extraction(None, "several", ambiguous=True)
    return next((one for one in extractions if one.letter), extractions[0])


@dataclass(frozen=True)
class _Declaration:
    """A place where the reply declares an option; `index` is None for a label out of range."""

    at: int
    index: int | None
    rule: str
    ambiguous: bool = False
    tentative: bool = False  # only called possible


@dataclass(frozen=True)
class _Entry:
    """A label in a list, with the mark or the share beside it."""

    index: int
    value: re.Match[str]
    start: int
    end: int


@dataclass(frozen=True)
class OptionReader:
    """The options of one question, and the rules that read a reply against them.

    `digits`: the number of the first option where labels are numbers, else None.
    """

    options: tuple[str, ...]
    digits: int | None

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The normalised options."""
        return tuple(norm(option) for option in self.options)

    @cached_property
    def reach(self) -> int:
        """Characters to read for one option's text, with any marks between its words."""
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
        """Return the option's index, or None for a label that the question does not have."""
        number = int(label) - self.digits if self.digits is not None else None
        number = LETTERS.index(label.upper()) if number is None else number
        return number if 0 <= number < len(self.options) else None

    # The rules, in the order of `choice.RULES`.

    def whole_option_text(self, text: str) -> Extraction | None:
        """The reply is one option's text and nothing else."""
        whole = norm(text)
        same = [i for i, t in enumerate(self.texts) if match_beginning(whole, t) == len(whole)]
        if len(same) > 1:
            same = [i for i in same if self.options[i].strip() == text.strip()] or same
        if len(whole) == 1 and re.fullmatch(self.label, whole) and same != [self.index(whole)]:
            return Extraction(None, "conflict", ambiguous=True) if same else None
        if len(same) == 1:
            return self._answer(same[0], "option text")
        return Extraction(None, "several", ambiguous=True) if same else None

    def lone_label(self, text: str) -> Extraction | None:
        """The reply is a label and nothing else, or labels joined as in "A or B"."""
        count = r"(?:q?\d+[.):]\s*)?" if self.digits is None else ""
        if match := re.fullmatch(rf"{count}[^\w]*{self.label}[^\w]*", text):
            return self._answer(self.index(match[1]), "letter")
        match = re.match(rf"[^\w]*(?:(?:either|both)\s+)?{self.label}", text, re.IGNORECASE)
        if match and self.index(match[1]) is not None and self._joins_another(text, match):
            return Extraction(None, "several", ambiguous=True)
        return None

    def ranking(self, text: str) -> Extraction | None:
        """ "C > A > B": the first of the last ranking."""
        pattern = rf"{self.label}(?:\s*>\s*{self.label})+"
        rankings = list(re.finditer(pattern, text))
        return self._answer(self.index(rankings[-1][1]), "ranking") if rankings else None

    def shares(self, text: str) -> Extraction | None:
        """ "A (10%), B (85%), C (5%)": the highest share. A declaration outside the list wins.

        Ambiguous for a tie, for an option with two shares, and where an unlisted option may have
        the highest one.
        """
        entries = self._listed(text, SHARE)
        if len(entries) < 2 or any(SHARE.search(option) for option in self.options):
            return None
        if declared := self._declared_outside(text, entries):
            return declared
        share = {entry.index: float(entry.value[1]) for entry in entries}
        best = max(share, key=lambda index: share[index])
        rivals = [value for index, value in share.items() if index != best]
        if len(share) < len(self.options):
            rivals.append(100 - sum(share.values()))
        if len(share) < len(entries) or share[best] <= max(rivals):
            return Extraction(None, "several", ambiguous=True)
        return self._answer(best, "share")

    def marked_list(self, text: str) -> Extraction | None:
        """ "A ✗ B ✓ C ✗", "A: no. B: yes.": the one ticked option of a list that gives a mark or a
        verdict to every option once.

        A declaration outside the list wins.
        """
        whole = (e for e in self._verdict_lists(text) if self._has_each_once(e))
        if (entries := next(whole, None)) is None:
            return None
        if declared := self._declared_outside(text, entries):
            return declared
        ticked = [entry.index for entry in entries if entry.value["tick"]]
        if len(ticked) > 1:
            return Extraction(None, "several", ambiguous=True)
        return self._answer(ticked[0], "tick") if ticked else Extraction(None, "negated")

    def _verdict_lists(self, text: str) -> Iterator[list[_Entry]]:
        """Yield the labels with marks, with verdicts in words, and with one at the line's end."""
        if not any(MARK.search(option) for option in self.options):
            yield self._listed(text, MARK)
        if not any(VERDICT.match(option.strip()) for option in self.options):
            yield self._listed(text, VERDICT)
            line = re.compile(rf"^\W*(?:(?:{LABELLED})\s*)?{self.label}(.*)$", re.M | re.I)
            yield [
                _Entry(index, verdict, match.start(), match.end())
                for match in line.finditer(text)
                if (index := self.index(match[1])) is not None
                and (verdict := LAST_VERDICT.search(match[2])) is not None
            ]

    def _has_each_once(self, entries: Sequence[_Entry]) -> bool:
        """Whether the entries are those of all options, each once."""
        return len(entries) == len(self.options) == len({entry.index for entry in entries})

    def declaration(self, text: str) -> Extraction | None:
        """ "The answer is B.": the last option that the reply declares and does not deny later."""
        return self._last_declared(text, tentative=False)

    def possibility(self, text: str) -> Extraction | None:
        """ "It could be B.": the last option that the reply calls possible, where none is firm."""
        if (extraction := self._last_declared(text, tentative=True)) is None:
            return None
        return replace(extraction, rule="possible") if extraction.letter else extraction

    def _last_declared(self, text: str, *, tentative: bool) -> Extraction | None:
        declarations = sorted(self._declarations(text), key=lambda d: d.at)
        declarations = [d for d in declarations if d.tentative is tentative]
        if not declarations:
            return None
        last, denied = declarations[-1], self._denied(text)
        if last.ambiguous:
            return Extraction(None, last.rule, ambiguous=True)
        if last.index is not None and denied.get(last.index, -1) > last.at:
            return Extraction(None, "negated", ambiguous=True)
        return self._answer(last.index, last.rule)

    def ticked_line(self, text: str) -> Extraction | None:
        """Lines that begin with a label, of which one has a tick.

        Ambiguous where a line has a tick and other marks: which label they belong to is unclear.
        """
        lines = re.finditer(rf"^\W*(?:option\s*)?{self.label}.*$", text, re.MULTILINE)
        ticked = [line for line in lines if TICK.search(line[0])]
        if any(len(MARK.findall(line[0])) > 1 for line in ticked):
            return Extraction(None, "several", ambiguous=True)
        return self._answer(self.index(ticked[0][1]), "tick") if len(ticked) == 1 else None

    def leading_label(self, text: str) -> Extraction | None:
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
                self._is_clause(norm(rest[: self.reach]), index)
                or (
                    re.match(rf",?\s+{REASON}\b", rest, re.IGNORECASE)
                    and not self._is_actor(match[1], text, match.end())
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
            return self.possibility(text) or Extraction(None, "negated")
        if self._is_contradicted(text, match.end(), index):
            return Extraction(None, "conflict", ambiguous=True)
        return self._answer(index, "label")

    def named_option(self, text: str) -> Extraction | None:
        """The one option that the reply names, in its words or nearly, or whose start it is."""
        named = meant_options(text.casefold(), self.texts)
        if len(named) > 1:
            return Extraction(None, "several", ambiguous=True)
        if named and not REFUSAL.search(norm(text)):
            marks = {self.index(m) for m in re.findall(rf"[(\[]{self.label}[)\]]", text)}
            if marks - {*named, None}:
                return Extraction(None, "conflict", ambiguous=True)
            verbatim = any(mentions(text.casefold(), self.texts[named[0]]))
            return self._answer(named[0], "text inside" if verbatim else "other words")
        whole = norm(text)
        cut = [i for i, option in enumerate(self.texts) if option.startswith(whole)]
        if not named and len(whole.split()) >= 4 and len(cut) == 1:
            return self._answer(cut[0], "cut text")
        return None

    # What the rules have in common.

    def _answer(self, index: int | None, rule: str) -> Extraction:
        if index is None:
            return Extraction(None, "out of range")
        return Extraction(LETTERS[index], rule)

    def _listed(self, text: str, value: re.Pattern[str]) -> list[_Entry]:
        """Return the labels that have a value beside them, in order.

        Values stand behind the labels ("A. red ✗ B. blue ✓") or before them ("[ ] A / [x] B"). The
        side with more labels counts. Nothing is returned where both have as many.
        """
        label, behind, before = re.compile(self.label), list[_Entry](), list[_Entry]()
        values = list(value.finditer(text))
        for match in label.finditer(text) if values else ():
            index = self.index(match[1])
            if index is None:
                continue
            option = re.escape(self.options[index].strip().rstrip("."))
            gap = re.compile(rf"{_LIST_GAP}(?:{option}(?!\w){_LIST_GAP})?", re.IGNORECASE)
            end = next(m.end() for m in [gap.match(text, match.end())] if m)
            if (mark := value.match(text, end)) is not None:
                behind.append(_Entry(index, mark, match.start(), mark.end()))
        for mark in values:
            match = re.compile(_LIST_GAP + self.label).match(text, mark.end())
            index = self.index(match[1]) if match else None
            if match and index is not None:
                before.append(_Entry(index, mark, mark.start(), match.end()))
        if len(behind) == len(before):
            return []
        return max(behind, before, key=len)

    def _declared_outside(self, text: str, entries: Sequence[_Entry]) -> Extraction | None:
        """Return what the words before and behind a list declare."""
        return self.declaration(f"{text[: entries[0].start]} . {text[entries[-1].end :]}")

    def _declarations(self, text: str) -> Iterator[_Declaration]:
        for match in HEAD.finditer(text):
            yield from self._behind(text, match, firm=bool(match["firm"] or VERB.search(match[0])))
        for match in CHOOSING.finditer(text):
            before = text[max(0, match.start() - 30) : match.start()]
            if not NEGATION.search(re.split(r"[.!?;\n]", before)[-1]):
                yield from self._behind(text, match, firm=True)
        for pattern in (IT_IS, HEDGE):
            for match in pattern.finditer(text):
                yield from self._behind(text, match, firm=False)
        for match in BUT.finditer(text):
            before = re.split(r"[.!?;\n]", text[: match.start()])[-1]
            if NEGATION.search(before) and not NOT_ONLY.search(before):
                yield from self._behind(text, match, firm=False)
        for match in re.finditer(rf"(option |choice )?([(\[\"']?){self.label}", text, re.I):
            if POSITIVE_TAIL.match(text, match.end()) and self._is_plain_label(
                match[3], match[1] or match[2]
            ):
                joined = re.search(
                    rf"{self.label}\W*\s(?:or|and)\s+(?:the )?$", text[: match.start()]
                )
                one = self._declared_label(text, match, match[3])
                tail = text[match.end() : match.end() + 60]
                possible = POSSIBLE.search(TURNS.split(tail)[0]) or self._is_tentative(text, match)
                one = replace(one, tentative=bool(possible))
                yield replace(one, ambiguous=True, rule="several") if joined else one
        lines = [m for m in re.finditer(r"[^\n]+", text) if m[0].strip()]
        if len(lines) > 1 and (match := re.fullmatch(rf"\W*{self.label}\W*", lines[-1][0])):
            yield _Declaration(lines[-1].start(), self.index(match[1]), "last line")

    def _is_plain_label(self, label: str, marked: object) -> bool:
        """Whether a letter is a label by its form: marked, or capital and not also a word."""
        return (
            bool(marked)
            or self.digits is not None
            or (label.isupper() and (label == "A" or label not in self.words))
        )

    def _behind(self, text: str, head: re.Match[str], *, firm: bool) -> Iterator[_Declaration]:
        """Yield the option that the head of a declaration introduces, by its text or its label.

        `firm`: the head can only declare ("the answer is"), so that option text counts too.
        """
        if NEGATION.search(head[0]) or DOUBT.search(text[max(0, head.start() - 60) : head.start()]):
            return
        tentative = self._is_tentative(text, head)
        if firm and (index := self._text_at(text, head.end())) is not None:
            yield _Declaration(head.end(), index, "declared text", tentative=tentative)
            return
        match = re.compile(self.label).match(text, head.end())
        if match is None or not self._is_label(text, match, firm=firm):
            return
        yield replace(self._declared_label(text, match, match[1]), tentative=tentative)

    def _is_tentative(self, text: str, head: re.Match[str]) -> bool:
        """Whether the head of a declaration only calls an option possible, quotes other people, or
        tells a first impression.
        """
        before = TURNS.split(text[max(0, head.start() - 120) : head.start()])[-1]
        behind = AT_FIRST.match(text, head.end())
        return bool(POSSIBLE.search(head[0]) or OF_OTHERS.search(before + head[0]) or behind)

    def _declared_label(self, text: str, match: re.Match[str], label: str) -> _Declaration:
        index = self.index(label)
        if index is not None and self._joins_another(text, match):
            return _Declaration(match.start(), index, "several", ambiguous=True)
        if index is not None and self._is_contradicted(text, match.end(), index):
            return _Declaration(match.start(), index, "conflict", ambiguous=True)
        return _Declaration(match.start(), index, "declaration")

    def _is_label(self, text: str, match: re.Match[str], *, firm: bool) -> bool:
        """Whether the letter is a label here, and not the article, the pronoun or a name."""
        label, rest = match[1], text[match.end() :]
        opened = match.start() > 0 and text[match.start() - 1] in "([{<\"'"
        if opened and re.match(rf"\s*{_CLOSE}", rest):
            return True
        ends = re.match(rf"\s*(?:$|{_CLOSE}|[.,;:!?/&+=-]|\n)", rest)
        if not firm:
            ends = ends or re.match(r"\s+(?:rather|instead|because|since|not)\b", rest)
            is_question = re.match(r"\s*\?", rest)
            return bool(ends) and not is_question and self._is_plain_label(label, opened)
        if ends or re.match(rf"\s+(?:{REASON}|and|or)\b", rest, re.IGNORECASE):
            return True
        if label.isdigit():
            return False
        index = self.index(label)
        if (
            index is not None
            and match_beginning(norm(rest[: self.reach]), self.texts[index]) is not None
        ):
            return True
        return label.isupper() and label not in self.words

    def _joins_another(self, text: str, match: re.Match[str]) -> bool:
        """Whether another label is joined to this one, as in "A or B" and "A, C"."""
        index = self.index(match[match.lastindex or 1])
        while True:
            first = match[match.lastindex or 1]
            option = self.options[index].strip().rstrip(".").lower() if index is not None else ""
            other = self._joined_label(text, match.end(), option)
            if other is None or (first.isupper() and other[1].islower()):
                return False
            second = self.index(other[1])
            if second != index:
                return second is not None
            match = other

    def _joined_label(self, text: str, at: int, option: str) -> re.Match[str] | None:
        """Return the label joined on at a place, or behind the first label's own option text."""
        ends = rf"(?=\s*(?:$|{_CLOSE}|[.,;:!?/&+-]|\n|and\b|or\b))"
        joined = re.compile(rf"[\s.\"')]*{JOIN}{self.label}{ends}", re.IGNORECASE)
        gap = _GAP.match(text, at)
        places = range(gap.end() if gap else at, at - 1, -1)
        behind = (
            place + len(option)
            for place in places
            if option and text[place : place + len(option)].lower() == option
        )
        matches = (joined.match(text, place) for place in (*behind, *places))
        return next((match for match in matches if match), None)

    def _is_clause(self, text: str, index: int) -> bool:
        """Whether the text begins with the option's, and a clause ends there."""
        end = match_beginning(text, self.texts[index])
        return end is not None and not re.match(r"\s*\w|['-]\w", text[end:])

    def _text_at(self, text: str, at: int) -> int | None:
        """Return the option whose text is at a place, the longest one.

        A bare letter never counts. A digit (of a counting question) counts only where its line
        ends, because "1. First ..." is a list.
        """
        rest = norm(text[at : at + self.reach])
        alone = re.match(r"[^\w\n]*(\d)[^\w\n]*(?:\n|$)", text[at:])
        digit = alone[1] if alone and self.digits is None else None
        usable = [i for i, t in enumerate(self.texts) if len(t) > 1 or t == digit]
        matching = [i for i in usable if self._is_clause(rest, i)]
        longest = max((len(self.texts[i]) for i in matching), default=0)
        matching = [i for i in matching if len(self.texts[i]) == longest]
        return matching[0] if len(matching) == 1 else None

    def _is_contradicted(self, text: str, at: int, index: int) -> bool:
        """Whether the text behind the label is another option's.

        Letter and text must both match (CinePile, sec. 5).
        """
        other = self._text_at(text, at)
        return other is not None and self.texts[other] != self.texts[index]

    def _denied(self, text: str) -> dict[int, int]:
        """Return denied options, each with the last place where the reply denies it."""
        last_place: dict[int, int] = {}
        label = re.compile(self.label)
        matches = [m for h in HEAD.finditer(text) if NEGATION.search(h[0])
                   for m in [label.match(text, h.end())] if m]  # fmt: skip
        matches += [m for h in ELIMINATED.finditer(text)
                    for m in [label.match(text, h.end())] if m]  # fmt: skip
        matches += [m for m in label.finditer(text) if NEGATIVE_TAIL.match(text, m.end())]
        matches += [m for m in label.finditer(text) if self._is_judged_wrong(text, m)]
        for match in matches:
            index = self.index(match[1])
            if index is not None and not (match[1].islower() and match[1] in "ai"):
                last_place[index] = max(last_place.get(index, -1), match.start())
        return last_place

    def _is_judged_wrong(self, text: str, label: re.Match[str]) -> bool:
        """Whether a verdict behind a label denies its option: "A: no.", "(B) - incorrect"."""
        index, gap = self.index(label[1]), re.compile(_LIST_GAP).match(text, label.end())
        if index is None or gap is None or not gap[0] or VERDICT.match(self.options[index].strip()):
            return False
        verdict = VERDICT.match(text, gap.end())
        return verdict is not None and not verdict["tick"] and verdict[0].lower() != "not"

    def _is_actor(self, label: str, text: str, at: int) -> bool:
        """Whether the letter is a person whom the options name, doing something: "C is cooking"."""
        if label not in self.words - {"A"} or not re.match(r"\s+(?:is|was)\b", text[at:], re.I):
            return False
        praised = POSITIVE_TAIL.match(text, at)
        ends = r"\s*(?:$|[.,;:!\n]|(?:answer|option|choice|because|since|as)\b)"
        return praised is None or not re.match(ends, text[praised.end() :], re.IGNORECASE)
