"""The proving set of facts: what composed questions claim of drawn videos is so."""

import re
from pathlib import Path

import pytest

from benchmarks.facts import DrawnTruth, FactsBench
from benchmarks.sight_videos import journeys
from mustsee.facts.moments import MomentRules, moments_of
from mustsee.records import WHEN, Question, Span


@pytest.mark.slow
def test_questions_that_ask_when_have_no_other_answer_and_sure_ends() -> None:
    """With a tenth of the facts wrong and a tenth of the replies spoilt."""
    table = FactsBench(journeys=2, when=10)()
    made, right = next(row[1:] for row in table.rows if row[0] == WHEN)
    assert isinstance(made, int)
    assert isinstance(right, int)
    assert made >= 10
    assert right >= 0.97 * made
    (ends,) = [note for note in table.notes if note.startswith("ends of answers to when")]
    share = re.search(r"within 0.5 s ([\d.]+)%", ends)
    assert share
    assert float(share[1]) >= 90


def test_ends_are_read_against_what_was_drawn() -> None:
    (drawn, *_) = journeys(0)
    rare = next(f for f in ("triangle", "cross", "ring", "diamond")
                if sum(s.form == f for s in drawn.scenes) == 2)  # fmt: skip
    phrase = f"a {rare} on grey ground"
    spans = [s.span for s in drawn.scenes if s.form == rare]
    moments = moments_of(drawn.row(Path(), ()), MomentRules())
    truth = DrawnTruth(drawn, moments, [phrase])

    def errors(*evidence: Span) -> list[float]:
        return truth.end_errors(
            Question(
                question_id="q", video_id="v", recipe="facts", question=f"When is {phrase} seen?",
                question_type="", form=WHEN, evidence=evidence,
            )
        )  # fmt: skip

    moved = [Span(s.start + 0.25, s.end - 0.5) for s in spans]
    assert errors(*moved) == pytest.approx([0.25, 0.5] * len(spans))
    assert errors(*spans) == pytest.approx([0.0, 0.0] * len(spans))
    assert not errors(spans[0])  # It names one time of two.
    assert not errors(*spans, Span(drawn.seconds - 1, drawn.seconds))
    assert not errors(*(Span(s.start + s.seconds, s.end + s.seconds) for s in spans))
