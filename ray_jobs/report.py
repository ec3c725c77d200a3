"""Report: rewrites the report page of a finished run, draws a question, serves it with videos.

python -m ray_jobs.report out=O [picture=question.png question=ID]
python -m ray_jobs.report out=O serve=true
"""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs

from mustsee.audit.show import write_page as write_audit_page
from mustsee.errors import UserError
from mustsee.files.parquet import check_digests
from mustsee.files.store import Store, is_local, resolve
from mustsee.run.inputs import with_videos
from mustsee.run.outputs import store_of_run
from mustsee.run.picture import draw_question
from mustsee.run.report import write_report
from mustsee.run.tables import Tables
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.run import Page
from ray_jobs.runtime.web import port, serve_until_signal

NEEDED = ("run.json", "videos.parquet", "questions.parquet")
PAGES: Mapping[str, Page] = {"audit": write_audit_page}


@dataclass(frozen=True, kw_only=True)
class Report:
    out: str
    store: str | None = None
    picture: str | None = None
    question: str | None = None
    serve: bool = False
    videos: str | None = None
    host: str = "127.0.0.1"
    port: int = 8766
    hosts: tuple[str, ...] = ()

    def __call__(self) -> int:
        filesystem, path = resolve(self.out)
        with tempfile.TemporaryDirectory(prefix="mustsee-") as name:
            folder = Path(name)
            for file in NEEDED:
                file_type = filesystem.get_file_info(f"{path}/{file}").type
                if file_type == fs.FileType.NotFound:
                    raise UserError(f"out={self.out!r} has no {file}: is it the folder of a run?")
                fs.copy_files(f"{path}/{file}", str(folder / file), filesystem)
            check_digests(folder)
            record = json.loads((folder / "run.json").read_text())
            store = Store(self.store or store_of_run(self.out, record))
            write_page = PAGES.get(record["recipe"], write_report)
            if self.serve and write_page is not write_report:
                raise UserError(
                    f"serve=true: the page of {record['recipe']!r} (out={self.out!r}) plays no "
                    "videos; open its file instead"
                )
            if write_page is write_audit_page:
                fs.copy_files(f"{path}/audit.json", str(folder / "audit.json"), filesystem)
            write_page(folder, record, store)
            filesystem.create_dir(f"{path}/report", recursive=True)
            fs.copy_files(
                str(folder / "report/index.html"), f"{path}/report/index.html", None, filesystem
            )
            print(f"{self.out}/report/index.html")
            if self.picture is not None:
                print(draw_question(folder, store, Path(self.picture), self.question))
            return self._serve(folder) if self.serve else 0

    def _serve(self, folder: Path) -> int:
        """Serve the page with its videos until Ctrl-C."""
        from serve.rater_video import ServedVideos
        from serve.report import ReportApp, create_app

        rows = Tables(folder).videos("start", "end", "duration", "drop", "problem")
        videos = with_videos({v.video_id: v for v in rows}, self.videos)
        parent = Path(self.out.removeprefix("file://")) if is_local(self.out) else folder
        with port(self.host, self.port) as listening:
            report = ReportApp(
                page=(folder / "report/index.html").read_text(encoding="utf-8"),
                videos=videos,
                served=ServedVideos(videos.values(), parent / "report/clips"),
                token=secrets.token_urlsafe(32),
                questions={q.question_id: len(q.options) for q in Tables(folder).questions()},
                folder=parent if is_local(self.out) else None,
                hosts=("127.0.0.1", "localhost", self.host, *self.hosts),
            )
            address = f"http://{self.host}:{listening.getsockname()[1]}/r/{report.token}"
            return serve_until_signal(
                create_app(report),
                listening,
                f"report with videos: {address} (Ctrl-C stops it)",
                f"stopped; {self.out}/report/index.html is the same page without the videos",
            )


if __name__ == "__main__":
    launch("report")
