"""Export: converts questions from any layout to any layout.

    python -m ray_jobs.export questions=Q layout=neptune|hf|lmms_eval|... out=O [push=ORG/NAME]

Dropped questions are left out, and those that a filter marked, unless subset=all asks for them.
Problems in the questions are listed at the end.

A list of an export's files (`.mustsee-files`) lies beside them. Files that a later export no longer
writes are removed by it, so that nothing of another dataset is published; files that are in no list
are never touched.
"""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyarrow import fs
from rich.console import Console
from rich.text import Text

from mustsee.errors import UserError, secret
from mustsee.facts.deep import CHOICE_SUBSET, OPEN_SUBSET
from mustsee.files.store import resolve
from mustsee.files.tables import read_table
from mustsee.layouts.columns import columns_from
from mustsee.layouts.detect import open_streamed
from mustsee.layouts.errata import read_errata
from mustsee.layouts.reading import Questions, Rereadable, kept_questions
from mustsee.media.video_names import describe_unmatched
from mustsee.raters.votes import mark_modalities, read_modalities
from mustsee.records import Question
from mustsee.text import printable
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.question_rows import locate_videos, without_replies

LIST = ".mustsee-files"
UNPLACED = ".export-"  # start of the name of a folder in which an export is written
MAX_NAMED_FILES = 3  # files named in a message


def place_export(written: Path, out: str) -> list[str]:
    """Move the files below the folder `written` to `out`, local or in an object store, and remove
    those of the last export there that are not among them.

    Returns the files in `out` that no export has written. Raises UserError, before anything is
    changed, where `out` has other files and no list of an export.
    """
    filesystem, path = resolve(out)
    own = sorted(p.relative_to(written).as_posix() for p in written.rglob("*") if p.is_file())
    there, listed = _files(filesystem, path), _listed(filesystem, path)
    foreign = sorted(there - set(own) - set(listed or ()))
    if listed is None and foreign:
        raise UserError(
            f"out={out!r} holds {name_some(foreign)}, which this export does not write, and no "
            f"list of an earlier export ({LIST}): remove what is no longer needed, or give "
            "another out="
        )
    for name in sorted(set(listed or ()) & there - set(own)):
        filesystem.delete_file(f"{path}/{name}")
    (written / LIST).write_text("".join(f"{name}\n" for name in own), encoding="utf-8")
    if isinstance(filesystem, fs.LocalFileSystem):
        for name in (*own, LIST):
            target = Path(path) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(written / name, target)
        _remove_empty_folders(Path(path))
    else:
        fs.copy_files(str(written), path, fs.LocalFileSystem(), filesystem)
    return foreign


def _files(filesystem: fs.FileSystem, folder: str) -> set[str]:
    selector = fs.FileSelector(folder, recursive=True, allow_not_found=True)
    infos = filesystem.get_file_info(selector)
    paths = (info.path for info in infos if info.type == fs.FileType.File)
    files = {path[len(folder.rstrip("/")) + 1 :] for path in paths} - {LIST}
    return {file for file in files if not file.startswith(UNPLACED)}


def _listed(filesystem: fs.FileSystem, folder: str) -> list[str] | None:
    """Return the files of the last export to a folder; None without a list."""
    if filesystem.get_file_info(f"{folder}/{LIST}").type != fs.FileType.File:
        return None
    with filesystem.open_input_file(f"{folder}/{LIST}") as file:
        return file.read().decode().splitlines()


def _remove_empty_folders(folder: Path) -> None:
    folders = (p for p in folder.rglob("*") if p.is_dir() and UNPLACED not in p.name)
    for inside in sorted(folders, reverse=True):
        if not inside.is_symlink() and not any(inside.iterdir()):
            inside.rmdir()


def name_some(names: list[str]) -> str:
    """Return the number of files, and the names of the first ones."""
    rest = len(names) - MAX_NAMED_FILES
    more = f" and {rest} more" if rest > 0 else ""
    return f"{len(names)} file{'s' * (len(names) > 1)} ({', '.join(names[:MAX_NAMED_FILES])}{more})"


PASSED, ALL = "passed", "all"  # subsets that are not names in the data


@dataclass
class ExportCounts:
    """`made`, `kept`: questions of the subset. `not_passed`: kept ones that did not pass a filter.
    `failed`: how many of them did not pass each filter. `open_videos`, `choice_videos`: ids of the
    videos with kept questions that are to be released apart.
    """

    made: int = 0
    kept: int = 0
    not_passed: int = 0
    failed: Counter[str] = field(default_factory=Counter[str])
    open_videos: set[str] = field(default_factory=set[str])
    choice_videos: set[str] = field(default_factory=set[str])

    def clear(self) -> None:
        self.made = self.kept = self.not_passed = 0
        self.failed.clear()
        self.open_videos.clear()
        self.choice_videos.clear()


@dataclass(frozen=True, kw_only=True)
class Export:
    """`layout`: a layout's writer (questions, folder, videos); returns a line on the video files.
    `videos`: where the video files are, as in `mustsee evaluate`; None: where the questions say.
    `errata`: a file of corrections, applied before the subset is taken.

    `modalities`: a table of raters' marks (question_id, rater, needs), from which Neptune's subset
    `mmh` is made. `push`: id of the dataset to create on a hub, `private` by default.
    """

    questions: str
    out: str
    format: str | None
    subset: str
    layout: Callable[..., str | None]
    videos: str | None = None
    table: Mapping[str, Any] | None = None
    errata: str | None = None
    modalities: str | None = None
    push: str | None = None
    private: bool = True

    def __call__(self) -> int:
        if self.push is not None and self.push.count("/") != 1:
            raise UserError(f"push={self.push!r}: must be ORG/NAME")
        source = open_streamed(self.questions, self.format, columns_from(self.table))
        questions = Rereadable(lambda: map(without_replies, source.questions))
        counts = ExportCounts()
        outcome = None
        if self.errata is not None:
            errata = read_errata(self.errata)
            outcome, questions = errata.outcome(questions), errata.correct_questions(questions)
        if self.modalities is not None:
            marks = read_modalities(read_table(self.modalities))
            questions = mark_modalities(list(questions), marks)
        chosen = Rereadable(lambda: self._selected(questions, counts))
        if not any(True for _ in kept_questions(chosen)):
            raise UserError(self._describe_nothing(questions))
        rows, lines = source.videos, list[str]()
        if self.videos is not None:
            wanted = Counter(q.video_id for q in kept_questions(chosen))
            rows, lost = locate_videos(source.videos, self.videos, wanted, source.video_paths)
            lines = describe_unmatched(self.videos, lost, wanted)
        with tempfile.TemporaryDirectory(prefix=UNPLACED, dir=self._local_out()) as folder:
            placed = self.layout(chosen, Path(folder), rows)
            foreign = place_export(Path(folder), self.out)
            self._show(counts, [*([placed] if placed else []), *lines], foreign)
            if self.push is not None:
                address = self._push(self.push, Path(self._local_out() or folder), foreign)
                Console().print(f"pushed to {address}", soft_wrap=True)
        for line in outcome.lines() if outcome is not None else ():
            Console().print(line, soft_wrap=True, markup=False, highlight=False)
        for problem, count in Counter(f.what for f in source.findings).most_common():
            Console().print(Text(printable(f"  problem in the input: {problem} ({count})")))
        return 0

    def _show(self, counts: ExportCounts, videos: Sequence[str], foreign: list[str]) -> None:
        lines = [
            f"{counts.kept} of {counts.made} questions written to {self.out}",
            *self._describe_selection(counts),
            *(f"  {line}" for line in videos),
        ]
        if foreign:
            lines.append(f"  {name_some(foreign)} in it are of no export: they stay, never pushed")
        for line in lines:
            Console().print(line, soft_wrap=True, markup=False, highlight=False)

    def _local_out(self) -> str | None:
        """Return the output folder, made if it is not there; None in an object store."""
        filesystem, path = resolve(self.out)
        if not isinstance(filesystem, fs.LocalFileSystem):
            return None
        Path(path).mkdir(parents=True, exist_ok=True)
        return path

    def _selected(self, questions: Questions, counts: ExportCounts) -> Iterator[Question]:
        """Yield the questions of the subset, and count them. With `subset=passed`, questions that
        did not pass a filter are dropped.
        """
        counts.clear()
        for question in questions:
            if self.subset not in (PASSED, ALL, *question.subsets):
                continue
            counts.made += 1
            failed = question.failed_filters if question.drop is None else ()
            counts.failed.update(failed)
            counts.not_passed += bool(failed)
            if failed and self.subset == PASSED:
                question = replace(question, drop=f"export: did not pass {', '.join(failed)}")
            counts.kept += question.drop is None
            if question.drop is None and OPEN_SUBSET in question.subsets:
                counts.open_videos.add(question.video_id)
            if question.drop is None and CHOICE_SUBSET in question.subsets:
                counts.choice_videos.add(question.video_id)
            yield question

    def _describe_selection(self, counts: ExportCounts) -> Iterator[str]:
        """Yield a line on the kept questions that did not pass a filter, and one on those that
        tell the answers of others.
        """
        if both := len(counts.open_videos & counts.choice_videos):
            yield (
                f"  {both} video{'s have' if both > 1 else ' has'} open questions beside ones with "
                "options, which name what the open ones ask for: publish them apart "
                f"(subset={OPEN_SUBSET}, subset={CHOICE_SUBSET})"
            )
        if not counts.not_passed:
            return
        by = ", ".join(f"{name} {count}" for name, count in counts.failed.most_common())
        if self.subset == PASSED:
            yield (
                f"  {counts.not_passed} more were guessed or failed another check ({by}) and are "
                "left out: subset=all writes them, too"
            )
        else:
            yield (
                f"  {counts.not_passed} of these were guessed or failed another check ({by}): "
                "subset=passed leaves them out"
            )

    def _describe_nothing(self, questions: Questions) -> str:
        made = sum(1 for _ in questions)
        kept = list(kept_questions(questions))
        subsets = Counter(s for q in kept for s in q.subsets)
        text = f"nothing to export from {self.questions!r}: "
        if not made:
            return f"{text}it has no questions"
        if not kept:
            return f"{text}none of {made} questions is kept"
        if self.subset == PASSED:
            return f"{text}none of {len(kept)} kept questions passed all filters: subset=all"
        names = dict(subsets) if subsets else "no subset"
        return f"{text}none of {made} questions is kept in subset={self.subset}; kept in {names}"

    def _push(self, name: str, folder: Path, foreign: list[str]) -> str:
        """Upload the files of the export as the dataset `name` and return its address.

        The hub is HF_ENDPOINT; the key is HF_TOKEN or that of `hf auth login`. Raises UserError if
        the hub refuses.
        """
        from huggingface_hub import HfApi

        secret(os.environ.get("HF_TOKEN", ""))
        hub = HfApi()
        try:
            address = hub.create_repo(
                name, repo_type="dataset", private=self.private, exist_ok=True
            )
            hub.upload_folder(
                repo_id=name,
                repo_type="dataset",
                folder_path=folder,
                ignore_patterns=[LIST, *map(glob.escape, foreign)],
                commit_message="Written by Mustsee",
            )
        except Exception as error:  # The client's HTTP library, and its errors, change.
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            raise UserError(
                f"push={name!r} failed: {reason}; the folder is written. Does {hub.endpoint} "
                "answer, and is HF_TOKEN a key that may write there?"
            ) from error
        return str(address)


if __name__ == "__main__":
    launch("export")
