"""The questions and videos that the report's page opens when somebody looks: packed, because ten
thousand questions with the replies of every filter are some 60 MB of text.

What is shown of a question is written once, by `assets/question.html.j2`; the page's script finds
it, unpacks it and puts it in its place. Frames are shared by the questions of a video, and sampled
where there are many videos, so that the page stays one file that opens at once.
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

from mustsee.calls.llm import is_rules
from mustsee.records import Keyframe, Question, Span, Verdict, Video
from mustsee.run.best import best, keyframes, of_evidence
from mustsee.run.tables import Tables
from mustsee.store import Store

MAX_QUESTIONS = 10_000
MAX_VIDEOS = 100  # with a timeline and a transcript
MAX_FRAMES = 1600  # on the page: about 10 MB
FRAMES_OF_VIDEO = (8, 40)  # of a video at least, where the page shows any of it, and at most
PER_QUESTION = 6  # frames
FRAME_PIXELS = 256  # pixels
PER_PACK = 50
SHOWN = (  # of a video
    "title", "start", "duration", "width", "height", "shots", "lines", "captions", "segments",
    "has_audio", "language", "transcribed_by", "unasked", "drop", "problem", "lineage",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PageFrame:
    """A picture on the page. `src`: its data address; without one the script looks it up by the
    number of its video and its time.
    """

    video: int
    time: float
    src: str = ""

    @property
    def name(self) -> str:
        return _name(self.time)


@dataclass(frozen=True, kw_only=True)
class FilterRuling:
    """What a filter said of a question. `passed` is null where it only tells, or could not tell;
    `earlier`: of a wording that the question had before.
    """

    name: str
    passed: bool | None
    verdicts: Sequence[tuple[Verdict, Mapping[str, Any]]]
    earlier: bool = False

    @property
    def by_rules(self) -> bool:
        """Whether rules stood in for a language model in all of its runs."""
        return all(is_rules(verdict.model) for verdict, _ in self.verdicts)

    @property
    def runs(self) -> list[tuple[str, int, int]]:
        """By what the model was shown (where that is told): runs that were right, and all."""
        found: dict[str, list[bool]] = {}
        for verdict, told in self.verdicts:
            if verdict.correct is not None:
                shown = str(told.get("condition", "")).replace("_", " ")
                found.setdefault(shown, []).append(verdict.correct)
        return [(shown, sum(right), len(right)) for shown, right in found.items()]


@dataclass(frozen=True, kw_only=True)
class PageQuestion:
    """One question on the page."""

    question: Question
    video_number: int
    video: Video
    frames: Sequence[PageFrame]
    rulings: Sequence[FilterRuling]
    repairs: Sequence[tuple[str, str, str, str]]  # kind, reason, by whom, what it was before


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
    """All that the page holds. `frames`: by video, time -> JPEG in base64."""

    shown: Sequence[PageQuestion]
    panels: Sequence[Panel]
    video_names: Sequence[str]
    frames: Mapping[int, Mapping[str, str]]
    titles: Mapping[str, str] = field(default_factory=dict[str, str])

    def index(self) -> dict[str, Any]:
        """What the script filters and searches by: names once, rows by their numbers."""
        types = _numbers(s.question.question_type for s in self.shown)
        subsets = _numbers(chain.from_iterable(s.question.subsets for s in self.shown))
        fates = _numbers((s.question.drop or "").partition(":")[0] for s in self.shown)
        rows = [
            [
                s.question.question_id,
                s.question.question,
                list(s.question.options) or [s.question.answer],
                types[s.question.question_type],
                s.video_number,
                [subsets[name] for name in s.question.subsets],
                fates[(s.question.drop or "").partition(":")[0]],
                int(bool(s.question.repairs)),
                int(bool(s.question.unverified_by)),
                _name(s.frames[0].time) if s.frames else None,
            ]
            for s in self.shown
        ]
        video_names = [[name, self.titles.get(name) or name] for name in self.video_names]
        names = {"types": list(types), "subsets": list(subsets), "fates": list(fates)}
        return {**names, "video_names": video_names, "rows": rows}

    def with_pictures(self, shown: PageQuestion) -> PageQuestion:
        """The question with its frames as data addresses, for readers without scripts."""
        frames = [
            PageFrame(video=f.video, time=f.time, src=_address(self.frames[f.video][_name(f.time)]))
            for f in shown.frames
        ]
        return replace(shown, frames=frames)


def browser(tables: Tables, store: Store | None) -> Browser:
    """The best questions first, then all in the order of their videos, dropped ones included."""
    panels = tables.videos_among(MAX_VIDEOS, *SHOWN)
    first = best(tables.questions())
    taken = {q.question_id for q in first}
    rest = (q for q in tables.questions() if q.question_id not in taken)
    asked = [*first, *islice(rest, MAX_QUESTIONS - len(first))]
    names = dict.fromkeys([*(v.video_id for v in panels), *(q.video_id for q in asked)])
    numbers = {name: number for number, name in enumerate(names)}
    columns = ("title", "start", "duration", "lineage")
    videos = {v.video_id: v for v in tables.videos(*columns) if v.video_id in numbers}
    by_video: dict[str, list[Question]] = {name: [] for name in numbers}
    for question in asked:
        by_video[question.video_id].append(question)
    pictures = dict(_pictures(by_video, videos, numbers, store)) if store is not None else {}
    found = {n: p.of_video for n, p in pictures.items()}
    return Browser(
        shown=[
            PageQuestion(
                question=q,
                video_number=numbers[q.video_id],
                video=videos[q.video_id],
                frames=_frames(pictures.get(numbers[q.video_id]), q, numbers[q.video_id]),
                rulings=rulings(q),
                repairs=[(r.kind, r.reason, r.by, _before(r.before)) for r in q.repairs],
            )
            for q in asked
        ],
        panels=[
            Panel(
                number=numbers[v.video_id],
                video=v,
                questions=by_video[v.video_id],
                frames=_spread(found.get(numbers[v.video_id], {}), numbers[v.video_id]),
            )
            for v in panels
        ],
        video_names=list(numbers),
        frames=found,
        titles={v.video_id: v.title for v in videos.values() if v.title},
    )


def rulings(question: Question) -> list[FilterRuling]:
    """The verdicts by filter, those on the wording that it has now first."""
    since = question.earlier_verdicts
    found: list[FilterRuling] = []
    for part, earlier in ((question.verdicts[since:], False), (question.verdicts[:since], True)):
        for name in dict.fromkeys(v.filter for v in part):
            some = [(v, _detail(v)) for v in part if v.filter == name]
            told = [v.passed for v, _ in some if v.passed is not None]
            passed = question.metrics.get(f"{name}_passed")
            if earlier or name in question.unverified_by:
                passed = None
            elif passed is None and told:
                passed = all(told)
            ruled = None if passed is None else bool(passed)
            found.append(FilterRuling(name=name, passed=ruled, verdicts=some, earlier=earlier))
    return found


def _detail(verdict: Verdict) -> dict[str, Any]:
    """What the filter noted, where it noted it as JSON; else as `note`."""
    try:
        told = json.loads(verdict.detail)
    except ValueError:
        return {"note": verdict.detail}
    return told if isinstance(told, dict) else {"note": verdict.detail}


def _before(text: str) -> str:
    """What a repair mended, in words: a wording, or the spans of the evidence."""
    try:
        match json.loads(text):
            case {"question": asked, **rest}:
                listed = rest.get("options") or [rest.get("answer", "")]
                return f"{asked} ({'; '.join(map(str, listed))})"
            case list(spans):
                return ", ".join(f"{a:g} to {b:g} s" for a, b in spans) or "none"
            case _:
                return text
    except (ValueError, TypeError):  # of a filter of somebody's own
        return text


@dataclass(frozen=True)
class _Video:
    """What the page keeps of a video's frames, and which of them each question would show."""

    of_video: Mapping[str, str]
    wanted: Mapping[str, Sequence[Keyframe]]


def _pictures(
    by_video: Mapping[str, Sequence[Question]],
    videos: Mapping[str, Video],
    numbers: Mapping[str, int],
    store: Store,
) -> Iterator[tuple[int, _Video]]:
    """By video its frames: first one of each question's evidence, then the second of each, and so
    on, then some of all the video.
    """
    least, most = FRAMES_OF_VIDEO
    some = list(by_video)[: MAX_FRAMES // least]
    each = min(most, MAX_FRAMES // max(1, len(some)))
    for name in some:
        every = keyframes(videos[name], store)
        wanted = {q.question_id: of_evidence(q, every, PER_QUESTION) for q in by_video[name]}
        turns = chain.from_iterable(zip_longest(*wanted.values()))
        spread = every[:: max(1, len(every) // least)]
        kept = {k.time: k for k in chain(filter(None, turns), spread)}
        yield (
            numbers[name],
            _Video({_name(t): _small(kept[t].jpeg) for t in list(kept)[:each]}, wanted),
        )


def _frames(video: _Video | None, question: Question, number: int) -> list[PageFrame]:
    if video is None:
        return []
    times = [k.time for k in video.wanted[question.question_id] if _name(k.time) in video.of_video]
    return [PageFrame(video=number, time=time) for time in times]


def _spread(kept: Mapping[str, str], number: int, most: int = 10) -> list[PageFrame]:
    times = sorted(map(float, kept))
    return [PageFrame(video=number, time=t) for t in times[:: max(1, -(-len(times) // most))]]


def _small(jpeg: bytes) -> str:
    """The picture in base64, at most LONGEST pixels on a side."""
    with Image.open(io.BytesIO(jpeg)) as image:
        if max(image.size) > FRAME_PIXELS:
            image.draft("RGB", (FRAME_PIXELS, FRAME_PIXELS))
            image.thumbnail((FRAME_PIXELS, FRAME_PIXELS))
            held = io.BytesIO()
            image.convert("RGB").save(held, "JPEG", quality=72)
            jpeg = held.getvalue()
    return base64.b64encode(jpeg).decode()


def _name(time: float) -> str:
    return f"{time:.3f}"


def _address(picture: str) -> str:
    return "data:image/jpeg;base64," + picture


def _numbers(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(sorted(set(names)))}


def place_span(span: Span, begin: float, length: float) -> tuple[float, float]:
    """Where a stretch lies in a video, and how long it is, in hundredths of the video; never beyond
    its end.
    """
    left, right = (min(100.0, max(0.0, 100 * (t - begin) / length)) for t in (span.start, span.end))
    return left, right - left


def pack_json(value: Any) -> str:
    """JSON, compressed, in base64: no letter of it means anything to a reader of HTML."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()


def packs(items: Sequence[Any], written: Callable[[Any], str]) -> Iterator[str]:
    """The items as HTML, PER_PACK of them in each pack."""
    for start in range(0, len(items), PER_PACK):
        yield pack_json([written(item) for item in items[start : start + PER_PACK]])
