"""Facts and questions that are made up in a dry run: as many as a model writes, seen where they are
claimed. So the calls that follow are counted although the rules would write none.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mustsee.calls.llm import Asker, Message, Request, VideoClip
from mustsee.facts.choices import choices_form
from mustsee.facts.deep import Roles
from mustsee.facts.deep_settings import DeepRules
from mustsee.facts.extract import Window, facts_form
from mustsee.facts.forms.after import AfterForm
from mustsee.facts.forms.at import AtForm
from mustsee.facts.recipe import ask_facts
from mustsee.facts.settings import FactSettings
from mustsee.prompts import Prompts
from mustsee.recipes.neptune.ask import neptune
from mustsee.recipes.neptune.settings import NeptuneSettings
from mustsee.recipes.neptune.whole import questions_form
from mustsee.records import Question, Span, Video
from mustsee.verify.blind import ranking
from mustsee.verify.guess_set import rankings
from mustsee.verify.look_replies import CANNOT, look_form
from mustsee.verify.repair import FailedWording, repair_form
from mustsee.verify.worth import conditions_form, grades_form
from ray_jobs.runtime.rehearse import open_rules_session
from ray_jobs.runtime.stand_in import MADE_UP, stand_in_reply
from tests.ray_jobs.runtime.test_rehearse import MODEL
from tests.support.neptune_video import sample_video

MOMENTS = tuple(Span(6.0 * n, 6.0 * n + 6) for n in range(5))


class Frames:
    """No frames: rules that look at them would list nothing."""

    async def jpegs(self, times: Sequence[float], see: Any) -> tuple[bytes, ...]:
        return ()


def encode(texts: Sequence[str]) -> NDArray[np.float32]:
    return np.random.default_rng(0).normal(size=(len(texts), 8)).astype(np.float32)


@pytest.mark.parametrize("kinds", [("event", "place", "state"), ("cause",), ("sound", "person")])
@pytest.mark.parametrize("moments", [MOMENTS, ()])
def test_made_up_facts_have_the_form_of_a_model_s(
    kinds: tuple[str, ...], moments: tuple[Span, ...]
) -> None:
    window = Window(span=Span(0.0, 30.0), moments=moments)
    text = MADE_UP["facts/extract"]({"window": window, "kinds": kinds, "most": 12})
    facts = facts_form(window.span, kinds, 12).read(text)
    assert 8 <= len(facts) <= 12
    assert {fact.kind for fact in facts} <= set(kinds)
    if moments:
        touched = {n for n, m in enumerate(moments) for f in facts if m.start <= f.spans[0].start}
        assert touched == set(range(5))


def test_calls_on_a_video_of_which_the_rules_ask_nothing_are_counted(tmp_path: Path) -> None:
    session = open_rules_session(str(tmp_path), 1.0)
    asker = Asker(llm=session.context().llm(MODEL), prompts=Prompts())
    roles = Roles(writer=asker, verifier=asker, guesser=asker)
    forms = {"after": AfterForm(), "holds": AtForm(of="object"), "where": AtForm(of="place")}
    frames: Any = Frames()
    video = Video(video_id="v", uri="v.mp4", duration=120.0)
    counts = Counter[str]()

    def count(name: str, n: int) -> None:
        counts[name] += n

    settings = FactSettings(forms=forms, deep=DeepRules(open_share=2 / 3))
    done = asyncio.run(ask_facts(video, roles, frames, encode, settings, count))
    assert done.questions
    assert all(fact.drop is None for fact in done.facts or ())
    calls = {name: c.calls for name, c in session.coordinator.snapshot().llm.by_prompt.items()}
    assert calls["facts/look"] == 14  # moments of less than nine seconds
    assert calls["facts/rank"] >= 2
    asked = [q for q in done.questions if q.drop is None]
    deep = [q for q in asked if q.points]
    assert settings.deep is not None
    assert len(deep) == settings.deep.open_limit(120.0)
    assert all(claim.drop is None for claim in done.claims or ())
    assert all(q.question.startswith("Tell me: ") for q in asked if not q.points)
    assert len(deep) < len(asked)
    drafts = calls["facts/answer_blind"] - 1  # each alone, and all in view at once
    assert drafts >= len(deep)
    assert calls["facts/grade_answers"] == drafts
    assert {calls[f"facts/{name}"] for name in ("claims", "word", "read_back")} == {1}
    assert calls["facts/questions"] == calls["facts/edit"] == 3, "some are written again, one twice"
    assert not {name: n for name, n in counts.items() if "could not be read" in name and n}
    again = asyncio.run(ask_facts(video, roles, frames, encode, settings, count))
    assert again == done
    repeated = {name: c.calls for name, c in session.coordinator.snapshot().llm.by_prompt.items()}
    assert repeated == calls, "all replies are in the store"
    alone = replace(settings, deep=DeepRules())
    open_ = asyncio.run(ask_facts(video, roles, frames, encode, alone, count)).questions or ()
    assert len(deep) < sum(q.drop is None for q in open_) <= DeepRules().question_limit(120.0)
    assert all(q.points for q in open_), "no composed question, and no exam of one"


def test_made_up_choices_and_ratings_have_the_form_of_a_model_s() -> None:
    claims = tuple(range(6))
    text = MADE_UP["facts/choices"]({"claims": claims, "wrong": 3, "count": 9})
    drafts = choices_form(6, 4).read(text)
    assert [draft.places[0] for draft in drafts] == list(claims)
    asked = ("a", "b")
    assert len(grades_form(2).read(MADE_UP["filters/worth"]({"asked": asked}))) == 2
    given = {"asked": asked, "frames": ()}
    (one, _) = conditions_form(2).read(MADE_UP["filters/conditions"](given))
    assert dict(one.values) == dict.fromkeys("abcde", 1.0)


def test_as_many_questions_as_are_asked_for_are_sound(tmp_path: Path) -> None:
    session = open_rules_session(str(tmp_path), 1.0)
    asker = Asker(llm=session.context().llm(MODEL), prompts=Prompts())
    done = asyncio.run(neptune(sample_video(), asker, NeptuneSettings(questions=12, spare=2.5)))
    questions = done.questions or ()
    assert len(questions) == 30
    assert {q.drop for q in questions} == {None}
    assert {len(q.options) for q in questions} == {5}
    assert sum(len(q.evidence) == 2 for q in questions) == 15
    assert "neptune/further" not in session.coordinator.snapshot().llm.by_prompt


def test_questions_on_a_whole_video_come_with_their_decoys() -> None:
    extent = Span(10.0, 70.0)
    text = MADE_UP["neptune/whole"]({"video": extent, "target": 6, "joined": 3, "count": 4})
    written = questions_form(extent, 6, 4).read(text)
    assert [fault for _, fault in written] == [None] * 6
    assert {len(draft.decoys) for draft, _ in written} == {4}


def test_a_repaired_question_is_verified_as_sound() -> None:
    question = Question(
        question_id="q", video_id="v", recipe="neptune", question="What does she feel?",
        question_type="Other", answer="joy", evidence=(Span(4.0, 6.0), Span(90.0, 95.0)),
    )  # fmt: skip
    now = FailedWording(
        question=question.question,
        answer="joy",
        wrong=tuple("abcd"),
        reason="blind",
        fault="guessed",
        replies=(),
    )
    known: dict[str, Question] = {}
    request = Request(
        prompt="filters/repair", digest="", messages=(Message("user", "mend it"),),
        variables={"question": question, "now": now},
    )  # fmt: skip
    text, paid = asyncio.run(stand_in_reply(request, known))
    draft = repair_form(4, 60.0).read(text)
    assert draft is not None
    assert paid == len(text)
    assert (known[draft.question].answer, draft.evidence) == (draft.answer, question.evidence)


def test_strong_readers_guess_many_written_questions_and_cannot_tell_some() -> None:
    asked, known, right, open_looks = list[Any](), dict[str, Question](), 0, 0
    for n in range(200):
        text, options = f"What does she do at {n}?", ("runs", "sits", "sings", "reads", "sleeps")
        asked.append({"question": text, "options": options})
        known[text] = Question(
            question_id=text, video_id="v", recipe="neptune", question=text, options=options,
            question_type="Other", answer="sings", evidence=(Span(4.0, 6.0),),
        )  # fmt: skip

    def reply(prompt: str, **variables: Any) -> str:
        clip = VideoClip(span=Span(0.0, 9.0), digest="")  # rules cannot watch it
        message = Message("user", "?", clips=(clip,))
        request = Request(prompt=prompt, digest="", messages=(message,), variables=variables)
        return asyncio.run(stand_in_reply(request, known))[0]

    for rank, _ in rankings([5] * 200).read(reply("filters/guess_set", asked=asked)):
        right += rank[0] == 2
    alone = [reply("filters/blind", **one) for one in asked]
    assert sum(ranking(5).read(one)[0] == 2 for one in alone) == right
    for one in asked:
        looked = look_form(5).read(reply("filters/sight", **one, cuts=()))
        assert looked.choice in (2, CANNOT)
        open_looks += looked.choice == CANNOT
    assert 0.4 < right / 200 < 0.7
    assert 0.05 < open_looks / 200 < 0.15
