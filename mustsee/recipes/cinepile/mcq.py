"""Multiple-choice questions as CinePile's models write them, in JSON or in this form:

    Question: What does she do after the call?
    - A) She leaves.
    ...
    - E) She laughs.
    Correct Answer: C
    Rationale: ...

Asterisks are removed first, because models write labels in bold. Letters may be "A)", "A.", "(A)"
or "A:"; the answer may be a letter, a letter with its text, or the text of one option. An
incomplete question is left out; a reply without a complete one raises `Unparsed` with the first
fault.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mustsee.errors import Unparsed
from mustsee.questions.checks import normal
from mustsee.questions.drafts import Draft, plain, spans
from mustsee.questions.replies import is_none, span_list
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
    """A question with its options and the answer's index."""

    question: str
    options: tuple[str, ...]
    answer: int
    rationale: str = ""
    template: str = ""
    evidence: tuple[Span, ...] = ()

    def draft(self) -> Draft:
        """Return the draft of the question."""
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
    """Parse all complete questions of a reply, in order. `or_none`: whether a reply may be NONE.
    Raises Unparsed with the first fault if there is no question, and if a question names none of
    several `kinds`.
    """

    def check_blocks(blocks: Sequence[_Block]) -> tuple[Mcq, ...]:
        questions: list[Mcq] = []
        faults: list[str] = []
        for block in blocks:
            try:
                questions.append(_whole(block, options))
            except Unparsed as error:
                faults.append(str(error))
        if not questions and (faults or not or_none):
            raise Unparsed([*faults, NO_QUESTION][0])
        for one in questions:
            if kinds and kind_of(one.template, kinds) is None:
                raise Unparsed(
                    f"the question {one.question[:60]!r} has no line 'Template: ...' with one of "
                    f"the kinds {', '.join(kinds)}"
                )
        return tuple(questions)

    def parse_blocks(reply: str) -> Sequence[_Block]:
        blocks = _blocks(reply)
        if not blocks and not (or_none and is_none(reply)):
            raise Unparsed(NO_QUESTION)
        return blocks

    letters = LETTERS[:options]
    one = record(
        _block,
        template=words("the kind of question, by its name in the list"),
        question=words("the question"),
        **{f"option_{letter.lower()}": words(f"option {letter}") for letter in letters},
        correct_answer=one_of(letters, "the letter of the right option"),
        rationale=words("one sentence on why it is right"),
        evidence=span_list("the stretches that show it, in seconds"),
    )
    about = f"the questions{'; empty if you write none' if or_none else ''}"
    shape = object_with("questions", list_of(one, about))
    return form(text=parse_blocks, shape=shape).map(check_blocks)


def kind_of(named: str, kinds: Sequence[str]) -> int | None:
    """Return the index of the kind that a question names; of several, the longest."""
    name = normal(named)
    if len(kinds) == 1:
        return 0
    if not name:
        return None
    for index, kind in enumerate(kinds):
        if normal(kind) == name:
            return index
    similar = [n for n, kind in enumerate(kinds) if normal(kind) in name or name in normal(kind)]
    return max(similar, key=lambda n: len(kinds[n]), default=None)


NO_QUESTION = "it holds no line 'Question: ...' followed by '- A) ...'"


def _block(
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
            _continue_field(blocks[-1], line.strip())
    return blocks


def _continue_field(block: _Block, text: str) -> None:
    """Add a line without a label to the field before it."""
    if block.options and block.last in block.options:
        block.options[block.last] += f" {text}"
    elif block.last in ("question", "rationale"):
        setattr(block, block.last, f"{getattr(block, block.last)} {text}".strip())


def _whole(block: _Block, count: int) -> Mcq:
    question, letters = plain(block.question), block.options or {}
    where = f"the question {question[:60]!r}"
    if not question:
        raise Unparsed("a question has no text")
    expected = list(LETTERS[:count])
    if sorted(letters) != expected:
        raise Unparsed(f"{where} has the options {''.join(sorted(letters)) or 'none'}, not A to "
                       f"{expected[-1]}")  # fmt: skip
    options = tuple(plain(letters[letter]) for letter in expected)
    if len({normal(o) or o for o in options}) < count:
        raise Unparsed(f"{where} has an option twice")
    answer = answer_place(block.answer, options)
    if answer is None:
        raise Unparsed(f"{where} has no line 'Correct Answer: X' with a letter A to {expected[-1]}")
    return Mcq(
        question=question,
        options=options,
        answer=answer,
        rationale=plain(block.rationale),
        template=plain(block.template),
        evidence=spans(block.evidence) if isinstance(block.evidence, str) else block.evidence,
    )


def answer_place(text: str, options: tuple[str, ...]) -> int | None:
    """Return the index of the option that an answer names by letter or text, else null."""
    text = plain(text)
    letter = re.match(r"^(?:option\s+)?\(?([A-Ja-j])(?:\)|\.|:|\s*$)", text, re.IGNORECASE)
    if letter:
        place = LETTERS.index(letter[1].upper())
        return place if place < len(options) else None
    same = [i for i, option in enumerate(options) if normal(option) == normal(text) != ""]
    return same[0] if len(same) == 1 else None


@dataclass(frozen=True, kw_only=True)
class OptionChoice:
    """A model's answer to a question: an option's index, and the reason."""

    place: int
    rationale: str = ""
    reply: str = ""


def choice(options: tuple[str, ...]) -> Form[OptionChoice]:
    """Parse `Answer: X` and an optional `Rationale: ...`. Without that line, the option is
    extracted from the reply's own words.
    """
    letters = LETTERS[: len(options)]

    def make_choice(answer: str, rationale: str) -> OptionChoice:
        text_form = f"Answer: {answer}\nRationale: {rationale}"  # the text form of the same reply
        return OptionChoice(
            place=letters.index(answer), rationale=plain(rationale), reply=text_form
        )

    def parse_choice(reply: str) -> OptionChoice:
        text = reply.replace("*", "")
        answer = re.search(
            r"(?:^|\n)[\s>#\-]*(?:correct |final )?answer\s*[:：]\s*(.+)", text, re.I
        )
        index = answer_place(answer[1] if answer else text.strip(), options)
        if index is None and not answer and (letter := extract(reply, options).letter):
            index = LETTERS.index(letter)
        if index is None:
            raise Unparsed(f"it holds no line 'Answer: X' with X one of {letters}")
        reason = re.search(
            r"(?:rationale|explanation)\s*[:：]\s*(.+)", text, re.IGNORECASE | re.DOTALL
        )
        return OptionChoice(place=index, rationale=plain(reason[1]) if reason else "", reply=reply)

    shape = record(
        make_choice,
        answer=one_of(letters, "the letter of the option"),
        rationale=words("one sentence on why"),
    )
    return form(text=parse_choice, shape=shape)
