"""EgoSchema's filters: keywords, near duplicates, and the no-question baseline."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from actors.llm.scripted import ScriptedLlm
from mustsee.audit.repeats import near_duplicates
from mustsee.calls.llm import Asker
from mustsee.prompts import Prompts
from mustsee.questions.checks import fault
from mustsee.recipes.egoschema import no_question
from mustsee.recipes.egoschema.ask import EgoSchemaSettings
from mustsee.records import Question, Video
from tests.support.egoschema import asked, keywords

# Questions of the forms that EgoSchema gives as examples (supplement, 6.1 and 6.2), in other words.
PAPERS = (
    "Judging by how C and the man deal with each other all through the video, what are they to "
    "each other?",
    "Name the main activity in the flat and say why it matters. How does it shape what people do "
    "and the mood of the video?",
    "Watch how the characters' actions, their contacts and their places change. What do these "
    "shifts add to the story as a whole?",
    "Sum up the main activities of the video, and say where those of C and the woman are alike.",
    "Going by the video, on which task do C and the woman both work, and what does each of them "
    "do towards it?",
    "Which three segments of the video matter most, and what does each mean for the whole?",
)


def test_no_kept_question_contains_a_filtered_word() -> None:
    rule = keywords()
    question = Question(
        question_id="q",
        video_id="v",
        recipe="egoschema",
        question="",
        question_type="set_a",
        options=("It opens", "A cup"),
    )
    row = Video(video_id="v", uri="v.mp4", questions=(question,))
    bad = [
        "How many times does C open the door?",
        "What do the Timestamps show about C?",
        "Taking a long term view, what does C do?",
        "What does C do, and when?",
        "Why does C wait? How often?",
        "When does C open the door?",
        "Why does C open the door, and when is it shut?",
    ]
    fine = [
        "Why does C stop when the water boils?",
        "What is the examined object for?",
        "When the water boils, what does C do?",
        "C opens the door and when the man leaves shuts it; what for?",
        "What do the students hand to the teacher?",
        "What shows C's ability to cook without a recipe?",
        *PAPERS,
    ]
    questions = tuple(replace(row.questions[0], question=q, drop=None) for q in (*bad, *fine))
    judged = rule(replace(row, questions=questions)).questions
    assert [q.drop is None for q in judged] == [False] * len(bad) + [True] * len(fine)
    assert all(q.verdicts[-1].passed is (q.drop is None) for q in judged)
    answers = ("Key segments include groceries", "They cook", "A dog", "A debate", "A crime")
    assert [fault(q, answers[0], answers[1:]) for q in PAPERS] == [None] * len(PAPERS)
    option = replace(questions[-1], options=("the narrator speaks", "b"), answer_index=0)
    assert rule(replace(row, questions=(option,))).questions[0].drop == "keyword: 'narrator'"


def test_one_of_near_duplicates_is_kept() -> None:
    texts = ["alpha", "alpha!", "beta", "alpha", "gamma"]
    answers = ["one", "one", "two", "other", "three"]
    questions = [
        Question(
            question_id=f"q{n}",
            video_id=f"v{n}",
            recipe="e",
            question=q,
            question_type="t",
            answer=a,
        )
        for n, (q, a) in enumerate(zip(texts, answers, strict=True))
    ]

    def embed(many):
        out = np.zeros((len(many), 64), np.float32)
        for row, text in enumerate(many):
            out[row, sum(map(ord, text.strip("!"))) % 61] = 1
            out[row, 5] += 0.01
        return out

    drops = near_duplicates(questions, embed, alike=0.95, seed=1)
    assert len(drops) == 1
    assert {*drops, *drops.values()} == {"q0", "q1"}
    same = [replace(q, answer="one") for q in questions]
    both = near_duplicates(same, embed, alike=0.95, seed=1)
    assert len(both) == 2
    assert len({*both, *both.values()}) == 3
    assert len({*both.values()}) == 1
    dropped = [replace(questions[0], drop="x"), *questions[1:]]
    assert near_duplicates(dropped, embed, alike=0.95, seed=1) == {}
    assert near_duplicates([], embed, alike=0.95, seed=0) == {}


def test_the_no_question_baseline(real_clips) -> None:
    rows = asked(real_clips[:12], EgoSchemaSettings())
    asker = Asker(llm=ScriptedLlm(), prompts=Prompts())

    async def all_() -> list[Video]:
        settings = no_question.NoQuestionSettings()
        return await asyncio.gather(*(no_question.no_question(r, asker, settings) for r in rows))

    guessed = asyncio.run(all_())
    questions = [q for row in guessed for q in row.questions]
    assert all(q.verdicts[-1].filter == "no_question" for q in questions if q.drop is None)
    assert all(q.verdicts[-1].passed is None for q in questions if q.drop is None)
    baseline = no_question.baseline(questions)
    assert baseline.questions == sum(q.drop is None for q in questions)
    assert baseline.chance == pytest.approx(0.2)
    assert baseline.low <= baseline.accuracy <= baseline.high
    assert no_question.baseline([q for row in rows for q in row.questions]) is None
