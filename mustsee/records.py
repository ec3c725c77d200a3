"""The records that every stage reads and writes: one video, one clip, one question.

Records are frozen; a stage returns a changed copy (`dataclasses.replace`). Times are seconds from
the start of the video. The Arrow schema of every output is derived from these annotations by
`mustsee.schemas`, so a field is declared once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

Float32 = Annotated[float, "float32"]


@dataclass(frozen=True)
class Span:
    """A stretch of time, `0 <= start <= end`, in seconds."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class Word:
    start: float
    end: float
    word: str
    score: float


@dataclass(frozen=True, kw_only=True)
class Line:
    """One transcript line: a subtitle cue or one stretch of recognised speech. `turn`: whether
    somebody else begins to speak here than in the line before, as a dash in a subtitle says.
    """

    start: float
    end: float
    text: str
    speaker: str | None = None
    turn: bool = False
    words: tuple[Word, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Keyframe:
    """A picture kept by `look` for the captioners: a small JPEG of the frame shown at `time`, from
    shot number `shot`.
    """

    time: float
    shot: int
    jpeg: bytes


@dataclass(frozen=True, kw_only=True)
class Face:
    """A frontal face; the box is in shares of the picture's width and height (0 to 1), origin top
    left.
    """

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What was measured on one frame of the 1 fps sampling.

    `descriptor`: a small appearance vector (see `mustsee.media.descriptors`); `brightness` 0 to 1;
    `motion` is the mean absolute luma difference to the sampled frame before, 0 to 1; `faces` is
    empty when none was seen, null when none was looked for.
    """

    time: float
    brightness: Float32
    motion: Float32
    descriptor: tuple[Float32, ...]
    faces: tuple[Face, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class ScreenText:
    """A line of words read on the screen (OCR): from `time` to `end` (null: seen only once), looked
    at once a second; `score` 0 to 1; `top`: its upper edge, in shares of the picture's height.
    """

    time: float
    end: float | None = None
    text: str
    score: float
    top: Float32 = 0.0

    def at(self, time: float) -> bool:
        """Whether it is read in a picture of that time, as near as looks once a second can tell."""
        return self.time - 0.5 <= time <= (self.end or self.time) + 0.5


@dataclass(frozen=True)
class Caption:
    """One sentence about the frame shown at `time`."""

    time: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One topic of the video (Neptune, C.2.2), with its dense caption and what the pictures say in
    its support. `words_cut`: how many words of the dense caption were over the limit, and left out.
    """

    start: float
    end: float
    topic: str
    dense_caption: str
    visual_support: str = ""
    words_cut: int = 0


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What one filter run said of a question: which model, which seed, the reply itself, and what
    was made of it.

    `correct` is null when the reply could not be parsed; `passed` is null when this run alone
    decides nothing.
    """

    filter: str
    model: str
    seed: int = 0
    prompt: str = ""
    reply: str = ""
    correct: bool | None = None
    passed: bool | None = None
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Which model, prompts (hash) and source revision made a question."""

    llm: str
    prompts: str
    git: str = ""


@dataclass(frozen=True, kw_only=True)
class Repair:
    """What was mended on a question: its "wording" (question, answer or options) or its "evidence",
    why, by which model, and what it was before (JSON).
    """

    kind: str
    reason: str
    by: str
    before: str


@dataclass(frozen=True, kw_only=True)
class Step:
    """What is seen or heard from `start` to `end`."""

    start: float
    end: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Trace:
    """How one who watches comes to an answer: the steps, and why they answer the question."""

    steps: tuple[Step, ...]
    conclusion: str


UNSEEN = "narrations:"  # begins the address of a narrated video of which no file is known
UNVERIFIED = "_unverified"  # ends the metric of a filter that could tell nothing
OPEN = "open"  # how an open-ended twin is related to its sibling


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question with its answer among its options (multiple choice), or without options
    (open-ended: `options` empty).

    `answer_index` counts from 0 and is null when the answer is not given or not among the options.
    `variants`: answers that are as good as `answer`. `sibling_of`: the question that this one was
    made from, and `relation` how. `group`: of those on one fact, the id of the first.
    """

    question_id: str
    video_id: str
    recipe: str
    question: str
    question_type: str
    options: tuple[str, ...] = ()
    answer_index: int | None = None
    answer: str = ""
    rationale: str | None = None
    scoring_points: tuple[str, ...] = ()  # of an open-ended question (MLVU sub-scene captioning)
    evidence: tuple[Span, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    drop: str | None = None
    subsets: tuple[str, ...] = ()
    provenance: Provenance | None = None
    repairs: tuple[Repair, ...] = ()
    variants: tuple[str, ...] = ()
    sibling_of: str | None = None
    relation: str | None = None
    group: str | None = None
    trace: Trace | None = None

    @property
    def references(self) -> tuple[str, ...]:
        """The answer, and those that are as good."""
        return (self.answer, *self.variants)

    @property
    def earlier_verdicts(self) -> int:
        """How many of the verdicts, from the first, are about an earlier wording."""
        rewordings = [r for r in self.repairs if r.kind == "wording"]
        return int(json.loads(rewordings[-1].before)["verdicts"]) if rewordings else 0

    @property
    def unverified_by(self) -> tuple[str, ...]:
        """The filters that could tell nothing of it (`metrics.<filter>_unverified`)."""
        return tuple(k.removesuffix(UNVERIFIED) for k in self.metrics if k.endswith(UNVERIFIED))


@dataclass(frozen=True, kw_only=True)
class SceneText:
    """A clip's stretch of its movie's audio description: `lines` with the clip's times, and for
    each the probability that the narrator speaks it (else it is dialogue).

    `start`, `end`: where the clip's speech lies in the description; `rate`: description seconds per
    clip second; `score`, `head`, `tail`: how sure that is (`mustsee.align.place`).
    """

    lines: tuple[Line, ...]
    visual: tuple[Float32, ...]
    start: float
    end: float
    rate: float
    score: float
    head: float
    tail: float


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Why a row could not be processed: the stage, the error's type, its message, and how often it
    was tried.
    """

    stage: str
    error: str
    message: str
    attempts: int = 1


@dataclass(frozen=True, kw_only=True)
class Video:
    """One row: a video, or (with `start` and `end`) a clip of one. Times count from the beginning
    of the video at `uri`, of a clip too; its `duration` is its own.

    Columns are grouped by the stage that writes them. A null is "not known (yet)", an empty list is
    "looked for, none".
    """

    # read
    video_id: str
    uri: str
    size: int | None = None
    modified: str | None = None
    title: str | None = None
    views: int | None = None
    published: str | None = None
    tags: tuple[str, ...] = ()
    license: str | None = None  # of the video, in the words of the table
    source_url: str | None = None  # where the video is from
    subtitles: str | None = None
    subtitles_digest: str | None = None
    movie_name: str | None = None
    year: int | None = None
    genre: tuple[str, ...] = ()
    split: str | None = None  # train or test: all clips of a movie are on one side
    source: str | None = None  # of a clip: the video_id of the video that it was cut from
    start: float | None = None
    end: float | None = None
    plan: str | None = None  # of a synthesised video: JSON of its mustsee.synth.plan.InsertionPlan
    # probe
    digest: str | None = None
    duration: float | None = None
    fps: float | None = None
    width: int | None = None
    height: int | None = None
    has_audio: bool | None = None
    has_video: bool | None = None
    # look
    shots: tuple[Span, ...] | None = None
    keyframes: tuple[Keyframe, ...] | None = None
    frames: tuple[Frame, ...] | None = None
    texts: tuple[ScreenText, ...] | None = None
    # hear
    lines: tuple[Line, ...] | None = None
    language: str | None = None
    transcribed_by: str | None = None
    # caption, people, embed
    captions: tuple[Caption, ...] | None = None
    perceived_age: str | None = None  # Neptune: a model's impression, for diversity
    perceived_gender: str | None = None
    perceived_by: str | None = None
    embedding: tuple[Float32, ...] | None = None
    cluster: int | None = None
    # ask, vet
    scene: SceneText | None = None  # CinePile: written by align
    segments: tuple[Segment, ...] | None = None
    questions: tuple[Question, ...] | None = None
    unasked: str | None = None  # why no question was made of it
    # kept by the house
    drop: str | None = None
    problem: Problem | None = None
    lineage: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def transcript_source(self) -> str:
        """What transcribed the row, or why it has no line: "no sound", "nothing recognised"; empty
        where `hear` did not run.
        """
        if self.transcribed_by or "hear" not in self.lineage:
            return self.transcribed_by or ""
        if self.has_audio is False:
            return "no sound"
        marked = f": marked {self.language!r}" if self.language else ""
        return f"nothing recognised{marked}"

    @property
    def until(self) -> float | None:
        """Where the row ends in its video, in seconds; null where that is not known."""
        return self.end if self.duration is None else (self.start or 0.0) + self.duration
