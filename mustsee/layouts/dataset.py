"""What a finished run wrote, as an object: `Dataset("runs/mine")`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mustsee.errors import UserError, need
from mustsee.files.parquet import read_parquet
from mustsee.layouts.detect import read
from mustsee.records import Question, Video

if TYPE_CHECKING:
    import datasets


@dataclass(frozen=True)
class Dataset:
    """The output folder of a run. Raises UserError, when first read, for another folder."""

    folder: str

    @cached_property
    def _file(self) -> Any:
        return read(self.folder, "ours")

    @property
    def questions(self) -> Sequence[Question]:
        """The questions that were kept."""
        return [q for q in self._file.questions if q.drop is None]

    @property
    def dropped_questions(self) -> Sequence[Question]:
        """The questions that were not kept, each with the reason in `drop`."""
        return [q for q in self._file.questions if q.drop is not None]

    @property
    def videos(self) -> Sequence[Video]:
        return self._file.videos

    @cached_property
    def record(self) -> dict[str, Any]:
        """`run.json`: settings, counts, calls, tokens, money."""
        path = Path(self.folder) / "run.json"
        try:
            return json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"{self.folder!r} is not the output folder of a run: {error}") from None

    def subset(self, name: str) -> Sequence[Question]:
        """The kept questions of a subset, such as "mma": those that passed every filter."""
        return [q for q in self.questions if name in q.subsets]

    def report(self) -> Path:
        """The page on the run, to be opened in a browser. Raises UserError if there is none."""
        page = Path(self.folder) / "report" / "index.html"
        if not page.is_file():
            raise UserError(f"no page in {self.folder!r}: mustsee report out={self.folder}")
        return page

    def to_hf(self) -> datasets.Dataset:
        """The kept questions as a dataset of the library `datasets`, a row each, with the columns
        of `questions.parquet`. Raises NotInstalled without the library.
        """
        need("to_hf()", "mustsee[hf]", "datasets")
        import datasets
        import pyarrow as pa

        table = read_parquet(Path(self.folder) / "questions.parquet")
        kept = {q.question_id for q in self.questions}
        standing = pa.array([name in kept for name in table["question_id"].to_pylist()])
        return datasets.Dataset(table.filter(standing))
