"""The judge `simpleqa`: any configured model, asked for one of SimpleQA's three grades.

The calls are those of the judge `llm` (connections, retries, the run's gateway). Only the prompt
and the parsing differ: CORRECT is TRUE, INCORRECT and NOT_ATTEMPTED are FALSE.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from actors.calls.gateway import MeteredModel
from actors.judge.llm import LlmEngine, LlmJudge, RetryingModel
from actors.part import LlmConfig, RunContext
from mustsee.calls.llm import Llm, Message, Reply, Request
from mustsee.judge.judge import Engine, ForwardPass, PreparedTriple
from mustsee.judge.prompt import Triple
from mustsee.prompts import Prompts
from mustsee.store import hardware

PROMPT = "judge/simpleqa"
# The published grader answers with A, B or C for the three grades.
_GRADE = re.compile(r"\W*(?:([ABC])|(CORRECT|INCORRECT|NOT[_ ]ATTEMPTED))\W*", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class SimpleQa:
    """The judge `simpleqa`."""

    llm: LlmConfig
    """A choice of conf/llm."""
    connections: int = hardware(16)
    """Calls in flight."""

    def open(self) -> Engine:
        attempts = self.llm.endpoint.attempts if isinstance(self.llm, MeteredModel) else 1
        return SimpleQaEngine(self, RetryingModel(self.llm.open(), attempts))

    def for_run(self, run: RunContext) -> ConnectedSimpleQa:
        """The same judge, its calls through the run's gateway: limits, store, budget, usage."""
        return ConnectedSimpleQa(self, run.llm(self.llm))


@dataclass(frozen=True)
class ConnectedSimpleQa:
    """A judge whose model is connected."""

    judge: SimpleQa
    llm: Llm

    def open(self) -> Engine:
        return SimpleQaEngine(self.judge, self.llm)


class SimpleQaEngine:
    """The judge `llm` with SimpleQA's prompt and grades."""

    def __init__(self, config: SimpleQa, llm: Llm) -> None:
        grader = Grader(llm)
        judge = LlmJudge(llm=config.llm, verdict="word", connections=config.connections)
        self._engine = LlmEngine(judge, grader)
        self.limit = self._engine.limit
        self.identity = replace(self._engine.identity, engine="simpleqa", prompt=grader.digest)

    def prepare(self, triple: Triple) -> PreparedTriple:
        return self._engine.prepare(triple)

    def score(self, prepared: Sequence[PreparedTriple]) -> list[ForwardPass]:
        return self._engine.score(prepared)


class Grader:
    """A model for the judge `llm`, which replaces the prompt by SimpleQA's, and a grade by TRUE or
    FALSE. Another reply is passed on as it is, and is not a verdict.
    """

    def __init__(self, llm: Llm) -> None:
        self._llm, self._prompts = llm, Prompts()
        self.digest = self._prompts.digest(PROMPT)

    @property
    def identity(self) -> str:
        return self._llm.identity

    async def complete(self, request: Request) -> Reply:
        """As `Llm.complete`."""
        text = self._prompts.render(PROMPT, **request.variables).user
        simpleqa_request = replace(
            request, prompt=PROMPT, digest=self.digest, messages=(Message("user", text),)
        )
        reply = await self._llm.complete(simpleqa_request)
        right = parse_grade(reply.text)
        return reply if right is None else replace(reply, text="TRUE" if right else "FALSE")


def parse_grade(reply: str) -> bool | None:
    """Whether a reply grades an answer as correct; None if it is not a grade."""
    grade = _GRADE.fullmatch(reply.strip())
    return grade and (grade[1] or grade[2]).upper() in ("A", "CORRECT")
