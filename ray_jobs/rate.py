"""Rate: people answer forms about questions in a browser; what they say goes back into the data.

    python -m ray_jobs.rate questions=Q form=verify sample=200     serves the page, prints the links
    python -m ray_jobs.rate questions=Q form=verify do=write       writes questions.parquet anew
    python -m ray_jobs.rate questions=Q form=verify do=export tool=label_studio file=TASKS
    python -m ray_jobs.rate questions=Q form=verify do=import tool=label_studio file=VOTES

The links are printed once; only hashes of them are kept. MUSTSEE_RATE_KEY is the key of /results;
without it one is made for as long as the page is served.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from mustsee.errors import UserError
from mustsee.raters import exchange, label_studio, potato, training, videos
from mustsee.raters.ballots import TRAINING, Ballots, RatedItem, hash_token
from mustsee.raters.box import display_name
from mustsee.raters.correctness import sample
from mustsee.raters.deal import items, needed_raters
from mustsee.raters.form import RatingForm
from mustsee.raters.kept import complete_replacement, record_results, replace_table
from mustsee.raters.results import RatingResults, results, summary_lines
from mustsee.raters.settle import drop_reason, settle
from mustsee.raters.training import Training
from mustsee.raters.written import apply_votes
from mustsee.records import Question, Video
from mustsee.run.inputs import with_videos
from mustsee.run.outputs import check_writable
from mustsee.run.tables import Tables
from mustsee.store import is_local
from mustsee.tables import read_table
from mustsee.text import printable
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.web import port, serve_until_signal

TOOLS = {"label_studio": label_studio, "potato": potato}


@dataclass(frozen=True)
class RateJob:
    questions: str
    videos: str | None
    do: Literal["serve", "write", "export", "import"]
    form: RatingForm
    folder: str | None
    votes: str | None
    raters: int
    names: tuple[str, ...] | None
    seniors: tuple[str, ...] | None
    renew: tuple[str, ...]
    days: float
    sample: int | None
    seed: int
    wanted: float
    training: str | None
    trained: float
    spans: bool
    lease_minutes: float
    tool: Literal["label_studio", "potato"] | None
    file: str | None
    host: str
    port: int
    hosts: tuple[str, ...]

    def __call__(self) -> int:
        self._check()
        act = {
            "serve": self._serve, "write": self._write, "export": self._export,
            "import": self._import,
        }[self.do]  # fmt: skip
        return act()

    def _check(self) -> None:
        complete_replacement(self._run / "questions.parquet")
        for file in ("questions.parquet", "videos.parquet"):
            if not (self._run / file).exists():
                raise UserError(
                    f"questions={self.questions!r} has no {file}: give the output folder of a run "
                    "on this machine"
                )
        for key in ("raters", "days", "lease_minutes"):
            if getattr(self, key) <= 0:
                raise UserError(f"{key}={getattr(self, key)!r}: more than 0")
        if self.sample is not None and self.sample < 1:
            raise UserError(f"sample={self.sample!r}: at least 1")
        for key in ("wanted", "trained"):
            if not 0 <= getattr(self, key) < 1:
                raise UserError(f"{key}={getattr(self, key)!r}: a share between 0 and 1")
        for key, count, people in zip(
            ("names", "seniors"), self._needed, (self._people, self._seniors), strict=True
        ):
            if len(set(people)) < count:
                raise UserError(
                    f"form={self.form.name} with raters={self.raters} takes {count} people for a "
                    f"question, who have not met it before: {key}= has {len(set(people))}"
                )
        if unknown := set(self.renew) - {*self._people, *self._seniors}:
            raise UserError(f"renew={sorted(unknown)!r}: not among names= and seniors=")
        if self.do in ("export", "import") and (self.tool is None or self.file is None):
            raise UserError(f"do={self.do} needs tool=label_studio or tool=potato, and file=")
        check_writable("folder", str(self._folder))

    def _serve(self) -> int:
        from serve.rater import RatingDesk, create_app
        from serve.rater_show import Tasks
        from serve.rater_video import ServedVideos

        self._check_videos()
        with port(self.host, self.port) as listening:
            asked = self._open()
            key = os.environ.get("MUSTSEE_RATE_KEY") or secrets.token_urlsafe(24)
            tasks = Tasks(
                form=self.form,
                items={i.name: i for i in asked},
                questions={i.question_id: self._questions[i.question_id] for i in asked},
                videos=self._videos,
                served=ServedVideos(self._videos.values(), self._folder / "stretches"),
                training=self._training,
            )
            desk = RatingDesk(
                tasks=tasks,
                ballots=self._ballots,
                results=lambda: self._results(asked),
                admin=hash_token(key),
                trained=self.trained,
                hosts=("127.0.0.1", "localhost", self.host, *self.hosts),
            )
            address = f"http://{self.host}:{listening.getsockname()[1]}"
            self._invite(address)
            if "MUSTSEE_RATE_KEY" not in os.environ:
                print(f"results: curl -H 'Authorization: Bearer {key}' {address}/results")
            count = len({i.question_id for i in asked if i.round != TRAINING})
            what = "tasks" if self.form.videos else "questions"
            begun = f"{count} {what} at {address}; Ctrl-C stops, votes are kept"
            return serve_until_signal(create_app(desk), listening, begun, self._stopped())

    def _stopped(self) -> str:
        """What is said when the page has been served."""
        kept = f"the votes are kept in {display_name(self._ballots.where)}"
        into = "annotations.jsonl" if self.form.videos else "the questions"
        return (
            f"stopped: the page is no longer served; {kept}. The same command serves it again, "
            f"under the same links; with do=write they go into {into}"
        )

    def _write(self) -> int:
        asked, votes = self._rated()
        if self.form.videos:
            path = self._folder / "annotations.jsonl"
            rows = videos.rows(self._questions, votes)
            path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows))
            print(f"{path}: {len(rows)} annotations, for ray_jobs.mlvu task=annotated annotations=")
            return 0
        done = apply_votes(self.form, list(self._questions.values()), asked, votes)
        kept = replace_table(self._run / "questions.parquet", done)
        found = self._results(asked)
        record = self._run / "run.json"
        if record.is_file():
            record_results(record, found)
        before = "as before" if kept is None else f"the table of before is {kept}"
        print(f"{self._run / 'questions.parquet'}: verdicts of {found.votes} votes; {before}")
        for line in summary_lines(found):
            print(line)
        return 0

    def _export(self) -> int:
        self._check_videos()
        first = self.form.rounds[0].name
        some = [self._questions[i.question_id] for i in self._open() if i.round == first]
        folder = Path(self.file or "")
        check_writable("file", str(folder))
        TOOLS[self.tool or ""].write(self.form, some, self._videos, folder)
        print(f"{folder}: {len(some)} tasks of round {first!r} for {self.tool}")
        return 0

    def _import(self) -> int:
        path = Path(self.file or "")
        if not path.exists():
            raise UserError(f"file={self.file!r} is not there")
        self._open()
        said = TOOLS[self.tool or ""].read(path)
        found = exchange.import_votes(self.form, said, self._questions, self._videos)
        new = self._ballots.import_votes(found.votes, time.time())
        old = len(found.votes) - new
        print(f"{path}: {new} votes new, {old} there already or more than were wanted")
        for reason in found.refused:
            print(printable(f"  left out: {reason}"))
        return 0

    def _rated(self) -> tuple[list[RatedItem], list[Any]]:
        if not self._ballots.has_items():
            raise UserError(
                f"{display_name(self._ballots.where)} holds no votes: nobody has rated "
                f"form={self.form.name} yet"
            )
        return self._open(), self._ballots.votes()

    @cached_property
    def _questions(self) -> Mapping[str, Question]:
        if self.form.videos:
            return {q.question_id: q for q in videos.tasks(self.form, self._videos.values())}
        return {q.question_id: q for q in Tables(self._run).questions()}

    @cached_property
    def _videos(self) -> Mapping[str, Video]:
        columns = ("lines", "start", "end", "duration", "shots", "segments", "drop", "problem")
        videos = {v.video_id: v for v in Tables(self._run).videos(*columns)}
        return with_videos(videos, self.videos)

    @cached_property
    def _training(self) -> Mapping[str, Training]:
        if self.training is None:
            return {}
        return training.from_rows(read_table(self.training), self.form, self._questions)

    @property
    def _run(self) -> Path:
        return Path(self.questions)

    @property
    def _folder(self) -> Path:
        return Path(self.folder) if self.folder else self._run / f"rating-{self.form.name}"

    @property
    def _needed(self) -> tuple[int, int]:
        return needed_raters(self.form, self.raters)

    @property
    def _people(self) -> Sequence[str]:
        return self.names or [f"rater_{number + 1}" for number in range(self._needed[0])]

    @property
    def _seniors(self) -> Sequence[str]:
        return self.seniors or [f"senior_{number + 1}" for number in range(self._needed[1])]

    @cached_property
    def _ballots(self) -> Ballots:
        form = self.form
        return Ballots(
            where=self.votes or self._folder / "votes.sqlite",
            lease=60 * self.lease_minutes,
            goes_on=lambda name, votes: (
                not drop_reason(
                    form.round(name), settle(form, form.round(name), [v.answers for v in votes])
                )
            ),
        )

    @cached_property
    def _drawn(self) -> list[Question]:
        standing = [
            q for q in self._questions.values()
            if q.drop is None and q.question_id not in self._training
        ]  # fmt: skip
        return sample(standing, self.sample, self.seed)

    def _check_videos(self) -> None:
        """Every question's video is there, and says where to look."""
        asked = [*self._drawn, *(self._questions[name] for name in self._training)]
        missing: dict[str, str] = {}
        for name in {q.video_id for q in asked}:
            uri = self._videos[name].uri if name in self._videos else ""
            if not uri or (is_local(uri) and not Path(uri.removeprefix("file://")).is_file()):
                missing[name] = uri
        if missing:
            name = min(missing)
            where = (
                f"{missing[name]!r} is not there" if missing[name] else "videos.parquet has none"
            )
            raise UserError(
                f"video {name!r} is missing: {where} ({len(missing)} of "
                f"{len({q.video_id for q in asked})} videos); videos= names where they are"
            )
        shows = any("evidence" in s.shows for r in self.form.rounds for s in r.steps)
        if self.spans and shows and asked and not self.form.videos:
            blank = sum(not q.evidence for q in asked)
            if blank == len(asked):
                raise UserError(
                    f"none of the {blank} questions of {self.questions!r} says where in its video "
                    f"the answer is, as form={self.form.name} shows it: spans=false shows the "
                    "videos from their beginning"
                )

    def _open(self) -> list[RatedItem]:
        """The items that are asked: those of before, else of a sample drawn now."""
        self._folder.mkdir(parents=True, exist_ok=True)
        drawn = [q.question_id for q in self._drawn]
        fresh = items(
            self.form, drawn, raters=self.raters, people=self._people,
            training=list(self._training), seed=self.seed,
        )  # fmt: skip
        asked = self._ballots.open(fresh if drawn else [])
        if not asked:
            raise UserError(f"questions={self.questions!r}: none is kept, so none can be rated")
        known = {TRAINING, *(r.name for r in self.form.rounds)}
        if other := {i.round for i in asked} - known:
            raise UserError(
                f"{display_name(self._ballots.where)} holds the votes of another form (round "
                f"{min(other)!r}): give another folder= or votes="
            )
        names = {i.question_id for i in asked}
        if missing := [name for name in names if name not in self._questions]:
            raise UserError(
                f"{len(missing)} questions of {display_name(self._ballots.where)} are not in "
                f"{self.questions!r} any more: give another folder= or votes= for a new sample"
            )
        if {i.name for i in asked} != {i.name for i in fresh} and self.do == "serve":
            count = len({i.question_id for i in asked if i.round != TRAINING})
            print(
                f"the {count} questions drawn before go on; a new sample=, form= or training= "
                "needs a new folder="
            )
        return asked

    def _invite(self, address: str) -> None:
        now = time.time()
        for name in (*self._people, *self._seniors):
            token = self._ballots.invite(
                name, now + self.days * 86400, senior=name in self._seniors,
                unless=None if name in self.renew else now,
            )  # fmt: skip
            if token is None:
                print(f"{name}: the link of before counts (renew=[{name}] makes a new one)")
            else:
                print(f"{name}: {address}/r/{token}")

    def _results(self, asked: Sequence[RatedItem]) -> RatingResults:
        return results(self.form, self._questions, asked, self._ballots.votes(), wanted=self.wanted)


if __name__ == "__main__":
    launch("rate")
