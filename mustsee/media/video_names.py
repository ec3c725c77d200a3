"""Finds a video by what a table calls it: its id, its file's name, or a path.

    names = VideoNames(videos)
    names.find("a")                     the video of this id, or the one file a.mp4
    names.find("a", "clips/a.mp4")      of several files a.mp4 the one in a folder clips

A folder counts only where it decides between files of one name, because files move.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from mustsee.files.folders import without_media_suffix
from mustsee.files.store import strip_options
from mustsee.records import Video, group_pairs
from mustsee.text import printable

SEVERAL = "several files have this name: give more of its path, or the video's id"
MAX_NAMED = 10  # videos named for one reason
NONE = "no video has this id or file name"


def path_parts(written: str) -> tuple[str, ...]:
    """Return the folders and the name in a path, the name without the suffix of a media file.

    Accented letters are composed, because file systems differ in how they store these.

    >>> path_parts("./clips/a.mp4"), path_parts("C:\\\\videos\\\\a.MP4")
    (('clips', 'a'), ('C:', 'videos', 'a'))
    """
    text = unicodedata.normalize("NFC", written).replace("\\", "/")
    *folders, name = [part for part in text.split("/") if part not in ("", ".", "..")] or [""]
    return (*folders, without_media_suffix(name))


def common_tail(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many parts at the end of two paths are the same."""
    count = 0
    for a, b in zip(reversed(one), reversed(other), strict=False):
        if a != b:
            break
        count += 1
    return count


def name_apart(paths: Iterable[str]) -> dict[str, str]:
    """Return a video id for each path: the file's name without suffix, and as many folders before
    it as tell it from other files of this name. A path that is the end of another one is the same
    file; so is a bare name, unless several files have it.

    >>> name_apart(["a.mp4", "x/clips/a.mp4", "clips/a.mp4", "x/b.mp4", "y/b.mp4"])
    {'a.mp4': 'a', 'x/clips/a.mp4': 'a', 'clips/a.mp4': 'a', 'x/b.mp4': 'x/b', 'y/b.mp4': 'y/b'}
    """
    parts = {path: path_parts(path) for path in dict.fromkeys(paths)}
    by_name = group_pairs((each[-1], each) for each in dict.fromkeys(parts.values()))
    ids = dict[tuple[str, ...], str]()
    for same in by_name.values():
        for each in same:
            others = [other for other in same if not _is_end_of_other(each, other)]
            needed = 1 + max((common_tail(each, other) for other in others), default=0)
            ids[each] = "/".join(each[-needed:])
    return {path: ids[each] for path, each in parts.items()}


def _is_end_of_other(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether the shorter of two paths is the end of the longer one."""
    return common_tail(one, other) == min(len(one), len(other))


class VideoNames:
    """Videos by their ids and by the names of their files."""

    def __init__(self, videos: Iterable[Video]) -> None:
        self._by_id: dict[str, Video] = {}
        self._by_name: dict[str, dict[str, Video]] = {}  # file's name -> address -> video
        for video in sorted(videos, key=lambda video: video.drop is not None):
            self._by_id[video.video_id] = video
            file = strip_options(video.uri).rpartition("/")[2]
            for key in {path_parts(file)[-1], path_parts(file.rpartition(".")[0] or file)[-1]}:
                # A dropped video may be a duplicate of another file of this name.
                if file and not (video.drop and key in self._by_name):
                    self._by_name.setdefault(key, {}).setdefault(video.uri, video)

    def find(self, name: str, written: str = "") -> Video | None:
        """Return the video of an id or a file's name; null if there is none, or more than one.
        `written`: the path as a table has it, which decides between files of one name.
        """
        found = self._candidates(name, written)
        return found[0] if len(found) == 1 else None

    def reason(self, name: str, written: str = "") -> str:
        """Return why `find` returns null."""
        return SEVERAL if self._candidates(name, written) else NONE

    def examples(self, most: int = 3) -> list[str]:
        """Return the ids of the first videos."""
        return sorted(self._by_id)[:most]

    def _candidates(self, name: str, written: str) -> Sequence[Video]:
        (*needed, file), given = path_parts(name), path_parts(written or name)[:-1]
        same = list(self._by_name.get(file, {}).values())
        if len(same) > 1 and given:
            tails = [common_tail(given, _folders(video)) for video in same]
            if (best := max(tails)) and tails.count(best) == 1:
                return [same[tails.index(best)]]
        if name in self._by_id:
            return [self._by_id[name]]
        return [v for v in same if common_tail(needed, _folders(v)) == len(needed)]


def _folders(video: Video) -> tuple[str, ...]:
    return path_parts(strip_options(video.uri))[:-1]


def describe_unmatched(
    source: str, lost: Mapping[str, tuple[str, str]], asked: Mapping[str, int]
) -> list[str]:
    """Return lines on the videos that have no file in `source` (as `videos=`); none if all have.

    `lost`: id -> what a table calls it, and why no file is found. `asked`: id of each video -> the
    number of its questions.
    """
    if not lost:
        return []
    questions = sum(asked[name] for name in lost)
    by_reason = group_pairs(
        (reason, f"{called} ({asked[name]} question{'s' * (asked[name] > 1)})")
        for name, (called, reason) in lost.items()
    )
    lines = [
        f"videos={source!r} has no file of {len(lost)} of {len(asked)} videos, with {questions} of "
        f"{sum(asked.values())} questions"
    ]
    for reason, names in by_reason.items():
        more = len(names) - MAX_NAMED
        listed = ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
        lines.append(f"{reason}: {listed}")
    return [printable(line) for line in lines]
