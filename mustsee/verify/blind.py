"""Filters that let a model guess without the video: what it gets right too often is dropped.

With the question and its options alone this is Neptune's QAD filter, with the transcript added its
ASR filter (C.2.5, C.4): the model ranks all options, several times with other seeds, and a question
stays if the first-ranked option is wrong at least `min_failures` times. With `ranks=false` it names
one option and nothing else, as EgoSchema asks (3.1.3). (Neptune's paper says "remove
what is answered correctly at least X of 3 times"; its plots and its remarks on X = 3 describe
"keep what fails at least X times". At its X = 2 the two are one.)

A question without options is guessed at in words, where there is a judge to say whether that is the
known answer: one that is right without the video takes the answer for granted.

A run whose replies cannot be read is no vote. Where so few could be read that neither is told, that
the question passes or that it does not, it is unverified: not dropped, not mended, and in no
subset.
"""

from __future__ import annotations

import random
import re
from asyncio import gather
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mustsee.calls.llm import Asker
from mustsee.errors import BadRow, Unparsed, UserError
from mustsee.records import Question, Verdict, Video
from mustsee.replies.extract import extract
from mustsee.replies.forms import Form, form, free, in_lines, list_of, one_of, record, words
from mustsee.text import LETTERS
from mustsee.verify.conditions.lines import excerpt
from mustsee.verify.vetting import Judges, VettingContext, judgeable, mark_unverified

WRITTEN = "filters/guess_open"


@dataclass(frozen=True, kw_only=True)
class BlindGuess:
    """One such filter. `name`: how verdicts and drops name it; `prompt`: the prompt's name.

    `min_failures` of the `runs` runs must fail for a question to pass. `shuffle`: each run sees the
    options in an order of its own, so that runs differ even where a model ignores seeds.
    `transcript`: the prompt is given what is said, at most `max_words` of it. `drops`: a question
    that does not pass is dropped; else it only stays out of the subset. Runs end when the vote is
    decided, unless `all_runs` are wanted for the sweep over thresholds. `ranks`: the prompt asks
    for all options in order; else for one letter.
    """

    name: str
    prompt: str
    runs: int = 3
    min_failures: int = 2
    shuffle: bool = True
    transcript: bool = False
    max_words: int = 20_000
    drops: bool = True
    all_runs: bool = False
    ranks: bool = True

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise UserError(f"vet: {self.name}.runs={self.runs!r}: at least 1")
        if not 0 <= self.min_failures <= self.runs:
            raise UserError(
                f"vet: {self.name}.min_failures={self.min_failures!r}: from 0 to runs={self.runs}"
            )

    @property
    def roles(self) -> tuple[str, ...]:
        return ("guesser",)

    @property
    def prompts(self) -> tuple[str, ...]:
        return (self.prompt, "filters/_options", WRITTEN)

    @property
    def reads(self) -> tuple[str, ...]:
        return ("lines", "transcribed_by") if self.transcript else ()

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        """The question with the verdicts of as many runs as it takes to decide."""
        judge = None if question.options else vetting.judge
        if question.options and question.answer_index is None:
            return question
        if not question.options and not judgeable(question, vetting):
            return question
        asker, given = vetting.askers["guesser"], list[Verdict]()
        while wave := self._undecided(given):
            numbers = range(len(given), len(given) + wave)
            if judge is None:
                runs = [one_guess(question, video, asker, self, vetting.seed, n) for n in numbers]
            else:
                runs = [_in_words(question, video, asker, self, vetting.seed, n, judge)
                        for n in numbers]  # fmt: skip
            given += await gather(*runs)
        return apply_verdicts(question, self, given)

    def _undecided(self, given: Sequence[Verdict]) -> int:
        """The fewest further runs that could decide; 0 when it is decided, none could, or all are
        made.
        """
        left = self.runs - len(given)
        if self.all_runs:
            return left
        wanted = [n - so_far for n, so_far in self.needed_runs(given)]
        return 0 if min(wanted) <= 0 else min((n for n in wanted if n <= left), default=0)

    def needed_runs(self, given: Sequence[Verdict]) -> tuple[tuple[int, int], tuple[int, int]]:
        """For a question to pass, and to fall: the runs that must say so, and those that do."""
        failures = sum(v.correct is False for v in given)
        right = sum(v.correct is True for v in given)
        return (self.min_failures, failures), (self.runs - self.min_failures + 1, right)


async def one_guess(
    question: Question,
    video: Video,
    asker: Asker,
    filter_: BlindGuess,
    seed: int,
    number: int,
) -> Verdict:
    """The verdict of one run. Where its replies cannot be read `correct` is null: one vote less,
    not a lost video.
    """
    variables = _given(question, video, filter_)
    order = list(range(len(question.options)))
    if filter_.shuffle:
        random.Random(f"{seed}/{question.question_id}/{filter_.name}/{number}").shuffle(order)
    shown = "options shown as " + "".join(LETTERS[i] for i in order)
    blank = _blank(asker, filter_, filter_.prompt, seed + number, shown)
    options = tuple(question.options[i] for i in order)
    try:
        reply, ranked = await asker.ask(
            filter_.prompt,
            (ranking(len(options)) if filter_.ranks else one_letter(options)).with_reply(),
            seed=seed + number,
            options=options,
            **variables,
        )
    except BadRow as error:
        return replace(blank, detail=f"{blank.detail}; {error}")
    right = order[ranked[0]] == question.answer_index
    return replace(blank, reply=in_lines(reply), correct=right)


def _blank(asker: Asker, filter_: BlindGuess, prompt: str, seed: int, detail: str = "") -> Verdict:
    """The verdict of a run before its reply."""
    return Verdict(
        filter=filter_.name,
        model=asker.llm.identity,
        seed=seed,
        prompt=asker.prompts.digest(prompt),
        detail=detail,
    )


def _given(question: Question, video: Video, filter_: BlindGuess) -> dict[str, Any]:
    """What a guesser is told: the question, and what is said if it may know that."""
    told: dict[str, Any] = {"question": question.question}
    if filter_.transcript:
        wanted = " ".join((question.question, *question.options))
        told["transcript"] = excerpt(video.lines or (), wanted, filter_.max_words)
        told["recognised"] = not (video.transcribed_by or "subtitles").startswith("subtitles")
    return told


async def _in_words(
    question: Question,
    video: Video,
    asker: Asker,
    filter_: BlindGuess,
    seed: int,
    number: int,
    judge: Judges,
) -> Verdict:
    """The verdict of one run on a question without options."""
    blank = _blank(asker, filter_, WRITTEN, seed + number)
    told: dict[str, Any] = {"transcript": None, "recognised": False}
    told |= _given(question, video, filter_)
    try:
        reply, answer = await asker.ask(WRITTEN, ANSWER.with_reply(), seed=seed + number, **told)
    except BadRow as error:
        return replace(blank, detail=str(error))
    right = await judge(question.question, answer, question.references)
    if right is None:
        return replace(blank, reply=in_lines(reply), detail="the judge cannot tell")
    return replace(blank, reply=in_lines(reply), correct=right)


def apply_verdicts(question: Question, filter_: BlindGuess, given: Sequence[Verdict]) -> Question:
    """The question with a filter's verdicts; dropped, for the first reason, where it does not pass;
    unverified where that cannot be told. A run without an answer is neither right nor a failure.
    """
    (wanted, failures), (too_often, right) = filter_.needed_runs(given)
    found = replace(
        question,
        verdicts=(*question.verdicts, *given),
        metrics={**question.metrics, f"{filter_.name}_failures": float(failures)},
    )
    if failures < wanted and right < too_often:
        return mark_unverified(found, filter_.name)
    passed, reason = failures >= wanted, None
    if not passed and filter_.drops:
        unread = len(given) - right - failures
        reason = f"{filter_.name}: right in {right} of {len(given)} runs" + (
            f", {unread} without an answer" if unread else ""
        )
    metrics = {**found.metrics, f"{filter_.name}_passed": float(passed)}
    return replace(found, metrics=metrics, drop=question.drop or reason)


def one_letter(options: Sequence[str]) -> Form[tuple[int, ...]]:
    """The one option that a reply picks, in letters or in words; never a guess at what it means."""

    def pick_letter(reply: str) -> tuple[int, ...]:
        letter = extract(reply, tuple(options)).letter
        if letter is None:
            raise Unparsed(f"it is not just one of {', '.join(LETTERS[: len(options)])}")
        return (LETTERS.index(letter),)

    return free(pick_letter)


def _answer(answer: str, explanation: str = "") -> str:
    if not answer:
        raise Unparsed("its answer is empty")
    return answer


def _written(reply: str) -> str:
    match = re.search(
        r"^[ \t*_#>-]*answer[ \t*_]*[:：=][ \t*_]*(.*)$", reply, re.IGNORECASE | re.MULTILINE
    )
    if match is None:
        raise Unparsed("it has no line of the form '* ANSWER: ...'")
    return _answer(match[1].strip(" *_"))


ANSWER = form(
    text=_written,
    shape=record(_answer, answer=words("the answer"), explanation=words("one sentence")),
)
_RANK = re.compile(r"[A-Z](?:[\s\])*._\"']*(?:>+|»|≻|,|→)[\s\[(*_\"']*[A-Z](?![a-z]))+")
_ANSWER = re.compile(r"(?:ANSWER|RANKING|ORDER)[\s*_]*[:：\-–=][\s*_]*(.*)", re.IGNORECASE)
_PLACE = re.compile(
    r"^[\s>*_#-]*(\d{1,2})[*_]*\s*[.):：][\s*_]*(?:option\s+)?[(\[]?([A-Z])(?=[\s*_]*(?:[\]).:：,–—-]|$))",
    re.IGNORECASE | re.MULTILINE,
)


def ranking(count: int) -> Form[tuple[int, ...]]:
    """The options from the most to the least probable, counted from 0, from `* ANSWER: B > A > C`,
    or from a list with a place a line.

    Every letter must be there once: a model that ranks four of five has not done what was asked.
    """
    wanted = list(LETTERS[:count])

    def rank_from_json(answer: Sequence[str], explanation: str = "") -> tuple[int, ...]:
        if sorted(answer) != wanted:
            raise Unparsed(
                f"it ranks {''.join(answer) or 'none'}, but each of {' > '.join(wanted)} must be "
                "there exactly once"
            )
        return tuple(wanted.index(letter) for letter in answer)

    def rank_from_text(reply: str) -> tuple[int, ...]:
        ranks = _ranks(reply)
        if not ranks:
            shape = " > ".join(wanted)
            raise Unparsed(
                f"it has no line of the form '* ANSWER: {shape}' with all letters ranked"
            )
        return rank_from_json(next((rank for rank in ranks if sorted(rank) == wanted), ranks[0]))

    shape = record(
        rank_from_json,
        answer=list_of(one_of(wanted, "the letter of an option"), "all, the most probable first"),
        explanation=words("one sentence"),
    )
    return form(text=rank_from_text, shape=shape)


def _ranks(reply: str) -> list[list[str]]:
    """All rankings in a text, of any number of letters: what stands last on a line for the answer,
    then in lists, then anywhere.
    """
    bare = re.sub(r"(?i)\boption\s+", "", reply)
    places = [m[1] for m in _ANSWER.finditer(bare)]
    found = [
        re.findall(r"[A-Z]", match.group())
        for place in reversed(places)
        for match in _RANK.finditer(place)
    ]
    lists: list[list[str]] = []
    for number, letter in _PLACE.findall(bare):
        if int(number) == 1:
            lists.append([])
        if lists and len(lists[-1]) == int(number) - 1:
            lists[-1].append(letter.upper())
    found += [rank for rank in lists[::-1] if len(rank) > 1]
    return found + [re.findall(r"[A-Z]", match.group()) for match in _RANK.finditer(bare)]


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """What is left when questions must fail at least `min_failures` runs of each of `filters`.

    `accuracy`: filter -> share of its runs on the questions left that were right; null without any.
    """

    filters: str
    min_failures: int
    questions: int
    share: float
    accuracy: Mapping[str, float | None]


def sweep(questions: Iterable[Question], names: Sequence[str]) -> list[dict[str, object]]:
    """Dataset size and accuracy for each threshold (Neptune, Fig. 11), from the guessers' verdicts
    on each question's last wording: first the filter `names[0]` alone, then with each further one.

    Counted are the questions that all of them tried and no other filter dropped. A filter's own
    accuracy on what it let through is low by construction; the other's is the news. Empty where
    runs were spared: it takes `all_runs` of filters that do not drop.
    """
    tried = (_runs(q, names) for q in questions if q.drop is None or _name(q.drop) in names)
    told = Counter(runs for runs in tried if any(run.right + run.wrong for run in runs))
    each = list(told)
    if len({run.verdicts for runs in each for run in runs}) != 1:
        return []
    counts, total = list(told.values()), told.total()
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
    """What a filter's runs said of a question; few questions differ in that."""

    filter: str
    verdicts: int
    right: int
    wrong: int


def _runs(question: Question, names: Sequence[str]) -> tuple[RunCounts, ...]:
    said: dict[str, list[bool | None]] = {name: [] for name in names}
    for verdict in question.verdicts[question.earlier_verdicts :]:
        if verdict.filter in said:
            said[verdict.filter].append(verdict.correct)
    return tuple(RunCounts(n, len(s), s.count(True), s.count(False)) for n, s in said.items())


def _name(drop: str) -> str:
    """The filter that a reason for dropping names."""
    return drop.partition(":")[0]
