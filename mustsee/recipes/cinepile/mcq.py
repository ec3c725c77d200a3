"""Multiple-choice questions as CinePile's models write them, in JSON or in this form:

    Question: What does she do after the call?
    - A) She leaves.
    ...
    - E) She laughs.
    Correct Answer: C
    Rationale: ...

Asterisks go first (models set labels in bold). Letters may be "A)", "A.", "(A)" or "A:"; the answer
may be a letter, a letter with its text, or the text of one option. A question that lacks a part is
left out; a reply without any whole question raises `Unparsed` with the first fault.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mustsee.errors import Unparsed
from mustsee.questions.checks import normal
from mustsee.questions.drafts import Draft, plain, spans
from mustsee.questions.replies import is_none, stretches
from mustsee.records import Span
from mustsee.replies.extract import extract
from mustsee.replies.forms import Form, form, list_of, object_with, one_of, record, words
from mustsee.text import LETTERS

_LABEL = re.compile(
    r"^[\s>#\-•]*(?:\d+\s*[.)]\s*)?(?P<label>template|question|(?:correct|right)\s+answer|answer"
    r"(?:\s+key)?|rationale|explanation|evidence)(?:\s*\d+)?\s*[:：]\s*(?P<text>.*)$",
    re.IGNORECASE,
)
_OPTION = re.compile(r"^[\s>\-•]*\(?(?P<letter>[A-Ja-j])(?:[).:]\s+|[：、]\s*)(?P<text>\S.*)$")


@dataclass(frozen=True, kw_only=True)
class Mcq:
    """A question with its options and the answer's place among them."""

    question: str
    options: tuple[str, ...]
    answer: int
    rationale: str = ""
    template: str = ""
    evidence: tuple[Span, ...] = ()

    def draft(self) -> Draft:
        """As `mustsee.questions.drafts` takes it."""
        return Draft(
            question=self.question,
            answer=self.options[self.answer],
            tag=self.template,
            evidence=self.evidence,
            decoys=tuple(o for i, o in enumerate(self.options) if i != self.answer),
        )


@dataclass
class _Block:
    question: str = ""
    template: str = ""
    options: dict[str, str] | None = None
    answer: str = ""
    rationale: str = ""
    evidence: str | tuple[Span, ...] = ""
    last: str = "question"


def mcqs(
    *, options: int = 5, or_none: bool = False, kinds: Sequence[str] = ()
) -> Form[tuple[Mcq, ...]]:
    """All whole questions of a reply, in order. `or_none`: there may be none, which it then says.
    Unparsed otherwise, with the first fault; and where a question names none of several `kinds`.
    """

    def check_blocks(blocks: Sequence[_Block]) -> tuple[Mcq, ...]:
        found: list[Mcq] = []
        faults: list[str] = []
        for block in blocks:
            try:
                found.append(_whole(block, options))
            except Unparsed as error:
                faults.append(str(error))
        if not found and (faults or not or_none):
            raise Unparsed([*faults, NO_QUESTION][0])
        for one in found:
            if kinds and kind_of(one.template, kinds) is None:
                raise Unparsed(
                    f"the question {one.question[:60]!r} has no line 'Template: ...' with one of "
                    f"the kinds {', '.join(kinds)}"
                )
        return tuple(found)

    def parse_blocks(reply: str) -> Sequence[_Block]:
        blocks = _blocks(reply)
        if not blocks and not (or_none and is_none(reply)):
            raise Unparsed(NO_QUESTION)
        return blocks

    letters = LETTERS[:options]
    one = record(
        _told,
        template=words("the kind"),
        question=words("the question"),
        **{f"option_{letter.lower()}": words(f"option {letter}") for letter in letters},
        correct_answer=one_of(letters, "its letter"),
        rationale=words("one sentence on why it is right"),
        evidence=stretches("what shows it, in seconds"),
    )
    return form(
        text=parse_blocks, shape=object_with("questions", list_of(one, "the questions"))
    ).map(check_blocks)


def kind_of(named: str, kinds: Sequence[str]) -> int | None:
    """The place of the kind that a question names; the longest of those that it holds."""
    said = normal(named)
    if len(kinds) == 1:
        return 0
    if not said:
        return None
    for place, kind in enumerate(kinds):
        if normal(kind) == said:
            return place
    near = [n for n, kind in enumerate(kinds) if normal(kind) in said or said in normal(kind)]
    return max(near, key=lambda n: len(kinds[n]), default=None)


NO_QUESTION = "it holds no line 'Question: ...' followed by '- A) ...'"


def _told(
    *,
    template: str,
    question: str,
    correct_answer: str,
    rationale: str,
    evidence: tuple[Span, ...],
    **options: str,
) -> _Block:
    given = {name[-1].upper(): text for name, text in options.items() if text}
    return _Block(question=question, template=template, options=given, answer=correct_answer,
                  rationale=rationale, evidence=evidence)  # fmt: skip


def _blocks(reply: str) -> list[_Block]:
    blocks: list[_Block] = []
    template = ""
    for line in reply.replace("*", "").splitlines():
        label = _LABEL.match(line)
        option = _OPTION.match(line)
        if label:
            name, text = label["label"].lower(), label["text"].strip()
            if name == "template":
                template = text
            elif name == "question":
                blocks.append(_Block(question=text, template=template))
            elif blocks:
                kind = "answer" if "answer" in name else name.replace("explanation", "rationale")
                if not getattr(blocks[-1], kind):
                    setattr(blocks[-1], kind, text)
                blocks[-1].last = kind
        elif option and blocks and not blocks[-1].answer:
            block = blocks[-1]
            block.options = block.options or {}
            block.options.setdefault(option["letter"].upper(), option["text"].strip())
            block.last = option["letter"].upper()
        elif blocks and line.strip():
            _goes_on(blocks[-1], line.strip())
    return blocks


def _goes_on(block: _Block, text: str) -> None:
    """A line without a label continues the field before it."""
    if block.options and block.last in block.options:
        block.options[block.last] += f" {text}"
    elif block.last in ("question", "rationale"):
        setattr(block, block.last, f"{getattr(block, block.last)} {text}".strip())


def _whole(block: _Block, count: int) -> Mcq:
    question, given = plain(block.question), block.options or {}
    where = f"the question {question[:60]!r}"
    if not question:
        raise Unparsed("a question has no text")
    wanted = list(LETTERS[:count])
    if sorted(given) != wanted:
        raise Unparsed(f"{where} has the options {''.join(sorted(given)) or 'none'}, not A to "
                       f"{wanted[-1]}")  # fmt: skip
    options = tuple(plain(given[letter]) for letter in wanted)
    if len({normal(o) or o for o in options}) < count:
        raise Unparsed(f"{where} has an option twice")
    place = answer_place(block.answer, options)
    if place is None:
        raise Unparsed(f"{where} has no line 'Correct Answer: X' with a letter A to {wanted[-1]}")
    return Mcq(
        question=question,
        options=options,
        answer=place,
        rationale=plain(block.rationale),
        template=plain(block.template),
        evidence=spans(block.evidence) if isinstance(block.evidence, str) else block.evidence,
    )


def answer_place(text: str, options: tuple[str, ...]) -> int | None:
    """Which option an answer names: by its letter, or by its words."""
    text = plain(text)
    letter = re.match(r"^(?:option\s+)?\(?([A-Ja-j])(?:\)|\.|:|\s*$)", text, re.IGNORECASE)
    if letter:
        place = LETTERS.index(letter[1].upper())
        return place if place < len(options) else None
    same = [i for i, option in enumerate(options) if normal(option) == normal(text) != ""]
    return same[0] if len(same) == 1 else None


@dataclass(frozen=True, kw_only=True)
class OptionChoice:
    """A model's answer to a question: an option's place, and why."""

    place: int
    rationale: str = ""
    reply: str = ""


def choice(options: tuple[str, ...]) -> Form[OptionChoice]:
    """`Answer: X` and, if there is one, `Rationale: ...`; without that line, the one option that
    the reply picks in its own words.
    """
    letters = LETTERS[: len(options)]

    def make_choice(answer: str, rationale: str) -> OptionChoice:
        said = f"Answer: {answer}\nRationale: {rationale}"  # as the text form has it
        return OptionChoice(place=letters.index(answer), rationale=plain(rationale), reply=said)

    def parse_choice(reply: str) -> OptionChoice:
        text = reply.replace("*", "")
        answer = re.search(
            r"(?:^|\n)[\s>#\-]*(?:correct |final )?answer\s*[:：]\s*(.+)", text, re.I
        )
        place = answer_place(answer[1] if answer else text.strip(), options)
        if place is None and not answer and (letter := extract(reply, options).letter):
            place = LETTERS.index(letter)
        if place is None:
            raise Unparsed(f"it holds no line 'Answer: X' with X one of {letters}")
        why = re.search(
            r"(?:rationale|explanation)\s*[:：]\s*(.+)", text, re.IGNORECASE | re.DOTALL
        )
        return OptionChoice(place=place, rationale=plain(why[1]) if why else "", reply=reply)

    shape = record(
        make_choice,
        answer=one_of(letters, "the letter"),
        rationale=words("one sentence on why"),
    )
    return form(text=parse_choice, shape=shape)
