"""Filters that let a model guess from too little, and drop or mark a question that it gets right.

- `BlindGuess`: from the text. With the question and its options this is Neptune's QAD filter; with
  the transcript added, its ASR filter (C.2.5, C.4); with the options alone, a view that the paper
  does not have. With `ranks=false` the model names one option only, as in EgoSchema (3.1.3).
- `SetGuess`: from all questions of a set and their shared list of answers at once.
- `Glimpse`: from one frame, or from frames in a random order. A question that one frame answers
  needs no video, and a question of order that is answered from shuffled frames needs no order.

(Neptune's text says "remove what is answered correctly at least X of 3 times"; its plots and its
remarks on X = 3 describe "keep what fails at least X times". At its X = 2 the two are the same.)
Runs of one model at one view mostly agree (`metrics.<name>_agreement`), so that three of them tell
little more than one. Another view or another model tells more.

A guess whose replies are unparseable is not a vote. If too few votes are left to decide, the
question is unverified: not dropped, not repaired, and in no subset.

A further way to guess is a subclass of `GuessFilter`: `group` says which questions are guessed at
together, and `guess` returns each group with its verdicts.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from asyncio import gather
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import fmean
from typing import Any

from mustsee.errors import BadRow, UserError
from mustsee.records import (
    SET,
    Question,
    Verdict,
    Video,
    agreement_metric,
    guessed_metric,
    is_rules,
)
from mustsee.verify.conditions.seen import Condition, excerpt, plan, video_span
from mustsee.verify.filters import (
    GUESSED,
    HEARD,
    FilterOutcome,
    VettingContext,
    add_outcome,
    is_judgeable,
    mark_unverified,
)
from mustsee.verify.guess import ask
from mustsee.verify.guess.counts import RIGHT_IN_SET

GLIMPSE_PROMPT = "filters/glimpse"
SILENT = ("one_frame", "frames", "shuffled")  # conditions without the transcript or the evidence


@dataclass(frozen=True, kw_only=True)
class GuessFilter(ABC):
    """A filter by guesses at groups of a video's questions."""

    name: str
    """Name of the filter in verdicts and drop reasons."""
    drops: bool = False
    """Whether questions that do not pass are dropped; otherwise they only stay out of the
    subset."""

    @abstractmethod
    def group(
        self, questions: Sequence[Question], video: Video, vetting: VettingContext
    ) -> list[list[Question]]:
        """Return the questions that are guessed at, those together that are judged together."""

    @abstractmethod
    async def guess(
        self, questions: Sequence[Question], video: Video, vetting: VettingContext
    ) -> list[Question]:
        """Return a group with its verdicts, each question marked or dropped if it does not pass."""

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        """Return the question with its verdicts, and dropped if it does not pass."""
        return (await self.try_all([question], video, vetting))[0]

    async def try_all(
        self, questions: Sequence[Question], video: Video, vetting: VettingContext
    ) -> list[Question]:
        """Return all questions with their verdicts, from as few requests as there may be."""
        groups = self.group(questions, video, vetting)
        done = await gather(*(self.guess(group, video, vetting) for group in groups))
        judged = {q.question_id: q for group in done for q in group}
        return [judged.get(q.question_id, q) for q in questions]

    def _add(
        self,
        question: Question,
        verdicts: Sequence[Verdict],
        passed: bool,
        reason: str,
        metrics: Mapping[str, float],
        fault: str = GUESSED,
    ) -> Question:
        judged = replace(question, verdicts=(*question.verdicts, *verdicts))
        outcome = FilterOutcome(
            filter=self.name, passed=passed, fault=fault, reason=reason, drops=self.drops,
            metrics=metrics,
        )  # fmt: skip
        return add_outcome(judged, outcome)

    def _mark_unread(
        self, questions: Iterable[Question], blank: Verdict, detail: str
    ) -> list[Question]:
        """Return questions whose guess has no readable reply."""
        failed = replace(blank, detail=detail)
        unread = (replace(q, verdicts=(*q.verdicts, failed)) for q in questions)
        return [mark_unverified(q, self.name) for q in unread]


@dataclass(frozen=True, kw_only=True)
class TextGuess(GuessFilter):
    """A filter by guesses from text alone."""

    guesser: str = "guesser"
    """Role of the model that guesses."""
    transcript: bool = False
    """Whether the guesser reads the transcript, at most `max_words` of it; videos without one
    are then passed over."""
    max_words: int = 20_000
    """Words of a longer transcript; the lines nearest to the questions are shown."""

    @property
    def roles(self) -> tuple[str, ...]:
        return (self.guesser,)

    @property
    def reads(self) -> tuple[str, ...]:
        return ("lines", "transcribed_by") if self.transcript else ()

    @property
    def fault(self) -> str:
        """What is wrong with a question that does not pass."""
        return HEARD if self.transcript else GUESSED

    def _lacks_transcript(self, video: Video) -> bool:
        return self.transcript and not video.lines

    def _heard(self, texts: Iterable[str], video: Video) -> dict[str, Any]:
        """Return the prompt's variables of the transcript: its lines nearest to the texts."""
        heard = None
        if self.transcript:
            heard = excerpt(video.lines or (), " ".join(texts), self.max_words)
        return {"transcript": heard, "recognised": is_recognised(video)}


@dataclass(frozen=True, kw_only=True)
class BlindGuess(TextGuess):
    """A filter by guesses at single questions, in one or more runs with different seeds.

    A question passes if the first-ranked option is wrong in at least `min_failures` runs. One
    without options is answered in words if there is a judge to grade the answer.
    """

    prompt: str
    """Prompt of the guess, such as filters/blind, which ranks all options."""
    runs: int = 3
    """Runs with different seeds, each with other orders."""
    min_failures: int = 2
    """Runs that must be wrong for a question to pass."""
    shuffle: bool = True
    """Show the options in another order in each run."""
    question: bool = True
    """Show the question."""
    drops: bool = True
    """Drop questions that do not pass; false: they only stay out of the subset mma."""
    all_runs: bool = False
    """Make every run; false: stop when the vote is decided."""
    ranks: bool = True
    """Format of the prompt: true where it ranks all options, as filters/blind does."""
    together: int = 1
    """Questions of a video in one request to a model; 1: each alone."""

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise UserError(f"vet: {self.name}.runs={self.runs!r}: expected at least 1")
        if not 0 <= self.min_failures <= self.runs:
            raise UserError(
                f"vet: {self.name}.min_failures={self.min_failures!r}: expected 0 to "
                f"runs={self.runs}"
            )

    @property
    def prompts(self) -> tuple[str, ...]:
        together = (ask.SET_PROMPT,) if self.together > 1 else ()
        in_words = (ask.OPEN_PROMPT,) if self.question else ()
        return (self.prompt, "filters/_options", *in_words, *together)

    def group(
        self, questions: Sequence[Question], video: Video, vetting: VettingContext
    ) -> list[list[Question]]:
        """Return the questions with options as one group if requests may hold several of them; a
        group for each other question that can be judged.
        """
        if self._lacks_transcript(video):
            return []
        closed = [q for q in questions if q.options and q.answer_index is not None]
        by_words = [q for q in questions if self.question and not q.options]
        open_ended = [[q] for q in by_words if is_judgeable(q, vetting)]
        alone = self.together == 1 or is_rules(vetting.askers[self.guesser].llm.identity)
        return [*([q] for q in closed if alone), *([closed] if closed and not alone else []),
                *open_ended]  # fmt: skip

    async def guess(
        self, questions: Sequence[Question], video: Video, vetting: VettingContext
    ) -> list[Question]:
        guesses = {q.question_id: list[ask.Guess]() for q in questions}

        def wave_of(question: Question) -> int:
            return self._next_wave([guess.verdict for guess in guesses[question.question_id]])

        while due := [q for q in questions if wave_of(q)]:
            done_runs = len(guesses[due[0].question_id])  # those of all that are due
            count = math.ceil(len(due) / self.together)
            requests = [
                (due[n::count], done_runs + run)
                for run in range(min(map(wave_of, due)))
                for n in range(count)
            ]
            made = await gather(*(self._run(*each, video, vetting) for each in requests))
            for (group, _), of_group in zip(requests, made, strict=True):
                for question, guess in zip(group, of_group, strict=True):
                    guesses[question.question_id].append(guess)
        return [self.apply_guesses(q, guesses[q.question_id]) for q in questions]

    async def _run(
        self, questions: Sequence[Question], number: int, video: Video, vetting: VettingContext
    ) -> Sequence[ask.Guess]:
        """Return run `number` on each question from one request; from one each if that fails, and
        if there is only one question.
        """
        if len(questions) > 1:
            asker, seed = vetting.askers[self.guesser], vetting.seed + number
            texts = (text for q in questions for text in (q.question, *q.options))
            try:
                return await ask.guess_together(
                    questions,
                    asker,
                    ask.blank_verdict(self.name, asker, ask.SET_PROMPT, seed),
                    with_question=self.question,
                    **self._heard(texts, video),
                )
            except BadRow:
                pass
        return await gather(*(self._run_one(q, number, video, vetting) for q in questions))

    async def _run_one(
        self, question: Question, number: int, video: Video, vetting: VettingContext
    ) -> ask.Guess:
        asker, options = vetting.askers[self.guesser], question.options
        prompt = self.prompt if options else ask.OPEN_PROMPT
        blank = ask.blank_verdict(self.name, asker, prompt, vetting.seed + number)
        variables: dict[str, Any] = {"question": question.question} if self.question else {}
        if self.transcript:
            variables |= self._heard((question.question, *options), video)
        if not options:
            assert vetting.judge is not None  # `group` leaves out what nobody can grade
            variables = {"transcript": None, "recognised": False, **variables}
            return await ask.guess_in_words(question, asker, blank, vetting.judge, variables)
        order = list(range(len(options)))
        if self.shuffle:
            name = f"{question.question_id}/{self.name}/{number}"
            order = ask.draw_order(len(options), vetting.seed, name)
        form = (
            ask.ranking(len(options)) if self.ranks else ask.one_letter([options[i] for i in order])
        )
        return await ask.guess_option(question, asker, blank, prompt, order, form, variables)

    def _next_wave(self, verdicts: Sequence[Verdict]) -> int:
        """Return the fewest further runs that could decide; 0 if decided, if none could, or if all
        runs are done.
        """
        left = self.runs - len(verdicts)
        if self.all_runs:
            return left
        missing = [n - so_far for n, so_far in self.needed_runs(verdicts)]
        return 0 if min(missing) <= 0 else min((n for n in missing if n <= left), default=0)

    def needed_runs(self, verdicts: Sequence[Verdict]) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return (failures needed to pass, failures so far) and (right runs needed to be dropped,
        right runs so far).
        """
        failures = sum(v.correct is False for v in verdicts)
        right = sum(v.correct is True for v in verdicts)
        return (self.min_failures, failures), (self.runs - self.min_failures + 1, right)

    def apply_guesses(self, question: Question, guesses: Sequence[ask.Guess]) -> Question:
        """Return the question with the verdicts of its runs, and how often these agree: dropped if
        it does not pass, unverified if that is undecided. An earlier drop reason stays.

        A run with unparseable replies counts neither as right nor as a failure.
        """
        verdicts = [guess.verdict for guess in guesses]
        (min_failures, failures), (max_right, right) = self.needed_runs(verdicts)
        metrics = {
            f"{self.name}_failures": float(failures),
            guessed_metric(self.name): float(right),
        }
        if failures < min_failures and right < max_right:
            judged = replace(
                question,
                verdicts=(*question.verdicts, *verdicts),
                metrics={**question.metrics, **metrics},
            )
            judged = mark_unverified(judged, self.name)
        else:
            unparsed = len(verdicts) - right - failures
            reason = f"right in {right} of {len(verdicts)} runs"
            reason += f", {unparsed} without an answer" if unparsed else ""
            passed = failures >= min_failures
            judged = self._add(question, verdicts, passed, reason, metrics, self.fault)
        share = agreement([guess.first for guess in guesses if guess.first is not None])
        if share is None:
            return judged
        return replace(judged, metrics={**judged.metrics, agreement_metric(self.name): share})


@dataclass(frozen=True, kw_only=True)
class SetGuess(TextGuess):
    """A filter by one guess at each set of questions with a shared list of options: the guesser
    says which answer belongs to which question.

    A matching is easier than single guesses, because sure pairs leave fewer answers for the others.
    It is also cheaper: one request for a set. Members of a set fail together, if more than `most`
    of them are matched right; at chance one of them is, whatever their number. Questions outside of
    sets, and single ones that are left of a set, are passed over.
    """

    most: int = 2
    """Questions of a set matched right with which it passes; with more, none of the set is in
    mma."""

    def __post_init__(self) -> None:
        if self.most < 0:
            raise UserError(f"vet: {self.name}.most={self.most!r}: expected at least 0")

    @property
    def prompts(self) -> tuple[str, ...]:
        return (ask.MATCH_PROMPT,)

    def group(
        self, questions: Sequence[Question], video: Video, vetting: VettingContext
    ) -> list[list[Question]]:
        """Return the sets among the questions, each with its members in order."""
        sets: dict[str | None, list[Question]] = {}
        for q in questions:
            if q.relation == SET and q.options and q.answer_index is not None:
                sets.setdefault(q.group, []).append(q)
        large = [members for members in sets.values() if len(members) > 1]
        return [] if self._lacks_transcript(video) else large

    async def guess(
        self, questions: Sequence[Question], video: Video, vetting: VettingContext
    ) -> list[Question]:
        asker, asked = vetting.askers[self.guesser], [q.question for q in questions]
        answers = [q.options[q.answer_index or 0] for q in questions]
        blank = ask.blank_verdict(self.name, asker, ask.MATCH_PROMPT, vetting.seed)
        heard = self._heard((*asked, *answers), video)
        try:
            matched = await ask.match(asked, answers, asker, seed=vetting.seed, **heard)
        except BadRow as error:
            return self._mark_unread(questions, blank, str(error))
        blank, count = replace(blank, model=asker.llm.identity), len(questions)
        guessed = [answers[n] for n in matched]
        hits = [guess == answer for guess, answer in zip(guessed, answers, strict=True)]
        right = sum(hits)
        passed = right <= min(self.most, count - 1)
        judged: list[Question] = []
        for question, guess, hit in zip(questions, guessed, hits, strict=True):
            detail = f"{right} of {count} in its set right"
            verdict = replace(blank, reply=guess, correct=hit, detail=detail)
            reason = f"{right} of the {count} questions of its set are matched right"
            metrics = {
                f"{self.name}{RIGHT_IN_SET}": float(right),
                guessed_metric(self.name): float(hit),
            }
            judged.append(self._add(question, [verdict], passed, reason, metrics, self.fault))
        return judged


@dataclass(frozen=True, kw_only=True)
class Glimpse(GuessFilter):
    """A filter by guesses of the verifier at what a condition shows: a question passes that it gets
    wrong, or whose answer it does not see there. The same frames serve all questions of a video.
    """

    sees: Condition = field(default_factory=lambda: Condition(condition="one_frame", frames=1))
    """What is shown of the whole video; one of `SILENT`."""
    forms: Sequence[str] | None = None
    """Forms of the questions that are asked; null: all."""
    together: int = 10
    """Questions of a video in one request."""

    def __post_init__(self) -> None:
        if self.sees.condition not in SILENT or not self.sees.looks:
            raise UserError(
                f"vet: {self.name}.sees.condition={self.sees.condition!r}: choose one of "
                f"{', '.join(SILENT)}, with frames or fps"
            )
        if self.together < 1:
            raise UserError(f"vet: {self.name}.together={self.together!r}: expected at least 1")

    @property
    def roles(self) -> tuple[str, ...]:
        return ("verifier",)

    @property
    def prompts(self) -> tuple[str, ...]:
        return (GLIMPSE_PROMPT, "filters/_options")

    @property
    def reads(self) -> tuple[str, ...]:
        return ("digest", "start", "end")

    def group(
        self, questions: Sequence[Question], video: Video, vetting: VettingContext
    ) -> list[list[Question]]:
        """Return the questions of a request each."""
        due = [
            q
            for q in questions
            if q.options and q.answer_index is not None
            and (self.forms is None or q.form in self.forms)
        ]  # fmt: skip
        count = math.ceil(len(due) / self.together)
        return [due[n::count] for n in range(count)]

    async def guess(
        self, questions: Sequence[Question], video: Video, vetting: VettingContext
    ) -> list[Question]:
        asker = vetting.askers["verifier"]
        blank = ask.blank_verdict(self.name, asker, GLIMPSE_PROMPT, vetting.seed)
        try:
            planned = plan(self.sees, video_span(video), (), seed=vetting.seed)
            times = planned.times if planned is not None else ()
            guesses = await ask.guess_together(
                questions,
                asker,
                blank,
                prompt=GLIMPSE_PROMPT,
                images=await vetting.video_frames.jpegs(times, self.sees),
                pictures=len(times),
                forced=False,
                shuffled=self.sees.condition == "shuffled",
            )
        except BadRow as error:  # no reply could be parsed, or the video cannot be decoded
            return self._mark_unread(questions, blank, json.dumps({"unread": str(error)}))
        reason = f"right from {len(times)} frame{'s' if len(times) > 1 else ''}"
        judged: list[Question] = []
        for question, guess in zip(questions, guesses, strict=True):
            verdict = replace(guess.verdict, model=asker.llm.identity)
            right = verdict.correct is True
            metrics = {guessed_metric(self.name): float(right)}
            judged.append(self._add(question, [verdict], not right, reason, metrics))
        return judged


def is_recognised(video: Video) -> bool:
    """Whether the transcript is recognised speech, and not subtitles."""
    return not (video.transcribed_by or "subtitles").startswith("subtitles")


def agreement(firsts: Sequence[int]) -> float | None:
    """Return the share of pairs of runs with the same first option; None below two runs."""
    pairs = [a == b for a, b in combinations(firsts, 2)]
    return fmean(pairs) if pairs else None
