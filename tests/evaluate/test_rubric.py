"""MLVU's grades: scoring points, whole levels, and common forms of graders' replies."""
# ruff: noqa: E501  (a reply stands on one line)

import asyncio
import json
from dataclasses import dataclass, field

import pytest

from mustsee.calls.llm import Asker, Reply, Request
from mustsee.errors import Unparsed
from mustsee.evaluate import score
from mustsee.evaluate.open_scores import grade, scene_grade, summary_grade
from mustsee.prompts import Prompts
from mustsee.records import Question

SCENE = Question(question_id="s", video_id="v", recipe="mlvu", question="What does he do with it?",
                 question_type="subPlot", answer="He lifts it and weeps.",
                 scoring_points=("he lifts it", "he weeps", "he bows his head"))  # fmt: skip
SUMMARY = Question(question_id="f", video_id="v", recipe="mlvu", question="Summarise it.",
                   question_type="summary", answer="A man builds a boat.")  # fmt: skip


@dataclass
class Says:
    """A grader with prepared replies."""

    replies: list[str]
    identity: str = "grader"
    asked: list[Request] = field(default_factory=list[Request])

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        return Reply(text=self.replies[len(self.asked) - 1], model="grader")


def graded(question: Question, *replies: str) -> tuple[score.Any, Says]:
    says = Says(list(replies))
    asker = Asker(llm=says, prompts=Prompts(), tries=len(replies))
    return asyncio.run(grade(question, "He weeps over it.", asker)), says


def lines(*levels: object) -> str:
    points = "\n".join(
        f"POINT {n} REASON: because\nPOINT {n}: {v}" for n, v in enumerate(levels[:-1], 1)
    )
    return f"{points}\nRELEVANCE REASON: so\nRELEVANCE: {levels[-1]}"


def test_points_are_averaged_in_code_and_the_reasons_are_kept() -> None:
    found, says = graded(SCENE, lines(1, 5, 3, 4))
    assert (found.first, found.second, found.points, found.total) == (3.0, 4, (1, 5, 3), 7.0)
    assert "REASON: because" in found.reply
    text = says.asked[0].messages[-1].text
    assert all(point in text for point in SCENE.scoring_points)
    assert SCENE.answer not in text, "captions are held against points, not against the reference"
    assert list(says.asked[0].form["properties"]) == [
        "point_1_reason", "point_1", "point_2_reason", "point_2", "point_3_reason", "point_3",
        "relevance_reason", "relevance",
    ]  # fmt: skip


def test_a_mean_by_the_grader_is_ignored() -> None:
    reply = json.dumps({"accuracy": 5, "point_1": 1, "point_2": 1, "point_3": 1, "relevance": 5})
    assert graded(SCENE, reply)[0].first == 1.0


def test_fractional_levels_are_refused_and_asked_for_again() -> None:
    found, says = graded(SCENE, lines(2, 5, 3, 4), lines(1, 5, 3, 4))
    assert found.points == (1, 5, 3)
    assert "point 1 is 2: one of 1, 3, 5 is wanted" in says.asked[1].reason
    found, says = graded(
        SUMMARY, '{"completeness": 4.5, "reliability": 4}', '{"completeness": 4, "reliability": 4}'
    )
    assert (found.first, len(says.asked)) == (4, 2)


def test_the_prompt_describes_all_levels_and_extra_text_is_ignored() -> None:
    for question in (SCENE, SUMMARY):
        _, says = graded(question, lines(1, 1, 1, 1) + "\nCOMPLETENESS: 1\nRELIABILITY: 1")
        text = says.asked[0].messages[-1].text
        assert all(f"\n{level}: " in text for level in range(1, 6))
        assert ("costs nothing" in text) == (question is SUMMARY)


@pytest.mark.parametrize(
    "reply",
    [
        "COMPLETENESS REASON: most\nCOMPLETENESS: 4\nRELIABILITY REASON: fine\nRELIABILITY: 5",
        "**COMPLETENESS:** 4\n**RELIABILITY:** 5/5",
        '{"completeness": "4", "reliability": "5"}',
        '{"score_completeness": 4, "score_reliability": 5, "total_score": 9}',
        '{"completeness": {"reason": "4 of 6 points", "score": 4}, "reliability": {"score": "5"}}',
        '{"COMPLETENESS": {"rationale": "x", "Score": "4/5"}, "RELIABILITY": {"rationale": "y", "Score": "5/5"}}',
        '{"scores": {"completeness_score": 4, "reliability_score": "5"}, "rationale": "x"}',
        'Sure:\n```json\n{"completeness": 4.0, "reliability": 5}\n```\nBye.',
        'My grades are {"completeness": 4, "reliability": 5}, as I said.',
        "completeness: 4, reliability: 5",
    ],
)
def test_nested_and_quoted_grades_are_parsed(reply: str) -> None:
    found = summary_grade().read(reply)
    assert (found.first, found.second) == (4, 5)


@pytest.mark.parametrize(
    "reply",
    [
        '{"points": [{"point": 1, "reason": "x", "score": 5}, {"point": 2, "score": "3"}], "relevance": 4}',
        '{"accuracy": {"scoring_points": [{"score": 5}, {"score": 3}], "average": 4}, "relevance": {"score": 4}}',
        '{"Point 1": 5, "Point 2": "3", "Relevance": 4}',
        "- **Point 1:** 5\n- **Point 2:** 3\n\n**Relevance:** 4",
    ],
)
def test_nested_points_are_parsed(reply: str) -> None:
    found = scene_grade(2).read(reply)
    assert (found.points, found.second) == ((5, 3), 4)


@pytest.mark.parametrize(
    "reply",
    [
        "4 and 5", '{"completeness": 6, "reliability": 3}', '{"completeness": 4}',
        '{"completeness": "good", "reliability": 3}', '{"completeness": true, "reliability": 3}',
        "COMPLETENESS: 4\nCOMPLETENESS: 2\nRELIABILITY: 5", '{"completeness": 0, "reliability": 3}',
    ],
)  # fmt: skip
def test_replies_without_valid_levels_are_refused(reply: str) -> None:
    with pytest.raises(Unparsed, match=r"is wanted|JSON"):
        summary_grade().read(reply)
