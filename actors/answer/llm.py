"""The answerers that ask a model: with frames, with the transcript, with both, or blind.

Every call goes through the gateway and the store, so an evaluation that was stopped can go on.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypedDict

from actors.answer.look import AnswererFrames, FrameAnswerer, describe_sent
from actors.part import (
    LlmConfig,
    Opened,
    RunContext,
    gather_all,
    model_identity,
    prompts_in,
    video_input_of,
)
from mustsee.calls.llm import FreshReplies, Llm, Message, Request, Sampling
from mustsee.errors import BadRow, BudgetSpent, Transient, UserError
from mustsee.evaluate.answers import (
    NONE_OPTION,
    count_answers,
    likeliest,
    verdict_on_failure,
    verdict_on_reply,
    with_answers,
)
from mustsee.evaluate.open_scores import SCALES
from mustsee.evaluate.rag import Rag
from mustsee.files.store import keyed_by
from mustsee.nn import weights
from mustsee.papers import Paper, papers
from mustsee.prompts import ENGLISH, Prompts
from mustsee.records import Caption, Line, Question, Verdict, Video
from mustsee.text import LETTERS
from mustsee.verify.conditions.seen import Condition, excerpt, lines_within, order, rotated_options
from mustsee.verify.conditions.video_frames import WATCHED

SAMPLING = Sampling(max_tokens=512)
DECLINED = "refusal"  # `finish` of a reply in which the model or its moderation declines
BLIND = Condition()
WHOLE = Rag()


OPTIONS_ALONE, YES = "evaluate/options_alone", "evaluate/yes"
WHEN_SEEN, WITH_EVIDENCE = "evaluate/when", "evaluate/choice_evidence"
BLANK = " \n\t▁Ġ"  # also as tokenizers write it


class ReplyContext(TypedDict):
    """The fields of a verdict that describe its call."""

    model: str
    rotation: int
    seed: int
    prompt: str


WORDS_OF_POINT = 25  # a claim has 8 to 25 words


@dataclass(frozen=True, kw_only=True)
class AnswerLlm:
    """Answers each question that is not dropped `rotations` times, with its options rotated.

    With `sampling.top_logprobs` the option of the most probable first letter is kept as a second
    column. A reply that names no option is kept as it is, without a retry. A call that fails for
    good, or that the model or its moderation declines, is kept as failed, not as a wrong answer.
    """

    version: ClassVar[str] = "6"
    reads: ClassVar[tuple[str, ...]] = ("questions", "digest", "start", "end", "lines", "captions")
    needs: ClassVar[tuple[str, ...]] = ("uri", "duration")
    writes: ClassVar[tuple[str, ...]] = ("questions",)

    llm: LlmConfig = keyed_by(
        lambda part: model_identity(part.llm) if part.watches else part.llm.identity
    )
    see: Condition = BLIND
    rag: Rag = keyed_by(lambda part: part.rag if part.rag.on else None, default=WHOLE)
    """Video RAG: show only the clips that are relevant to the question (MLVU, appendix H)."""
    transcript_of: tuple[str, ...] | None = None
    """Recipes whose questions come with the transcript of see.transcript=true; null: all."""
    prefill: str | None = None
    """Beginning of the reply that the endpoint continues, e.g. "Best option: ("; vLLM needs
    llm.extra_body={continue_final_message: true, add_generation_prompt: false}."""
    prompt: str | None = None
    """Template in prompts/, e.g. evaluate/choice; null: the benchmark's own."""
    open_ended: bool = False
    """Withhold the options and ask for a written answer."""
    answer_words: int = 50
    """Words of a written answer, at most; MLVU's summaries and scenes have no limit."""
    evidence: bool = False
    """Ask also when the answer is seen, in a last line of the reply; its spans are scored against
    the question's evidence."""
    by_option: bool = False
    """Ask for each option alone whether it is right, and take the one with the most probable
    Yes; needs sampling.top_logprobs."""
    none_option: bool = False
    """Write "None of the others" in place of the right option."""
    rotations: int = 1
    """Replies per question, with the options rotated each time."""
    drawn: bool = False
    """Rotations are drawn for each question, so that fewer rotations than options are fair."""
    seed: int = 0
    sampling: Sampling = SAMPLING
    prompts: str | None = keyed_by(
        lambda part: prompts_in(part.prompts, part.language).digest("evaluate"), default=None
    )
    language: str = ENGLISH
    """Language of a written answer."""

    def __post_init__(self) -> None:
        if self.rotations < 1:
            raise UserError(f"answer.rotations={self.rotations!r}: at least 1")
        if self.by_option and not self.sampling.top_logprobs:
            raise UserError(
                "answer.by_option=true compares the probabilities of Yes: set "
                "answer.sampling.top_logprobs=20, with a model that returns them"
            )
        if self.evidence and (self.prompt or self.prefill or self.by_option or self.open_ended):
            raise UserError(
                f"answer.evidence=true asks by a prompt of its own ({WITH_EVIDENCE}): leave "
                "answer.prompt, answer.prefill, answer.by_option and answer.open_ended alone"
            )
        if self.open_ended and (self.by_option or self.none_option):
            raise UserError(
                "answer.open_ended=true withholds the options: leave answer.by_option and "
                "answer.none_option alone"
            )

    @property
    def name(self) -> str:
        """This answerer's name in results: the model and its condition."""
        shown = describe_condition(self.see, self.rag, videos=self.watches)
        if self.see.listens and self.transcript_of is not None:
            shown += f" ({', '.join(self.transcript_of)})"
        changes = {", options withheld": self.open_ended, ", by option": self.by_option,
                   ", right option removed": self.none_option,
                   ", with evidence": self.evidence,
                   ", without the question": self.prompt == OPTIONS_ALONE}  # fmt: skip
        return f"{self.llm.identity} {shown}" + "".join(n for n, on in changes.items() if on)

    @property
    def watches(self) -> bool:
        """Whether the video itself is shown, if the model takes videos."""
        video = self.see.looks and self.see.condition in WATCHED and not self.rag.on
        return video and video_input_of(self.llm) is not None

    @property
    def frames(self) -> int | None:
        """Number of evenly spread frames; None if frames are chosen otherwise."""
        spread = self.see.fps is None and self.see.condition in ("whole", "frames")
        return self.see.frames if spread and not self.rag.on else None

    @property
    def looks(self) -> bool:
        """Whether frames of the video are shown."""
        return self.see.looks or self.rag.on

    @property
    def listens(self) -> bool:
        """Whether the transcript is shown, or compared with the questions."""
        return self.see.listens or (self.rag.on and not self.rag.sees)

    def reads_lines(self, question: Question) -> bool:
        """Whether the transcript is shown with a question."""
        listed = self.transcript_of is None or question.recipe in self.transcript_of
        return self.see.listens and listed

    def check(self, budget_usd: float | None) -> None:
        """Raise UserError if the encoder of Video RAG is missing."""
        if self.rag.on:
            weights.find_file(
                weights.find(self.rag.model, self.rag.revision), "model.safetensors",
                "model.safetensors.index.json",
            )  # fmt: skip

    def open(self, run: RunContext) -> Opened:
        llm, prompts = run.llm(self.llm), prompts_in(self.prompts, self.language)
        if run.retry_problems:
            llm = FreshReplies(llm=llm, readable=lambda reply: reply.finish != DECLINED)
        look = FrameAnswerer(self.see, self.rag, video_input_of(self.llm, run.store))

        async def answer(video: Video) -> Video:
            return await self._answer(video, look, llm, prompts)

        return answer

    async def _answer(self, video: Video, look: FrameAnswerer, llm: Llm, prompts: Prompts) -> Video:
        questions = [q for q in video.questions or () if q.drop is None]
        if video.lines is None and any(map(self.reads_lines, questions)):
            raise BadRow(
                f"no transcript of {video.video_id!r}: give the folder of its video as videos=, or "
                "answer without one"
            )
        if self.see.captions and not video.captions and questions:
            raise BadRow(
                f"no captions of {video.video_id!r}: give the output folder of a run that made "
                "captions as videos="
            )
        frames_shown = await asyncio.to_thread(look, video, questions, self.seed)
        asked = [
            (q, rotation, frames)
            for q, frames in zip(questions, frames_shown, strict=True)
            for rotation in self._rotations(q)
        ]
        results = await gather_all(
            self.answer_question(video, *each, llm, prompts) for each in asked
        )
        verdicts: dict[str, list[Verdict]] = {}
        for (question, *_), verdict in zip(asked, results, strict=True):
            verdicts.setdefault(question.question_id, []).append(verdict)
        done = replace_questions(video, verdicts)
        return replace(done, requests=(count_answers(done.questions or (), {self.name}),))

    def _lines(self, video: Video, seen: AnswererFrames) -> tuple[Line, ...]:
        """The transcript of the spans shown; all of it for the whole video or for clips."""
        lines = video.lines or ()
        return lines_within(lines, seen.spans, seen.cuts) if seen.spans else lines

    def _rotations(self, question: Question) -> Sequence[int]:
        """The rotations of a question's options; only one if they are withheld."""
        count = max(1, len(question.options))
        most = 1 if self.open_ended or self.by_option else min(self.rotations, count)
        if not self.drawn:
            return range(most)
        return random.Random(f"{self.seed}/{question.question_id}/turns").sample(range(count), most)

    async def answer_question(
        self,
        video: Video,
        question: Question,
        rotation: int,
        seen: AnswererFrames | None,
        llm: Llm,
        prompts: Prompts,
    ) -> Verdict:
        """The verdict on one question of a video. Raises Transient, BudgetSpent."""
        if seen is None:
            reason = f"see.condition={self.see.condition}: nothing of the video is left to show"
            return verdict_on_failure(reason, model=self.name, rotation=rotation, seed=self.seed)
        choice = bool(question.options) and not self.open_ended
        if choice and self.none_option and question.answer_index is not None:
            options = list(question.options)
            options[question.answer_index] = NONE_OPTION
            question = replace(question, options=tuple(options))
        variables = self._variables(video, question, seen)
        if choice and self.by_option:
            return await self._by_option(question, seen, variables, llm, prompts)
        if choice:
            paper = papers().get(question.recipe, Paper())
            prompt = self.prompt or paper.choice_prompt
            if self.evidence:
                prompt, variables = WITH_EVIDENCE, {**variables, **_times(video, seen)}
            variables["options"] = rotated_options(question, rotation)
        elif question.asks_when:
            prompt, variables = WHEN_SEEN, {**variables, **_times(video, seen)}
        elif question.question_type in SCALES and not question.options:
            prompt = "evaluate/mlvu_open"
        else:
            of_points = WORDS_OF_POINT * len(question.points)
            prompt, variables["words"] = "evaluate/open", max(self.answer_words, of_points)
        request = self._request(prompt, variables, seen, prompts)
        if choice and self.prefill:
            messages = (*request.messages, Message("assistant", self.prefill))
            request = replace(request, messages=messages)
        context: ReplyContext = {
            "model": self.name,
            "rotation": rotation,
            "seed": self.seed,
            "prompt": f"{prompt}@{request.digest}",
        }
        try:
            reply = await llm.complete(request)
        except (Transient, BudgetSpent):
            raise
        except BadRow as error:
            return verdict_on_failure(str(error), **context)
        if reply.finish == DECLINED:
            return verdict_on_failure(f"{reply.model} declines: {reply.text}", **context)
        extra: dict[str, Any] = {"sent": describe_sent(request, seen, reply)}
        extra |= {"cut": True} if reply.finish == "length" else {}
        extra |= {"none_option": True} if choice and self.none_option else {}
        if reply.left_out:
            extra["left_out"] = list(reply.left_out)
        if seen.clips:
            extra["clips"] = [[c.span.start, c.span.end, c.score] for c in seen.clips]
        if choice and reply.logprobs:
            count = len(question.options)
            place = likeliest(reply.logprobs, count)
            if place is not None:
                extra["choice"] = LETTERS[order(count, rotation)[place]]
        if choice and self.prefill and not reply.text.lstrip().startswith(self.prefill):
            reply = replace(reply, text=self.prefill + reply.text)
        if not choice:
            written = replace(question, options=(), answer_index=None)
            return verdict_on_reply(written, reply.text, extra=extra, **context)
        return verdict_on_reply(question, reply.text, extra=extra, **context)

    def _variables(self, video: Video, question: Question, seen: AnswererFrames) -> dict[str, Any]:
        """What all prompts show of a question and its video."""
        keywords = " ".join((question.question, *question.options))
        lines = self._lines(video, seen)
        return {
            "question": question.question,
            "frames": len(seen.images),
            "stretches": len(seen.clips),
            "videos": len(seen.videos),
            "captions": every(video.captions or (), self.see.captions),
            "transcript": excerpt(lines, keywords, self.see.words)
            if self.reads_lines(question)
            else None,
        }

    def _request(
        self, prompt: str, variables: dict[str, Any], seen: AnswererFrames, prompts: Prompts
    ) -> Request:
        rendered = prompts.render(prompt, **variables)
        user = Message("user", rendered.user, seen.images, seen.videos, rendered.lines)
        system = (Message("system", rendered.system),) if rendered.system else ()
        return Request(
            prompt=prompt,
            digest=rendered.digest,
            messages=(*system, user),
            variables=variables,
            sampling=self.sampling,
            seed=self.seed,
        )

    async def _by_option(
        self,
        question: Question,
        seen: AnswererFrames,
        variables: dict[str, Any],
        llm: Llm,
        prompts: Prompts,
    ) -> Verdict:
        """The verdict on the option with the most probable "Yes"; failed if no reply has
        log-probabilities.
        """
        requests = [
            self._request(YES, {**variables, "option": option}, seen, prompts)
            for option in question.options
        ]
        context: ReplyContext = {
            "model": self.name,
            "rotation": 0,
            "seed": self.seed,
            "prompt": f"{YES}@{requests[0].digest}",
        }
        try:
            replies = await gather_all(map(llm.complete, requests))
        except (Transient, BudgetSpent):
            raise
        except BadRow as error:
            return verdict_on_failure(str(error), **context)
        if not any(r.logprobs for r in replies):
            reason = f"{self.llm.identity} returns no log-probabilities, which by_option needs"
            return verdict_on_failure(reason, **context)
        sure = [yes_probability(r.logprobs or ()) for r in replies]
        best = [n for n, value in enumerate(sure) if value == max(sure)]
        place = random.Random(f"{self.seed}/{question.question_id}/yes").choice(best)
        extra = {"yes": [round(value, 4) for value in sure]}
        return verdict_on_reply(question, LETTERS[place], extra=extra, **context)


def describe_condition(see: Condition, rag: Rag = WHOLE, *, videos: bool = False) -> str:
    """A condition in words: "32 frames + transcript", "video", "4 clips x 4 frames by words"."""
    looks = f"{see.frames} frames" if see.frames else f"{see.fps:g} fps" if see.fps else ""
    looks = "video" if videos else looks
    if rag.on:
        by = "pictures" if rag.sees else "words"
        looks = f"{rag.clips} clips x {rag.per_clip} frames by {by}"
    if not see.looks:
        looks = looks if rag.on else ""
    captions = f"{see.captions} captions" if see.captions else ""
    transcript = "transcript" if see.listens else ""
    shows = " + ".join(filter(None, (looks, captions, transcript))) or "blind"
    plain = see.condition in ("whole", "blind", "transcript")
    return shows if plain else f"{see.condition}: {shows}"


def yes_probability(logprobs: Sequence[Mapping[str, float]]) -> float:
    """Return the probability of "Yes" as the first token that is not blank; 0 where it is not among
    the alternatives.
    """
    for alternatives in logprobs:
        likeliest_token = max(alternatives, key=lambda token: alternatives[token], default="")
        if likeliest_token.strip(BLANK):
            yes = (v for t, v in alternatives.items() if t.strip(BLANK).lower() == "yes")
            return sum(math.exp(value) for value in yes)
    return 0.0


def every(captions: Sequence[Caption], count: int) -> tuple[Caption, ...]:
    """Return at most `count` of the captions, in the middle of as many equal runs of them."""
    if count >= len(captions):
        return tuple(captions)
    return tuple(captions[int((n + 0.5) * len(captions) / count)] for n in range(count))


def replace_questions(video: Video, verdicts: dict[str, list[Verdict]]) -> Video:
    """Return the row with verdicts added to its questions, by question id."""
    questions = [with_answers(q, verdicts.get(q.question_id, ())) for q in video.questions or ()]
    return replace(video, questions=tuple(questions))


def _times(video: Video, seen: AnswererFrames) -> dict[str, Any]:
    """What prompts that ask for seconds show besides: the times of frames or clips, in seconds of
    the file, and its length; null where it is not known.
    """
    watched = tuple(clip.span for clip in seen.videos)
    return {"times": seen.times, "watched": watched, "seconds": video.duration}
