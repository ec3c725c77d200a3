"""The video files of a dataset: where they belong, and how to copy or link them there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from pyarrow import fs

from mustsee.errors import UserError
from mustsee.files.store import resolve, strip_options
from mustsee.records import Question, Video

FOLDER = "videos"
WAYS = ("copy", "link", "none")
MAX_NAMED_FILES = 3  # files named in a message
MAX_LISTED_FILES = 50  # files listed in a card


def file_name(video: Video) -> str | None:
    """Return the name of a video's file, or None if no file is known."""
    return PurePosixPath(strip_options(video.uri)).name or None


def names_of(videos: Iterable[Video], questions: Iterable[Question]) -> list[str]:
    """Return the file names of the videos that `questions` ask about, sorted and unique."""
    video_ids = {question.video_id for question in questions}
    names = (file_name(video) for video in videos if video.video_id in video_ids)
    return sorted({name for name in names if name is not None})


def include(videos: Iterable[Video], folder: Path, way: str, *, into: str = FOLDER) -> list[str]:
    """Put the files of `videos` into `folder`/`into` and return their names, also for "none".

    `way` is one of `WAYS`; "link" makes hard links, and copies files that cannot be linked. Raises
    UserError, before any file is copied, for missing files, for two files of the same name, and if
    no file is known.
    """
    if way not in WAYS:
        raise UserError(f"layout.videos={way!r}: choose one of {', '.join(WAYS)}")
    addresses: dict[str, str] = {}
    for video in videos:
        name = file_name(video)
        if name is None:
            continue
        if way != "none" and addresses.get(name, video.uri) != video.uri:
            raise UserError(
                f"layout.videos={way}: {addresses[name]!r} and {video.uri!r} would both be "
                f"{into}/{name}: rename one of the files"
            )
        addresses[name] = video.uri
    if way != "none":
        if not addresses:
            raise UserError(
                f"layout.videos={way}: no video file is known for these questions: name the folder "
                "or list of the files in videos="
            )
        missing = [uri for uri in addresses.values() if not _is_file(uri)]
        if missing:
            raise UserError(
                f"layout.videos={way}: {len(missing)} of {len(addresses)} video files are not "
                f"there: {_name_some([repr(uri) for uri in missing])}; run this where they are, "
                "or use layout.videos=none"
            )
        (folder / into).mkdir(parents=True, exist_ok=True)
        for name, uri in addresses.items():
            place_file(uri, folder / into / name, link=way == "link")
    return sorted(addresses)


def place_file(uri: str, target: Path, *, link: bool = True) -> None:
    """Hard-link (with `link`, if possible) or copy the file at `uri` to `target`, replacing it."""
    filesystem, path = resolve(uri)
    if not isinstance(filesystem, fs.LocalFileSystem):
        fs.copy_files(path, str(target), filesystem, fs.LocalFileSystem())
        return
    if target.exists() and target.resolve() == Path(path).resolve():
        return
    target.unlink(missing_ok=True)
    if link:
        try:
            os.link(os.path.realpath(path), target)
            return
        except OSError:
            pass  # the target is on another disk, or on one without links
    shutil.copyfile(path, target)


def describe_included(count: int, way: str, *, without_file: int, into: str = FOLDER) -> str:
    """Return a line that says how many files `include` put, and of how many videos no file is
    known.

    `way` is "copy" or "link".
    """
    line = f"the videos are in its {into}/ ({count}, layout.videos={way})"
    videos = f"{without_file} video{'s' * (without_file > 1)}"
    return f"{line}; no file is known of {videos}" if without_file else line


def where_to_put(names: Sequence[str], folder: str = FOLDER) -> str:
    """Return a line that says where the video files belong; empty without any."""
    if not names:
        return ""
    return f"the videos are not copied ({len(names)}): put {_name_some(names)} into its {folder}/"


def as_read(videos: Iterable[Video]) -> str:
    """Return a line that says how records name the videos; empty without any."""
    example = next((video.uri for video in videos if video.uri), None)
    return f"records name each video by its uri, such as {example!r}" if example else ""


def describe_video_files(names: Sequence[str], *, included: bool) -> str:
    """Return the card's text on where the video files are or belong."""
    if not names:
        return "No video files are known for these questions."
    files = "\n".join(f"- `{FOLDER}/{name}`" for name in names[:MAX_LISTED_FILES])
    rest = len(names) - MAX_LISTED_FILES
    files += f"\n- and {rest} more: the column `uri` of `videos.parquet`" if rest > 0 else ""
    if included:
        return f"The video files are in this folder:\n\n{files}"
    return (
        "The video files are **not** in this folder. The column `video` names the file of a "
        f"question, and `uri` of `videos.parquet` its path; put the files there:\n\n{files}"
    )


def _name_some(names: Sequence[str]) -> str:
    rest = len(names) - MAX_NAMED_FILES
    return ", ".join(names[:MAX_NAMED_FILES]) + (f" and {rest} more" if rest > 0 else "")


def _is_file(uri: str) -> bool:
    try:
        filesystem, path = resolve(uri)
    except UserError:
        return False
    return filesystem.get_file_info(path).type == fs.FileType.File
