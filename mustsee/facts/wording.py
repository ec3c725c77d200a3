"""Words composed questions as a person would ask them, and has another model read them back.

    groups = await word_groups(work, groups, table, together=12)

The writer words the questions and their options anew. A reader that knows only the facts in
question, as text with their times, must then find the same answer and say of each other option that
it does not fit. Otherwise the question is worded once more, then left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mustsee.errors import BadRow, Unparsed
from mustsee.facts.select import Chosen, ChosenGroup
from mustsee.facts.table import TruthTable
from mustsee.facts.work import VideoWork
from mustsee.questions.checks import normal
from mustsee.questions.orders import SEPARATOR
from mustsee.questions.rows import Rows, numbered_rows, rows_form
from mustsee.records import Fact, Span
from mustsee.replies.forms import Form
from mustsee.text import LETTERS

WORD, READ_BACK = "facts/word", "facts/read_back"
WORDINGS = "wordings"  # `what` of the requests
READINGS = "readings of wordings"  # `what` of the requests
NOT_WORDED = "composed questions left out because their wording was not read back alike"
TRIES = 2  # wordings of a question
MAX_QUESTION_WORDS = 70
_QUOTED = re.compile(r"“[^”]*”")


@dataclass(frozen=True)
class Wording:
    """A question in other words, and its options in their order."""

    question: str
    options: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Timed:
    """A fact as a reader of wordings is shown it."""

    phrase: str
    spans: tuple[Span, ...]


async def word_groups(
    work: VideoWork, groups: Sequence[ChosenGroup], table: TruthTable, together: int
) -> list[ChosenGroup]:
    """Return the groups with their questions in the writer's words, as far as the reader reads them
    alike; the questions of a group of which one is left out stand alone. Raises BadRow if no reply
    of the first try can be parsed.
    """
    worded: dict[str, Wording] = {}
    total = sum(len(group.members) for group in groups)
    for attempt in range(TRIES):
        left = [
            [one for one in group.members if one.stem.question not in worded] for group in groups
        ]
        parts = _join(left, together)
        if not parts:
            break
        try:
            worded |= await _word_parts(work.with_seed(attempt), parts, table)
        except BadRow:
            if not worded:
                raise
    work.count(NOT_WORDED, total - len(worded))
    return [done for group in groups for done in _reword(group, worded)]


async def _word_parts(
    work: VideoWork, parts: Sequence[Sequence[Chosen]], table: TruthTable
) -> dict[str, Wording]:
    """Return the wordings that are read back alike, by question."""
    asked = [word_questions(work, part) for part in parts]
    replies = await work.gather_readable(asked, WORDINGS)
    pairs = [(part, w) for part, w in zip(parts, replies, strict=True) if w is not None]
    read = [read_back(work, part, w, table) for part, w in pairs]
    readings = await work.gather_readable(read, READINGS)
    return {
        one.stem.question: wording
        for (part, wordings), alike in zip(pairs, readings, strict=True)
        for one, wording, is_alike in zip(
            part, wordings, alike or (False,) * len(part), strict=True
        )
        if is_alike
    }


def _reword(group: ChosenGroup, worded: Mapping[str, Wording]) -> list[ChosenGroup]:
    """Return a group in other words; what is left of one that lost a question stands alone."""
    members = [
        _with_words(one, worded[one.stem.question])
        for one in group.members
        if one.stem.question in worded
    ]
    shared = {frozenset(one.options) for one in members}
    if len(members) == len(group.members) and len(shared) <= 1:
        return [replace(group, members=tuple(members))]
    return [replace(group, members=(one,)) for one in members]


def _with_words(one: Chosen, wording: Wording) -> Chosen:
    answer = wording.options[one.options.index(one.stem.answer)]
    stem = replace(one.stem, question=wording.question, answer=answer)
    return replace(one, stem=stem, options=wording.options)


async def word_questions(work: VideoWork, questions: Sequence[Chosen]) -> tuple[Wording, ...]:
    """Return questions in other words. An option that several of them share gets one wording."""
    parts = {part for one in questions for o in one.options for part in o.split(SEPARATOR)}
    phrases = sorted(filter(is_worded, parts))
    return await work.roles.writer.ask(
        WORD,
        wordings_form(questions, phrases),
        seed=work.seed,
        asked=tuple(one.stem.question for one in questions),
        phrases=tuple(phrases),
    )


def is_worded(phrase: str) -> bool:
    """Whether a phrase is put into other words: not a number, and no quotation."""
    return "“" not in phrase and any(c.isalpha() for c in phrase)


def wordings_form(questions: Sequence[Chosen], phrases: Sequence[str]) -> Form[tuple[Wording, ...]]:
    """Return the form of a reply with a wording of each question and of each phrase. Its `read`
    raises Unparsed unless each has exactly one, keeps what is quoted, and differs from the others.
    """
    cells = {
        "question": {"wording": "the question as a person would ask it aloud"},
        "phrase": {"wording": "the phrase in plain English"},
    }

    def read_wordings(rows: Rows) -> tuple[Wording, ...]:
        asked = numbered_rows(rows["question"], len(questions), "question")
        named = numbered_rows(rows["phrase"], len(phrases), "phrase")
        texts = {p: row["wording"].rstrip(".") for p, row in zip(phrases, named, strict=True)}
        if len({normal(text) for text in texts.values()}) < len(texts):
            raise Unparsed("two phrases have the same wording; they must be told apart")
        for one, row in zip(questions, asked, strict=True):
            _check_kept(one.stem.question, row["wording"], f"question {row.number}")

        def reword(option: str) -> str:
            return SEPARATOR.join(texts.get(part, part) for part in option.split(SEPARATOR))

        return tuple(
            Wording(row["wording"], tuple(map(reword, one.options)))
            for one, row in zip(questions, asked, strict=True)
        )

    return rows_form(cells, optional=() if phrases else ("phrase",)).map(read_wordings)


def _check_kept(old: str, new: str, what: str) -> None:
    """Raise Unparsed unless a wording is a question that keeps the quotations of the old one."""
    if not 3 <= len(new.split()) <= MAX_QUESTION_WORDS or not new.rstrip(' ”"').endswith("?"):
        raise Unparsed(
            f"the wording of {what} is not a question of 3 to {MAX_QUESTION_WORDS} words"
        )
    if lost := [quoted for quoted in _QUOTED.findall(old) if quoted.strip("“”") not in new]:
        raise Unparsed(f"the wording of {what} lacks the quotation {lost[0][:60]}")


async def read_back(
    work: VideoWork, questions: Sequence[Chosen], wordings: Sequence[Wording], table: TruthTable
) -> tuple[bool, ...]:
    """Return for each wording whether a reader of the facts in question finds the right answer, and
    no other option that fits.
    """
    right = [one.options.index(one.stem.answer) for one in questions]
    read = await work.roles.guesser.ask(
        READ_BACK,
        readings_form([len(one.options) for one in questions]),
        seed=work.seed,
        facts=list_timed(questions, table),
        asked=tuple({"question": w.question, "options": w.options} for w in wordings),
        right=tuple(right),  # not in the prompt: a dry run's stand-in for the model needs it
    )
    return tuple(fitting == (answer,) for fitting, answer in zip(read, right, strict=True))


def list_timed(questions: Sequence[Chosen], table: TruthTable) -> tuple[Timed, ...]:
    """Return the facts that questions name, ask for or offer, with the spans where they hold, in
    the order of time.
    """
    phrases = {part for one in questions for o in one.options for part in o.split(SEPARATOR)}
    names = {name for one in questions for name in one.stem.about}
    facts = [
        fact
        for fact in table.facts
        if fact.drop is None and (fact.fact_id in names or fact.phrase in phrases)
    ]
    return tuple(Timed(phrase=fact.phrase, spans=fact_spans(fact)) for fact in facts)


def fact_spans(fact: Fact) -> tuple[Span, ...]:
    """Return where a fact is claimed, and the moments where looks saw it besides."""
    further = [
        seen
        for seen in fact.seen
        if not any(s.start < seen.end and seen.start < s.end for s in fact.spans)
    ]
    return tuple(sorted((*fact.spans, *further), key=lambda s: (s.start, s.end)))


def readings_form(counts: Sequence[int]) -> Form[tuple[tuple[int, ...], ...]]:
    """Return the form of a reply with the options that fit each question, by its number of options.
    Its `read` raises Unparsed unless each option of each question is in exactly one of both lists.
    """
    cells = {
        "question": {
            "fits": "the letters of the options that answer it, such as B; NONE if none does",
            "does_not_fit": "the letters of all the others, such as A, C, D",
        }
    }

    def read_readings(rows: Rows) -> tuple[tuple[int, ...], ...]:
        read: list[tuple[int, ...]] = []
        asked = numbered_rows(rows["question"], len(counts), "question")
        for row, size in zip(asked, counts, strict=True):
            fits, others = (_letters(row[name]) for name in ("fits", "does_not_fit"))
            if sorted((*fits, *others)) != list(LETTERS[:size]):
                raise Unparsed(
                    f"question {row.number} must have each of {', '.join(LETTERS[:size])} once, "
                    "among those that fit or those that do not"
                )
            read.append(tuple(sorted(LETTERS.index(letter) for letter in fits)))
        return tuple(read)

    return rows_form(cells, brief=("question",)).map(read_readings)


def _letters(text: str) -> list[str]:
    if normal(text) in ("", "none"):
        return []
    return re.findall(r"\b[A-Z]\b", text)


def _join(groups: Sequence[Sequence[Chosen]], most: int) -> list[list[Chosen]]:
    """Return the questions of groups in parts of about `most`, those of one group in one part."""
    parts: list[list[Chosen]] = []
    for group in groups:
        if not group:
            continue
        if not parts or len(parts[-1]) + len(group) > most:
            parts.append([])
        parts[-1] += group
    return parts
