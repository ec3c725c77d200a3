"""Compares the audits of two datasets, or of two versions of one."""

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
from mustsee.audit.guessers import askable_questions, plain
from mustsee.audit.show import points_text
from mustsee.errors import UserError
from mustsee.evaluate.score_show import new_table, percent
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
    """One figure of both audits. `difference`: on the shared questions, by video."""

    name: str
    mine: Estimate | None
    theirs: Estimate | None
    difference: Difference | None = None


@dataclass(frozen=True, kw_only=True)
class VersionComparison:
    """The comparison of two audits: the number of questions of each, and the figures.

    `shared`: number of questions that both have, with the same video and words.
    """

    folder: str
    mine: int
    theirs: int
    shared: int
    lines: tuple[VersionFigure, ...]


def earlier(folder: str) -> AuditVersion:
    """Read the audit in a folder. Raises UserError if the folder is not the output of an audit."""
    place = Path(folder)
    try:
        record = json.loads((place / "audit.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(
            f"against={folder!r} is not the output of an audit: {error}; name its folder, with "
            "audit.json in it"
        ) from error
    return AuditVersion(folder=folder, record=record, questions=read(place, "ours").questions)


def compare(audited: Audit, tables: Tables, old: AuditVersion) -> VersionComparison:
    """Compare the batteries, and the shortcut ratios with their difference on shared questions."""
    mine = {_key(q): q for q in askable_questions(list(tables.questions()))}
    theirs = {_key(q): q for q in askable_questions(old.questions)}
    shared = [n for n in mine if n in theirs]
    before = {(t["answerer"], t["name"]): t for t in old.record["battery"]}
    lines = [
        VersionFigure(
            name=f"{t.answerer}: {t.name}" if t.answerer else t.name,
            mine=t.known,
            theirs=_estimate(before.get((t.answerer, t.name), {}).get("known")),
        )
        for t in audited.battery
    ]
    their_runs = [ConditionRun(**a) for a in old.record["asked"]]
    ratio = VersionFigure(
        name="shortcut ratio",
        mine=audited.any.ratio,
        theirs=_estimate(old.record["any"]["ratio"]),
        difference=_shortcut_difference(
            [mine[n] for n in shared], audited.asked, [theirs[n] for n in shared], their_runs
        ),
    )
    return VersionComparison(
        folder=old.folder,
        mine=audited.questions,
        theirs=old.record["questions"],
        shared=len(shared),
        lines=(ratio, *lines),
    )


def _key(question: Question) -> tuple[str, str, str]:
    """Return the key of a question across versions, whose ids may be row numbers."""
    return question.video_id, plain(question.question), plain(answer_of(question))


def _estimate(fields: Mapping[str, Any] | None) -> Estimate | None:
    return None if fields is None else Estimate(**fields)


def _shortcut_difference(
    mine: list[Question],
    my_runs: tuple[ConditionRun, ...],
    theirs: list[Question],
    their_runs: list[ConditionRun],
) -> Difference | None:
    """Return the difference of the shortcut ratios on the shared questions."""
    my_replies, their_replies = Replies(mine), Replies(theirs)
    pairs = [
        (
            q.video_id,
            shortcut_of_question(q, my_replies, my_runs),
            shortcut_of_question(p, their_replies, their_runs),
        )
        for q, p in zip(mine, theirs, strict=True)
    ]
    both = [(v, a, b) for v, a, b in pairs if a is not None and b is not None]
    if not both:
        return None
    return stats.paired_difference(
        [a for _, a, _ in both], [b for *_, b in both], [v for v, *_ in both]
    )


def table(comparison: VersionComparison) -> Table:
    """Return the table of both audits' shares of known answers, corrected for guessing."""
    title = f"against {comparison.folder}: {comparison.shared} questions in both"
    this, that = f"this ({comparison.mine})", f"that ({comparison.theirs})"
    rows = new_table(title, ("% known", this, that, "shared", "p"), ("% known",))
    for line in comparison.lines:
        gap = line.difference
        cells = (points_text(gap), gap.p_text) if gap is not None else ("", "")
        rows.add_row(line.name, percent(line.mine), percent(line.theirs), *cells)
    return rows
