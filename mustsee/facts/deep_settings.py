"""Settings of what a model asks about a whole video: claims, open questions with points, and
wording.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mustsee.errors import UserError
from mustsee.verify.conditions.seen import Condition

LEAST_CLAIMS = 6  # of a part of a long video; fewer make no thread


@dataclass(frozen=True, kw_only=True)
class ClaimRules:
    """How claims are listed and verified.

    `overview`: frames for the writer, of a part of the video; of one longer than `part_seconds` it
    sees parts, and then the whole. `facts`: shown at once, at most. `words`: of the transcript.
    `claims`: listed at once, at most; `of_video`: of a whole video, of which each of its parts
    gives as many; `altered`: versions of each. `look`: frames of the moments
    of some claims for the verifier; `whole`: of the whole video, for claims that something never
    happens. `together`: claims that one look judges, at most. `spoken_margin`: seconds around the
    moments of which lines are shown.
    """

    overview: Condition = field(default_factory=lambda: Condition(condition="evidence", frames=64))
    part_seconds: float = 300.0
    facts: int = 240
    words: int = 3000
    claims: int = 40
    of_video: int = 300
    altered: int = 2
    look: Condition = field(
        default_factory=lambda: Condition(condition="evidence", fps=1.0, least=2, most=48)
    )
    whole: Condition = field(default_factory=lambda: Condition(condition="whole", frames=64))
    together: int = 8
    spoken_margin: float = 2.0

    def __post_init__(self) -> None:
        for name in ("part_seconds", "facts", "claims", "of_video", "altered", "together"):
            if getattr(self, name) < 1:
                raise UserError(
                    f"ask.settings.deep.claims.{name}={getattr(self, name)!r}: at least 1"
                )

    def list_limit(self, lists: int) -> int:
        """Return the number of claims of each of as many lists of one video, at most."""
        return min(self.claims, max(LEAST_CLAIMS, round(self.of_video / lists)))


@dataclass(frozen=True, kw_only=True)
class PointRules:
    """How open questions are written and examined.

    `spare`: how many times as many as are wanted are written. `least`, `most`: points of a
    question; `least` of them must be left after the exams. `seconds`: of video, in sum, that the
    points left must span; in a video of less than eight times that, `seconds` may lie between the
    first and the last. `of_claim`: questions that one claim is a point of, at most.
    `contradictions`: of a question, at most. `see`: frames of the evidence for the verifier, who
    answers `together` questions at once.
    """

    spare: float = 1.25
    least: int = 4
    most: int = 8
    seconds: float = 30.0
    of_claim: int = 2
    contradictions: int = 5
    see: Condition = field(
        default_factory=lambda: Condition(condition="evidence", fps=1.0, least=2, most=64)
    )
    together: int = 4

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise UserError(
                f"ask.settings.deep.points.least={self.least!r}, most={self.most!r}: at least 1, "
                "the least first"
            )
        if self.spare < 1 or self.together < 1 or self.of_claim < 1:
            raise UserError(
                f"ask.settings.deep.points: spare={self.spare!r}, together={self.together!r}, "
                f"of_claim={self.of_claim!r}: at least 1"
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
    """What is asked with a model, and not by rules. `choices`: questions whose options are claims;
    null: none.

    `questions`: of a video, at most, of all kinds: one for every `seconds_each` seconds, and at
    least `least_questions`. `open_share`: share of open questions with points; the others are
    composed. `text_share`: share of questions about words on the screen, at most. `unwanted`: forms
    that are left out. `wording`: composed questions worded at once; 0: they keep the words of their
    forms.
    """

    claims: ClaimRules = field(default_factory=ClaimRules)
    points: PointRules = field(default_factory=PointRules)
    choices: ChoiceRules | None = None
    questions: int = 90
    least_questions: int = 12
    seconds_each: float = 10.0
    open_share: float = 1.0
    text_share: float = 0.1
    unwanted: tuple[str, ...] = ("count", "quarter_first", "quarter_last")
    wording: int = 12

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
