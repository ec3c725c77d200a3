"""Grading of written answers, by an answer-equivalence judge, or by a model with MLVU's rubrics or
the points of a question.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from actors.part import ConfiguredJudge, LlmConfig, Opened, RunContext, prompts_in
from mustsee.calls.llm import Asker
from mustsee.errors import BadRow, UserError
from mustsee.evaluate.answers import GRADE, Answer, answers
from mustsee.evaluate.open_scores import PROMPTS, SCALES, grade
from mustsee.files.store import hardware, keyed_by
from mustsee.judge.judge import JudgeConfig, JudgeItem
from mustsee.judge.points import PROMPT as POINTS
from mustsee.judge.points import (
    Encode,
    counted_points,
    describe_grade,
    grade_by_likeness,
    grade_statements,
)
from mustsee.nn.weights import MINILM
from mustsee.prompts import ENGLISH
from mustsee.records import Question, RequestCount, Verdict, Video, is_rules

BY_LIKENESS = "rules (likeness to the points: weak)"  # the grader without a model


@dataclass(frozen=True, kw_only=True)
class GradeReplies:
    """Every written reply gets a verdict of the filter "grade"; one that cannot be graded is kept
    as failed. `llm` grades by rubrics (sub-scene captions, summaries) and by points, in `tries`
    attempts.
    """

    version: ClassVar[str] = "2"
    reads: ClassVar[tuple[str, ...]] = ("questions",)
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("questions",)

    judge: JudgeConfig
    """Judge of answers that have a reference."""
    llm: LlmConfig
    """Model that grades sub-scene captions and summaries by rubrics; must not be the model
    under test."""
    language: str = keyed_by(
        lambda part: prompts_in(None, part.language).digest(*PROMPTS.values(), POINTS),
        default=ENGLISH,
    )
    """Language of the grader's reasons."""
    encoder: str = MINILM
    """Encoder of the sentences by which rules grade points: MiniLM-like, a folder or
    `package:NAME/FOLDER`."""
    tries: int = 3
    seed: int = 0
    own: bool = hardware(default=False)
    """Allow a model to grade its own answers."""

    def check_grader_differs(self, tested: LlmConfig, *, rubrics: bool, judged: bool) -> None:
        """Raise UserError if a model would grade its own answers, by rubrics or as the judge, and
        `own` does not allow it. The offline rules may.
        """
        judge: LlmConfig | None = getattr(self.judge.engine, "llm", None)
        for key, grader in (("grade/llm=openai grade.llm.model", self.llm if rubrics else None),
                            ("judge.engine.llm.model", judge if judged else None)):  # fmt: skip
            if grader is None or self.own or is_rules(grader.identity):
                continue
            # The settings, from " {" on, do not make it another model.
            if grader.identity.split(" {")[0] == tested.identity.split(" {")[0]:
                raise UserError(
                    f"{grader.identity} would grade its own answers: give the grader a model of "
                    f"its own ({key}=...), or allow it with grade.own=true"
                )

    def open(self, run: RunContext) -> Opened:
        prompts = prompts_in(None, self.language)
        asker = Asker(
            llm=run.llm(self.llm),
            prompts=prompts,
            tries=self.tries,
            retries_stored=run.retry_problems,
        )
        judge = ConfiguredJudge(self.judge, run)
        encode = self._open_encoder() if is_rules(asker.llm.identity) else None

        async def work(video: Video) -> Video:
            rows = await asyncio.gather(
                *(self._grade(q, asker, judge, encode) for q in video.questions or ())
            )
            return replace(video, questions=tuple(rows), requests=_count_grades(rows))

        return work

    def _open_encoder(self) -> Encode | None:
        if not self.judge.points:
            return None
        from mustsee.nn.bert import Encoder

        model, lock = Encoder.load(self.encoder), Lock()

        def encode(texts: Sequence[str]) -> NDArray[np.float32]:
            with lock:
                return model.encode(texts)

        return encode

    async def _grade(
        self, question: Question, asker: Asker, judge: ConfiguredJudge, encode: Encode | None
    ) -> Question:
        written = [a for a in answers(question) if not a.rule and a.failed is None]
        if not written or question.asks_when:  # Its spans are scored, without a judge.
            return question
        if question.question_type in SCALES and not question.options:
            grades = [await self._grade_by_rubric(a, asker) for a in written]
        elif self.judge.points and counted_points(question) and not question.options:
            grades = [await self._grade_by_points(a, asker, encode) for a in written]
        else:
            grades = await _judge(question, written, judge)
        kept = tuple(v for v in question.verdicts if v.filter != GRADE)
        return replace(question, verdicts=(*kept, *grades))

    async def _grade_by_points(
        self, answer: Answer, asker: Asker, encode: Encode | None
    ) -> Verdict:
        question = answer.question
        detail: dict[str, Any] = {"of": answer.model, "rotation": answer.rotation}
        detail["by_points"] = True
        asked = (question.question, answer.reply, question.points, question.contradictions)
        try:
            if encode is not None:
                given = await asyncio.to_thread(grade_by_likeness, *asked, encode)
            else:
                given = await grade_statements(*asked, asker, seed=self.seed)
            detail |= describe_grade(question, given)
        except BadRow as error:
            detail["error"] = str(error)
        return Verdict(
            filter=GRADE,
            model=asker.llm.identity if encode is None else BY_LIKENESS,
            seed=self.seed,
            prompt=asker.prompts.digest(POINTS) if encode is None else "",
            detail=json.dumps(detail, ensure_ascii=False),
        )

    async def _grade_by_rubric(self, answer: Answer, asker: Asker) -> Verdict:
        detail: dict[str, Any] = {"of": answer.model, "rotation": answer.rotation}
        try:
            graded = await grade(answer.question, answer.reply, asker, self.seed)
            detail |= {"first": graded.first, "second": graded.second}
            detail |= {"points": list(graded.points)} if graded.points else {}
        except BadRow as error:
            graded, detail["error"] = None, str(error)
        return Verdict(
            filter=GRADE,
            model=asker.llm.identity,
            seed=self.seed,
            prompt=asker.prompts.digest(PROMPTS[answer.question.question_type]),
            reply=graded.reply if graded else "",
            detail=json.dumps(detail),
        )


def _count_grades(questions: Sequence[Question]) -> tuple[RequestCount, ...]:
    """Return how many answers were to be graded by a rubric, and how many could not be."""
    details = [
        json.loads(v.detail or "{}") for q in questions for v in q.verdicts if v.filter == GRADE
    ]
    errors = [detail["error"] for detail in details if "error" in detail]
    error = errors[-1] if errors else ""
    return (RequestCount(what="grades", sent=len(details), unread=len(errors), error=error),)


async def _judge(
    question: Question, written: Sequence[Answer], configured: ConfiguredJudge
) -> list[Verdict]:
    items = [
        JudgeItem(question=question.question, candidate=a.reply, references=question.references)
        for a in written
    ]
    judge, scores = await configured.scores(items)
    verdicts: list[Verdict] = []
    for answer, score in zip(written, scores, strict=True):
        detail: dict[str, Any] = {"of": answer.model, "rotation": answer.rotation}
        detail |= {"error": score.error} if score.error else {"score": score.score}
        if score.warning:
            detail["warning"] = score.warning
        record = judge.record
        rates = [None if math.isnan(r) else r for r in (record.sensitivity, record.specificity)]
        detail["judge"] = [*rates, record.positive, record.negative]
        verdicts.append(
            Verdict(
                filter=GRADE,
                model=f"{judge.engine.identity.engine} {judge.engine.identity.weights[:12]}",
                correct=None if score.error else score.equivalent,
                detail=json.dumps(detail),
            )
        )
    return verdicts
