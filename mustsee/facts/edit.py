"""Open questions are written, read by an editor who has watched the video, and mended.
Of more than are wanted, the editor says which to publish first.

    drafts = await write_questions(work, statements, wanted)

QUESTION 1: one scene | The last minute alone answers it.
MENDED 1: What does the lie at the station lead to in the end?
POINT 1: 3 | C4
POINT 1: 2 | C17
ANSWER 1: She says that the train has left, and so ...
BEST 1: 4, 1, 3, 2

The editor is the verifier. It knows the statements and looks at the whole video. What it mends it
reads again as it reads what others wrote; what is past mending the writer writes anew. What the
editor holds against a question to the end stands in `remark`: such a question is not asked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mustsee.errors import Unparsed
from mustsee.facts.points import (
    ANSWER_CELLS,
    OpenDraft,
    Statement,
    Statements,
    check_numbers,
    read_draft,
    write_some,
)
from mustsee.facts.work import VideoWork, divide
from mustsee.questions.checks import normal
from mustsee.questions.rows import Row, Rows, numbered_rows, rows_form
from mustsee.records import COUNTED, Question, Span
from mustsee.replies.forms import Form
from mustsee.verify.conditions.seen import Condition, lines_within

PROMPT = "facts/edit"
FAULTS = (
    "presumes", "one scene", "incomplete", "beside", "open", "wrong", "flat", "double", "unclear",
    "telling", "stiff",
)  # fmt: skip
# those that the last mending ends
SLIGHT_FAULTS = ("beside", "double", "unclear", "telling", "stiff")
NO_FAULT = "none"
QUESTIONS_AT_ONCE = 40  # questions that one reply holds
QUESTION_LISTS = "lists of open questions"  # `what` of the requests
READINGS = "an editor's readings of open questions"  # `what` of the requests
# names of counts in run.json
MENDED = "open questions that an editor mended"
RETURNED = "open questions that an editor sent back"
REJECTED = "open questions that an editor rejected"
REPEATED = "open questions that repeat another word for word"
BEST_PROMPT = "facts/best"
ORDERS = "orders of open questions"  # `what` of the requests


async def write_questions(
    work: VideoWork, statements: Statements, wanted: Mapping[str, int]
) -> tuple[OpenDraft, ...]:
    """Return open questions of the skills, as many as are `wanted` of each at most, as far as the
    statements allow; those that an editor rejects with its `remark`. Many are written in several
    requests, each of the claims of another stretch. Raises BadRow if no reply of a step can be
    parsed.
    """
    rules = statements.rules
    number = max(1, -(-sum(wanted.values()) // QUESTIONS_AT_ONCE))
    parts = [
        (part, of_skills)
        for part, of_skills in zip(
            _divide_statements(statements, number), _divide_wanted(wanted, number), strict=True
        )
        if any(of_skills.values())
        and part.claims
        and len(part.claims) + len(part.facts) >= rules.least
    ]
    asked = [write_some(work, part, of_skills) for part, of_skills in parts]
    found = await work.gather_readable(asked, QUESTION_LISTS)
    written = [(part, drafts) for (part, _), drafts in zip(parts, found, strict=True) if drafts]
    if rules.editor is None:
        drafts = [draft for _, some in written for draft in some]
    else:
        drafts = await edit_questions(work, written, rules.rewrites, rules.editor)
    unlike: dict[str, OpenDraft] = {}
    for draft in drafts:
        unlike.setdefault(normal(draft.question), draft)
    work.count(REPEATED, len(drafts) - len(unlike))
    return tuple(unlike.values())


async def edit_questions(
    work: VideoWork,
    written: Sequence[tuple[Statements, Sequence[OpenDraft]]],
    rewrites: int,
    see: Condition,
) -> tuple[OpenDraft, ...]:
    """Return the drafts of each part as the editor publishes them, and with its remark those that
    it still rejects after `rewrites` times, or that nobody could write again. Of several
    parts, the drafts of one whose readings cannot be parsed pass.
    """
    passed: list[tuple[OpenDraft, ...]] = [() for _ in written]
    rejected: list[OpenDraft] = []
    unread = {n: tuple(drafts) for n, (_, drafts) in enumerate(written)}
    for turn in range(rewrites + 1):
        is_last = turn == rewrites
        readings = [
            read_drafts(work, written[n][0], drafts, see, passed[n]) for n, drafts in unread.items()
        ]
        read = await work.gather_readable(readings, READINGS)
        mended: dict[int, tuple[OpenDraft, ...]] = {}
        returned: dict[int, tuple[OpenDraft, ...]] = {}
        for (n, drafts), found in zip(unread.items(), read, strict=True):
            found = found or tuple(map(Reading, drafts))
            mended[n] = tuple(r.mended for r in found if r.mended and not is_last)
            passed[n] += tuple(draft for r in found if (draft := r.publish(is_last)))
            returned[n] = tuple(r.draft for r in found if r.is_past_mending(is_last))
        work.count(MENDED, sum(r.mended is not None for rs in read for r in rs or ()))
        if is_last:
            rejected += [draft for drafts in returned.values() for draft in drafts]
            break
        work.count(RETURNED, sum(map(len, returned.values())))
        asked = {
            n: write_some(
                work.with_seed(turn + 1), written[n][0],
                Counter(draft.skill for draft in drafts),
                published=(*passed[n], *mended[n]), returned=drafts,
            )
            for n, drafts in returned.items()
            if drafts
        }  # fmt: skip
        again = await work.gather_readable(list(asked.values()), QUESTION_LISTS, may_lack=True)
        anew = {n: drafts for n, drafts in zip(asked, again, strict=True) if drafts}
        rejected += [draft for n in asked if n not in anew for draft in returned[n]]
        unread = {n: (*mended[n], *anew.get(n, ())) for n in mended if mended[n] or n in anew}
        if not unread:
            break
    work.count(REJECTED, len(rejected))
    return (*(draft for drafts in passed for draft in drafts), *rejected)


@dataclass(frozen=True)
class Reading:
    """What an editor holds against a draft, which is in its `remark`: its `fault`, empty if it has
    none; and the draft as it should read, if it can be mended.
    """

    draft: OpenDraft
    fault: str = ""
    mended: OpenDraft | None = None

    def publish(self, is_last: bool) -> OpenDraft | None:
        """Return the draft as it is published now, or None. A mended one is read once more, unless
        there is no further reading and the fault was slight.
        """
        if not self.fault:
            return self.draft
        return self.mended if is_last and self.fault in SLIGHT_FAULTS else None

    def is_past_mending(self, is_last: bool) -> bool:
        """Whether nothing of it is published now or read again."""
        return self.publish(is_last) is None and (is_last or self.mended is None)


async def read_drafts(
    work: VideoWork,
    statements: Statements,
    drafts: Sequence[OpenDraft],
    see: Condition,
    published: Sequence[OpenDraft] = (),
) -> tuple[Reading, ...]:
    """Return what an editor holds against drafts of one part of a video, who knows those
    `published` of it, and how they should read. Raises BadRow if no reply can be parsed.
    """
    part = _extent([*statements.claims, *statements.facts], work.span)
    times, images = await work.show(see, (part,))
    return await work.roles.verifier.ask(
        PROMPT,
        readings_form(drafts, statements),
        seed=work.seed,
        images=images,
        span=part,
        frames=times,
        lines=lines_within(work.video.lines or (), (part,)),
        **statements.variables(published),
        drafts=statements.show(drafts),
    )


def _extent(statements: Sequence[Statement], whole: Span) -> Span:
    spans = [span for one in statements for span in one.spans] or [whole]
    return Span(min(span.start for span in spans), max(span.end for span in spans))


def readings_form(
    drafts: Sequence[OpenDraft],
    statements: Statements,
) -> Form[tuple[Reading, ...]]:
    """Return the form of a reply with the fault of each question, what is wrong, and how it should
    read. Its `read` raises Unparsed for an unknown fault, and for a mended question that breaks the
    rules of questions.
    """
    cells = {
        "question": {
            "fault": f"one of {', '.join((*FAULTS, NO_FAULT))}",
            "what_is_wrong": "in a sentence or two; empty if the fault is none",
        },
        "mended": {"question": "the question of this number as it should read"},
        **ANSWER_CELLS,
    }

    def read_fault(row: Row) -> str:
        fault = normal(row["fault"])
        if fault not in (*FAULTS, NO_FAULT):
            raise Unparsed(
                f"question {row.number} has the fault {row['fault'][:40]!r}, not one of "
                f"{', '.join((*FAULTS, NO_FAULT))}"
            )
        return "" if fault == NO_FAULT else fault

    def read_readings(rows: Rows) -> tuple[Reading, ...]:
        check_numbers(rows, "mended")
        mended = {row.number: row for row in rows["mended"]}
        readings: list[Reading] = []
        numbered = numbered_rows(rows["question"], len(drafts), "question")
        for number, (draft, row) in enumerate(zip(drafts, numbered, strict=True), 1):
            better = mended.pop(number, None)
            if not (fault := read_fault(row)):
                if better is not None:
                    raise Unparsed(f"question {number} has no fault, but is mended")
                readings.append(Reading(draft))
                continue
            remark = f"{fault}: {row['what_is_wrong']}".rstrip(": ")
            readings.append(
                Reading(
                    replace(draft, remark=remark),
                    fault,
                    better and read_draft(better, draft.skill, rows, statements),
                )
            )
        if mended:
            raise Unparsed(f"MENDED {min(mended)} belongs to no question of this number")
        return tuple(readings)

    optional = ("mended", *ANSWER_CELLS)
    return rows_form(cells, brief=("question",), optional=optional).map(read_readings)


def _divide_statements(statements: Statements, parts: int) -> list[Statements]:
    """Return the statements in parts of neighbours; claims are in the order of time."""
    divided = (divide(some, parts) for some in (statements.claims, statements.facts))
    return [
        replace(statements, claims=tuple(claims), facts=tuple(facts))
        for claims, facts in zip(*divided, strict=True)
    ]


def _divide_wanted(wanted: Mapping[str, int], parts: int) -> list[dict[str, int]]:
    """Return the numbers of questions in parts of about one size, with as many skills in each as
    there can be.
    """
    each = [skill for skill, number in wanted.items() for _ in range(number)]
    divided = [Counter(each[n::parts]) for n in range(parts)]
    return [{skill: part[skill] for skill in wanted} for part in divided]


async def rank_open(
    work: VideoWork, questions: Sequence[Question], wanted: int
) -> tuple[Question, ...]:
    """Return the questions that passed, the best first: by an editor, if more passed than are
    wanted and its reply can be parsed, or else those with most weight left.
    """
    passed = sorted(
        (question for question in questions if question.drop is None),
        key=lambda question: (-_weight_left(question), question.question_id),
    )
    if not 0 < wanted < len(passed):
        return tuple(passed)
    asked = sorted(passed, key=lambda question: question.question_id)  # no order to follow
    request = work.roles.verifier.ask(
        BEST_PROMPT,
        order_form(len(asked)),
        seed=work.seed,
        asked=asked,
        number=wanted,
        seconds=work.span.seconds,
    )
    (order,) = await work.gather_readable([request], ORDERS, may_lack=True)
    return tuple(passed if order is None else (asked[n - 1] for n in order))


def _weight_left(question: Question) -> int:
    return sum(point.weight for point in question.points if point.state == COUNTED)


def order_form(count: int) -> Form[tuple[int, ...]]:
    """Return the form of a reply with the numbers 1 to `count` in an order. Its `read` raises
    Unparsed unless each is there once.
    """

    def read_order(rows: Rows) -> tuple[int, ...]:
        (row,) = numbered_rows(rows["best"], 1, "best")
        numbers = tuple(map(int, re.findall(r"\d+", row["numbers"])))
        if sorted(numbers) != list(range(1, count + 1)):
            raise Unparsed(
                f"the order has {len(numbers)} numbers; expected each of 1 to {count} once"
            )
        return numbers

    cells = {"best": {"numbers": "the numbers of all questions, the best first"}}
    return rows_form(cells).map(read_order)
