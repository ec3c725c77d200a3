"""Rate: people check questions in a browser, and their verdicts go back into the data.

    python -m ray_jobs.rate questions=Q form=verify sample=200     serves the page, prints the links
    python -m ray_jobs.rate questions=Q form=verify do=write       writes questions.parquet anew

The links are printed once; only hashes of them are kept. MUSTSEE_RATE_KEY is the key of /results;
without it one is made for as long as the page is served.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pyarrow.parquet as pq

from mustsee import schemas
from mustsee.errors import UserError
from mustsee.raters.ballots import Ballots, hashed
from mustsee.raters.correctness import sample
from mustsee.raters.form import Form
from mustsee.raters.results import Results, rated, results
from mustsee.records import Question, Video
from mustsee.run.inputs import read_videos
from mustsee.run.tables import Tables
from ray_jobs.running.launch import launch


@dataclass(frozen=True)
class Rate:
    questions: str
    videos: str | None
    do: Literal["serve", "write"]
    form: Form
    folder: str | None
    raters: int
    names: tuple[str, ...] | None
    renew: tuple[str, ...]
    days: float
    sample: int | None
    seed: int
    wanted: float
    lease_minutes: float
    host: str
    port: int
    hosts: tuple[str, ...]

    def __call__(self) -> int:
        self._check()
        return self._serve() if self.do == "serve" else self._write()

    def _check(self) -> None:
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
        if not 0 < self.wanted < 1:
            raise UserError(f"wanted={self.wanted!r}: a share between 0 and 1")
        if len(set(self._people)) < self.raters:
            raise UserError(
                f"raters={self.raters} votes on a question need as many people: "
                f"names= has {len(set(self._people))}"
            )
        if unknown := set(self.renew) - set(self._people):
            raise UserError(f"renew={sorted(unknown)!r}: not among names={list(self._people)!r}")

    def _serve(self) -> int:
        import uvicorn

        from serve.rater import Desk, create_app
        from serve.rater_film import Films

        asked = self._open()
        key = os.environ.get("MUSTSEE_RATE_KEY") or secrets.token_urlsafe(24)
        videos = self._videos()
        desk = Desk(
            form=self.form,
            questions={name: self._questions[name] for name in asked},
            videos={v.video_id: v for v in videos},
            ballots=self._ballots,
            films=Films(videos, self._folder / "stretches"),
            results=lambda: self._results(asked),
            admin=hashed(key),
            hosts=("127.0.0.1", "localhost", self.host, *self.hosts),
        )
        self._invite()
        if "MUSTSEE_RATE_KEY" not in os.environ:
            print(f"results: curl -H 'Authorization: Bearer {key}' {self._address}/results")
        print(
            f"{len(asked)} questions at {self._address}; Ctrl-C stops, votes are kept", flush=True
        )
        # no access log: links are in it
        uvicorn.run(
            create_app(desk), host=self.host, port=self.port, access_log=False, log_level="warning"
        )
        return 0

    def _write(self) -> int:
        path = self._folder / "votes.sqlite"
        if not path.is_file():
            raise UserError(
                f"{str(path)!r} is not there: nobody has rated form={self.form.name} yet"
            )
        asked = self._open()
        votes = self._ballots.votes()
        done = rated(self.form, list(self._questions.values()), votes, raters=self.raters)
        kept = _replaced(self._run / "questions.parquet", done)
        found = self._results(asked)
        record = self._run / "run.json"
        if record.is_file():
            _recorded(record, found)
        before = "as before" if kept is None else f"the table of before is {kept}"
        print(f"{self._run / 'questions.parquet'}: verdicts of {len(votes)} votes; {before}")
        for line in said(found):
            print(line)
        return 0

    @cached_property
    def _questions(self) -> Mapping[str, Question]:
        return {q.question_id: q for q in Tables(self._run).questions()}

    @property
    def _run(self) -> Path:
        return Path(self.questions)

    @property
    def _folder(self) -> Path:
        return Path(self.folder) if self.folder else self._run / f"rating-{self.form.name}"

    @property
    def _people(self) -> Sequence[str]:
        return self.names or [f"rater_{number + 1}" for number in range(self.raters)]

    @property
    def _address(self) -> str:
        return f"http://{self.host}:{self.port}"

    @cached_property
    def _ballots(self) -> Ballots:
        path = self._folder / "votes.sqlite"
        return Ballots(path=path, raters=self.raters, lease=60 * self.lease_minutes)

    def _open(self) -> list[str]:
        """The questions that are asked: those of before, else a sample drawn now."""
        self._folder.mkdir(parents=True, exist_ok=True)
        standing = [q for q in self._questions.values() if q.drop is None]
        drawn = [q.question_id for q in sample(standing, self.sample, self.seed)]
        asked = self._ballots.open(drawn)
        if not asked:
            raise UserError(f"questions={self.questions!r}: none is kept, so none can be rated")
        if missing := [name for name in asked if name not in self._questions]:
            raise UserError(
                f"{len(missing)} questions of {str(self._ballots.path)!r} are not in "
                f"{self.questions!r} any more: give another folder= for a new sample"
            )
        if self.sample is not None and len(asked) != min(self.sample, len(standing)):
            print(
                f"the {len(asked)} questions drawn before go on; a new sample= needs a new folder="
            )
        return asked

    def _videos(self) -> list[Video]:
        videos = list(Tables(self._run).videos("lines", "start", "end", "duration"))
        if self.videos is None:
            return videos
        rows = read_videos(self.videos).select(["video_id", "uri"]).to_pylist()
        found = {row["video_id"]: row["uri"] for row in rows}
        return [replace(v, uri=found.get(v.video_id, v.uri)) for v in videos]

    def _invite(self) -> None:
        now, known = time.time(), self._ballots.invited()
        for name in self._people:
            if known.get(name, 0) > now and name not in self.renew:
                print(f"{name}: the link of before counts (renew=[{name}] makes a new one)")
            else:
                token = self._ballots.invite(name, now + self.days * 86400)
                print(f"{name}: {self._address}/r/{token}")

    def _results(self, asked: Sequence[str]) -> Results:
        films = {q.question_id: q.video_id for q in self._questions.values()}
        return results(
            self.form, films, asked, self._ballots.votes(), raters=self.raters, wanted=self.wanted
        )


def said(found: Results) -> list[str]:
    """What the votes come to, in lines."""
    lines = [f"{found.complete} of {found.asked} questions have all their votes"]
    if found.checked is not None:
        lines.append(found.checked.said())
        which = found.checked.decided
        enough = "not enough seen yet to say whether above or below"
        lines.append(f"{f'enough seen: {which}' if which else enough} {found.checked.wanted:.0%}")
    for name, one in found.fields.items():
        if one.same is not None:
            alpha = "alpha not defined (all said the same)"
            if one.alpha is not None:
                alpha = f"alpha {one.alpha.value:.2f}"
                if one.alpha.low is not None and one.alpha.high is not None:
                    alpha += f" ({one.alpha.low:.2f} to {one.alpha.high:.2f})"
            lines.append(f"  {name}: {one.same:.0%} of pairs agree, {alpha}, {one.units} questions")
    return lines


def _replaced(path: Path, questions: Sequence[Question]) -> Path | None:
    """Write the table anew, the one before kept under the next free number; null where nothing has
    changed.
    """
    fresh = path.with_name(".questions.parquet.new")
    pq.write_table(schemas.table(questions, Question), fresh, compression="zstd")
    if pq.read_table(fresh).equals(pq.read_table(path)):
        fresh.unlink()
        return None
    number = 1
    while (kept := path.with_name(f"questions.{number}.parquet")).exists():
        number += 1
    if path.is_dir():  # of parts
        path.rename(kept)
    else:
        shutil.copy2(path, kept)
    os.replace(fresh, path)
    return kept


def _recorded(path: Path, found: Results) -> None:
    """`checked` in `run.json`: one entry a form, the latest."""
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    others = [entry for entry in record.get("checked", ()) if entry["form"] != found.form]
    record["checked"] = [*others, found.plain()]
    fresh = path.with_name(".run.json.new")
    fresh.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(fresh, path)


if __name__ == "__main__":
    launch("rate")
