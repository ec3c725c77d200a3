"""Two datasets, or two versions of one, side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mustsee import stats
from mustsee.audit.audit import Audit
from mustsee.audit.battery import ConditionRun, Replies
from mustsee.audit.figures import shortcut_of_question
from mustsee.audit.guessers import askable_questions as put
from mustsee.audit.guessers import plain
from mustsee.audit.show import p_value, points
from mustsee.errors import UserError
from mustsee.evaluate.score_show import percent
from mustsee.layouts import read
from mustsee.layouts.reading import answer_of
from mustsee.records import Question
from mustsee.run.tables import Tables
from mustsee.stats import Difference, Estimate

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, kw_only=True)
class AuditVersion:
    """Another audit: its record and its questions with their replies."""

    folder: str
    record: Mapping[str, Any]
    questions: tuple[Question, ...]


@dataclass(frozen=True, kw_only=True)
class VersionFigure:
    """One figure of both. `difference`: on the questions that both have, by video."""

    name: str
    mine: Estimate | None
    theirs: Estimate | None
    difference: Difference | None = None


@dataclass(frozen=True, kw_only=True)
class VersionComparison:
    """`shared`: questions that are in both, of one video with the same words."""

    folder: str
    mine: int
    theirs: int
    shared: int
    lines: tuple[VersionFigure, ...]


def earlier(folder: str) -> AuditVersion:
    """Raises UserError where the folder is no output of an audit."""
    place = Path(folder)
    try:
        record = json.loads((place / "audit.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"against={folder!r} is no audit: {error}") from error
    return AuditVersion(folder=folder, record=record, questions=read(place, "ours").questions)


def compare(found: Audit, tables: Tables, old: AuditVersion) -> VersionComparison:
    """The battery of both, and the shortcut ratio, with the difference on shared questions."""
    mine = {_key(q): q for q in put(list(tables.questions()))}
    theirs = {_key(q): q for q in put(old.questions)}
    shared = [n for n in mine if n in theirs]
    before = {(t["answerer"], t["name"]): t for t in old.record["battery"]}
    lines = [
        VersionFigure(
            name=f"{t.answerer}: {t.name}" if t.answerer else t.name,
            mine=t.known,
            theirs=_estimate(before.get((t.answerer, t.name), {}).get("known")),
        )
        for t in found.battery
    ]
    asked = [ConditionRun(**a) for a in old.record["asked"]]
    ratio = VersionFigure(
        name="shortcut ratio",
        mine=found.any.ratio,
        theirs=_estimate(old.record["any"]["ratio"]),
        difference=_moved(
            [mine[n] for n in shared], found.asked, [theirs[n] for n in shared], asked
        ),
    )
    return VersionComparison(
        folder=old.folder,
        mine=found.questions,
        theirs=old.record["questions"],
        shared=len(shared),
        lines=(ratio, *lines),
    )


def _key(question: Question) -> tuple[str, str, str]:
    """What makes it the same question in another version, whose ids may count rows."""
    return question.video_id, plain(question.question), plain(answer_of(question))


def _estimate(told: Mapping[str, Any] | None) -> Estimate | None:
    return None if told is None else Estimate(**told)


def _moved(
    mine: list[Question],
    asked: tuple[ConditionRun, ...],
    theirs: list[Question],
    others: list[ConditionRun],
) -> Difference | None:
    """How the shortcuts of the shared questions differ."""
    now, then = Replies(mine), Replies(theirs)
    pairs = [
        (q.video_id, shortcut_of_question(q, now, asked), shortcut_of_question(p, then, others))
        for q, p in zip(mine, theirs, strict=True)
    ]
    both = [(v, a, b) for v, a, b in pairs if a is not None and b is not None]
    if not both:
        return None
    return stats.paired_difference(
        [a for _, a, _ in both], [b for *_, b in both], [v for v, *_ in both]
    )


def table(found: VersionComparison) -> Table:
    """Known shares, corrected for guessing, of both."""
    from rich.table import Table

    made = Table(title=f"against {found.folder}: {found.shared} questions in both",
                 title_justify="left", box=None)  # fmt: skip
    for name in ("% known", f"this ({found.mine})", f"that ({found.theirs})", "shared", "p"):
        made.add_column(name, justify="left" if name == "% known" else "right")
    for line in found.lines:
        gap = line.difference
        moved = (points(gap), p_value(gap)) if gap is not None else ("", "")
        made.add_row(line.name, percent(line.mine), percent(line.theirs), *moved)
    return made
