"""Several runs as one: each video once, each question with its id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from mustsee.errors import UserError
from mustsee.layouts.errata import name_ids
from mustsee.layouts.ticks import words_of
from mustsee.records import Question, Video
from mustsee.text import printable

SAME_SECONDS = 0.1  # difference in length of files without a digest that count as the same
# Columns to which each run adds.
JOINED = ("facts", "claims", "listed", "forms", "missing", "requests")
OWN = ("video_id", "drop", "problem", "lineage", *JOINED)  # not taken from other runs


@dataclass(frozen=True, kw_only=True)
class RunTables:
    """The tables of a run. `questions`: as people have ticked them; `stored`: as the run wrote
    them.
    """

    name: str
    recipe: str
    videos: Sequence[Video]
    questions: Sequence[Question]
    stored: Sequence[Question]


@dataclass(frozen=True, kw_only=True)
class MergedRuns:
    """`videos`, `questions`, `stored`: of all runs. `recipes`: name of a run -> its recipe.
    `shared`: ids of videos that several runs have; `renamed`: id of a video in a later run -> its
    id in an earlier one, which it has here. `same`: ids of questions that several runs have, taken
    from the first of them; `differing`: of these, that are kept in one and dropped in another.
    """

    videos: tuple[Video, ...]
    questions: tuple[Question, ...]
    stored: tuple[Question, ...]
    recipes: dict[str, str]
    shared: tuple[str, ...]
    renamed: dict[str, str]
    same: tuple[str, ...]
    differing: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        """Return what was merged, as written to `run.json`."""
        tables = {"videos": (), "questions": (), "stored": ()}
        kept = asdict(replace(self, **tables))
        return {k: v for k, v in kept.items() if k not in tables}

    def lines(self) -> list[str]:
        """Return what the runs have in common."""
        lines = [
            f"{len(self.recipes)} runs merged: {len(self.videos)} videos, {len(self.shared)} of "
            f"several runs; {len(self.questions)} questions of "
            + ", ".join(f"{recipe} ({n})" for recipe, n in self._recipes_of_questions())
        ]
        if self.renamed:
            names = name_ids([f"{old} is {new}" for old, new in self.renamed.items()])
            lines.append(f"{len(self.renamed)} videos have other ids in other runs: {names}")
        if self.same:
            lines.append(
                f"{len(self.same)} questions are in several runs, with the same words: the first "
                f"run's are taken: {name_ids(self.same)}"
            )
        if self.differing:
            lines.append(
                f"{len(self.differing)} of these are kept in one run and dropped in another: "
                f"{name_ids(self.differing)}"
            )
        return [printable(line) for line in lines]

    def _recipes_of_questions(self) -> list[tuple[str, int]]:
        return Counter(q.recipe for q in self.questions).most_common()


def merge_runs(runs: Sequence[RunTables]) -> MergedRuns:
    """Put the tables of runs together. A video is the same one if its file and span are; it has the
    id that it has in the first run.

    Raises UserError if an id is that of different files, or of questions with different words.
    """
    videos: dict[str, Video] = {}
    by_file: dict[tuple[object, ...], str] = {}
    shared: dict[str, None] = {}
    renamed: dict[str, str] = {}
    for run in runs:
        names = _names_in(run, videos, by_file)
        here: set[str] = set()  # a run may have a file twice
        for video in run.videos:
            name = names[video.video_id]
            moved = replace(
                video, video_id=name, source=names.get(video.source or "", video.source)
            )
            if name in here or name not in videos:
                videos[video.video_id] = replace(moved, video_id=video.video_id)
                here.add(video.video_id)
                if (file := _file_of(video)) is not None:
                    by_file.setdefault(file, video.video_id)
                names[video.video_id] = video.video_id
                continue
            here.add(name)
            shared[name] = None
            videos[name] = _join_rows(videos[name], moved)
            if name != video.video_id:
                renamed[video.video_id] = name
    questions: dict[str, tuple[str, Question]] = {}
    stored: dict[str, Question] = {}
    same: dict[str, None] = {}
    differing: dict[str, None] = {}
    conflicts: list[str] = []
    for run in runs:
        for question in run.stored:
            stored.setdefault(question.question_id, question)
        for question in run.questions:
            name = question.question_id
            moved = replace(question, video_id=renamed.get(question.video_id, question.video_id))
            if name not in questions:
                questions[name] = run.name, moved
                continue
            first_run, first = questions[name]
            if _content(first) != _content(moved):
                conflicts.append(f"{name} ({first_run}, {run.name})")
                continue
            same[name] = None
            if (first.drop is None) != (moved.drop is None):
                differing[name] = None
    if conflicts:
        raise UserError(
            f"{len(conflicts)} questions have the same id and other words: {name_ids(conflicts)}; "
            "if they were edited in one of these runs, merge without the run that has the earlier "
            "words, or give them another question_id there"
        )
    return MergedRuns(
        videos=tuple(videos.values()),
        questions=tuple(question for _, question in questions.values()),
        stored=tuple(stored.values()),
        recipes={run.name: run.recipe for run in runs},
        shared=tuple(shared),
        renamed=renamed,
        same=tuple(same),
        differing=tuple(differing),
    )


def _names_in(
    run: RunTables, videos: dict[str, Video], by_file: dict[tuple[object, ...], str]
) -> dict[str, str]:
    """Return the id in the merged run of each video of a run. Raises UserError."""
    names: dict[str, str] = {}
    different: list[str] = []
    for video in run.videos:
        known = videos.get(video.video_id)
        if known is not None and not _is_same_file(known, video):
            different.append(video.video_id)
        file = _file_of(video)
        other = by_file.get(file) if known is None and file is not None else None
        names[video.video_id] = other or video.video_id
    if different:
        raise UserError(
            f"{len(different)} videos of {run.name!r} have the ids of other files in the runs "
            f"before it: {name_ids(different)}; make that run again with other ids "
            "(videos= as a table with a column video_id), which reuses what it has computed in its "
            "store"
        )
    return names


def _file_of(video: Video) -> tuple[object, ...] | None:
    """Return what is the same for the same video or clip; None where its file is not known."""
    return None if video.digest is None else (video.digest, video.start, video.end)


def _is_same_file(one: Video, two: Video) -> bool:
    """Whether two rows with one id are the same video or clip; without a digest, as far as their
    spans and lengths tell.
    """
    if one.digest is not None and two.digest is not None:
        return _file_of(one) == _file_of(two)
    if (one.start, one.end) != (two.start, two.end):
        return False
    if one.duration is None or two.duration is None:
        return True
    return abs(one.duration - two.duration) <= SAME_SECONDS


def _join_rows(first: Video, second: Video) -> Video:
    """Return one row of a video of two runs: that of the first, or of the second where the first
    dropped it or failed, with what only the other one knows.
    """
    is_out = first.drop is not None or first.problem is not None
    takes_second = is_out and second.drop is None and second.problem is None
    row, other = (second, first) if takes_second else (first, second)
    empty = (None, (), "")
    lacking = {
        f.name: getattr(other, f.name)
        for f in fields(Video)
        if f.name not in OWN and getattr(row, f.name) in empty
    }
    joined = {name: _join(getattr(first, name), getattr(second, name)) for name in JOINED}
    return replace(row, **lacking, **joined, lineage={**other.lineage, **row.lineage})


def _join(one: tuple[Any, ...] | None, two: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    """Return the records of both, equal ones once; null where both are."""
    if one is None or two is None:
        return two if one is None else one
    return (*one, *(record for record in two if record not in one))


def _content(question: Question) -> tuple[object, ...]:
    return question.video_id, *words_of(question)
