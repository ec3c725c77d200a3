"""A dataset for FiftyOne: `data/` with the videos, and `labels.json`, a bar on the play bar for
each evidence span of a question and for each fact that a look found true.

    fiftyone.Dataset.from_dir(dataset_dir=O, label_field="spans",
                              dataset_type=fiftyone.types.FiftyOneTemporalDetectionDataset)

The layout is that of FiftyOne's documentation ("FiftyOneTemporalDetectionDataset", Loading datasets
from disk): `classes`, and `labels` with a list for each video, named as its file without the
ending; `label` is a place in `classes`, `timestamps` are seconds of the video file, `attributes`
become fields of the label. Its other layout of its own, "FiftyOneDataset", is the serialisation of
its database, which differs from version to version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from mustsee.errors import UserError
from mustsee.files.folders import write_json
from mustsee.layouts import video_files
from mustsee.layouts.reading import Questions, kept_questions
from mustsee.layouts.reading import facts as without_results
from mustsee.records import Fact, Question, Span, Video

FILE, DATA = "labels.json", "data"
QUESTION, FACT = "question: ", "fact: "  # beginnings of classes


def write(
    questions: Questions,
    path: str | Path,
    rows: Iterable[Video] = (),
    *,
    videos: str = "none",
    facts: bool = True,
) -> str:
    """Write the kept questions with evidence, and with `facts` the facts of their videos, to
    `path/labels.json`; return a line on what is in it, and on what is left out.

    `rows` are the videos; `videos`, one of `video_files.WAYS`, says whether to put their files into
    `path/data`. Raises UserError if no question has evidence, and for two files of one name.
    """
    chosen, folder = kept_questions(questions), Path(path)
    asked_ids = {question.video_id for question in chosen}
    known, seen_facts = dict[str, Video](), dict[str, list[Fact]]()
    for row in rows:
        if row.video_id in asked_ids:
            known[row.video_id] = without_results(row)
            seen = [f for f in row.facts or () if f.drop is None and f.seen]
            seen_facts[row.video_id] = seen if facts else []
    names, labels = _names(asked_ids, known), _Labels()
    with_evidence = 0
    for question in chosen:
        labels.add(names[question.video_id])
        if question.evidence:
            with_evidence += 1
            video = known.get(question.video_id)
            labels.add(
                names[question.video_id], *_describe_question(question), question.evidence, video
            )
    if not with_evidence:
        raise UserError("layout=fiftyone: no question has evidence spans to show on a play bar")
    for video_id, of_video in seen_facts.items():
        for fact in of_video:
            labels.add(names[video_id], *_describe_fact(fact), fact.seen, known[video_id])
    write_json(folder / FILE, labels.plain(), indent=1)
    files = video_files.include(known.values(), folder, videos, into=DATA)
    without_file = len(names) - sum(video_files.file_name(v) is not None for v in known.values())
    left = sum(1 for _ in chosen) - with_evidence
    said = [
        f"{with_evidence} questions and {sum(map(len, seen_facts.values()))} facts have bars on "
        f"{len(set(names.values()))} videos",
        f"{left} questions have no evidence, so no bar" if left else "",
        video_files.describe_included(len(files), videos, without_file=without_file, into=DATA)
        if files and videos != "none"
        else video_files.where_to_put(files, DATA),
    ]
    return "; ".join(filter(None, said))


def _names(video_ids: Iterable[str], videos: Mapping[str, Video]) -> dict[str, str]:
    """Return the name of each video's file without the ending, which the clips of one file share.
    Raises UserError if two files have one name.
    """
    names, uris = dict[str, str](), dict[str, str]()
    for video_id in sorted(video_ids):
        video = videos.get(video_id)
        file = (video and video_files.file_name(video)) or video_id
        uri = (video and video.uri) or video_id
        names[video_id] = name = PurePosixPath(file).stem
        if uris.setdefault(name, uri) != uri:
            raise UserError(
                f"{uris[name]!r} and {uri!r} would both be named {name!r}, and FiftyOne finds "
                "videos by their names without the ending: rename one of the files"
            )
    return names


class _Labels:
    """The content of `labels.json`."""

    def __init__(self) -> None:
        self._classes = dict[str, int]()
        self._bars = dict[str, list[dict[str, Any]]]()

    def add(
        self,
        name: str,
        label: str = "",
        attributes: Mapping[str, Any] | None = None,
        spans: Iterable[Span] = (),
        video: Video | None = None,
    ) -> None:
        """Add a video, and a bar for each span."""
        bars = self._bars.setdefault(name, [])
        for span in spans:
            ends = [round(span.start, 3), round(_end_within(span, video), 3)]
            place = self._classes.setdefault(label, len(self._classes))
            bars.append({"label": place, "timestamps": ends, "attributes": attributes or {}})

    def plain(self) -> dict[str, Any]:
        bars = {name: sorted(own, key=lambda bar: bar["timestamps"])
                for name, own in self._bars.items()}  # fmt: skip
        return {"classes": list(self._classes), "labels": bars}


def _end_within(span: Span, video: Video | None) -> float:
    """Return the end of a span, at the latest that of the video file where its length is known."""
    if video is None or video.start is not None or video.duration is None:
        return span.end
    return max(span.start, min(span.end, video.duration))


def _describe_question(question: Question) -> tuple[str, Mapping[str, Any]]:
    attributes: dict[str, Any] = {
        "question_id": question.question_id,
        "question": question.question,
        "answer": question.answer,
    }
    if question.options:
        attributes["options"] = list(question.options)
    return f"{QUESTION}{question.skill_or_type or 'no type'}", attributes


def _describe_fact(fact: Fact) -> tuple[str, Mapping[str, Any]]:
    attributes = {"fact_id": fact.fact_id, "phrase": fact.phrase}
    return f"{FACT}{fact.kind}", attributes | ({"of": fact.of} if fact.of else {})
