"""The fields of a part that are in the store's key: those that decide its rows, and no others."""

from dataclasses import replace
from typing import Any

import pytest

from actors.answer.llm import AnswerLlm
from actors.llm.offline import Offline
from actors.llm.openai import OpenAI
from actors.part import AskOptions
from actors.stages.ask import Ask
from actors.stages.caption import OpenAICaptioner
from actors.stages.certify import Certify
from actors.stages.cinepile import AskScene
from actors.stages.enrich import Enrich
from actors.stages.people import People
from actors.stages.synthesise import Absent
from actors.stages.vet import Vet
from mustsee.calls.llm import Sampling
from mustsee.files.store import digest, identity
from mustsee.recipes.neptune.ask import NeptuneSettings, neptune
from mustsee.verify.conditions.seen import Condition
from mustsee.verify.guess.filters import BlindGuess
from mustsee.verify.sight import Sight

LLM = Offline()
VET = Vet(filters={"blind": BlindGuess(name="blind", prompt="filters/blind")}, guesser=LLM)
PARTS: tuple[AskOptions, ...] = (
    Absent(verifier=LLM),
    Ask(recipe=neptune, settings=NeptuneSettings(), llm=LLM),
    AskScene(llms={"reasoning": LLM}),
    Certify(verifier=LLM),
    Enrich(writer=LLM, grader=LLM, verifier=LLM),
    People(llm=LLM),
    VET,
)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
@pytest.mark.parametrize(
    "change", [{"tries": 7}, {"sampling": Sampling(max_tokens=7)}, {"language": "German"}], ids=str
)
def test_options_of_asking_count_in_the_key(part: AskOptions, change: dict[str, Any]) -> None:
    assert digest(part) == digest(replace(part))
    assert digest(replace(part, **change)) != digest(part)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_a_prompt_counts_with_its_text_and_not_with_its_folder(
    part: AskOptions, tmp_path: Any
) -> None:
    from shutil import copytree

    from mustsee.prompts import ROOT

    folder = copytree(ROOT, tmp_path / "prompts")
    assert digest(replace(part, prompts=str(folder))) == digest(part)
    for file in folder.rglob("*.j2"):
        file.write_text(file.read_text() + "\nAnd be kind.\n")
    assert digest(replace(part, prompts=str(folder))) != digest(part)


def test_options_of_a_part_without_a_model_do_not_count() -> None:
    assert identity(Absent(tries=7, seed=3, language="German")) == identity(Absent())
    assert identity(Absent(verifier=LLM, seed=3)) != identity(Absent(verifier=LLM))


def test_a_role_counts_where_a_filter_asks_it() -> None:
    other = OpenAI(model="m")
    assert identity(replace(VET, verifier=other)) == identity(VET)
    assert identity(replace(VET, guesser=other)) != identity(VET)
    sight = Vet(filters={"sight": Sight()}, verifier=replace(other, watches=True))
    assert identity(replace(sight, watch=False)) != identity(sight)


def test_videos_count_where_they_are_shown() -> None:
    texts, videos = OpenAI(model="m"), OpenAI(model="m", watches=True)
    whole = Condition(condition="whole", frames=8)
    for part in (
        AnswerLlm(llm=texts, see=whole),
        Ask(recipe=neptune, settings=NeptuneSettings(), llm=texts),
    ):
        assert identity(replace(part, llm=videos)) != identity(part)
    assert identity(AnswerLlm(llm=videos)) == identity(AnswerLlm(llm=texts))  # both are blind
    captioner = OpenAICaptioner(endpoint=texts)
    assert identity(replace(captioner, endpoint=videos)) != identity(captioner)
