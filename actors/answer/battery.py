"""An audit's battery, which asks every answerer under every condition that a question allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from actors.answer.llm import AnswerLlm, replace_questions
from actors.part import LlmConfig, Opened, RunContext, capabilities_of
from mustsee.audit.battery import OPEN, ConditionRun
from mustsee.errors import BadRow, UserError
from mustsee.evaluate.answers import count_answers, verdict_on_failure
from mustsee.records import Question, Video
from mustsee.verify.conditions.seen import SPANS, Condition

ONE, SILENT = 1, 0  # numbers of frames: of the condition "one_frame", and of "blind"


@dataclass(frozen=True, kw_only=True)
class ConditionAnswerer:
    """One answerer under one condition of the audit ("few" is `frames` with fewer of them)."""

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
        """Whether the condition applies: it needs options, an answer key, and evidence or
        speech.
        """
        if question.drop is not None or question.answer_index is None or not question.options:
            return False
        if self.condition in SPANS:
            return bool(question.evidence)
        return not self.condition.startswith("transcript") or bool(video.lines)


def every_model(first: Any, also: Sequence[Mapping[str, Any]]) -> list[LlmConfig]:
    """Return the models of a job: `first`, and each of `also` by the keys in which it differs.
    Raises UserError for an unknown key or a model named twice.
    """
    keys = {f.name for f in fields(first)}
    for differs in also:
        if wrong := sorted(set(differs) - keys):
            raise UserError(f"also: {wrong} are not keys of llm: {', '.join(sorted(keys))}")
    all_models = [first, *(replace(first, **differs) for differs in also)]
    names = [model.identity for model in all_models]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UserError(f"also: {twice} are named twice; each model needs its own name")
    return all_models


def puts(
    answer: AnswerLlm,
    models: Sequence[LlmConfig],
    *,
    few: int,
    looks: bool,
    listens: bool,
    none_option: bool = False,
    open_ended: bool = False,
) -> tuple[ConditionAnswerer, ...]:
    """The conditions under which `models` answer, with the settings of `answer`: blind; with the
    transcript, if `listens`; and all conditions with frames, if `looks` and `answer` shows frames.
    `none_option`: also with "None of the others" in place of the right option, blind and under the
    fullest condition. `open_ended`: there also without the options. Raises UserError for an
    answerer that is not asked multiple choice.
    """
    if answer.open_ended or answer.rag.on:
        raise UserError("an audit sets the conditions itself: leave answer.rag alone, and write "
                        "open_ended=true instead of answer.open_ended=true")  # fmt: skip
    silent = dict(_conditions(answer.see, few=few, looks=False, listens=listens))
    every = dict(
        _conditions(answer.see, few=few, looks=looks and answer.see.looks, listens=listens)
    )
    parts = [(name, replace(answer, see=see, drawn=True)) for name, see in every.items()]
    ends = dict.fromkeys(("blind", "whole" if "whole" in every else list(silent)[-1]))
    if none_option:
        parts += [(f"{name}_none", replace(answer, see=every[name], drawn=True, none_option=True))
                  for name in ends]  # fmt: skip
    if open_ended:
        parts += [(name + OPEN, replace(answer, see=every[name], rotations=1, open_ended=True))
                  for name in ends]  # fmt: skip
    return tuple(  # by condition: frames decoded for one model serve the next
        ConditionAnswerer(condition=name, part=replace(part, llm=model))
        for name, part in parts
        for model in models
        if not part.see.looks or capabilities_of(model).images
    )


def _conditions(
    see: Condition, *, few: int, looks: bool, listens: bool
) -> list[tuple[str, Condition]]:
    """The conditions; those with the same frames are adjacent."""
    blind = replace(see, condition="blind", frames=SILENT, fps=None, transcript=False)
    conditions = [("blind", blind)]
    if listens:
        conditions.append(("transcript", replace(blind, condition="transcript", transcript=True)))
    if not looks:
        return conditions
    silent = replace(see, transcript=False)
    conditions.append(("one_frame", replace(silent, condition="one_frame", frames=ONE, fps=None)))
    if few > 1 and (see.fps is not None or few < see.frames):
        conditions.append(("few", replace(silent, condition="frames", frames=few, fps=None)))
    conditions += [(name, replace(silent, condition=name)) for name in ("frames", "shuffled")]
    with_speech = replace(see, transcript=listens)
    return [
        *conditions,
        *((name, replace(with_speech, condition=name)) for name in ("whole", *SPANS)),
    ]


@dataclass(frozen=True, kw_only=True)
class Battery:
    """Each question gets the replies of every `ConditionAnswerer` that takes it. A condition that
    cannot be shown (no video, no transcript) counts as a failed call; the others are not affected.
    """

    version: ClassVar[str] = "2"
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
            for put, work in opened:  # one by one, so that a video's frames are in memory once
                video = await _answer_condition(put, work, video)
            count = count_answers(video.questions or (), {put.part.name for put in self.puts})
            return replace(video, requests=(count,))

        return answer


async def _answer_condition(put: ConditionAnswerer, work: Opened, video: Video) -> Video:
    """Return the row with the replies of one condition."""
    every = video.questions or ()
    taken = {q.question_id for q in every if put.takes(q, video)}
    if not taken:
        return video
    row = replace(video, questions=tuple(q for q in every if q.question_id in taken))
    if put.part.see.transcript and not video.lines:
        row = replace(row, lines=())
    try:
        result = work(row)
        done = result if isinstance(result, Video) else await result
    except BadRow as error:
        failed = verdict_on_failure(str(error), model=put.part.name, seed=put.part.seed)
        return replace_questions(video, {name: [failed] for name in taken})
    answered = {q.question_id: q for q in done.questions or ()}
    return replace(video, questions=tuple(answered.get(q.question_id, q) for q in every))
