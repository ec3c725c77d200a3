"""(Re)write the report page of a finished run, and draw one of its questions.

python -m ray_jobs.report out=O [picture=question.png question=ID]
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import fs

from mustsee.audit import page
from mustsee.errors import UserError
from mustsee.run.picture import draw_question
from mustsee.run.report import write_report
from mustsee.store import Store, resolve
from ray_jobs.running.launch import launch
from ray_jobs.running.run import Page

NEEDED = ("run.json", "videos.parquet", "questions.parquet")
PAGES: Mapping[str, Page] = {"audit": page.write}


@dataclass(frozen=True, kw_only=True)
class Report:
    out: str
    store: str | None = None
    picture: str | None = None
    question: str | None = None

    def __call__(self) -> int:
        filesystem, path = resolve(self.out)
        with tempfile.TemporaryDirectory(prefix="mustsee-") as name:
            folder = Path(name)
            for file in NEEDED:
                found = filesystem.get_file_info(f"{path}/{file}").type
                if found == fs.FileType.NotFound:
                    raise UserError(f"out={self.out!r} has no {file}: is it the folder of a run?")
                fs.copy_files(f"{path}/{file}", str(folder / file), filesystem)
            record = json.loads((folder / "run.json").read_text())
            store = Store(self._store(record))
            made = PAGES.get(record["recipe"], write_report)
            if made is page.write:
                fs.copy_files(f"{path}/audit.json", str(folder / "audit.json"), filesystem)
            made(folder, record, store)
            filesystem.create_dir(f"{path}/report", recursive=True)
            fs.copy_files(
                str(folder / "report/index.html"), f"{path}/report/index.html", None, filesystem
            )
            print(f"{self.out}/report/index.html")
            if self.picture is not None:
                print(draw_question(folder, store, Path(self.picture), self.question))
        return 0

    def _store(self, record: Mapping[str, Any]) -> str:
        """The one asked for, the run's own, or the one here where the folder was moved."""
        here = f"{self.out}/store"
        stored = self.store or record["config"].get("store") or here
        filesystem, path = resolve(stored)
        found = filesystem.get_file_info(path).type == fs.FileType.Directory
        return stored if self.store or found else here


if __name__ == "__main__":
    launch("report")
