"""The writer that sees the whole video: its prompt, and the questions kept from its reply."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from mustsee.calls.llm import Asker, Reply, Request, VideoInput
from mustsee.errors import BadRow, Unparsed, UserError
from mustsee.prompts import Prompts
from mustsee.questions.checks import is_order, items
from mustsee.questions.drafts import exact_spans
from mustsee.recipes.neptune.settings import WholeSettings
from mustsee.recipes.neptune.whole import questions_form, whole
from mustsee.records import Line, Span, Video
from mustsee.verify.conditions.seen import Condition
from mustsee.verify.conditions.video_frames import VideoPreparer
from tests.support import neptune_video
from tests.support.coloured import coloured, row

VIDEO = Span(0.0, 80.0)
TEXT_ALONE = WholeSettings(see=Condition())


def block(number: int, evidence: str = "12.0-31.5; 40.0-44.0", answer: str = "A red bowl") -> str:
    wrong = ("A green pan", "A sharp knife", "Two plates", "An old book")
    lines = [f"WRONG ANSWER {n}: {text} {number}" for n, text in enumerate(wrong, 1)]
    head = f"QUESTION {number}: (comparison) What does she hold in scene {number}?"
    return "\n".join((head, f"CORRECT ANSWER: {answer}", *lines, f"EVIDENCE: {evidence}"))


@dataclass
class Says:
    """Gives its replies in turn, and then repeats the last one."""

    replies: Sequence[str]
    asked: list[Request] = field(default_factory=list)
    identity: str = "says"

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        return Reply(text=self.replies[min(len(self.asked), len(self.replies)) - 1], model="says")


def run(
    video: Video, llm: Says | neptune_video.Replies, settings: WholeSettings = TEXT_ALONE,
    watch: VideoPreparer | None = None,
) -> Video:  # fmt: skip
    return asyncio.run(whole(video, Asker(llm=llm, prompts=Prompts(), watch=watch), settings))


def test_all_questions_of_a_video_are_written_in_one_call() -> None:
    llm = neptune_video.Replies()
    result = run(neptune_video.sample_video(), llm)
    assert [r.prompt for r in llm.asked] == ["neptune/whole"]
    assert result.questions
    assert len(result.questions) >= 4
    for question in result.questions:
        assert question.drop is None
        assert question.subsets == ("full",)
        ordered = is_order(question.question, question.answer)
        assert len(question.options) == (len(items(question.answer)) if ordered else 5)
        assert all(0 <= s.start < s.end <= 80 for s in question.evidence)
    assert run(neptune_video.sample_video(), neptune_video.Replies()) == result


def test_transcript_and_on_screen_text_are_in_the_prompt_with_times() -> None:
    llm = neptune_video.Replies()
    run(neptune_video.sample_video(), llm)
    text = llm.asked[0].messages[-1].text
    assert "[21.0-26.0]: First there are three eggs" in text
    assert "EGGS FROM THE FARM" in text
    assert "mostly purple" not in text  # a caption: whoever watches needs none


def test_malformed_questions_are_dropped_with_the_reason_and_others_kept() -> None:
    bad = {
        1: block(1, evidence="throughout the video"),
        2: block(2, evidence="31.5-12.0"),
        3: block(3, evidence="70.0-95.0"),
        4: block(4, answer=""),
        5: block(5).replace("WRONG ANSWER 4", "NOTE"),
    }
    reply = "\n\n".join((*bad.values(), block(6), block(7, evidence="0:12 - 0:31, 1:04-1:10")))
    result = run(neptune_video.sample_video(), Says([reply]))
    question_of = {q.question: q for q in result.questions or ()}
    assert len(question_of) == 7
    kept = [q for q in question_of.values() if q.drop is None]
    assert [q.evidence for q in kept] == [
        (Span(12.0, 31.5), Span(40.0, 44.0)), (Span(12.0, 31.0), Span(64.0, 70.0)),
    ]  # fmt: skip
    reasons = sorted(q.drop or "" for q in question_of.values() if q.drop)
    assert reasons == [
        "check: 3 wrong answers, not 4",
        "check: QUESTION 4 has no answer",
        "check: evidence '31.5-12' is not a stretch of the video",
        "check: evidence '70-95' is not a stretch of the video",
        "check: evidence 'throughout the video' is not a stretch like 12.0-31.5",
    ]
    assert all(q.subsets == () for q in question_of.values() if q.drop)


def test_a_reply_without_a_usable_question_is_requested_again() -> None:
    llm = Says(["Sure!", block(1, evidence="early on"), block(1)])
    result = run(neptune_video.sample_video(), llm)
    assert len(llm.asked) == 3
    assert "early on" in llm.asked[2].messages[-1].text
    assert [q.drop for q in result.questions or ()] == [None]
    with pytest.raises(BadRow, match="none of 3 replies"):
        run(neptune_video.sample_video(), Says(["Sure!"]))
    assert run(neptune_video.sample_video(), Says(["NONE"])).questions == ()


@pytest.mark.parametrize(
    "text", ["", "12.0", "12-31 or so", "12.0-12.0", "5-10; then 20-30", "-3-5"]
)
def test_evidence_of_another_form_is_a_fault(text: str) -> None:
    with pytest.raises(Unparsed):
        exact_spans(text, VIDEO)


def test_surplus_questions_are_left_out() -> None:
    reply = "\n\n".join(block(n) for n in range(1, 30))
    assert len(questions_form(VIDEO, 12, 4).read(reply)) == 12


def test_a_model_without_video_input_sees_frames(tmp_path: Path) -> None:
    video = row(coloured(tmp_path / "video.mp4"), lines=(Line(start=1.0, end=2.0, text="Here."),))
    settings = WholeSettings(see=Condition(fps=0.5, longest=96, transcript=True))
    seen, shown = Says([block(1, "1.0-2.0")]), Says([block(1, "1.0-2.0")])
    run(video, seen, settings, VideoPreparer(VideoInput()))
    run(video, shown, settings)
    (clip,) = seen.asked[0].messages[-1].clips
    assert clip.span.start == 0.0
    assert clip.span.end == pytest.approx(12.0, abs=0.1)
    assert seen.asked[0].messages[-1].images == ()
    assert shown.asked[0].messages[-1].clips == ()
    assert len(shown.asked[0].messages[-1].images) == 6
    long = Says([block(1, "1.0-2.0")])
    run(video, long, settings, VideoPreparer(VideoInput(max_seconds=10.0)))
    assert len(long.asked[0].messages[-1].images) == 6


def test_a_longer_video_gets_more_questions() -> None:
    long = replace(neptune_video.sample_video(repeat=2), duration=1600.0)
    llm = Says([block(1)])
    run(long, llm, replace(TEXT_ALONE, questions=2, spare=1.0))
    assert "write 26 questions" in llm.asked[0].messages[-1].text
    with pytest.raises(BadRow, match="max_words"):
        run(long, llm, replace(TEXT_ALONE, max_words=20))
    with pytest.raises(UserError, match="apart_share"):
        WholeSettings(apart_share=2.0)
