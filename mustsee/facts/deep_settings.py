"""Settings of what a model asks about a whole video: claims, open questions with points, and
wording.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mustsee.errors import UserError
from mustsee.verify.conditions.seen import Condition

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
