"""Filters that let a model guess without the video, and drop a question that it often gets right.

With the question and its options this is Neptune's QAD filter; with the transcript added, its ASR
filter (C.2.5, C.4); with the options alone, a view that the paper does not have. The model ranks
all options in one or more runs with different seeds. A question is kept if the first-ranked option
is wrong in at least `min_failures` runs. With `ranks=false` the model names one option only, as in
EgoSchema (3.1.3). (Neptune's text says "remove what is answered correctly at least X of 3 times";
its plots and its remarks on X = 3 describe "keep what fails at least X times". At its X = 2 the two
are the same.)

Runs of one model at one view mostly agree (`metrics.<name>_agreement`), so that three of them tell
little more than one. Another view or another model tells more.

A question without options is answered in words if there is a judge to grade the answer.

A run whose replies are unparseable is not a vote. If too few votes are left to decide, the question
is unverified: not dropped, not repaired, and in no subset.
"""

from __future__ import annotations

import math
import random
import re
from asyncio import gather
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Any, NamedTuple

from mustsee.calls.llm import Asker, is_rules
from mustsee.errors import BadRow, Unparsed, UserError
from mustsee.records import Question, Verdict, Video, agreement_metric, guessed_metric
from mustsee.replies.extract import extract
from mustsee.replies.forms import Form, form, free, label_lines, list_of, one_of, record, words
from mustsee.text import LETTERS
from mustsee.verify.conditions.lines import excerpt
from mustsee.verify.guess_set import PROMPT as SET_PROMPT
from mustsee.verify.guess_set import Guess, guess_set
from mustsee.verify.outcome import GUESSED, HEARD, FilterOutcome, add_outcome, mark_unverified
from mustsee.verify.vetting import Judges, VettingContext, is_judgeable

OPEN_PROMPT = "filters/guess_open"  # the prompt of questions without options


@dataclass(frozen=True, kw_only=True)
class BlindGuess:
    """A filter by guesses."""

    name: str
    """Name of the filter in verdicts and drop reasons."""
    prompt: str
    """Prompt of the guess, such as filters/blind, which ranks all options."""
    guesser: str = "guesser"
    """Role of the model that guesses."""
    runs: int = 3
    """Runs with different seeds, each with other orders."""
    min_failures: int = 2
    """Runs that must be wrong for a question to pass."""
    shuffle: bool = True
    """Show the options in another order in each run."""
    question: bool = True
    """Show the question."""
    transcript: bool = False
    """Whether the prompt gets the transcript, at most `max_words` of it; videos without one are
    then passed over."""
    max_words: int = 20_000
    """Words of a longer transcript; the lines nearest to the question are shown."""
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
    def roles(self) -> tuple[str, ...]:
        return (self.guesser,)

    @property
    def prompts(self) -> tuple[str, ...]:
        together = (SET_PROMPT,) if self.together > 1 else ()
        in_words = (OPEN_PROMPT,) if self.question else ()
        return (self.prompt, "filters/_options", *in_words, *together)

    @property
    def reads(self) -> tuple[str, ...]:
        return ("lines", "transcribed_by") if self.transcript else ()

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        """Return the question with its runs' verdicts, and dropped if it does not pass."""
        if self.transcript and not video.lines:
            return question
        judge = None if question.options else vetting.judge
        if question.options and question.answer_index is None:
            return question
        if not question.options and not (self.question and is_judgeable(question, vetting)):
            return question
        asker, guesses = vetting.askers[self.guesser], list[Guess]()
        while wave := self._next_wave([guess.verdict for guess in guesses]):
            numbers = range(len(guesses), len(guesses) + wave)
            if judge is None:
                runs = [one_guess(question, video, asker, self, vetting.seed, n) for n in numbers]
            else:
                runs = [_guess_in_words(question, video, asker, self, vetting.seed, n, judge)
                        for n in numbers]  # fmt: skip
            guesses += await gather(*runs)
        return _apply_guesses(question, self, guesses)

    async def try_all(
        self, questions: Sequence[Question], video: Video, vetting: VettingContext
    ) -> list[Question]:
        """Return all questions with their verdicts, from as few requests as `together` allows."""
        if self.transcript and not video.lines:
            return list(questions)
        single = self.together == 1 or is_rules(vetting.askers[self.guesser].llm.identity)
        choice = [q for q in questions if q.options and q.answer_index is not None and not single]
        guesses = {q.question_id: list[Guess]() for q in choice}

        def wave_of(question: Question) -> int:
            return self._next_wave([guess.verdict for guess in guesses[question.question_id]])

        while due := [q for q in choice if wave_of(q)]:
            done_runs = len(guesses[due[0].question_id])  # those of all that are due
            count = math.ceil(len(due) / self.together)
            requests = [
                (due[n::count], done_runs + run)
                for run in range(min(map(wave_of, due)))
                for n in range(count)
            ]
            made = await gather(*(self._guess_set(*each, video, vetting) for each in requests))
            for (group, _), of_group in zip(requests, made, strict=True):
                for question, guess in zip(group, of_group, strict=True):
                    guesses[question.question_id].append(guess)
        judged = {q.question_id: _apply_guesses(q, self, guesses[q.question_id]) for q in choice}
        rest = [q for q in questions if q.question_id not in judged]
        for q, j in zip(rest, await gather(*(self(q, video, vetting) for q in rest)), strict=True):
            judged[q.question_id] = j
        return [judged[q.question_id] for q in questions]

    async def _guess_set(
        self, questions: Sequence[Question], number: int, video: Video, vetting: VettingContext
    ) -> Sequence[Guess]:
        """Return run `number` on each question from one request; from one each if that fails, and
        if there is only one question.
        """
        asker, lines = vetting.askers[self.guesser], None
        if len(questions) > 1:
            if self.transcript:
                wanted = " ".join(" ".join((q.question, *q.options)) for q in questions)
                lines = excerpt(video.lines or (), wanted, self.max_words)
            try:
                return await guess_set(
                    questions,
                    asker,
                    _blank_verdict(asker, self, SET_PROMPT, vetting.seed + number),
                    with_question=self.question,
                    transcript=lines,
                    recognised=is_recognised(video),
                )
            except BadRow:
                pass
        return await gather(
            *(one_guess(q, video, asker, self, vetting.seed, number) for q in questions)
        )

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


def agreement(firsts: Sequence[int]) -> float | None:
    """Return the share of pairs of runs with the same first option; None below two runs."""
    pairs = [a == b for a, b in combinations(firsts, 2)]
    return fmean(pairs) if pairs else None


async def one_guess(
    question: Question,
    video: Video,
    asker: Asker,
    filter_: BlindGuess,
    seed: int,
    number: int,
) -> Guess:
    """Return one run. `correct` of its verdict is None if its replies are unparseable: the vote is
    lost, not the video.
    """
    variables = _prompt_variables(question, video, filter_)
    order = list(range(len(question.options)))
    if filter_.shuffle:
        random.Random(f"{seed}/{question.question_id}/{filter_.name}/{number}").shuffle(order)
    detail = "options shown as " + "".join(LETTERS[i] for i in order)
    blank = _blank_verdict(asker, filter_, filter_.prompt, seed + number, detail)
    options = tuple(question.options[i] for i in order)
    try:
        reply, ranked = await asker.ask(
            filter_.prompt,
            (ranking(len(options)) if filter_.ranks else one_letter(options)).keep_reply(),
            seed=seed + number,
            options=options,
            **variables,
        )
    except BadRow as error:
        return Guess(replace(blank, detail=f"{blank.detail}; {error}"))
    first = order[ranked[0]]
    right = first == question.answer_index
    return Guess(replace(blank, reply=label_lines(reply), correct=right), first)


def _blank_verdict(
    asker: Asker, filter_: BlindGuess, prompt: str, seed: int, detail: str = ""
) -> Verdict:
    """Return the verdict of a run, still without its reply."""
    return Verdict(
        filter=filter_.name,
        model=asker.llm.identity,
        seed=seed,
        prompt=asker.prompts.digest(prompt),
        detail=detail,
    )


def _prompt_variables(question: Question, video: Video, filter_: BlindGuess) -> dict[str, Any]:
    """Return the prompt's variables: the question and the transcript, if the filter shows them."""
    variables: dict[str, Any] = {"question": question.question} if filter_.question else {}
    if filter_.transcript:
        wanted = " ".join((question.question, *question.options))
        variables["transcript"] = excerpt(video.lines or (), wanted, filter_.max_words)
        variables["recognised"] = is_recognised(video)
    return variables


def is_recognised(video: Video) -> bool:
    """Whether the transcript is recognised speech, and not subtitles."""
    return not (video.transcribed_by or "subtitles").startswith("subtitles")


async def _guess_in_words(
    question: Question,
    video: Video,
    asker: Asker,
    filter_: BlindGuess,
    seed: int,
    number: int,
    judge: Judges,
) -> Guess:
    """Return one run on a question without options."""
    blank = _blank_verdict(asker, filter_, OPEN_PROMPT, seed + number)
    variables: dict[str, Any] = {"transcript": None, "recognised": False}
    variables |= _prompt_variables(question, video, filter_)
    try:
        reply, answer = await asker.ask(
            OPEN_PROMPT, ANSWER.keep_reply(), seed=seed + number, **variables
        )
    except BadRow as error:
        return Guess(replace(blank, detail=str(error)))
    right = await judge(question.question, answer, question.references)
    if right is None:
        return Guess(replace(blank, reply=label_lines(reply), detail="undecided by the judge"))
    return Guess(replace(blank, reply=label_lines(reply), correct=right))


def apply_verdicts(
    question: Question, filter_: BlindGuess, verdicts: Sequence[Verdict]
) -> Question:
    """Return the question with a filter's verdicts: dropped if it does not pass, unverified if that
    is undecided. An earlier drop reason stays.

    A run with unparseable replies counts neither as right nor as a failure.
    """
    (min_failures, failures), (max_right, right) = filter_.needed_runs(verdicts)
    judged = replace(
        question,
        verdicts=(*question.verdicts, *verdicts),
        metrics={
            **question.metrics,
            f"{filter_.name}_failures": float(failures),
            guessed_metric(filter_.name): float(right),
        },
    )
    if failures < min_failures and right < max_right:
        return mark_unverified(judged, filter_.name)
    unparsed = len(verdicts) - right - failures
    outcome = FilterOutcome(
        filter=filter_.name, passed=failures >= min_failures, drops=filter_.drops,
        fault=HEARD if filter_.transcript else GUESSED,
        reason=f"right in {right} of {len(verdicts)} runs"
        + (f", {unparsed} without an answer" if unparsed else ""),
    )  # fmt: skip
    return add_outcome(judged, outcome)


def _apply_guesses(question: Question, filter_: BlindGuess, guesses: Sequence[Guess]) -> Question:
    """Return the question with the verdicts of its runs (`apply_verdicts`), and how often these
    agree.
    """
    judged = apply_verdicts(question, filter_, [guess.verdict for guess in guesses])
    share = agreement([guess.first for guess in guesses if guess.first is not None])
    if share is None:
        return judged
    return replace(judged, metrics={**judged.metrics, agreement_metric(filter_.name): share})


def one_letter(options: Sequence[str]) -> Form[tuple[int, ...]]:
    """Return the form of a reply that names one option, by its letter or in words. Its `read`
    raises Unparsed for an ambiguous reply.
    """

    def pick_letter(reply: str) -> tuple[int, ...]:
        letter = extract(reply, tuple(options)).letter
        if letter is None:
            raise Unparsed(f"it is not just one of {', '.join(LETTERS[: len(options)])}")
        return (LETTERS.index(letter),)

    return free(pick_letter)


def _check_answer(answer: str, explanation: str = "") -> str:
    if not answer:
        raise Unparsed("its answer is empty")
    return answer


def _parse_answer(reply: str) -> str:
    match = re.search(
        r"^[ \t*_#>-]*answer[ \t*_]*[:：=][ \t*_]*(.*)$", reply, re.IGNORECASE | re.MULTILINE
    )
    if match is None:
        raise Unparsed("it has no line of the form '* ANSWER: ...'")
    return _check_answer(match[1].strip(" *_"))


ANSWER = form(
    text=_parse_answer,
    shape=record(
        _check_answer, answer=words("the answer, in few words"), explanation=words("one sentence")
    ),
)
_RANK = re.compile(r"[A-Z](?:[\s\])*._\"']*(?:>+|»|≻|,|→)[\s\[(*_\"']*[A-Z](?![a-z]))+")
_ANSWER = re.compile(r"(?:ANSWER|RANKING|ORDER)[\s*_]*[:：\-–=][\s*_]*(.*)", re.IGNORECASE)
_PLACE = re.compile(
    r"^[\s>*_#-]*(\d{1,2})[*_]*\s*[.):：][\s*_]*(?:option\s+)?[(\[]?([A-Z])(?=[\s*_]*(?:[\]).:：,–—-]|$))",
    re.IGNORECASE | re.MULTILINE,
)


def ranking(count: int) -> Form[tuple[int, ...]]:
    """Return the form of a ranking: `* ANSWER: B > A > C`, or a numbered list.

    Reading it returns the indices of the options from the most to the least probable. Each letter
    must appear exactly once; otherwise `read` raises Unparsed.
    """
    letters = list(LETTERS[:count])

    def rank_from_json(answer: Sequence[str], explanation: str = "") -> tuple[int, ...]:
        if sorted(answer) != letters:
            raise Unparsed(
                f"it ranks {''.join(answer) or 'none'}, but each of {' > '.join(letters)} must "
                "appear exactly once"
            )
        return tuple(letters.index(letter) for letter in answer)

    def rank_from_text(reply: str) -> tuple[int, ...]:
        ranks = _ranks(reply)
        if not ranks:
            shape = " > ".join(letters)
            raise Unparsed(
                f"it has no line of the form '* ANSWER: {shape}' with all letters ranked"
            )
        return rank_from_json(next((rank for rank in ranks if sorted(rank) == letters), ranks[0]))

    shape = record(
        rank_from_json,
        answer=list_of(
            one_of(letters, "the letter of an option"),
            "the letters of all options, each once, the most probable first",
        ),
        explanation=words("one sentence"),
    )
    return form(text=rank_from_text, shape=shape)


def _ranks(reply: str) -> list[list[str]]:
    """Return all rankings in a text, of any number of letters: first those on answer lines, from
    the last line up, then numbered lists, then any others.
    """
    bare = re.sub(r"(?i)\boption\s+", "", reply)
    answer_lines = [m[1] for m in _ANSWER.finditer(bare)]
    rankings = [
        re.findall(r"[A-Z]", match.group())
        for line in reversed(answer_lines)
        for match in _RANK.finditer(line)
    ]
    lists: list[list[str]] = []
    for number, letter in _PLACE.findall(bare):
        if int(number) == 1:
            lists.append([])
        if lists and len(lists[-1]) == int(number) - 1:
            lists[-1].append(letter.upper())
    rankings += [rank for rank in lists[::-1] if len(rank) > 1]
    return rankings + [re.findall(r"[A-Z]", match.group()) for match in _RANK.finditer(bare)]


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """The questions kept if each must fail at least `min_failures` runs of each of `filters`.

    `accuracy`: filter -> share of right runs on the kept questions; null without runs.
    """

    filters: str
    min_failures: int
    questions: int
    share: float
    accuracy: Mapping[str, float | None]


def sweep(questions: Iterable[Question], names: Sequence[str]) -> list[dict[str, object]]:
    """Return dataset size and accuracy for each threshold (Neptune, Fig. 11).

    Uses the verdicts on each question's last wording: first of the filter `names[0]` alone, then
    with each further one. Counts the questions that all these filters saw and no other filter
    dropped. A filter's own accuracy on questions that it kept is low by construction; that of the
    other filters is informative. Returns an empty list unless all runs were made, that is, unless
    the filters have `all_runs` and do not drop.
    """
    tried = (_runs(q, names) for q in questions if q.drop is None or q.dropped_by in names)
    seen = (runs for runs in tried if all(run.verdicts for run in runs))
    count_by_runs = Counter(runs for runs in seen if any(run.right + run.wrong for run in runs))
    each = list(count_by_runs)
    if len({run.verdicts for runs in each for run in runs}) != 1:
        return []
    counts, total = list(count_by_runs.values()), count_by_runs.total()
    most = max((run.right + run.wrong for runs in each for run in runs), default=0)
    table: list[dict[str, object]] = []
    for count in range(1, len(names) + 1):
        for threshold in range(most + 1):
            left = [
                (runs, n)
                for runs, n in zip(each, counts, strict=True)
                if all(run.wrong >= threshold for run in runs[:count])
            ]
            right = [sum(n * runs[i].right for runs, n in left) for i in range(len(names))]
            wrong = [sum(n * runs[i].wrong for runs, n in left) for i in range(len(names))]
            kept = sum(n for _, n in left)
            row = Threshold(
                filters="+".join(names[:count]),
                min_failures=threshold,
                questions=kept,
                share=kept / total,
                accuracy={
                    name: r / (r + w) if r + w else None
                    for name, r, w in zip(names, right, wrong, strict=True)
                },
            )
            table.append(dict(vars(row)))
    return table


class RunCounts(NamedTuple):
    """The counts of one filter's runs on a question. Many questions have the same."""

    filter: str
    verdicts: int
    right: int
    wrong: int


def _runs(question: Question, names: Sequence[str]) -> tuple[RunCounts, ...]:
    results: dict[str, list[bool | None]] = {name: [] for name in names}
    for verdict in question.verdicts[question.earlier_verdicts :]:
        if verdict.filter in results:
            results[verdict.filter].append(verdict.correct)
    return tuple(RunCounts(n, len(r), r.count(True), r.count(False)) for n, r in results.items())
