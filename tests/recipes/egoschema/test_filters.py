"""EgoSchema's filters: keywords, near duplicates, and a model that sees no question."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from actors.llm.offline import Offline
from mustsee.filters.duplicates import Duplicates
from mustsee.llm import Asker
from mustsee.prompts import Prompts
from mustsee.recipes.egoschema import no_question
from mustsee.recipes.egoschema.ask import Settings
from mustsee.records import Question, Video
from tests.support.egoschema import asked, keywords


def test_no_kept_question_holds_a_filtered_word(real_clips) -> None:
    rule = keywords()
    row = asked(real_clips[:1], Settings())[0]
    bad = [
        "How many times does C open the door?",
        "What do the Timestamps show about C?",
        "Taking a long term view, what does C do?",
        "What does C do, and when?",
        "Why does C wait? How often?",
    ]
    fine = ["Why does C stop when the water boils?", "What is the examined object for?"]
    questions = tuple(replace(row.questions[0], question=q, drop=None) for q in (*bad, *fine))
    judged = rule(replace(row, questions=questions)).questions
    assert [q.drop is None for q in judged] == [False] * len(bad) + [True] * len(fine)
    assert all(q.verdicts[-1].passed is (q.drop is None) for q in judged)
    option = replace(questions[-1], options=("the narrator speaks", "b"), answer_index=0)
    assert rule(replace(row, questions=(option,))).questions[0].drop == "keyword: 'narrator'"


def test_near_duplicates_leave_one() -> None:
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

    fallen = Duplicates(seed=1)(questions, embed)
    assert len(fallen) == 1
    assert {*fallen, *fallen.values()} == {"q0", "q1"}
    both = Duplicates(seed=1, answers=False)(questions, embed)
    assert len(both) == 2
    assert len({*both, *both.values()}) == 3
    dropped = [replace(questions[0], drop="x"), *questions[1:]]
    assert Duplicates(seed=1)(dropped, embed) == {}
    assert Duplicates()([], embed) == {}


def test_the_baseline_without_questions(real_clips) -> None:
    rows = asked(real_clips[:12], Settings())
    asker = Asker(llm=Offline().open(), prompts=Prompts())

    async def all_() -> list[Video]:
        settings = no_question.Settings()
        return await asyncio.gather(*(no_question.no_question(r, asker, settings) for r in rows))

    done = asyncio.run(all_())
    questions = [q for row in done for q in row.questions]
    assert all(q.verdicts[-1].filter == "no_question" for q in questions if q.drop is None)
    assert all(q.verdicts[-1].passed is None for q in questions if q.drop is None)
    found = no_question.baseline(questions)
    assert found.questions == sum(q.drop is None for q in questions)
    assert found.chance == pytest.approx(0.2)
    assert found.low <= found.accuracy <= found.high
    assert no_question.baseline([q for row in rows for q in row.questions]) is None
