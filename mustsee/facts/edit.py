"""Open questions are written, read by an editor who has watched the video, and written again.

    drafts = await write_questions(video, statements, writers, frames, wanted, skills, ...)

QUESTION 1: one scene | The last minute alone answers it: ask what the earlier lie leads to.

The editor knows the statements and looks at the whole video. What it still holds against a question
that was written again stands in `remark`: such a question is not asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mustsee.calls.llm import Asker
from mustsee.errors import Unparsed
from mustsee.facts.deep_settings import PointRules
from mustsee.facts.mix import Skill
from mustsee.facts.points import (
    OpenDraft,
    Statement,
    Statements,
    count_uses_left,
    show_drafts,
    write_some,
)
from mustsee.facts.unread import StepTally, gather_readable
from mustsee.questions.checks import normal
from mustsee.questions.rows import Row, Rows, numbered_rows, rows_form
from mustsee.records import Span, Video
from mustsee.replies.forms import Form
from mustsee.verify.conditions.seen import Condition, lines_within, plan, video_span
from mustsee.verify.conditions.video_frames import VideoFrames

PROMPT = "facts/edit"
FAULTS = (
    "presumes", "one scene", "incomplete", "beside", "open", "wrong", "flat", "unclear", "telling",
    "stiff",
)  # fmt: skip
NO_FAULT = "none"
QUESTIONS_AT_ONCE = 40  # questions that one reply holds
QUESTION_LISTS = "lists of open questions"  # `what` of the requests
READINGS = "an editor's readings of open questions"  # `what` of the requests
# names of counts in run.json
RETURNED = "open questions that an editor sent back"
REJECTED = "open questions that an editor rejected"
REPEATED = "open questions that repeat another word for word"


@dataclass(frozen=True, kw_only=True)
class Writers:
    """The models that write open questions. `editor`: sees the video, and another is better."""

    writer: Asker
    editor: Asker


async def write_questions(
    video: Video,
    statements: Statements,
    writers: Writers,
    frames: VideoFrames,
    wanted: Mapping[str, int],
    skills: Sequence[Skill],
    rules: PointRules,
    tally: StepTally,
    *,
    seed: int,
) -> tuple[OpenDraft, ...]:
    """Return open questions of the skills, as many as are `wanted` of each at most, as far as the
    statements allow; those that an editor rejects with its `remark`. Many are written in several
    requests, each of the claims of another stretch. Raises BadRow if no reply of a step can be
    parsed.
    """
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
    asked = [
        write_some(video, part, writers.writer, of_skills, skills, rules, seed=seed)
        for part, of_skills in parts
    ]
    found = await gather_readable(asked, tally, QUESTION_LISTS)
    written = [(part, drafts) for (part, _), drafts in zip(parts, found, strict=True) if drafts]
    if rules.editor is None:
        drafts = [draft for _, some in written for draft in some]
    else:
        drafts = await edit_questions(
            video, written, writers, frames, skills, rules, rules.editor, tally, seed=seed
        )
    unlike: dict[str, OpenDraft] = {}
    for draft in drafts:
        unlike.setdefault(normal(draft.question), draft)
    tally.add(REPEATED, len(drafts) - len(unlike))
    return tuple(unlike.values())


async def edit_questions(
    video: Video,
    written: Sequence[tuple[Statements, Sequence[OpenDraft]]],
    writers: Writers,
    frames: VideoFrames,
    skills: Sequence[Skill],
    rules: PointRules,
    see: Condition,
    tally: StepTally,
    *,
    seed: int,
) -> tuple[OpenDraft, ...]:
    """Return the drafts of each part as the editor lets them pass, and with its remark those that
    it still rejects after `rules.rewrites` times, or that nobody could write again. Of several
    parts, the drafts of one whose readings cannot be parsed pass.
    """
    passed: list[tuple[OpenDraft, ...]] = [() for _ in written]
    rejected: list[OpenDraft] = []
    unread = {n: tuple(drafts) for n, (_, drafts) in enumerate(written)}
    for turn in range(rules.rewrites + 1):
        read = await gather_readable(
            [
                read_drafts(
                    video,
                    written[n][0],
                    drafts,
                    writers.editor,
                    frames,
                    rules,
                    see,
                    passed[n],
                    seed=seed,
                )
                for n, drafts in unread.items()
            ],
            tally,
            READINGS,
        )
        returned: dict[int, tuple[OpenDraft, ...]] = {}
        for (n, drafts), marked in zip(unread.items(), read, strict=True):
            marked = marked or drafts
            passed[n] += tuple(draft for draft in marked if not draft.remark)
            returned[n] = tuple(draft for draft in marked if draft.remark)
        if turn == rules.rewrites or not any(returned.values()):
            rejected += [draft for drafts in returned.values() for draft in drafts]
            break
        tally.add(RETURNED, sum(map(len, returned.values())))
        asked = {
            n: write_some(
                video, written[n][0], writers.writer, Counter(draft.skill for draft in drafts),
                skills, rules, seed=seed + turn + 1, published=passed[n], returned=drafts,
            )
            for n, drafts in returned.items()
            if drafts
        }  # fmt: skip
        again = await gather_readable(list(asked.values()), tally, QUESTION_LISTS, may_lack=True)
        unread = {n: drafts for n, drafts in zip(asked, again, strict=True) if drafts}
        rejected += [draft for n in asked if n not in unread for draft in returned[n]]
    tally.add(REJECTED, len(rejected))
    return (*(draft for drafts in passed for draft in drafts), *rejected)


async def read_drafts(
    video: Video,
    statements: Statements,
    drafts: Sequence[OpenDraft],
    editor: Asker,
    frames: VideoFrames,
    rules: PointRules,
    see: Condition,
    published: Sequence[OpenDraft] = (),
    *,
    seed: int,
) -> tuple[OpenDraft, ...]:
    """Return drafts of one part of a video with what an editor holds against them, who knows those
    `published` of it. Raises BadRow if no reply can be parsed.
    """
    whole = video_span(video)
    part = _extent([*statements.claims, *statements.facts], whole)
    planned = plan(see, whole, (part,))
    times = planned.times if planned else ()
    remarks = await editor.ask(
        PROMPT,
        remarks_form(len(drafts)),
        seed=seed,
        images=await frames.jpegs(times, see),
        span=part,
        frames=times,
        lines=lines_within(video.lines or (), (part,)),
        claims=statements.claims,
        facts=statements.facts,
        one_scene=rules.one_scene,
        uses_left=count_uses_left(statements, published, rules),
        drafts=show_drafts(drafts, statements),
        published=show_drafts(published, statements),
    )
    return tuple(replace(d, remark=remark) for d, remark in zip(drafts, remarks, strict=True))


def _extent(statements: Sequence[Statement], whole: Span) -> Span:
    spans = [span for one in statements for span in one.spans] or [whole]
    return Span(min(span.start for span in spans), max(span.end for span in spans))


def remarks_form(count: int) -> Form[tuple[str, ...]]:
    """Return the form of a reply with the fault of each of `count` questions, and a remark; of a
    question without a fault the result is empty. Its `read` raises Unparsed for an unknown fault.
    """
    cells = {
        "question": {
            "fault": f"one of {', '.join((*FAULTS, NO_FAULT))}",
            "remark": "what is wrong and what would mend it; empty if the fault is none",
        }
    }

    def read_remark(row: Row) -> str:
        fault = normal(row["fault"])
        if fault not in (*FAULTS, NO_FAULT):
            raise Unparsed(
                f"question {row.number} has the fault {row['fault'][:40]!r}, not one of "
                f"{', '.join((*FAULTS, NO_FAULT))}"
            )
        return "" if fault == NO_FAULT else f"{fault}: {row['remark']}".rstrip(": ")

    def read_remarks(rows: Rows) -> tuple[str, ...]:
        return tuple(map(read_remark, numbered_rows(rows["question"], count, "question")))

    return rows_form(cells, brief=("question",)).map(read_remarks)


def _divide_statements(statements: Statements, parts: int) -> list[Statements]:
    """Return the statements in parts of neighbours; claims are in the order of time."""

    def divide(some: Sequence[Statement], n: int) -> tuple[Statement, ...]:
        return tuple(some[n * len(some) // parts : (n + 1) * len(some) // parts])

    return [
        Statements(claims=divide(statements.claims, n), facts=divide(statements.facts, n))
        for n in range(parts)
    ]


def _divide_wanted(wanted: Mapping[str, int], parts: int) -> list[dict[str, int]]:
    """Return the numbers of questions in parts of about one size, with as many skills in each as
    there can be.
    """
    each = [skill for skill, number in wanted.items() for _ in range(number)]
    divided = [Counter(each[n::parts]) for n in range(parts)]
    return [{skill: part[skill] for skill in wanted} for part in divided]
