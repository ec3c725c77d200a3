"""Rate: people answer forms about questions in a browser; their votes go back into the data.

    python -m ray_jobs.rate questions=Q form=verify sample=200     serves the page, prints the links
    python -m ray_jobs.rate questions=Q form=verify do=write       writes the votes into Q
    python -m ray_jobs.rate questions=Q form=verify do=export file=TASKS
    python -m ray_jobs.rate questions=Q form=verify do=import file=VOTES

Links are printed once; only their hashes are stored. MUSTSEE_RATE_KEY is the key of /results.
Without it a key is made for as long as the page is served.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mustsee.errors import UserError
from mustsee.layouts import ours
from mustsee.layouts.columns import columns_from
from mustsee.layouts.detect import open_streamed
from mustsee.layouts.errata import name_ids
from mustsee.raters.ballots import RatedItem, hash_token
from mustsee.raters.needed import check_within
from mustsee.raters.rating_run import RatingRun, RatingSettings, check_share, count_questions
from mustsee.raters.transfer import export_tasks, import_votes, write_votes
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.web import port, serve_until_signal

if TYPE_CHECKING:
    from serve.rater import RatingDesk


@dataclass(frozen=True)
class RateJob(RatingSettings):
    """`conf/rate.yaml` explains the fields."""

    table: Mapping[str, Any] | None
    do: Literal["serve", "write", "export", "import"]
    within: float
    trained: float
    file: str | None
    host: str
    port: int
    hosts: tuple[str, ...]

    def __call__(self) -> int:
        rating = RatingRun(replace(self, questions=self._run_folder()))
        rating.check()
        check_share("trained", self.trained)
        check_within(self.within)
        if self.do == "serve":
            return self._serve(rating)
        for line in self._transfer(rating):
            print(line)
        return 0

    def _run_folder(self) -> str:
        """Return the folder of the run to rate; a file of questions becomes one beside it, once."""
        place = Path(self.questions)
        if self.table is None and not place.is_file():
            return self.questions
        source = open_streamed(place, columns=columns_from(self.table))
        target = place.with_name(f"{place.name.partition('.')[0]}-rated")
        if not (target / "questions.parquet").exists():
            ours.write(source.questions, target, source.videos)
            print(f"{self.questions} was read as {source.layout}; its votes go into {target}")
        rated = {q.question_id for q in open_streamed(target).questions}
        if rated != {q.question_id for q in source.questions}:
            raise UserError(
                f"{str(target)!r} holds the votes on other questions than {self.questions!r}: move "
                "it away to begin anew"
            )
        return str(target)

    def _transfer(self, rating: RatingRun) -> Iterator[str]:
        if self.do == "write":
            return write_votes(rating)
        if self.file is None:
            raise UserError(f"do={self.do} needs file=")
        if self.do == "import":
            return import_votes(rating, Path(self.file))
        rating.check_videos()
        return export_tasks(rating, Path(self.file))

    def _serve(self, rating: RatingRun) -> int:
        from serve.rater import create_app

        rating.check_videos()
        with port(self.host, self.port) as listening:
            rated = rating.open_items(report_changes=True)
            key = os.environ.get("MUSTSEE_RATE_KEY") or secrets.token_urlsafe(24)
            app = create_app(self._desk(rating, rated, key))
            address = f"http://{self.host}:{listening.getsockname()[1]}"
            if lacking := rating.lacking_proposals:
                print(
                    f"{rating.proposals.path}: {len(lacking)} of its proposals are on no kept "
                    f"question of {self.questions}, or contradict each other: {name_ids(lacking)}"
                )
            for line in (*rating.describe_need(rated, self.within), *rating.invite(address)):
                print(line)
            if "MUSTSEE_RATE_KEY" not in os.environ:
                print(f"dashboard: {address}/board/{key}")
                print(f"results: curl -H 'Authorization: Bearer {key}' {address}/results")
            unit = "tasks" if self.form.videos else "questions"
            started = f"{count_questions(rated)} {unit} at {address}; Ctrl-C stops, votes are kept"
            return serve_until_signal(app, listening, started, stopped_message(rating))

    def _desk(self, rating: RatingRun, rated: list[RatedItem], key: str) -> RatingDesk:
        from serve.rater import RatingDesk
        from serve.rater_show import Tasks
        from serve.rater_video import ServedVideos

        tasks = Tasks(
            form=self.form,
            items={i.name: i for i in rated},
            questions={i.question_id: rating.question_by_id[i.question_id] for i in rated},
            videos=rating.video_by_id,
            served=ServedVideos(rating.video_by_id.values(), rating.folder / "clips"),
            training=rating.training,
            doubts=rating.doubts,
        )
        return RatingDesk(
            tasks=tasks,
            ballots=rating.ballots,
            results=lambda: rating.results(rated),
            admin=hash_token(key),
            trained=self.trained,
            hosts=("127.0.0.1", "localhost", self.host, *self.hosts),
        )


def stopped_message(rating: RatingRun) -> str:
    """The line that is printed when the page is no longer served."""
    target = "annotations.jsonl" if rating.form.videos else "the questions"
    target = "errata.jsonl" if rating.form.errata else target
    return (
        f"stopped; the votes are kept in {rating.vote_store}. The same command serves the page "
        f"again under the same links; do=write writes the votes into {target}"
    )


if __name__ == "__main__":
    launch("rate")
