"""Export: converts questions from any layout to any layout.

    python -m ray_jobs.export questions=Q layout=neptune|hf|lmms_eval|... out=O [push=ORG/NAME]

Problems in the questions are listed at the end. Dropped questions are left out.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs
from rich.console import Console
from rich.text import Text

from mustsee.errors import UserError, secret
from mustsee.layouts.detect import open_streamed
from mustsee.layouts.reading import Rereadable, kept_questions
from mustsee.raters import modalities
from mustsee.records import Question
from mustsee.store import resolve
from mustsee.tables import read_table
from mustsee.text import printable
from ray_jobs.cli.launch import launch


@dataclass(frozen=True, kw_only=True)
class Export:
    """`layout`: a layout's writer (questions, folder, videos); returns a line on the video files.

    `modalities`: a table of raters' marks (question_id, rater, needs), from which Neptune's subset
    `mmh` is made. `push`: id of the dataset to create on a hub, `private` by default.
    """

    questions: str
    out: str
    format: str | None
    subset: str | None
    layout: Callable[..., str | None]
    modalities: str | None = None
    push: str | None = None
    private: bool = True

    def __call__(self) -> int:
        if self.push is not None and self.push.count("/") != 1:
            raise UserError(f"push={self.push!r}: must be ORG/NAME")
        source, counts = open_streamed(self.questions, self.format), Counter[str]()
        questions = source.questions
        if self.modalities is not None:
            marks = modalities.from_table(read_table(self.modalities))
            questions = modalities.human(list(questions), marks)

        def selected_questions() -> Iterator[Question]:
            counts.clear()
            for question in questions:
                if self.subset is None or self.subset in question.subsets:
                    counts["made"] += 1
                    counts["kept"] += question.drop is None
                    yield question

        chosen = Rereadable(selected_questions)
        if not any(True for _ in kept_questions(chosen)):
            made = sum(1 for _ in questions)
            kept = Counter(s for q in kept_questions(questions) for s in q.subsets)
            raise UserError(
                f"nothing to export from {self.questions!r}: "
                + (f"none of {made} questions is kept" if made else "it has no questions")
                + (f" in subset={self.subset}; kept in {dict(kept)}" if kept else "")
            )
        filesystem, path = resolve(self.out)
        if isinstance(filesystem, fs.LocalFileSystem):
            Path(path).mkdir(parents=True, exist_ok=True)
            videos = self.layout(chosen, Path(path), source.videos)
            address = self._push(Path(path))
        else:
            with tempfile.TemporaryDirectory() as folder:
                videos = self.layout(chosen, Path(folder), source.videos)
                fs.copy_files(folder, path, fs.LocalFileSystem(), filesystem)
                address = self._push(Path(folder))
        console = Console()
        console.print(f"{counts['kept']} of {counts['made']} questions written to {self.out}")
        if videos:
            console.print(f"  {videos}", soft_wrap=True, markup=False, highlight=False)
        if address is not None:
            console.print(f"pushed to {address}", soft_wrap=True)
        for problem, count in Counter(f.what for f in source.findings).most_common():
            console.print(Text(printable(f"  problem in the input: {problem} ({count})")))
        return 0

    def _push(self, folder: Path) -> str | None:
        """Upload the folder as a dataset and return its address; None without `push`.

        The hub is HF_ENDPOINT; the key is HF_TOKEN or that of `hf auth login`. Raises UserError if
        the hub refuses.
        """
        if self.push is None:
            return None
        from huggingface_hub import HfApi

        secret(os.environ.get("HF_TOKEN", ""))
        hub = HfApi()
        try:
            address = hub.create_repo(
                self.push, repo_type="dataset", private=self.private, exist_ok=True
            )
            hub.upload_folder(
                repo_id=self.push,
                repo_type="dataset",
                folder_path=folder,
                commit_message=f"{len(list(folder.rglob('*')))} files, by Mustsee",
            )
        except Exception as error:  # The client's HTTP library, and its errors, change.
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            raise UserError(
                f"push={self.push!r} failed: {reason}; the folder is written. Does {hub.endpoint} "
                "answer, and is HF_TOKEN a key that may write there?"
            ) from error
        return str(address)


if __name__ == "__main__":
    launch("export")
