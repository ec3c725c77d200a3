"""Settings of `ask=facts`: facts and composed questions, and what a model asks about a whole video
(claims, open questions with points, and wording).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from mustsee.errors import UserError
from mustsee.facts.forms import DEFAULT_FORMS
from mustsee.facts.mix import ALL, EACH, SHARE, Skill, allot, read_levels, read_mix, spread_over
from mustsee.facts.moments import MomentRules
from mustsee.facts.select import SelectRules
from mustsee.facts.stem import QuestionForm
from mustsee.verify.conditions.seen import Condition

PASSES = 2  # exams in which a question must not be answered right
# Kinds of facts that a writer lists.
MODEL_KINDS = ("event", "place", "person", "object", "state", "cause")
LEAST_CLAIMS = 6  # claims of a part of a long video, at least; fewer make no thread


@dataclass(frozen=True, kw_only=True)
class ClaimRules:
    """How claims are listed and verified."""

    overview: Condition = field(default_factory=lambda: Condition(condition="evidence", frames=64))
    """Frames of the video, or of a part of a long one, for the writer."""
    part_seconds: float = 300
    """Seconds of a part of a longer video; the writer is shown each part, and then the
    whole."""
    facts: int = 240
    """Facts that the writer is shown at once, at most."""
    words: int = 3000
    """Words of the transcript that it is shown at once, at most."""
    claims: int = 64
    """Claims that it lists at once, at most."""
    of_video: int = 300
    """Claims of a whole video, about; each part of a long one gives as many."""
    altered: int = 2
    """Altered versions of each claim."""
    look: Condition = field(
        default_factory=lambda: Condition(condition="evidence", fps=1.0, least=2, most=64)
    )
    """Frames of the moments of some claims for the verifier."""
    whole: Condition = field(default_factory=lambda: Condition(condition="whole", frames=64))
    """Frames of the whole video, for claims that something never happens."""
    together: int = 8
    """Claims that one look judges, at most."""
    spoken_margin: float = 2.0
    """Seconds around their moments of which lines are shown."""
    parts: Condition | None = field(
        default_factory=lambda: Condition(condition="evidence", fps=2.0, least=2, most=96)
    )
    """Frames of where claims that hold are shown, for the verifier, who checks them part by
    part; null: nobody does."""
    parts_together: int = 8
    """Claims that such a look judges, at most."""

    def __post_init__(self) -> None:
        for name in (
            "part_seconds", "facts", "claims", "of_video", "altered", "together", "parts_together",
        ):  # fmt: skip
            if getattr(self, name) < 1:
                raise UserError(
                    f"ask.settings.deep.claims.{name}={getattr(self, name)!r}: at least 1"
                )

    def list_limit(self, lists: int) -> int:
        """Return the number of claims of each of as many lists of one video, at most."""
        return min(self.claims, max(LEAST_CLAIMS, round(self.of_video / lists)))


@dataclass(frozen=True, kw_only=True)
class PointRules:
    """How open questions are written and examined."""

    spare: float = 1.5
    """Times as many as are wanted are written. Those that the exams leave too few points go; of
    more than are wanted the verifier says which are the best."""
    least: int = 3
    """Points of a question, at least."""
    left: int = 2
    """Points that the exams must leave of a question, at least, and with them half of the weight;
    never more than `least`."""
    most: int = 8
    """Points of a question, at most."""
    seconds: float = 30
    """Seconds of video, in sum, that the points left must span; in a video of less than four
    minutes, that may lie between the first and the last."""
    of_claim: int = 3
    """Questions that one claim is a point of, at most."""
    contradictions: int = 5
    """Wrong statements of a question, at most."""
    one_scene: float = 30
    """Seconds of video in one piece that must not be enough for an answer."""
    editor: Condition | None = field(
        default_factory=lambda: Condition(condition="evidence", frames=64)
    )
    """Frames of the video for the verifier, who as an editor reads the questions before they are
    examined; null: nobody does."""
    rewrites: int = 2
    """Times that the writer may write a question again that the editor sent back."""
    see: Condition = field(
        default_factory=lambda: Condition(condition="evidence", fps=1.0, least=2, most=64)
    )
    """Frames of the evidence for the verifier, who answers."""
    together: int = 2
    """Questions that it answers at once: the more, the fewer frames there are of each."""

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise UserError(
                f"ask.settings.deep.points.least={self.least!r}, most={self.most!r}: at least 1, "
                "the least first"
            )
        if self.rewrites < 0:
            raise UserError(f"ask.settings.deep.points.rewrites={self.rewrites!r}: at least 0")
        if self.spare < 1 or self.together < 1 or self.of_claim < 1 or self.left < 1:
            raise UserError(
                f"ask.settings.deep.points: spare={self.spare!r}, together={self.together!r}, "
                f"of_claim={self.of_claim!r}, left={self.left!r}: at least 1"
            )


@dataclass(frozen=True, kw_only=True)
class ChoiceRules:
    """How deep questions with options are made. `share`: of all questions of a video, at most.
    `options`: of a question. `drafts`: times as many as are wanted are written; most are guessed.
    `longest`: words of the longest option, as a multiple of those of the shortest.
    """

    share: float = 0.1
    options: int = 4
    drafts: float = 6.0
    longest: float = 1.7

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or not 3 <= self.options <= 8:
            raise UserError(
                f"ask.settings.deep.choices: share={self.share!r}, options={self.options!r}: "
                "expected a share from 0 to 1 and 3 to 8 options"
            )
        if self.drafts < 1 or self.longest < 1:
            raise UserError(
                f"ask.settings.deep.choices: drafts={self.drafts!r}, longest={self.longest!r}: "
                "at least 1"
            )


@dataclass(frozen=True, kw_only=True)
class DeepRules:
    """What is asked with a model, and not by rules."""

    claims: ClaimRules = field(default_factory=ClaimRules)
    """Statements on how facts hang together, each verified among altered versions of itself."""
    points: PointRules = field(default_factory=PointRules)
    """Open questions, graded by verified statements."""
    choices: ChoiceRules | None = None
    """Questions whose options are claims; null: none."""
    questions: int = 90
    """Questions of a video of all kinds, at most."""
    least_questions: int = 12
    """Questions of a short video, at most."""
    seconds_each: float = 10
    """Seconds of a video for each question, between these two."""
    open_share: float = 1.0
    """Share of open questions with points; the others are composed."""
    text_share: float = 0.1
    """Share of questions about words on the screen, at most."""
    wording: int = 12
    """Composed questions that are worded and read back in one request; 0: they keep the words
    of their forms."""

    def __post_init__(self) -> None:
        for name in ("open_share", "text_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"ask.settings.deep.{name}={getattr(self, name)!r}: from 0 to 1")

    def question_limit(self, seconds: float) -> int:
        """Return the greatest number of questions for a video of a length."""
        return min(self.questions, max(self.least_questions, round(seconds / self.seconds_each)))

    def open_limit(self, seconds: float) -> int:
        """Return the number of open questions among them."""
        return round(self.open_share * self.question_limit(seconds))


@dataclass(frozen=True, kw_only=True)
class FactSettings:
    """How facts are listed, verified and asked about."""

    version: ClassVar[str] = "25"
    reads: ClassVar[tuple[str, ...]] = (
        "video_id", "duration", "start", "end", "digest", "shots", "frames", "image_vectors",
        "texts", "objects", "lines", "captions",
    )  # fmt: skip
    area: ClassVar[str] = "facts"  # folder of the prompts

    moments: MomentRules = field(default_factory=MomentRules)
    """The stretches that a look judges."""
    kinds: tuple[str, ...] = MODEL_KINDS
    """Kinds of facts that the writer lists; texts and lines need no model."""
    each: float = 3
    """Facts that the writer lists for each moment shown, at most."""
    overview: Condition = field(default_factory=lambda: Condition(condition="evidence", frames=32))
    """Frames of the whole video for the writer, who names its people and places."""
    names: int = 16
    """People and places that the writer names beforehand, at most."""
    extract: Condition = field(
        default_factory=lambda: Condition(condition="evidence", fps=1.0, least=8, most=40)
    )
    """Frames of a window for the writer."""
    look: Condition = field(
        default_factory=lambda: Condition(condition="evidence", fps=1.0, least=4, most=12)
    )
    """Frames of a moment for the verifier, where questions are composed of what it sees."""
    look_own: Condition = field(
        default_factory=lambda: Condition(condition="evidence", fps=1.5, least=3, most=64, at=0.0)
    )
    """Frames of `moments.window` moments for the verifier, where none are: a fact is looked for
    where it is claimed, and nowhere else."""
    texts: int = 2
    """Texts on the screen that begin in one moment, at most; the longest ones."""
    closer: Condition | None = field(
        default_factory=lambda: Condition(condition="evidence", fps=2.0, least=8, most=20)
    )
    """Frames of a second look at what the first leaves open or finds unclaimed; null: none."""
    closer_from: int = 6
    """Entries of a moment that the first look leaves open from which it gets a second look."""
    phrases: int = 110
    """Facts that one look judges, at most."""
    looks: int = 1
    """Looks at one moment, at most."""
    search: int = 4
    """Moments that are searched for each fact besides its own, by words and looks."""
    forms: Mapping[str, QuestionForm | None] = field(default_factory=lambda: dict(DEFAULT_FORMS))
    """Forms of questions by name; NAME=null turns one off."""
    drafts: int = 8
    """Times as many questions as are wanted are drafted; those that the guesser answers right
    go."""
    together: int = 20
    """Questions of a video that the guesser answers in one request."""
    exams: int = 4
    """Times that the guesser answers, at most; it must fail at a question twice, and one that
    it answers right gets other options."""
    select: SelectRules = field(default_factory=SelectRules)
    """Rules that select questions, by what the guesser answers."""
    open: bool = False
    """Ask also without options, where a form can."""
    deep: DeepRules | None = field(default_factory=DeepRules)
    """With a model: open questions on claims, composed ones in natural words; null: composed
    ones alone, in the words of their forms."""
    mix: Mapping[str, Any] | None = None
    """Skills of the open questions with their shares, {cause: 2, goal: 1}; your own as {"who
    knows what": {share: 1, definition: WORDS}}; null: ten skills alike."""
    mix_counts: str = SHARE
    """What the numbers of mix are: share, video (questions of each video), all (questions of
    all videos of the run, spread evenly over them)."""
    reach: Mapping[Any, float] | None = field(default_factory=lambda: {30: 0.5})
    """Seconds of video that one must see, in sum, with the share of the open questions that
    need as much, at least; whole: SHARE for those that reach over three quarters of the
    video."""
    quotas: Mapping[str, Mapping[str, int]] | None = None
    """Numbers of questions by video and skill; the job sets them for `all`."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("drafts", 1), ("together", 1), ("exams", PASSES)):
            if getattr(self, name) < least:
                raise UserError(f"ask.settings.{name}={getattr(self, name)!r}: at least {least}")
        read_mix(self.mix, self.mix_counts)
        read_levels(self.reach)

    @property
    def skills(self) -> tuple[Skill, ...]:
        """The skills of the open questions."""
        return read_mix(self.mix, self.mix_counts)

    def for_videos(self, names: Sequence[str]) -> FactSettings:
        """Return the settings for a run of some videos, over which numbers in all are spread."""
        if self.mix_counts != ALL or not names:
            return self
        return replace(self, quotas=spread_over(names, self.skills))

    def wanted_questions(self, video_id: str, limit: int) -> dict[str, int]:
        """Return how many open questions of each skill a video should get; `limit` in all, unless
        the mix says numbers. Raises UserError for numbers in all that no job has spread.
        """
        if self.mix_counts == EACH:
            return {skill.name: int(skill.share) for skill in self.skills}
        if self.mix_counts == ALL:
            if self.quotas is None or video_id not in self.quotas:
                raise UserError("ask.settings.mix_counts=all: this job cannot spread the numbers")
            return dict(self.quotas[video_id])
        return allot(limit, self.skills)
