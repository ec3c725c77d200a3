"""The questions and videos of the report's page, compressed until a reader opens them.

Ten thousand questions with the replies of every filter are some 60 MB of text. Each is rendered by
`assets/question.html.j2` and packed; the page's script unpacks and shows it. The questions of a
video share its frames, and frames are sampled where there are many videos, so that the page stays
one file that opens at once.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, zip_longest
from typing import Any

from PIL import Image

from mustsee.files.store import Store
from mustsee.records import Keyframe, Question, Span, Verdict, Video, is_rules
from mustsee.run.best import best, keyframes, of_evidence
from mustsee.run.tables import Tables
from mustsee.verify.guess.counts import SEES
from mustsee.verify.reasons import failure_reasons, undecided_reasons

MAX_QUESTIONS = 10_000
MAX_VIDEOS = 100  # videos with a timeline and a transcript
MAX_FRAMES = 1600  # frames on the page, about 10 MB
FRAMES_OF_VIDEO = (8, 40)  # least and most frames of a video that has any on the page
FRAMES_PER_QUESTION = 6
FRAME_PIXELS = 256  # pixels of a frame's longer side
PER_PACK = 50  # questions or videos that are compressed together
VIDEO_COLUMNS = (
    "title", "start", "duration", "width", "height", "shots", "lines", "captions", "segments",
    "has_audio", "language", "transcribed_by", "unheard", "unasked", "drop", "problem", "lineage",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PageFrame:
    """A frame on the page.

    `src`: its data address. Without one, the script finds the frame by its video's number and its
    time.
    """

    video: int
    time: float
    src: str = ""

    @property
    def name(self) -> str:
        return _name(self.time)


@dataclass(frozen=True, kw_only=True)
class FilterRuling:
    """The result of a filter for a question.

    `passed`: None for a filter that only measures, or has no usable reply.
    `earlier`: the result is for an earlier wording of the question.
    """

    name: str
    passed: bool | None
    verdicts: Sequence[tuple[Verdict, Mapping[str, Any]]]
    earlier: bool = False

    @property
    def by_rules(self) -> bool:
        """Whether rules answered in place of a language model in all of its runs."""
        return all(is_rules(verdict.model) for verdict, _ in self.verdicts)

    @property
    def is_only_guessed(self) -> bool:
        """Whether guesses were right in all runs of a filter that lets every question pass."""
        right = [verdict.correct for verdict, _ in self.verdicts]
        return self.name in SEES and self.passed is True and bool(right) and all(right)

    @property
    def runs(self) -> list[tuple[str, int, int]]:
        """The condition (empty if there is none), right runs, and all runs, by condition."""
        by_condition: dict[str, list[bool]] = {}
        for verdict, detail in self.verdicts:
            if verdict.correct is not None:
                condition = str(detail.get("condition", "")).replace("_", " ")
                by_condition.setdefault(condition, []).append(verdict.correct)
        return [(name, sum(right), len(right)) for name, right in by_condition.items()]


@dataclass(frozen=True, kw_only=True)
class PageQuestion:
    """One question on the page."""

    question: Question
    video_number: int
    video: Video
    frames: Sequence[PageFrame]
    rulings: Sequence[FilterRuling]
    repairs: Sequence[tuple[str, str, str, str]]  # kind, reason, repairer, earlier content
    failures: Mapping[str, str]  # filter -> why it did not pass, or was dropped
    undecided: Mapping[str, str]  # filter -> why it reached no verdict


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One video on the page, with its questions."""

    number: int
    video: Video
    questions: Sequence[Question]
    frames: Sequence[PageFrame]

    @property
    def kept_count(self) -> int:
        return sum(q.drop is None for q in self.questions)


@dataclass(frozen=True, kw_only=True)
class Browser:
    """The content of the page. `frames`: video number -> time -> JPEG in base64."""

    questions: Sequence[PageQuestion]
    panels: Sequence[Panel]
    video_names: Sequence[str]
    frames: Mapping[int, Mapping[str, str]]
    titles: Mapping[str, str] = field(default_factory=dict[str, str])

    def index(self) -> dict[str, Any]:
        """Return the data for search and filters; rows have the numbers of listed names."""
        types = _numbers(s.question.skill_or_type for s in self.questions)
        subsets = _numbers(chain.from_iterable(s.question.subsets for s in self.questions))
        fates = _numbers(s.question.dropped_by for s in self.questions)
        rows = [
            [
                s.question.question_id,
                s.question.question,
                list(s.question.options) or [s.question.answer],
                types[s.question.skill_or_type],
                s.video_number,
                [subsets[name] for name in s.question.subsets],
                fates[s.question.dropped_by],
                int(bool(s.question.repairs)),
                int(bool(s.question.unverified_by)),
                _name(s.frames[0].time) if s.frames else None,
            ]
            for s in self.questions
        ]
        video_names = [[name, self.titles.get(name) or name] for name in self.video_names]
        names = {"types": list(types), "subsets": list(subsets), "fates": list(fates)}
        return {**names, "video_names": video_names, "rows": rows}

    def with_frames(self, item: PageQuestion) -> PageQuestion:
        """Return the question with frames as data addresses, for readers without scripts."""
        frames = [
            PageFrame(video=f.video, time=f.time, src=_address(self.frames[f.video][_name(f.time)]))
            for f in item.frames
        ]
        return replace(item, frames=frames)


def browser(tables: Tables, store: Store | None, subset: str | None = None) -> Browser:
    """Return the page's content: the best questions, then all others in the order of their videos.
    `subset`: of the questions that passed every filter.

    Dropped questions are included. Without a store there are no frames.
    """
    panels = tables.videos_among(MAX_VIDEOS, *VIDEO_COLUMNS)
    first = best(tables.questions(), subset=subset)
    ids_of_first = {q.question_id for q in first}
    rest = (q for q in tables.questions() if q.question_id not in ids_of_first)
    questions = [*first, *islice(rest, MAX_QUESTIONS - len(first))]
    names = dict.fromkeys([*(v.video_id for v in panels), *(q.video_id for q in questions)])
    numbers = {name: number for number, name in enumerate(names)}
    columns = ("title", "start", "duration", "lineage")
    videos = {v.video_id: v for v in tables.videos(*columns) if v.video_id in numbers}
    by_video: dict[str, list[Question]] = {name: [] for name in numbers}
    for question in questions:
        by_video[question.video_id].append(question)
    frames = dict(_frames_by_video(by_video, videos, numbers, store)) if store is not None else {}
    jpegs = {number: each.of_video for number, each in frames.items()}
    return Browser(
        questions=[
            PageQuestion(
                question=q,
                video_number=numbers[q.video_id],
                video=videos[q.video_id],
                frames=_question_frames(frames.get(numbers[q.video_id]), q, numbers[q.video_id]),
                rulings=rulings(q),
                repairs=[(r.kind, r.reason, r.by, _before_repair(r.before)) for r in q.repairs],
                failures=failure_reasons(q),
                undecided=undecided_reasons(q),
            )
            for q in questions
        ],
        panels=[
            Panel(
                number=numbers[v.video_id],
                video=v,
                questions=by_video[v.video_id],
                frames=_panel_frames(jpegs.get(numbers[v.video_id], {}), numbers[v.video_id]),
            )
            for v in panels
        ],
        video_names=list(numbers),
        frames=jpegs,
        titles={v.video_id: v.title for v in videos.values() if v.title},
    )


def rulings(question: Question) -> list[FilterRuling]:
    """Return the results of filters, those for the question's current wording first."""
    since = question.earlier_verdicts
    results: list[FilterRuling] = []
    current, former = question.verdicts[since:], question.verdicts[:since]
    for verdicts, earlier in ((current, False), (former, True)):
        for name in dict.fromkeys(v.filter for v in verdicts):
            of_filter = [(v, _detail(v)) for v in verdicts if v.filter == name]
            decided = [v.passed for v, _ in of_filter if v.passed is not None]
            passed = question.filter_results.get(name)
            if earlier or name in question.unverified_by:
                passed = None
            elif passed is None and decided:
                passed = all(decided)
            results.append(
                FilterRuling(
                    name=name,
                    passed=passed,
                    verdicts=of_filter,
                    earlier=earlier,
                )
            )
    return results


def _detail(verdict: Verdict) -> dict[str, Any]:
    """Return the detail of a verdict as an object; a text becomes its `note`."""
    try:
        detail = json.loads(verdict.detail)
    except ValueError:
        return {"note": verdict.detail}
    return detail if isinstance(detail, dict) else {"note": verdict.detail}


def _before_repair(text: str) -> str:
    """Format the content that a repair replaced: a wording, or the spans of the evidence."""
    try:
        match json.loads(text):
            case {"question": wording, **rest}:
                answers = rest.get("options") or [rest.get("answer", "")]
                return f"{wording} ({'; '.join(map(str, answers))})"
            case list(spans):
                return ", ".join(f"{a:g} to {b:g} s" for a, b in spans) or "none"
            case _:
                return text
    except (ValueError, TypeError):  # a user's own filter may write another form
        return text


@dataclass(frozen=True)
class _VideoFrames:
    """The frames of a video on the page (time -> base64), and those that each question needs."""

    of_video: Mapping[str, str]
    of_question: Mapping[str, Sequence[Keyframe]]


def _frames_by_video(
    by_video: Mapping[str, Sequence[Question]],
    videos: Mapping[str, Video],
    numbers: Mapping[str, int],
    store: Store,
) -> Iterator[tuple[int, _VideoFrames]]:
    """Yield the number and frames of each video.

    The first frames of all questions' evidence are taken before the second ones, and so on, and
    then frames of the whole video.
    """
    least, most = FRAMES_OF_VIDEO
    names = list(by_video)[: MAX_FRAMES // least]
    frames_each = min(most, MAX_FRAMES // max(1, len(names)))
    for name in names:
        every = keyframes(videos[name], store)
        of_question = {
            q.question_id: of_evidence(q, every, FRAMES_PER_QUESTION) for q in by_video[name]
        }
        in_turn = chain.from_iterable(zip_longest(*of_question.values()))
        spread = every[:: max(1, len(every) // least)]
        by_time = {k.time: k for k in chain(filter(None, in_turn), spread)}
        chosen = list(by_time)[:frames_each]
        of_video = {_name(time): _small_base64(by_time[time].jpeg) for time in chosen}
        yield numbers[name], _VideoFrames(of_video, of_question)


def _question_frames(
    video: _VideoFrames | None, question: Question, number: int
) -> list[PageFrame]:
    if video is None:
        return []
    needed = video.of_question[question.question_id]
    times = [k.time for k in needed if _name(k.time) in video.of_video]
    return [PageFrame(video=number, time=time) for time in times]


def _panel_frames(jpegs: Mapping[str, str], number: int, most: int = 10) -> list[PageFrame]:
    times = sorted(map(float, jpegs))
    return [PageFrame(video=number, time=t) for t in times[:: max(1, -(-len(times) // most))]]


def _small_base64(jpeg: bytes) -> str:
    """Return the frame in base64, resized to at most `FRAME_PIXELS`."""
    with Image.open(io.BytesIO(jpeg)) as image:
        if max(image.size) > FRAME_PIXELS:
            image.draft("RGB", (FRAME_PIXELS, FRAME_PIXELS))
            image.thumbnail((FRAME_PIXELS, FRAME_PIXELS))
            buffer = io.BytesIO()
            image.convert("RGB").save(buffer, "JPEG", quality=72)
            jpeg = buffer.getvalue()
    return base64.b64encode(jpeg).decode()


def _name(time: float) -> str:
    return f"{time:.3f}"


def _address(jpeg_base64: str) -> str:
    return "data:image/jpeg;base64," + jpeg_base64


def _numbers(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(sorted(set(names)))}


def place_span(span: Span, begin: float, length: float) -> tuple[float, float]:
    """Return the position and length of a span within a video, in percent."""
    left, right = (min(100.0, max(0.0, 100 * (t - begin) / length)) for t in (span.start, span.end))
    return left, right - left


def pack_json(value: Any) -> str:
    """Return the value as compressed JSON in base64, which needs no escaping in HTML."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()


def packs(items: Sequence[Any], render: Callable[[Any], str]) -> Iterator[str]:
    """Yield the items as HTML, `PER_PACK` of them in each pack."""
    for start in range(0, len(items), PER_PACK):
        yield pack_json([render(item) for item in items[start : start + PER_PACK]])
