"""Settings of `ask=facts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from mustsee.errors import UserError
from mustsee.facts.deep_settings import DeepRules
from mustsee.facts.mix import ALL, EACH, SHARE, Skill, allot, read_levels, read_mix, spread_over
from mustsee.facts.moments import MomentRules
from mustsee.facts.select import SelectRules
from mustsee.facts.stem import QuestionForm
from mustsee.verify.conditions.seen import Condition

PASSES = 2  # exams in which a question must not be answered right
MODEL_KINDS = ("event", "place", "person", "object", "state", "cause")  # asked of a writer


@dataclass(frozen=True, kw_only=True)
class FactSettings:
    """`kinds`: that the writer lists. `each`: facts that it lists for a moment it is shown, on
    average. `overview`: frames of the whole video, in which it names at most `names` people and
    places beforehand. `texts`: on-screen texts that begin in one moment, at most. `extract`,
    `look`: frames of a window, and of a moment; `closer`: of a second look at what the first
    leaves open; null: there is none; `closer_from`: open entries that are worth one. `phrases`:
    judged in one look, at most; `looks`: at one moment, at most. `search`: moments searched for
    each fact besides its own. `forms`: of questions, by name; null turns one off. `drafts`:
    times as many questions as are wanted, of which the guesser answers `together` in one request;
    `exams`: that it sits, at most. `open`: also ask without options where a form can. `deep`: what
    is asked of the whole video with a model, beside the composed questions; null: nothing. `mix`:
    skills of its open questions with their shares or numbers; null: all alike. `mix_counts`: what
    these are: `share`, questions of each `video`, or of `all` videos together. `reach`: seconds of
    video, in sum, with the share of the open questions that need as much. `quotas`: numbers of
    questions by video and skill; the job sets them for `all`.
    """

    version: ClassVar[str] = "23"
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
    kinds: tuple[str, ...] = MODEL_KINDS
    each: float = 3.0
    overview: Condition = field(default_factory=lambda: Condition(condition="evidence", frames=32))
    names: int = 16
    extract: Condition = field(
        default_factory=lambda: Condition(condition="evidence", fps=1.0, least=8, most=40)
    )
    look: Condition = field(
        default_factory=lambda: Condition(condition="evidence", fps=1.0, least=4, most=12)
    )
    texts: int = 2
    closer: Condition | None = field(
        default_factory=lambda: Condition(condition="evidence", fps=2.0, least=8, most=20)
    )
    closer_from: int = 6
    phrases: int = 110
    looks: int = 1
    search: int = 4
    forms: Mapping[str, QuestionForm | None]
    drafts: int = 8
    together: int = 20
    exams: int = 4
    select: SelectRules = field(default_factory=SelectRules)
    open: bool = False
    deep: DeepRules | None = field(default_factory=DeepRules)
    mix: Mapping[str, Any] | None = None
    mix_counts: str = SHARE
    reach: Mapping[Any, float] | None = field(default_factory=lambda: {30: 0.5})
    quotas: Mapping[str, Mapping[str, int]] | None = None
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
