"""The records that every stage reads and writes: one video, one clip, one question.

Records are frozen; a stage returns a changed copy (`dataclasses.replace`). Times are seconds from
the start of the video. The Arrow schema of every output is derived from these annotations by
`mustsee.files.schemas`, so a field is declared once.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

RULES = "offline"  # first word of the identity of rules that replace a model
UNTESTED = "Not tested against a language model."

Float32 = Annotated[float, "float32"]
K = TypeVar("K")
V = TypeVar("V")


def group_pairs(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return key -> its values, both in the order in which they come."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


@dataclass(frozen=True)
class Span:
    """A span of time in seconds, `0 <= start <= end`."""

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
    """One transcript line: a subtitle cue or a span of recognised speech. `turn`: whether the
    speaker changes at this line, as a dash in a subtitle shows.
    """

    start: float
    end: float
    text: str
    speaker: str | None = None
    turn: bool = False
    words: tuple[Word, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Keyframe:
    """A frame that `look` keeps for the captioners: a small JPEG of the frame at `time`, in shot
    number `shot`.
    """

    time: float
    shot: int
    jpeg: bytes


@dataclass(frozen=True, kw_only=True)
class ImageVector:
    """The vector of the keyframe at `time`, by a model of images."""

    time: float
    values: tuple[Float32, ...]


@dataclass(frozen=True, kw_only=True)
class Face:
    """A face. Its box is in shares of the frame's width and height (0 to 1), from the top left
    corner. `frontal`: whether it is turned to the camera.
    """

    x: float
    y: float
    width: float
    height: float
    frontal: bool = True


@dataclass(frozen=True, kw_only=True)
class Frame:
    """The measurements of one frame, sampled at 1 fps.

    `descriptor`: a small appearance vector (see `mustsee.media.samples`). `brightness`: 0 to 1.
    `motion`: mean absolute luma difference to the previous sampled frame, 0 to 1. `faces`: empty
    where no face was detected, null where face detection did not run.
    """

    time: float
    brightness: Float32
    motion: Float32
    descriptor: tuple[Float32, ...]
    faces: tuple[Face, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class ScreenText:
    """A line of on-screen text (OCR), read once a second.

    Seen from `time` to `end`; `end` is null where it was read once. `score`: 0 to 1. `top`: its
    upper edge, in shares of the frame's height.
    """

    time: float
    end: float | None = None
    text: str
    score: float
    top: Float32 = 0.0

    def at(self, time: float) -> bool:
        """Whether the text is visible at `time`, to within the half second of the sampling."""
        return self.time - 0.5 <= time <= (self.end or self.time) + 0.5


@dataclass(frozen=True, kw_only=True)
class ObjectBox:
    """Where an object is at `time`, in shares of the frame's width and height from the top left
    corner. `score`: 0 to 1, of EfficientDet.
    """

    time: float
    score: Float32
    x: Float32
    y: Float32
    width: Float32
    height: Float32


@dataclass(frozen=True, kw_only=True)
class SeenObject:
    """A thing or a person that two detectors agree on, from the first to the last of its
    `boxes`.

    `name`: of COCO's 80, such as "person" or "dog". `score`: of its surest box.
    """

    name: str
    start: float
    end: float
    score: Float32
    boxes: tuple[ObjectBox, ...]


@dataclass(frozen=True)
class Caption:
    """One sentence about the frame shown at `time`."""

    time: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One topic of the video (Neptune, C.2.2), with its dense caption.

    `visual_support`: the visual evidence for it, in words. `words_cut`: number of words of the
    dense caption that were over the limit and cut.
    """

    start: float
    end: float
    topic: str
    dense_caption: str
    visual_support: str = ""
    words_cut: int = 0


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One model's reply about a question in one filter, and its interpretation.

    `correct`: null where the reply could not be parsed. `passed`: null where this reply alone does
    not decide. `detail`: JSON.
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
    """The model, the prompts (hash) and the source revision that made a question."""

    llm: str
    prompts: str
    git: str = ""


@dataclass(frozen=True, kw_only=True)
class Repair:
    """One repair of a question.

    `kind`: "wording" (of the question, answer or options) or "evidence". `by`: the model.
    `before`: the repaired fields as they were (JSON). `filter`: the one that the wording did not
    pass; `fault`: what it found wrong, in one word (`mustsee.verify.filters`).
    """

    kind: str
    reason: str
    by: str
    before: str
    filter: str = ""
    fault: str = ""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a trace: what is seen or heard from `start` to `end`."""

    start: float
    end: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Trace:
    """How a viewer reaches the answer: the steps, and why they answer the question."""

    steps: tuple[Step, ...]
    conclusion: str


COUNTED = "counted"  # `state` of a point that counts in a score
GIVEN = "given"  # a reader without the video said it
UNREACHED = "unreached"  # a reader with the video did not say it


@dataclass(frozen=True, kw_only=True)
class Point:
    """A statement that a full answer to an open question makes, known to be right.

    `weight`: 1 to 3. `facts`: ids of the facts and claims that it rests on. `state`: "counted";
    "given" or "unreached" where it does not count in a score.
    """

    text: str
    weight: int = 1
    facts: tuple[str, ...] = ()
    state: str = COUNTED


UNSEEN = "narrations:"  # prefix of the `uri` of a narrated video without a file
AUDIO_ONLY = "audio_only"  # metric: share of raters who answer by sound alone
_PASSED, _UNVERIFIED, _GUESSED = "_passed", "_unverified", "_guessed"  # ends of names of metrics
OPEN = "open"  # `relation` of a question that is another one asked without its options
SET = "set"  # `relation` of the questions that share one list of options
PAIR = "pair"  # `relation` of two questions with opposite answers, which score together
WHEN = "when"  # `form` of a question whose answer is its evidence: when something is seen


def passed_metric(name: str) -> str:
    """Return the metric that says whether a question passed a filter."""
    return name + _PASSED


def unverified_metric(name: str) -> str:
    """Return the metric of a question on which a filter reached no verdict."""
    return name + _UNVERIFIED


def guessed_metric(name: str) -> str:
    """Return the metric with the right runs of a filter by guesses."""
    return name + _GUESSED


def agreement_metric(name: str) -> str:
    """Return the metric that says how often the runs of a filter by guesses agree."""
    return f"{name}_agreement"


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question with its answer among its options (multiple choice), or without options
    (open-ended: `options` empty).

    `answer_index`: from 0; null where the answer is unknown or not among the options. `variants`:
    answers equivalent to `answer`. `sibling_of`: id of the question that this one was made from.
    `relation`: how it was made from it; "set" for a question that shares its options with the
    others of its group, "pair" for one of two with opposite answers. `group`: id of the first
    question of a group, which score together. `form`: name of the form by which code composed it
    from facts. `points`: by which answers to an open question are graded; `contradictions`: wrong
    statements that cost. `skill`: what it asks for, such as "cause". `depth`: number of facts and
    claims that a full answer joins. `faults`: of each filter that it did not pass, what is wrong.
    `drop`: who dropped it, a colon, and the reason.
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
    form: str | None = None
    trace: Trace | None = None
    points: tuple[Point, ...] = ()
    contradictions: tuple[str, ...] = ()
    skill: str | None = None
    depth: int | None = None
    faults: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def skill_or_type(self) -> str:
        """What it asks for: its skill, if it is open, or its type."""
        return self.skill or self.question_type

    @property
    def asks_when(self) -> bool:
        """Whether its evidence is its answer: the spans in which something is seen."""
        return self.form == WHEN and not self.options

    @property
    def audio_only(self) -> bool | None:
        """Whether most raters say that sound alone answers it; null where none marked it."""
        share = self.metrics.get(AUDIO_ONLY)
        return None if share is None else share > 0.5

    @property
    def references(self) -> tuple[str, ...]:
        """The answer and its variants."""
        return (self.answer, *self.variants)

    @property
    def earlier_verdicts(self) -> int:
        """The number of verdicts, counted from the first, on an earlier wording."""
        rewordings = [r for r in self.repairs if r.kind == "wording"]
        return int(json.loads(rewordings[-1].before)["verdicts"]) if rewordings else 0

    @property
    def filter_results(self) -> Mapping[str, bool]:
        """The filters that reached a verdict on it, and whether it passed."""
        return {
            key.removesuffix(_PASSED): value == 1
            for key, value in self.metrics.items()
            if key.endswith(_PASSED)
        }

    @property
    def failed_filters(self) -> tuple[str, ...]:
        """The filters that it did not pass."""
        return tuple(name for name, passed in self.filter_results.items() if not passed)

    @property
    def unverified_by(self) -> tuple[str, ...]:
        """The filters that reached no verdict on it."""
        return tuple(k.removesuffix(_UNVERIFIED) for k in self.metrics if k.endswith(_UNVERIFIED))

    @property
    def right_guesses(self) -> float:
        """The right runs of all filters by guesses."""
        return sum(value for name, value in self.metrics.items() if name.endswith(_GUESSED))

    @property
    def dropped_by(self) -> str:
        """Who dropped it: a filter, an exam, a later decision; empty if it is kept."""
        return (self.drop or "").partition(":")[0]

    @property
    def drop_reason(self) -> str:
        """Why it was dropped, without who dropped it; empty if it is kept."""
        return (self.drop or "").partition(": ")[2]


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One atomic, timed statement about a video.

    `kind`: event, place, person, object, state, text, line, sound or cause. `phrase`: 3 to 9 words
    in the form of its kind, such as "pouring water into a metal cup". `spans`: where its `source`
    (a model, or the column that it was measured in) claims it. `of`: the phrase of the event that a
    cause explains, or of the person whose state or place it is. `seen`, `unseen`, `unsure`: moments
    at which a look found it true or false, or could not tell. `drop`: why it is not used.
    """

    fact_id: str
    kind: str
    phrase: str
    spans: tuple[Span, ...]
    source: str
    of: str = ""
    seen: tuple[Span, ...] = ()
    unseen: tuple[Span, ...] = ()
    unsure: tuple[Span, ...] = ()
    drop: str | None = None


@dataclass(frozen=True, kw_only=True)
class AlteredClaim:
    """A claim of which one thing was changed so that it is wrong.

    `change`: role, order, cause, purpose, object or outcome. `holds`: whether it holds in the
    video; null where looks did not tell.
    """

    change: str
    text: str
    holds: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement about how facts of a video hang together.

    `kind`: such as cause, goal or identity (`mustsee.facts.claims.KINDS`). `facts`: ids of the
    facts that it rests on. `shown`: where looks found that it holds. `altered`: wrong versions of
    it. `plausible`: whether a reader without the video held it for the likeliest version; null
    where none was asked. `source`: the model that listed it. `drop`: why it is not used.
    """

    claim_id: str
    kind: str
    text: str
    facts: tuple[str, ...]
    altered: tuple[AlteredClaim, ...] = ()
    shown: tuple[Span, ...] = ()
    plausible: bool | None = None
    source: str = ""
    drop: str | None = None


@dataclass(frozen=True, kw_only=True)
class SceneText:
    """A clip's span of its movie's audio description, in the clip's times.

    `visual`: for each line the probability that it is the narrator's, not dialogue. `start`, `end`:
    the clip's place in the description. `rate`: description seconds per clip second. `score`,
    `head`, `tail`: the confidence in the placement (`mustsee.align.place`).
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
class RequestCount:
    """How many requests for one thing (`what`, such as "looks") a stage made about a row, and how
    many of them had no readable reply. `error`: of the last of these.
    """

    what: str
    sent: int
    unread: int = 0
    error: str = ""
    stage: str = ""


@dataclass(frozen=True, kw_only=True)
class FormCount:
    """How many questions of one form (`ask.settings.forms.<form>`) a video gave.

    `possible`: questions that its facts allow. `drafted`: of these, with options, for the exam.
    `guessed`: answered right there without the video. `unread`: whose exam had no readable reply.
    `chosen`: composed.
    """

    form: str
    possible: int = 0
    drafted: int = 0
    guessed: int = 0
    unread: int = 0
    chosen: int = 0


@dataclass(frozen=True, kw_only=True)
class MissingQuestions:
    """Questions that are wanted of a video and not asked. `what`: which ones, such as "open
    questions of the skill cause"; `why`: the reason; `number`: how many.
    """

    what: str
    why: str
    number: int


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Why a row could not be processed. `error`: the name of the exception's class."""

    stage: str
    error: str
    message: str
    attempts: int = 1


@dataclass(frozen=True, kw_only=True)
class Video:
    """One row: a video, or a clip of one (with `start` and `end`).

    Times count from the beginning of the video at `uri`, also those of a clip; `duration` is the
    clip's own. Columns are grouped by the stage that writes them. A null means "unknown, or not
    computed yet"; an empty list means "computed, without results".
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
    license: str | None = None  # of the video, as the input table words it
    source_url: str | None = None  # web address of the video
    subtitles: str | None = None
    subtitles_digest: str | None = None
    movie_name: str | None = None
    year: int | None = None
    genre: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    plot: str | None = None  # of the movie, in a few sentences
    split: str | None = None  # train or test; all clips of a movie share one
    source: str | None = None  # video_id of the video that a clip was cut from
    start: float | None = None
    end: float | None = None
    plan: str | None = None  # JSON of mustsee.synth.plan.InsertionPlan, for a synthesised video
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
    objects: tuple[SeenObject, ...] | None = None
    # hear
    lines: tuple[Line, ...] | None = None
    language: str | None = None
    transcribed_by: str | None = None
    unheard: str | None = None  # why there are no lines
    # caption, people, embed
    captions: tuple[Caption, ...] | None = None
    perceived_age: str | None = None  # a model's impression, for diversity sampling (Neptune)
    perceived_gender: str | None = None
    perceived_by: str | None = None
    embedding: tuple[Float32, ...] | None = None
    image_vectors: tuple[ImageVector, ...] | None = None  # of the keyframes
    cluster: int | None = None
    # ask, vet
    scene: SceneText | None = None  # written by align (CinePile)
    segments: tuple[Segment, ...] | None = None
    facts: tuple[Fact, ...] | None = None
    listed: tuple[Span, ...] | None = None  # stretches of which a writer listed facts
    claims: tuple[Claim, ...] | None = None
    questions: tuple[Question, ...] | None = None
    forms: tuple[FormCount, ...] | None = None  # of questions from facts
    missing: tuple[MissingQuestions, ...] | None = None  # wanted questions that are not asked
    unasked: str | None = None  # why no question was made from it
    # every stage
    requests: tuple[RequestCount, ...] = ()
    drop: str | None = None
    problem: Problem | None = None
    lineage: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def transcript_source(self) -> str:
        """The transcriber of the row, with the language if it is not English, or why it has no
        lines: "no sound", `unheard`, "nothing recognised". Empty where `hear` did not run.
        """
        if self.transcribed_by or "hear" not in self.lineage:
            foreign = self.transcribed_by and self.language not in (None, "en")
            return (
                f"{self.transcribed_by}, {self.language}" if foreign else self.transcribed_by or ""
            )
        if self.has_audio is False:
            return "no sound"
        marked = f": marked {self.language!r}" if self.language else ""
        return f"{self.unheard or 'nothing recognised'}{marked}"

    @property
    def until(self) -> float | None:
        """The end of the row in its video, seconds; None where the duration is unknown."""
        return self.end if self.duration is None else (self.start or 0.0) + self.duration


def is_rules(identity: str) -> bool:
    """Whether an identity in a verdict or provenance names rules only, and no model."""
    return all(name.split(" ", 1)[0] == RULES for name in identity.split(" + "))


def untested_note(identities: Mapping[str, Collection[str]]) -> str:
    """Return a note on the filters or conditions that only rules answered, or "" without any.

    `identities`: those of the models that answered, by filter or condition.
    """
    by_rules = [
        name for name, models in identities.items() if models and all(map(is_rules, models))
    ]
    if not by_rules:
        return ""
    return f"{UNTESTED} Rules were asked in its place: {', '.join(by_rules)}."
