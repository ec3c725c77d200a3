"""Questions that ask when something is seen, in two layouts of temporal grounding.

`charades_sta.txt`, as Charades-STA (Gao et al., 2017, TALL): `VIDEO START END##sentence`, one span
on each line. A question with several spans has none that is right alone, so it is left out.

`timelens.jsonl`, as TimeLens-100K: a line for each video, with its `events`, each a `query` and the
list of its spans, `span`.

The sentence and the query are the phrase that the question asks for. Times are seconds of the video
file. A video is named as its file is, in Charades-STA without the ending.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from mustsee.errors import UserError
from mustsee.files.folders import file_name, write_json_lines
from mustsee.layouts import video_files
from mustsee.layouts.reading import Questions, by_id, kept_questions
from mustsee.questions.templates import stated_phrase
from mustsee.records import Question, Video

CHARADES_FILE, TIMELENS_FILE = "charades_sta.txt", "timelens.jsonl"
SOURCE = "mustsee"  # TimeLens names the dataset that a video comes from


def write_charades_sta(questions: Questions, path: str | Path, videos: Iterable[Video] = ()) -> str:
    """Write the questions that ask when, and have one span, to `path/charades_sta.txt`; return a
    line that says how many, what was left out, and which videos are named otherwise than their
    files. Raises UserError if there is none, and for two videos whose files have one name.
    """
    folder, videos_by_id = _make_folder(path), by_id(videos)
    names = dict[str, str]()
    several = written = 0
    with (folder / CHARADES_FILE).open("w", encoding="utf-8") as lines:
        for question in _grounding_questions(questions):
            if len(question.evidence) != 1:
                several += 1
                continue
            name = PurePosixPath(_name_video(question, videos_by_id, names)).stem
            (span,) = question.evidence
            sentence = _word_sentence(question).replace("##", "# #")
            lines.write(f"{name} {span.start:.1f} {span.end:.1f}##{sentence}\n")
            written += 1
    if not written:
        raise UserError(
            f"layout=charades_sta: all {several} questions that ask when something is seen have "
            "several spans, and a line has one: layout=timelens writes them"
        )
    left = f"{several} with several spans left out: layout=timelens writes them, too"
    said = [_describe_count(written), *([left] if several else [])]
    return "; ".join(said + _describe_renamed(names, videos_by_id))


def write_timelens(questions: Questions, path: str | Path, videos: Iterable[Video] = ()) -> str:
    """Write the questions that ask when to `path/timelens.jsonl`, those of a video on one line;
    return a line on their number, and videos of unknown length, or named otherwise than their
    files. Raises UserError if there is none, and for two videos whose files have one name.
    """
    folder, videos_by_id = _make_folder(path), by_id(videos)
    names = dict[str, str]()
    events: dict[str, list[dict[str, Any]]] = {}
    for question in _grounding_questions(questions):
        _name_video(question, videos_by_id, names)
        spans = [[span.start, span.end] for span in question.evidence]
        event = {"query": _word_sentence(question), "span": spans}
        events.setdefault(question.video_id, []).append(event)
    lengths = {name: videos_by_id[name].duration for name in events if name in videos_by_id}
    records = (
        {"source": SOURCE, "video_path": names[name], "duration": lengths.get(name), "events": own}
        for name, own in events.items()
    )
    write_json_lines(folder / TIMELENS_FILE, records)
    unknown = sum(lengths.get(name) is None for name in events)
    said = [_describe_count(sum(map(len, events.values())))]
    if unknown:
        said.append(f"{unknown} of {len(events)} videos have no known length: duration is null")
    return "; ".join(said + _describe_renamed(names, videos_by_id))


def _make_folder(path: str | Path) -> Path:
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _grounding_questions(questions: Questions) -> Iterator[Question]:
    """Yield the kept questions that ask when. Raises UserError if there is none."""
    found = False
    for question in kept_questions(questions):
        if question.asks_when and question.evidence:
            found = True
            yield question
    if not found:
        raise UserError(
            "no question asks when something is seen: `mustsee make` writes such questions with "
            "ask.settings.forms.when.questions=10 (docs/facts.md)"
        )


def _describe_count(written: int) -> str:
    return f"of these {written} ask when something is seen, and only they have a line"


def _word_sentence(question: Question) -> str:
    return " ".join(stated_phrase(question.question).split())


def _name_video(question: Question, videos: Mapping[str, Video], names: dict[str, str]) -> str:
    """Return the name of a question's video, and add it to `names`, by video id: that of its file,
    with what no line may hold replaced. Raises UserError if it is another video's.
    """
    video_id = question.video_id
    if video_id not in names:
        name = _shorten_name(_file_of(video_id, videos))
        other = next((v for v, n in names.items() if _stem(n) == _stem(name)), None)
        if other is not None:
            raise UserError(
                f"the videos {other!r} and {video_id!r} would both be named {_stem(name)!r}: "
                "rename one of the files"
            )
        names[video_id] = name
    return names[video_id]


def _file_of(video_id: str, videos: Mapping[str, Video]) -> str:
    video = videos.get(video_id)
    return (video and video_files.file_name(video)) or f"{video_id}.mp4"


def _shorten_name(name: str) -> str:
    """Return a name without spaces, at which readers of Charades-STA split a line."""
    stem, ending = PurePosixPath(name).stem, PurePosixPath(name).suffix
    whole = "_".join(stem.split()) == stem
    return (stem if whole and file_name(stem) == stem else file_name(_spaceless(stem))) + ending


def _spaceless(stem: str) -> str:
    # Slashes are valid in no name of a file: a hash of the whole follows, by which names differ.
    return "/".join(stem.split()) + "/"


def _stem(name: str) -> str:
    return PurePosixPath(name).stem


def _describe_renamed(names: Mapping[str, str], videos: Mapping[str, Video]) -> list[str]:
    """Return a line on the videos whose names are not those of their files."""
    renamed = [(v, n) for v, n in names.items() if n != _file_of(v, videos)]
    if not renamed:
        return []
    (video_id, name), count = renamed[0], len(renamed)
    return [f"{count} videos need files of other names, such as {name!r} for {video_id!r}"]
