"""An audit's battery: every answerer asked under every condition that a question allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from actors.answer.llm import AnswerLlm, replace_questions
from actors.part import LlmConfig, Opened, RunContext, capabilities_of
from mustsee.audit.battery import ConditionRun
from mustsee.errors import BadRow, UserError
from mustsee.evaluate.answers import verdict_on_failure
from mustsee.records import Question, Video
from mustsee.verify.conditions.seen import SPANS, Condition

ONE, SILENT = 1, 0


@dataclass(frozen=True, kw_only=True)
class ConditionAnswerer:
    """One answerer under one condition of the audit ("few" are fewer `frames`)."""

    condition: str
    part: AnswerLlm

    @property
    def condition_run(self) -> ConditionRun:
        see = self.part.see
        frames = see.frames if see.condition in ("blind", "one_frame", "frames") else None
        return ConditionRun(
            name=self.part.name,
            answerer=self.part.llm.identity,
            condition=self.condition,
            frames=frames,
        )

    def takes(self, question: Question, video: Video) -> bool:
        """Whether the condition shows anything of its own: spans, or speech."""
        if question.drop is not None or question.answer_index is None or not question.options:
            return False
        if self.condition in SPANS:
            return bool(question.evidence)
        return self.condition != "transcript" or bool(video.lines)


def puts(
    answer: AnswerLlm, models: Sequence[LlmConfig], *, few: int, looks: bool, listens: bool
) -> tuple[ConditionAnswerer, ...]:
    """What `models` are asked, as `answer` asks: blind; where they may listen, with the transcript;
    where they may look, and `answer` shows pictures, all that is made of pictures. Raises
    UserError for an answerer that is not asked multiple choice.
    """
    if answer.open_ended or answer.rag.on:
        raise UserError("an audit asks multiple choice, and shows what its conditions say: leave "
                        "answer.open_ended and answer.rag alone")  # fmt: skip
    silent = dict(_seen(answer.see, few=few, looks=False, listens=listens))
    every = dict(_seen(answer.see, few=few, looks=looks and answer.see.looks, listens=listens))
    return tuple(  # condition by condition: what was decoded for one model serves the next
        ConditionAnswerer(condition=name, part=replace(answer, llm=model, see=see, drawn=True))
        for name, see in every.items()
        for model in models
        if name in silent or capabilities_of(model).images
    )


def _seen(see: Condition, *, few: int, looks: bool, listens: bool) -> list[tuple[str, Condition]]:
    """The conditions, those of the same pictures one after the other."""
    blind = replace(see, condition="blind", frames=SILENT, fps=None, transcript=False)
    found = [("blind", blind)]
    if listens:
        found.append(("transcript", replace(blind, condition="transcript", transcript=True)))
    if not looks:
        return found
    silent = replace(see, transcript=False)
    found.append(("one_frame", replace(silent, condition="one_frame", frames=ONE, fps=None)))
    if few > 1 and (see.fps is not None or few < see.frames):
        found.append(("few", replace(silent, condition="frames", frames=few, fps=None)))
    found += [(name, replace(silent, condition=name)) for name in ("frames", "shuffled")]
    heard = replace(see, transcript=listens)
    return [*found, *((name, replace(heard, condition=name)) for name in ("whole", *SPANS))]


@dataclass(frozen=True, kw_only=True)
class Battery:
    """Each question gets the replies of every `ConditionAnswerer` that takes it. What cannot be
    shown (no video, no transcript) counts as a failed call there, and leaves the other conditions
    alone.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = AnswerLlm.reads
    needs: ClassVar[tuple[str, ...]] = AnswerLlm.needs
    writes: ClassVar[tuple[str, ...]] = AnswerLlm.writes

    puts: tuple[ConditionAnswerer, ...]

    @property
    def listens(self) -> bool:
        return any(put.part.listens for put in self.puts)

    def open(self, run: RunContext) -> Opened:
        opened = [(put, put.part.open(run)) for put in self.puts]

        async def answer(video: Video) -> Video:
            for put, work in opened:  # one after the other: a video's pictures once in memory
                video = await _asked(put, work, video)
            return video

        return answer


async def _asked(put: ConditionAnswerer, work: Opened, video: Video) -> Video:
    """The row with the replies of one condition."""
    every = video.questions or ()
    some = {q.question_id for q in every if put.takes(q, video)}
    if not some:
        return video
    row = replace(video, questions=tuple(q for q in every if q.question_id in some))
    if put.part.see.transcript and not video.lines:
        row = replace(row, lines=())
    try:
        made = work(row)
        done = made if isinstance(made, Video) else await made
    except BadRow as error:
        lost = verdict_on_failure(str(error), model=put.part.name, seed=put.part.seed)
        return replace_questions(video, {name: [lost] for name in some})
    answered = {q.question_id: q for q in done.questions or ()}
    return replace(video, questions=tuple(answered.get(q.question_id, q) for q in every))
