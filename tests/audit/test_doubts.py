"""Planted wrong keys are doubted, and right ones are not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.errata import draw_questions, plant_errors
from mustsee.audit.audit import RepeatReport, audit
from mustsee.audit.battery import ConditionRun, Replies
from mustsee.audit.doubts import (
    SuspectQuestion,
    Votes,
    estimate_shares,
    find_suspects,
    looked_options,
    proposals,
)
from mustsee.evaluate.answers import verdict_on_reply
from mustsee.layouts.errata import Errata
from mustsee.records import Question, Span, Verdict
from mustsee.text import LETTERS
from tests.support.evaluation import questions

WHOLE = ConditionRun(name="m whole", answerer="m", condition="whole")
BLIND = ConditionRun(name="m blind", answerer="m", condition="blind")


def plant(
    count: int, share: float, accuracies: Sequence[float], *, shared: float = 0.0, options: int = 5
) -> tuple[list[Question], Mapping[str, str], dict[str, dict[str, int]]]:
    """Questions of which a share has a wrong key, the right options of these, and the votes."""
    drawn = [
        replace(q, options=q.options[:options], answer_index=(q.answer_index or 0) % options)
        for q in draw_questions(count)
    ]
    planted = plant_errors(drawn, share, accuracies, shared=shared)
    return list(planted.questions), planted.right, {m: {**v} for m, v in planted.votes.items()}


def suspects_of(made: Sequence[Question], votes: Votes) -> list[SuspectQuestion]:
    return find_suspects(made, Replies(made), [], votes)


@pytest.mark.parametrize("options", [4, 5])
@pytest.mark.parametrize("share", [0.05, 0.1])
def test_planted_errors_are_found_by_three_models_of_80_percent(share: float, options: int) -> None:
    made, planted, votes = plant(3000, share, (0.8, 0.8, 0.8), options=options)
    doubted = {s.question: s for s in suspects_of(made, votes)}
    found = doubted.keys() & planted.keys()
    assert len(found) >= 0.8 * len(planted)
    assert len(doubted) - len(found) <= 0.05 * (len(made) - len(planted))
    named = [name for name in found if doubted[name].named == planted[name]]
    assert len(named) >= 0.85 * len(found)


def test_the_estimated_doubt_is_the_share_of_wrong_keys() -> None:
    made, planted, votes = plant(4000, 0.1, (0.8, 0.7, 0.9))
    shares = estimate_shares(made, votes)
    doubts = np.array([1 - row[q.answer_index or 0] for q, row in zip(made, shares, strict=True)])
    wrong = np.array([q.question_id in planted for q in made])
    for low, high in ((0.0, 0.2), (0.2, 0.8), (0.8, 1.01)):
        within = (doubts >= low) & (doubts < high)
        assert abs(doubts[within].mean() - wrong[within].mean()) < 0.1


def test_right_keys_and_models_that_guess_raise_few_doubts() -> None:
    made, _, votes = plant(1000, 0.0, (0.8, 0.8, 0.8))
    assert len(suspects_of(made, votes)) <= 0.02 * len(made)
    made, _, votes = plant(1000, 0.0, (0.2, 0.2, 0.2))
    assert len(suspects_of(made, votes)) <= 0.05 * len(made)


def test_one_file_of_replies_doubts_no_key() -> None:
    made, _, votes = plant(200, 0.1, (0.8,))
    assert suspects_of(made, votes) == []
    assert suspects_of(made, {}) == []


def test_suspects_stand_in_the_order_of_their_doubt_and_say_who_votes_for_what() -> None:
    made, planted, votes = plant(500, 0.1, (0.9, 0.9, 0.9))
    suspects = suspects_of(made, votes)
    doubts = [s.doubt or 0.0 for s in suspects]
    assert doubts == sorted(doubts, reverse=True)
    first = next(s for s in suspects if s.question in planted)
    assert set(first.against) | set(first.for_key) == set(votes)
    assert (first.rule, first.models) == ("votes", 3)
    assert "model 1" in first.evidence
    assert f"{first.doubt:.2f}" in first.evidence


def answered(question: Question, run: ConditionRun, option: int) -> Question:
    verdict = verdict_on_reply(question, LETTERS[option], model=run.name)
    return replace(question, verdicts=(*question.verdicts, verdict))


def test_a_key_that_is_named_only_without_the_video_is_told_with_who_names_it() -> None:
    (question,) = questions(1)
    key = question.answer_index or 0
    wrong = (key + 1) % 5
    made = [answered(answered(question, WHOLE, wrong), BLIND, key)]
    (suspect,) = find_suspects(made, Replies(made), [WHOLE, BLIND], {"m": {"v0/0": wrong}})
    assert (suspect.rule, suspect.blind_right, suspect.conditions) == ("agreed", ("m",), ("whole",))
    assert "without the video: m" in suspect.evidence
    found = audit(made, [], [WHOLE, BLIND], RepeatReport())
    assert [s.question for s in found.suspects] == ["v0/0"]
    assert found.fails["error"] == 1
    assert audit(made, [], [WHOLE], RepeatReport(), confirmed=["v0/0"]).suspects == ()


def test_predictions_that_name_the_key_speak_for_it() -> None:
    (question,) = questions(1)
    key = question.answer_index or 0
    made = [answered(question, WHOLE, (key + 1) % 5)]
    assert audit(made, [], [WHOLE], RepeatReport()).suspects
    for_key = {name: {"v0/0": key} for name in "ab"}
    found = audit(made, [], [WHOLE], RepeatReport(), predictions=for_key)
    assert found.suspects == ()
    assert found.voters == ("m", "a", "b")


def look(chose: str, model: str = "verifier") -> Verdict:
    return Verdict(filter="sight", model=model, detail=json.dumps({"chose": chose}))


def test_looks_of_a_run_vote_where_they_agree() -> None:
    (question,) = questions(1)
    agreeing = replace(
        question, verdicts=(look("B"), look("B"), look("C", "two"), look("D", "two"))
    )
    assert looked_options(agreeing) == {"verifier": 1}
    for chose in ("cannot", "several", "Z"):
        assert looked_options(replace(question, verdicts=(look(chose),))) == {}
    key = question.answer_index or 0
    chosen = LETTERS[(key + 1) % 5]
    seen = [replace(question, verdicts=(look(chosen), look(chosen, "two"), look(chosen, "three")))]
    (suspect,) = audit(seen, [], [], RepeatReport()).suspects
    assert suspect.named == question.options[(key + 1) % 5]
    assert suspect.against == ("verifier (sight)", "two (sight)", "three (sight)")


def test_models_that_disagree_with_each_other_and_the_key_name_no_option() -> None:
    made, _, votes = plant(300, 0.05, (0.9, 0.9))
    name = made[0].question_id
    made[0] = replace(made[0], answer_index=0)
    votes["model 1"][name], votes["model 2"][name] = 1, 2
    by_id = {s.question: s for s in suspects_of(made, votes)}
    assert by_id[name].named is None
    (entry,) = proposals(made, [by_id[name]])
    assert entry.new is None


def test_proposals_that_are_likelier_wrong_name_no_new_key() -> None:
    made, planted, votes = plant(2000, 0.05, (0.8, 0.8, 0.8))
    suspects = {s.question: s for s in suspects_of(made, votes)}
    entries = {e.id: e for e in proposals(made, list(suspects.values()))}
    unlikely = [name for name, s in suspects.items() if (s.doubt or 0.0) <= 0.5]
    assert unlikely
    assert all(entries[name].new is None for name in unlikely)
    fixed = map(Errata(path="e", entries=entries).apply, made)
    assert sum(q.answer_index == n % 5 for n, q in enumerate(fixed)) > len(made) - len(planted)


def test_proposals_are_errata_that_apply_to_their_questions() -> None:
    made, planted, votes = plant(300, 0.1, (0.9, 0.9, 0.9))
    made = [replace(q, evidence=(Span(1, 2), Span(4, 5))) for q in made]
    entries = proposals(made, suspects_of(made, votes))
    assert {e.span for e in entries} == {Span(1, 5)}
    assert all(e.is_proposal for e in entries)
    errata = Errata(path="e", entries={e.id: e for e in entries})
    fixed = {q.question_id: q for q in map(errata.apply, made)}
    right = [name for name, text in planted.items() if fixed[name].answer == text]
    assert len(right) >= 0.9 * len(planted)
    assert errata.outcome(made).mismatched == ()
