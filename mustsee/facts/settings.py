"""Settings of `ask=facts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from mustsee.errors import UserError
from mustsee.facts.deep_settings import DeepRules
from mustsee.facts.forms.default import DEFAULT_FORMS
from mustsee.facts.mix import ALL, EACH, SHARE, Skill, allot, read_levels, read_mix, spread_over
from mustsee.facts.moments import MomentRules
from mustsee.facts.select import SelectRules
from mustsee.facts.stem import QuestionForm
from mustsee.verify.conditions.seen import Condition

PASSES = 2  # exams in which a question must not be answered right
# Kinds of facts that a writer lists.
MODEL_KINDS = ("event", "place", "person", "object", "state", "cause")


@dataclass(frozen=True, kw_only=True)
class FactSettings:
    """How facts are listed, verified and asked about."""

    version: ClassVar[str] = "25"
    reads: ClassVar[tuple[str, ...]] = (
        "video_id",
        "duration",
        "start",
        "end",
        "digest",
        "shots",
        "frames",
        "image_vectors",
        "texts",
        "objects",
        "lines",
        "captions",
    )
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
