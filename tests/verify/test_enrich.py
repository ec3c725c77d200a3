"""The part `enrich`: its changes to a row, and the settings that it refuses before any work."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from actors.calls.coordinator import Coordinator
from actors.llm.offline import Offline
from actors.llm.openai import OpenAI
from actors.part import Capabilities, LlmConfig, RunContext
from actors.stages.enrich import Enrich
from mustsee.calls.llm import Llm, Reply, Request
from mustsee.errors import UserError
from mustsee.files.store import Store, identity
from mustsee.records import Question, Video
from mustsee.verify.traces import WITHOUT, Traces
from tests.support.verifier import question, row

LLM = Offline()


class Scripted:
    """Writes no steps."""

    identity = "scripted"

    async def complete(self, request: Request) -> Reply:
        assert request.prompt == "enrich/trace"
        return Reply(text="NONE", model="scripted")


@dataclass(frozen=True)
class Blind(Offline):
    capabilities: ClassVar[Capabilities] = Capabilities(images=False)


def part(**given: Any) -> Enrich:
    whole: dict[str, Any] = {"verifier": LLM, "writer": LLM, "grader": LLM, **given}
    return Enrich(**whole)


def work(enrich: Enrich, video: Video, folder: Path) -> tuple[tuple[Question, ...], Any]:
    def llm(config: LlmConfig) -> Llm:
        return Scripted()

    counts = Coordinator()
    opened = enrich.open(RunContext(store=Store(str(folder)), llm=llm, count=counts.count))

    async def run() -> Video:
        made = opened(video)
        return made if isinstance(made, Video) else await made

    return asyncio.run(run()).questions or (), counts.snapshot().counts


def test_only_passed_questions_are_traced_and_the_row_is_kept(tmp_path: Path) -> None:
    fallen = question(question_id="f", drop="sight: cannot be told")
    unlooked = question(question_id="u", metrics={"sight_unverified": 1.0})
    given = (question(), fallen, unlooked)
    traces = Traces(most=4, near=None)
    done, counts = work(part(traces=traces), row(*given), tmp_path)
    assert done == given
    assert counts[WITHOUT] == 1  # the writer was asked for one
    assert work(part(), row(*given), tmp_path)[0] == given


def test_enrichment_is_off_by_default() -> None:
    assert not part(verifier=None).is_on
    assert part(traces=Traces(most=1)).is_on


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"verifier": None}, "needs a verifier: set enrich/verifier=openai"),
        ({"verifier": Blind()}, "takes no images"),
    ],
)
def test_impossible_enrichment_settings_are_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        part(traces=Traces(most=4), **given)


def test_settings_that_change_the_result_are_part_of_the_identity() -> None:
    traces = Traces(most=4)
    plain = identity(part(traces=traces))
    watching = OpenAI(model="m", watches=True)
    others = (
        part(),
        part(traces=traces, tries=2),
        part(traces=traces, grader=OpenAI(model="m")),
        part(traces=traces, verifier=watching),
    )
    assert all(identity(other) != plain for other in others)
    frames = part(traces=traces, verifier=watching, watch=False)
    assert identity(frames) != identity(others[-1])
    assert identity(part(traces=traces, watch=False)) == plain  # nobody would watch
