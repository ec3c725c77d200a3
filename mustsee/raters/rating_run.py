"""`RatingRun`: the questions of a run that people rate with one form, and the votes on them.

It draws the sample, checks that raters and videos suffice, and keeps the votes. `ray_jobs.rate`
serves it; `mustsee.raters.transfer` writes the votes back and exchanges them with other tools.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mustsee.errors import UserError
from mustsee.files.parquet import check_digests
from mustsee.files.store import is_local
from mustsee.files.tables import read_table
from mustsee.layouts.errata import Errata, read_errata
from mustsee.raters import assignment
from mustsee.raters.assignment import Training, items, needed_raters
from mustsee.raters.ballots import TRAINING, Ballots, CastVote, RatedItem
from mustsee.raters.box import display_name
from mustsee.raters.correctness import sample
from mustsee.raters.decision import drop_reason, settle
from mustsee.raters.form import RatingForm
from mustsee.raters.needed import describe_need
from mustsee.raters.results import RatingResults, results
from mustsee.raters.tasks import describe_doubts, doubted_questions, reply_tasks, video_tasks
from mustsee.raters.votes import complete_replacement
from mustsee.records import Question, Video
from mustsee.run.inputs import with_videos
from mustsee.run.outputs import check_writable
from mustsee.run.tables import Tables

DAY_S = 86400  # one day, the unit of a link's validity


@dataclass(frozen=True)
class RatingSettings:
    """`conf/rate.yaml` explains the fields."""

    questions: str
    videos: str | None
    form: RatingForm
    folder: str | None
    votes: str | None
    raters: int
    names: Sequence[str] | None
    seniors: Sequence[str] | None
    renew: Sequence[str]
    days: float
    sample: int | None
    seed: int
    wanted: float
    training: str | None
    spans: bool
    errata: str | None
    lease_minutes: float


@dataclass(frozen=True)
class RatingRun:
    """One form over the questions of one run."""

    settings: RatingSettings

    @property
    def form(self) -> RatingForm:
        return self.settings.form

    @property
    def run_folder(self) -> Path:
        return Path(self.settings.questions)

    @property
    def folder(self) -> Path:
        """The folder of the votes and of the encoded clips."""
        if self.settings.folder:
            return Path(self.settings.folder)
        return self.run_folder / f"rating-{self.form.name}"

    @property
    def people(self) -> Sequence[str]:
        return self.settings.names or [f"rater_{n + 1}" for n in range(self._needed[0])]

    @property
    def senior_names(self) -> Sequence[str]:
        return self.settings.seniors or [f"senior_{n + 1}" for n in range(self._needed[1])]

    @property
    def _needed(self) -> tuple[int, int]:
        return needed_raters(self.form, self.settings.raters)

    @cached_property
    def question_by_id(self) -> Mapping[str, Question]:
        """The questions; of a form on videos, one task for each round and video; of one on replies,
        one for each written answer; of one on errata, the doubted ones.
        """
        if self.form.replies:
            tasks = reply_tasks(Tables(self.run_folder).questions(), by_points=self.form.points)
            return {task.question_id: task for task in tasks}
        if self.form.videos:
            tasks = video_tasks(self.form, self.video_by_id.values())
            return {task.question_id: task for task in tasks}
        questions = list(Tables(self.run_folder).questions())
        if self.form.errata:
            questions = doubted_questions(questions, self.proposals)
        return {q.question_id: q for q in questions}

    @cached_property
    def proposals(self) -> Errata:
        """The proposals of a form on errata."""
        return read_errata(self.settings.errata or self.run_folder / "errata.jsonl")

    @property
    def lacking_proposals(self) -> list[str]:
        """The ids of proposals on no question that people can be shown."""
        if not self.form.errata:
            return []
        ids = (*self.proposals.entries, *self.proposals.contradictory)
        return [name for name in ids if name not in self.question_by_id]

    @property
    def doubts(self) -> Mapping[str, str]:
        """Question id -> what speaks against its key."""
        return describe_doubts(self.proposals) if self.form.errata else {}

    @cached_property
    def video_by_id(self) -> Mapping[str, Video]:
        columns = ("lines", "start", "end", "duration", "shots", "segments", "drop", "problem")
        by_id = {v.video_id: v for v in Tables(self.run_folder).videos(*columns)}
        return with_videos(by_id, self.settings.videos)

    @cached_property
    def training(self) -> Mapping[str, Training]:
        """Training items by question id."""
        if self.settings.training is None:
            return {}
        return assignment.from_rows(
            read_table(self.settings.training), self.form, self.question_by_id
        )

    @cached_property
    def ballots(self) -> Ballots:
        def goes_on(round_name: str, votes: Sequence[CastVote]) -> bool:
            this_round = self.form.round(round_name)
            settled = settle(self.form, this_round, [v.answers for v in votes])
            return not drop_reason(this_round, settled)

        return Ballots(
            where=self.settings.votes or self.folder / "votes.sqlite",
            lease=60 * self.settings.lease_minutes,
            hours={r.name: r.hours for r in self.form.rounds if r.hours is not None},
            goes_on=goes_on,
        )

    @property
    def vote_store(self) -> str:
        """The file or database of the votes, without a password."""
        return display_name(self.ballots.where)

    @cached_property
    def _drawn(self) -> list[Question]:
        """The sample: kept questions that are not training items; of a form on errata, the most
        doubtful ones, in their order.
        """
        kept = [
            q for q in self.question_by_id.values()
            if q.drop is None and q.question_id not in self.training
        ]  # fmt: skip
        return (
            kept[: self.settings.sample]
            if self.form.errata
            else sample(kept, self.settings.sample, self.settings.seed)
        )

    def check(self) -> None:
        """Raise UserError for a folder that is not a run's, or for settings that do not fit."""
        complete_replacement(self.run_folder / "questions.parquet")
        check_digests(self.run_folder, "questions.parquet", "videos.parquet")
        for file in ("questions.parquet", "videos.parquet"):
            if not (self.run_folder / file).exists():
                raise UserError(
                    f"questions={self.settings.questions!r} has no {file}: give the output "
                    "folder of a run on this machine"
                )
        for key in ("raters", "days", "lease_minutes"):
            if getattr(self.settings, key) <= 0:
                raise UserError(f"{key}={getattr(self.settings, key)!r}: must be more than 0")
        if self.settings.sample is not None and self.settings.sample < 1:
            raise UserError(f"sample={self.settings.sample!r}: must be at least 1")
        check_share("wanted", self.settings.wanted)
        self._check_errata()
        for key, count, people in zip(
            ("names", "seniors"), self._needed, (self.people, self.senior_names), strict=True
        ):
            if len(set(people)) < count:
                raise UserError(
                    f"{key}= has {len(set(people))} names: form={self.form.name} with "
                    f"raters={self.settings.raters} takes {count} people for each question, "
                    "since a person rates a question only once"
                )
        if unknown := set(self.settings.renew) - {*self.people, *self.senior_names}:
            raise UserError(f"renew={sorted(unknown)!r}: not among names= and seniors=")
        check_writable("folder", str(self.folder))

    def _check_errata(self) -> None:
        """Raise UserError for a form on errata without proposals, or proposals without the form."""
        if self.settings.errata is not None and not self.form.errata:
            raise UserError(f"errata={self.settings.errata!r} is for form=errata")
        if not self.form.errata:
            return
        path = Path(self.settings.errata or self.run_folder / "errata.jsonl")
        if not path.exists():
            raise UserError(
                f"form={self.form.name}: there are no proposals in {str(path)!r}: give the output "
                "folder of an audit with models as questions=, or its errata.jsonl as errata="
            )
        if not path.read_text(encoding="utf-8-sig").strip():
            raise UserError(f"{str(path)!r} is empty: the audit doubts no key, nothing to decide")

    def check_videos(self) -> None:
        """Raise UserError where a drawn question lacks its video or the evidence to show."""
        if self.form.replies:
            return
        questions = [*self._drawn, *(self.question_by_id[name] for name in self.training)]
        video_ids = {q.video_id for q in questions}
        missing = dict(self._missing_videos(video_ids))
        if missing:
            name = min(missing)
            reason = (
                f"{missing[name]!r} does not exist" if missing[name] else "not in videos.parquet"
            )
            raise UserError(
                f"video {name!r} is missing: {reason} ({len(missing)} of {len(video_ids)} videos); "
                "set videos= to their folder, list or table"
            )
        shows = any("evidence" in s.shows for r in self.form.rounds for s in r.steps)
        needs_spans = self.settings.spans and shows and not self.form.videos
        if needs_spans and questions and not any(q.evidence for q in questions):
            raise UserError(
                f"none of the {len(questions)} questions of {self.settings.questions!r} has "
                f"evidence spans, which form={self.form.name} shows: set spans=false to show the "
                "videos from their beginning"
            )

    def _missing_videos(self, video_ids: set[str]) -> Iterator[tuple[str, str]]:
        """Yield id and uri of the videos that are not there; the uri is empty without a row."""
        for name in video_ids:
            uri = self.video_by_id[name].uri if name in self.video_by_id else ""
            if not uri or (is_local(uri) and not Path(uri.removeprefix("file://")).is_file()):
                yield name, uri

    def open_items(self, *, report_changes: bool = False) -> list[RatedItem]:
        """Return the items to rate: those drawn earlier in this folder, else a new sample.

        `report_changes` prints a line if the settings would draw other items. Raises UserError if
        there are no items, or if they belong to another form or other questions.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        fresh = items(
            self.form, [q.question_id for q in self._drawn], raters=self.settings.raters,
            people=self.people, training=list(self.training), seed=self.settings.seed,
            video_of={name: q.video_id for name, q in self.question_by_id.items()},
        )  # fmt: skip
        rated = self.ballots.open(fresh if self._drawn else [])
        if not rated:
            raise UserError(
                f"questions={self.settings.questions!r}: no question is kept, so there is nothing "
                "to rate"
            )
        own_rounds = {TRAINING, *(r.name for r in self.form.rounds)}
        if foreign_rounds := {i.round for i in rated} - own_rounds:
            raise UserError(
                f"{self.vote_store} holds the votes of another form (round "
                f"{min(foreign_rounds)!r}): give another folder= or votes="
            )
        missing = {i.question_id for i in rated} - set(self.question_by_id)
        if missing:
            raise UserError(
                f"{len(missing)} questions of {self.vote_store} are no longer in "
                f"{self.settings.questions!r}: give another folder= or votes= for a new sample"
            )
        if report_changes and {i.name for i in rated} != {i.name for i in fresh}:
            print(
                f"continuing with the {count_questions(rated)} questions drawn before; a new "
                "sample=, form= or training= needs a new folder="
            )
        return rated

    def rated_items(self) -> list[RatedItem]:
        """Return the items of earlier rating. Raises UserError if there are no votes yet."""
        if not self.ballots.has_items():
            raise UserError(
                f"{self.vote_store} holds no votes yet for form={self.form.name}: serve the page "
                "first (do=serve)"
            )
        return self.open_items()

    def invite(self, address: str) -> Iterator[str]:
        """Create the raters' links and yield one line for each rater."""
        now = time.time()
        for name in (*self.people, *self.senior_names):
            token = self.ballots.invite(
                name, now + self.settings.days * DAY_S, senior=name in self.senior_names,
                unless=None if name in self.settings.renew else now,
            )  # fmt: skip
            if token is None:
                yield f"{name}: the earlier link is still valid (renew=[{name}] makes a new one)"
            else:
                yield f"{name}: {address}/r/{token}"

    def describe_need(self, rated: Sequence[RatedItem], within: float) -> Iterator[str]:
        """Yield lines on how many questions an interval of plus or minus `within` needs; none for
        a form on videos, whose raters write.
        """
        if self.form.videos:
            return
        names = {item.question_id for item in rated if item.round != TRAINING}
        rounds = [r.votes or self.settings.raters for r in self.form.rounds if not r.senior]
        one_vote = self.form.dealt or self.form.draws is not None
        yield from describe_need(
            within,
            drawn=len(names),
            videos=len({self.question_by_id[name].video_id for name in names}),
            votes_each=1 if one_vote else max(rounds, default=self.settings.raters),
            wanted=self.settings.wanted,
            outcome=self.results(rated),
        )

    def results(self, rated: Sequence[RatedItem]) -> RatingResults:
        return results(
            self.form, self.question_by_id, rated, self.ballots.votes(), wanted=self.settings.wanted
        )


def check_share(key: str, value: float) -> None:
    """Raise UserError where `value` is not a share: 0 or more, below 1."""
    if not 0 <= value < 1:
        raise UserError(f"{key}={value!r}: must be a share, 0 or more and below 1")


def count_questions(rated: Sequence[RatedItem]) -> int:
    """Return the number of questions among the items, without training items."""
    return len({item.question_id for item in rated if item.round != TRAINING})
