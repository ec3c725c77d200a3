"""The part `enrich`: its changes to a row, and the settings that it refuses before any work."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from actors.calls.coordinator import Coordinator
from actors.judge.lexical import Lexical
from actors.llm.offline import Offline
from actors.part import Capabilities, LlmConfig, RunContext
from actors.stages.enrich import Enrich
from actors.stages.vet import Vet
from mustsee.calls.llm import Llm, Reply, Request
from mustsee.enrich.groups import GroupSettings
from mustsee.enrich.traces import Traces
from mustsee.errors import UserError
from mustsee.judge.judge import JudgeConfig
from mustsee.records import Question, Video
from mustsee.store import Store, identity
from tests.enrich.test_groups import PARAPHRASE
from tests.enrich.test_twins import SAID
from tests.support.verifier import question, row

JUDGE = JudgeConfig(engine=Lexical(measure="token_recall"), record="assets/judge_token_recall.json")
LLM = Offline()


class Scripted:
    """Answers each prompt with one text."""

    identity = "scripted"

    async def complete(self, request: Request) -> Reply:
        said = {"enrich/twin": SAID, "enrich/group": PARAPHRASE}
        return Reply(text=said[request.prompt], model="scripted")


@dataclass(frozen=True)
class Blind(Offline):
    capabilities: ClassVar[Capabilities] = Capabilities(images=False)


def part(**given: Any) -> Enrich:
    vet = Vet(filters={}, judge=JUDGE, verifier=LLM)
    whole: dict[str, Any] = {"vet": vet, "writer": LLM, "grader": LLM, **given}
    return Enrich(**whole)


def work(enrich: Enrich, video: Video, folder: Path) -> tuple[Question, ...]:
    def llm(config: LlmConfig) -> Llm:
        return Scripted()

    counts = Coordinator()
    opened = enrich.open(RunContext(store=Store(str(folder)), llm=llm, count=counts.count))

    async def run() -> Video:
        made = opened(video)
        return made if isinstance(made, Video) else await made

    return asyncio.run(run()).questions or ()


def test_only_passed_questions_are_enriched_and_the_row_is_kept(tmp_path: Path) -> None:
    fallen = question(question_id="f", drop="sight: cannot be told")
    unlooked = question(question_id="u", metrics={"sight_unverified": 1.0})
    open_ended = question(question_id="o", options=(), answer_index=None)
    given = (question(), fallen, unlooked, open_ended)
    done = work(
        part(twins=True, groups=GroupSettings(most=3, see=None, near=None)), row(*given), tmp_path
    )
    assert [q.question_id for q in done[:4]] == ["q", "f", "u", "o"]
    assert done[0] == replace(given[0], group="q")
    assert done[1:4] == given[1:]
    assert [(q.sibling_of, q.relation) for q in done[4:]] == [("q", "open"), ("q", "paraphrase")]
    again = work(
        part(twins=True, groups=GroupSettings(most=3, see=None, near=None)), row(*done), tmp_path
    )
    assert [q.question_id for q in again] == [q.question_id for q in done]  # nothing twice


def test_a_group_without_kept_siblings_is_dissolved(tmp_path: Path) -> None:
    """A filter that drops everything."""

    @dataclass(frozen=True)
    class Nothing:
        name: str = "nothing"
        roles: tuple[str, ...] = ()
        prompts: tuple[str, ...] = ()
        reads: tuple[str, ...] = ()

        async def __call__(self, question: Question, video: Video, vetting: Any) -> Question:
            return replace(question, drop="nothing: passes")

    vet = Vet(filters={Nothing.name: Nothing()}, judge=JUDGE, verifier=LLM)
    groups = GroupSettings(most=3, see=None, near=None)
    first, sibling = work(part(vet=vet, groups=groups), row(question()), tmp_path)
    assert (first.group, sibling.group, sibling.drop) == (None, "q", "nothing: passes")


def test_enrichment_is_off_by_default() -> None:
    assert not part().is_on
    assert part(twins=True).is_on
    assert part(groups=GroupSettings(most=1)).is_on
    assert part(traces=Traces(most=1)).is_on


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"vet": Vet(filters={}), "twins": True}, "needs a judge"),
        ({"vet": Vet(filters={}), "traces": Traces(most=4)}, "needs a verifier"),
        ({"vet": Vet(filters={}, verifier=Blind()), "traces": Traces(most=4)}, "takes no images"),
    ],
)
def test_impossible_enrichment_settings_are_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        part(**given)


def test_settings_that_change_the_result_are_part_of_the_identity() -> None:
    plain = identity(part(twins=True))
    for other in (
        part(),
        part(twins=True, groups=GroupSettings(most=1)),
        part(twins=True, tries=2),
    ):
        assert identity(other) != plain
    assert identity(part(twins=True, grader=Blind())) == plain  # no answers are graded
