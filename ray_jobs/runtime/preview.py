"""`preview=N`: a few questions of one video, in the terminal, before the whole run.

    mustsee make videos=V out=O +experiment=openai preview=3

One video goes through all stages in this process, with the models of the run; of a long one only a
part. The output folder is not written. The run's store gets every result, so that the run that
follows computes and pays none of it again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from rich.console import Console, Group
from rich.panel import Panel
from rich.text import Text

from actors.engine.session import Session
from actors.engine.stage import Stage, WorkerChain
from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.layouts.reading import answer_of
from mustsee.records import Question, Video
from mustsee.run.best import best
from mustsee.text import clock
from ray_jobs.runtime.heartbeat import show_step
from ray_jobs.runtime.outcome import plain_line

WINDOW_S = 90.0  # seconds of a long video that are shown
WHOLE_S = 150.0  # seconds up to which a video is taken whole
TRIED = 8  # videos that are tried until one can be read
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def show_preview(
    stages: Sequence[Stage], rows: pa.Table, session: Session, most: int, started: float
) -> bool:
    """Print at most `most` questions of the first video that can be read, and what they took.
    Returns whether the video went through all stages.

    `started`: seconds of the monotonic clock at which the job began. Raises UserError where none of
    the first `TRIED` videos can be read.
    """
    video, row, at = choose_row(stages, rows, session)
    print_line = Console().print
    print_line(plain_line(f"preview of {video.video_id}{at}", style="bold"), soft_wrap=True)
    for stage in stages:
        with show_step(f"preview: {stage.name}"):
            row = _run_stage(stage, row, session)
    made = schemas.load(Video, row.slice(0, 1).to_pylist()[0])
    for question in choose_questions(made.questions or (), most):
        print_line(card(question))
    if why := _fate(made):
        print_line(plain_line(why, style="bold red"), soft_wrap=True)
    kept = sum(q.drop is None for q in made.questions or ())
    counts = session.snapshot()
    calls = counts.llm.total
    print_line(
        plain_line(
            f"{len(made.questions or ())} questions were made of it and {kept} kept, in "
            f"{time.monotonic() - started:.0f} s, with {calls.calls} calls to models for "
            f"{calls.usd:.4f} USD. The output folder was not written. "
            + (
                "The same command without preview= makes the dataset, and what was computed here "
                "is in its store."
                if made.problem is None
                else "The run would end so for this video, too."
            )
        ),
        soft_wrap=True,
    )
    return made.problem is None


def choose_row(
    stages: Sequence[Stage], rows: pa.Table, session: Session
) -> tuple[Video, pa.Table, str]:
    """Return the first video that can be read, its row, and the part of it in words.

    A video of more than `WHOLE_S` seconds is cut to `WINDOW_S`, after its first third: a beginning
    shows titles.
    """
    refused = list[str]()
    for number in range(min(TRIED, rows.num_rows)):
        row = rows.slice(number, 1)
        probed = _run_stage(stages[0], row, session)
        video = schemas.load(Video, probed.to_pylist()[0])
        if fate := _fate(video):
            refused.append(f"{video.video_id}: {fate}")
            continue
        start, seconds = video.start or 0.0, video.duration or 0.0
        if seconds <= WHOLE_S:
            return video, row, f", {seconds:.0f} s"
        first = round(start + (seconds - WINDOW_S) / 3, 1)
        return (
            video,
            _with_window(row, first, first + WINDOW_S),
            f", {clock(first)} to {clock(first + WINDOW_S)} of {clock(start + seconds)}",
        )
    raise UserError("preview: none of the first videos can be read: " + "; ".join(refused))


def _with_window(row: pa.Table, start: float, end: float) -> pa.Table:
    for name, value in (("start", start), ("end", end)):
        place, column = row.schema.get_field_index(name), schemas.column(name, [value])
        row = row.append_column(name, column) if place < 0 else row.set_column(place, name, column)
    return row


def _run_stage(stage: Stage, row: pa.Table, session: Session) -> pa.Table:
    return WorkerChain([stage], session)(row)


def _fate(video: Video) -> str | None:
    """Why a video gives nothing, in words; None where it is in the run."""
    if video.problem is not None:
        return f"failed in {video.problem.stage}: {video.problem.message}"
    if video.drop is not None:
        return f"left out: {video.drop}"
    return None if video.questions or video.unasked is None else video.unasked


def choose_questions(questions: Sequence[Question], most: int) -> list[Question]:
    """Return at most `most` questions: the best ones that were kept, then others, then dropped
    ones.
    """
    chosen = best(questions, most)
    rest = sorted(questions, key=lambda q: q.drop is not None)
    known = {q.question_id for q in chosen}
    return [*chosen, *(q for q in rest if q.question_id not in known)][:most]


def card(question: Question) -> Panel:
    """A question with its options, its answer marked, the times of its evidence, and its fate."""
    right = answer_of(question)
    lines = [plain_line(question.question, style="bold")]
    for letter, option in zip(LETTERS, question.options, strict=False):
        marked = option == right
        lines.append(
            plain_line(f"{'>' if marked else ' '} {letter}  {option}", "green" if marked else "")
        )
    if not question.options:
        lines.append(plain_line(f"> {right}", "green"))
    spans = ", ".join(f"{clock(s.start)}-{clock(s.end)}" for s in question.evidence)
    fate = f"left out: {question.drop}" if question.drop else "kept"
    subsets = f", in {' and '.join(question.subsets)}" if question.subsets else ""
    last: dict[str, Any] = {"style": "red" if question.drop else "dim"}
    lines.append(plain_line(f"{fate}{subsets}; evidence at {spans or 'no time'}", **last))
    return Panel(Group(*lines), title=Text(question.question_type or ""), title_align="left")
