"""The parts that run recipes: what they write, and what is part of their key."""

import asyncio
import inspect
import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from actors.engine.hardware import Hardware
from actors.engine.stage import Stage
from actors.llm.offline import Offline
from actors.llm.openai import OpenAI
from actors.llm.scripted import ScriptedModel
from actors.part import RunContext
from actors.stages.ask import Ask
from actors.stages.vet import Vet
from mustsee.errors import UserError
from mustsee.files.store import Store, digest
from mustsee.prompts import ROOT
from mustsee.recipes.neptune.ask import NeptuneSettings, neptune
from mustsee.recipes.neptune.settings import WholeSettings
from mustsee.records import Video
from mustsee.verify.guess.filters import BlindGuess
from mustsee.verify.sight import Sight
from tests.support.neptune_video import sample_video

ASK = Ask(recipe=neptune, settings=NeptuneSettings(), llm=ScriptedModel())
FILTERS = (
    BlindGuess(name="blind", prompt="filters/blind"),
    BlindGuess(name="asr", prompt="filters/asr", transcript=True),
)
VET = Vet(filters={f.name: f for f in FILTERS}, guesser=Offline())


def run(part: Ask | Vet, row: Video, folder: Path) -> Video:
    context = RunContext(
        store=Store(str(folder)), llm=lambda config: config.open(), count=lambda name, n: None
    )

    async def one() -> Video:
        answer = pickle.loads(pickle.dumps(part)).open(context)(row)
        assert inspect.isawaitable(answer)
        return await answer

    return asyncio.run(one())


def test_a_row_is_asked_about_and_vetted(tmp_path: Path) -> None:
    row = sample_video()
    with_questions = run(ASK, row, tmp_path)
    vetted = run(VET, with_questions, tmp_path)
    assert replace(with_questions, segments=None, questions=None, requests=()) == row
    changed = {"questions": vetted.questions, "requests": vetted.requests}
    assert vetted == replace(with_questions, **changed)  # pyright: ignore[reportArgumentType]
    assert vetted.requests
    assert not [count for count in vetted.requests if count.unread]
    assert vetted.questions
    assert all(2 <= len(q.verdicts) <= 6 for q in vetted.questions)
    assert {bool(q.drop) for q in vetted.questions} == {True, False}
    assert {"segments", "questions", "unasked"} == set(ASK.writes)


def test_columns_that_are_not_read_do_not_change_the_key(tmp_path: Path) -> None:
    """Rows that differ only in columns that the part does not read give the same questions."""
    other = replace(sample_video(), title="Another title", frames=(), tags=("x",), cluster=3)
    assert run(ASK, other, tmp_path).questions == run(ASK, sample_video(), tmp_path).questions
    bare = Video(**{c: getattr(sample_video(), c) for c in {*ASK.reads, "uri"}})
    assert run(ASK, bare, tmp_path).questions == run(ASK, sample_video(), tmp_path).questions


@pytest.mark.parametrize(
    "other",
    [
        replace(ASK, settings=NeptuneSettings(questions=5)),
        replace(ASK, settings=NeptuneSettings(seed=1)),
        replace(ASK, llm=OpenAI(model="another")),
        replace(ASK, tries=1),
    ],
)
def test_settings_and_model_are_part_of_the_key(other: Ask) -> None:
    assert digest(other) != digest(ASK)


def test_the_prompts_text_is_part_of_the_key_and_their_folder_is_not(tmp_path: Path) -> None:
    shutil.copytree(ROOT, tmp_path / "prompts")
    moved = replace(ASK, prompts=str(tmp_path / "prompts"))
    vet = replace(VET, prompts=str(tmp_path / "prompts"))
    assert digest(moved) == digest(ASK)
    assert digest(vet) == digest(VET)
    for name in ("neptune/decoys", "filters/_options"):
        path = tmp_path / "prompts" / f"{name}.j2"
        path.write_text(path.read_text() + "changed")
    assert digest(moved) != digest(ASK)
    assert digest(vet) != digest(VET)


def test_the_threshold_is_part_of_the_key_and_filter_names_are_unique() -> None:
    first = FILTERS[0]
    changed = {**VET.filters, first.name: replace(first, min_failures=1)}
    assert digest(replace(VET, filters=changed)) != digest(VET)
    assert digest(replace(VET, order=[FILTERS[-1].name])) != digest(VET)
    with pytest.raises(UserError, match=r"vet\.filters\.other: the filter's name is 'blind'"):
        replace(VET, filters={"other": first})
    with pytest.raises(UserError, match=r"vet\.order=\['gone'\]"):
        replace(VET, order=["gone"])


def test_filters_are_switched_off_and_reordered_by_name() -> None:
    names = [f.name for f in FILTERS]
    assert [f.name for f in VET.chosen_filters] == names
    without = replace(VET, filters={**VET.filters, names[0]: None})
    assert [f.name for f in without.chosen_filters] == names[1:]
    turned = replace(VET, order=[names[-1]])
    assert [f.name for f in turned.chosen_filters] == [names[-1], *names[:-1]]


def test_rows_of_local_models_get_workers_of_their_own() -> None:
    """With one endpoint among the models, rows wait for it in the same worker."""
    hardware = Hardware(workers=1, concurrency=32)
    free: Any = VET
    alone = Stage(name="vet", part=free, hardware=hardware).sized_for(4).hardware
    assert (alone.least, alone.max_workers, alone.concurrency) == (1, 4, 1)
    paid: Any = replace(VET, filters={**VET.filters, "sight": Sight()}, verifier=OpenAI(model="m"))
    assert Stage(name="vet", part=paid, hardware=hardware).sized_for(4).hardware == hardware


def test_keyframes_are_read_only_where_a_writer_is_shown_them() -> None:
    """They decide its questions then, and only then."""
    writer = OpenAI(model="m")
    shown = replace(ASK, llm=writer)
    assert "keyframes" in shown.reads
    off = replace(NeptuneSettings().sheets, most=0)
    for part in (
        replace(ASK, llm=Offline()),
        replace(ASK, llm=OpenAI(model="m", looks=False)),
        replace(ASK, llm=writer, settings=NeptuneSettings(sheets=off)),
        replace(ASK, llm=writer, settings=WholeSettings()),
    ):
        assert "keyframes" not in part.reads


def test_rules_that_measure_bars_are_shown_them() -> None:
    filters = {"sight": Sight()}
    assert not Vet(filters=filters, verifier=Offline()).crops_bars
    assert Vet(filters=filters, verifier=OpenAI(model="m")).crops_bars
