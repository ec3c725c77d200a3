"""The answerers that ask a model: with frames, with the transcript, with both, or blind.

Frames are decoded once for all questions of a video. Every call goes through the gateway and the
store, so an evaluation that was stopped goes on where it was.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from actors.ask import prompts_in
from actors.part import LlmConfig, Opened, RunContext
from longshot.answers import (
    Seen,
    answered,
    failed,
    likeliest,
    order,
    shown,
    stretch,
    with_answers,
)
from longshot.errors import BadRow, BudgetSpent, Transient, UserError
from longshot.extract import LETTERS
from longshot.filters.blind import excerpt
from longshot.llm import Llm, Message, Request, Sampling
from longshot.prompts import Prompts
from longshot.records import Question, Verdict, Video
from longshot.store import identity

BENCHMARKS = ("neptune", "cinepile", "egoschema", "mlvu")
SAMPLING = Sampling(max_tokens=512)
BLIND = Seen()


@dataclass(frozen=True, kw_only=True)
class AnswerLlm:
    """Each question that is not dropped is answered `rotations` times, with its options turned.

    `prompt`: the template for multiple choice; null: the benchmark's own, by the question's recipe.
    `open_ended`: the options are withheld, and a written answer of at most `answer_words` words is
    asked for. With `sampling.top_logprobs` the option of the most probable first letter is kept,
    too, as a second column. A reply that names no option is kept as it is, and not asked for again;
    a call that fails for good is kept as failed, and is no wrong answer.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("questions", "digest", "start", "end", "lines")
    needs: ClassVar[tuple[str, ...]] = ("uri", "duration")
    writes: ClassVar[tuple[str, ...]] = ("questions",)

    llm: LlmConfig
    see: Seen = BLIND
    prompt: str | None = None
    open_ended: bool = False
    answer_words: int = 50
    rotations: int = 1
    seed: int = 0
    sampling: Sampling = SAMPLING
    prompts: str | None = None

    def __post_init__(self) -> None:
        if self.rotations < 1:
            raise UserError(f"answer.rotations={self.rotations!r}: at least 1")

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "class": "AnswerLlm",
            "version": self.version,
            "llm": identity(self.llm),
            "see": identity(self.see),
            "prompts": prompts_in(self.prompts).digest("evaluate"),
            "asked": [self.prompt, self.open_ended, self.answer_words, self.rotations, self.seed],
            "sampling": identity(self.sampling),
        }

    @property
    def name(self) -> str:
        """How results name this answerer: the model and what it saw."""
        return f"{self.llm.identity} {described(self.see)}"

    def open(self, run: RunContext) -> Opened:
        llm, prompts = run.llm(self.llm), prompts_in(self.prompts)

        async def answer(video: Video) -> Video:
            return await self._answer(video, llm, prompts)

        return answer

    async def _answer(self, video: Video, llm: Llm, prompts: Prompts) -> Video:
        asked = [q for q in video.questions or () if q.drop is None]
        images = await asyncio.to_thread(frames, video, self.see) if asked else ()
        found = await asyncio.gather(
            *(
                self._named(video, q, r, images, llm, prompts)
                for q in asked
                for r in range(min(self.rotations, max(1, len(q.options))))
            ),
            return_exceptions=True,
        )
        for item in found:  # after all have ended: what was paid for is in the store
            if isinstance(item, BaseException):
                raise item
        given: dict[str, list[Verdict]] = {}
        for name, verdict in (item for item in found if not isinstance(item, BaseException)):
            given.setdefault(name, []).append(verdict)
        return replace_questions(video, given)

    async def _named(
        self, video: Video, question: Question, rotation: int, *rest: Any
    ) -> tuple[str, Verdict]:
        return question.question_id, await self.one(video, question, rotation, *rest)

    async def one(
        self,
        video: Video,
        question: Question,
        rotation: int,
        images: tuple[bytes, ...],
        llm: Llm,
        prompts: Prompts,
    ) -> Verdict:
        """The verdict on one question of a video, shown `images`. Raises Transient, BudgetSpent."""
        variables: dict[str, Any] = {"question": question.question, "frames": len(images)}
        wanted = " ".join((question.question, *question.options))
        variables["transcript"] = (
            excerpt(video.lines or (), wanted, self.see.words) if self.see.transcript else None
        )
        choice = bool(question.options) and not self.open_ended
        if choice:
            own = question.recipe if question.recipe in BENCHMARKS else "choice"
            prompt, variables["options"] = (
                self.prompt or f"evaluate/{own}",
                shown(question, rotation),
            )
        else:
            prompt, variables["words"] = "evaluate/open", self.answer_words
        rendered = prompts.render(prompt, **variables)
        told = {
            "model": self.name,
            "rotation": rotation,
            "seed": self.seed,
            "prompt": f"{prompt}@{rendered.digest}",
        }
        request = Request(
            prompt=prompt,
            digest=rendered.digest,
            messages=(
                *((Message("system", rendered.system),) if rendered.system else ()),
                Message("user", rendered.user, images),
            ),
            variables=variables,
            sampling=self.sampling,
            seed=self.seed,
        )
        try:
            reply = await llm.complete(request)
        except (Transient, BudgetSpent):
            raise
        except BadRow as error:
            return failed(str(error), **told)
        extra: dict[str, Any] = {"cut": True} if reply.finish == "length" else {}
        if choice and reply.logprobs:
            count = len(question.options)
            place = likeliest(reply.logprobs[0], count)
            if place is not None:
                extra["choice"] = LETTERS[order(count, rotation)[place]]
        if not choice:
            written = Question(**{**vars(question), "options": (), "answer_index": None})
            return answered(written, reply.text, extra=extra, **told)
        return answered(question, reply.text, extra=extra, **told)


def described(see: Seen) -> str:
    """ "32 frames + transcript", "blind", ..."""
    looks = f"{see.frames} frames" if see.frames else f"{see.fps:g} fps" if see.fps else ""
    return " + ".join(filter(None, (looks, "transcript" if see.transcript else ""))) or "blind"


def frames(video: Video, see: Seen) -> tuple[bytes, ...]:
    """The pictures that an answerer sees, as JPEGs in order of time. Raises BadRow."""
    if not see.looks:
        return ()
    from longshot.video import frames_at

    if not video.uri:
        raise BadRow(
            f"no film for {video.video_id!r}: give its folder as videos=, or answer without frames"
        )
    times = see.times(*stretch(video))
    pictures = frames_at(video.uri, times)
    return tuple(picture.jpeg(see.longest, see.quality) for picture in pictures)


def replace_questions(video: Video, given: dict[str, list[Verdict]]) -> Video:
    """The row with the replies written into its questions."""
    questions = [with_answers(q, given.get(q.question_id, ())) for q in video.questions or ()]
    return replace(video, questions=tuple(questions))
