"""Requests for guesses, and their replies: at one question, at several at once, at drafts, at a set
with one list of answers.

A guess is text alone and short, so most of its price is the request. A guesser of several questions
also reads the other ones, whose words may give an answer away: what it cannot guess is harder to
guess than alone. In a set, sure pairs shrink the rest, so that a matching is easier to guess than
its questions one by one.

The forms of the replies: which option, a ranking of the options, an answer in words. A request on
several questions has a line for each: `QUESTION 2: B > A > C | why`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from mustsee.calls.llm import Asker
from mustsee.errors import BadRow, Unparsed
from mustsee.questions.rows import NumberedTexts, complete_texts, item_list
from mustsee.records import Question, Verdict
from mustsee.replies.extract import extract
from mustsee.replies.forms import Form, form, free, label_lines, list_of, one_of, record, words
from mustsee.text import LETTERS
from mustsee.verify.filters import Judges

OPEN_PROMPT = "filters/guess_open"  # the prompt of questions without options
SET_PROMPT = "filters/guess_set"
MATCH_PROMPT = "filters/match"
RANK_PROMPT = "facts/rank"
_LINE = re.compile(r"^[\s>*_#-]*question\s+(\d{1,3})[*_]*\s*[:：.)][\s*_]*(.+)$", re.I | re.M)
_NONE = re.compile(r"[\[(\"'*_\s]*NONE[\])\"'*_\s]*(?:$|[.|–—:,-]\s*(.*)$)", re.I)
_GUESS = re.compile(r"[\[(\"'*_\s]*([A-Z](?:\s*>\s*[A-Z])*)[\])*_\s]*(?:[|–—:,.-]\s*(.*))?$")
_LETTER = re.compile(r"[\[(\"'*_\s]*([A-Z])[\])\"'*_\s]*(?:[|:.(–—-]|$)")
_RANK = re.compile(r"[A-Z](?:[\s\])*._\"']*(?:>+|»|≻|,|→)[\s\[(*_\"']*[A-Z](?![a-z]))+")
_ANSWER = re.compile(r"(?:ANSWER|RANKING|ORDER)[\s*_]*[:：\-–=][\s*_]*(.*)", re.IGNORECASE)
_PLACE = re.compile(
    r"^[\s>*_#-]*(\d{1,2})[*_]*\s*[.):：][\s*_]*(?:option\s+)?[(\[]?([A-Z])(?=[\s*_]*(?:[\]).:：,–—-]|$))",
    re.IGNORECASE | re.MULTILINE,
)


class Guess(NamedTuple):
    """One run. `first`: index of the option that it ranks first; None for a guess in words, and if
    its replies are unparseable.
    """

    verdict: Verdict
    first: int | None = None


def draw_order(count: int, seed: int, name: str) -> list[int]:
    """Return the numbers below `count` in an order drawn from the seed and a name."""
    order = list(range(count))
    random.Random(f"{seed}/{name}").shuffle(order)
    return order


def blank_verdict(name: str, asker: Asker, prompt: str, seed: int) -> Verdict:
    """Return the verdict of a guess by the filter `name`, still without its reply."""
    digest = asker.prompts.digest(prompt)
    return Verdict(filter=name, model=asker.llm.identity, seed=seed, prompt=digest)


async def guess_option(
    question: Question,
    asker: Asker,
    blank: Verdict,
    prompt: str,
    order: Sequence[int],
    form: Form[tuple[int, ...]],
    variables: Mapping[str, Any],
) -> Guess:
    """Return a guess at one question, its options shown in `order`. `correct` of its verdict is
    None if its replies are unparseable: the vote is lost, not the video.
    """
    detail = "options shown as " + "".join(LETTERS[i] for i in order)
    options = tuple(question.options[i] for i in order)
    try:
        reply, ranked = await asker.ask(
            prompt, form.keep_reply(), seed=blank.seed, options=options, **variables
        )
    except BadRow as error:
        return Guess(replace(blank, detail=f"{detail}; {error}"))
    first, text = order[ranked[0]], label_lines(reply)
    right = first == question.answer_index
    return Guess(replace(blank, detail=detail, reply=text, correct=right), first)


async def guess_in_words(
    question: Question, asker: Asker, blank: Verdict, judge: Judges, variables: Mapping[str, Any]
) -> Guess:
    """Return a guess at a question without options. `correct` of its verdict is None if its replies
    are unparseable, or the judge does not decide.
    """
    try:
        reply, answer = await asker.ask(
            OPEN_PROMPT, ANSWER.keep_reply(), seed=blank.seed, **variables
        )
    except BadRow as error:
        return Guess(replace(blank, detail=str(error)))
    right = await judge(question.question, answer, question.references)
    detail = "undecided by the judge" if right is None else ""
    return Guess(replace(blank, reply=label_lines(reply), correct=right, detail=detail))


async def guess_together(
    questions: Sequence[Question],
    asker: Asker,
    blank: Verdict,
    *,
    prompt: str = SET_PROMPT,
    with_question: bool = True,
    forced: bool = True,
    images: Sequence[bytes] = (),
    **variables: Any,
) -> tuple[Guess, ...]:
    """Return a guess at each question, its verdict made from `blank`, from one request. Raises
    BadRow if no reply can be parsed. `forced`: whether a guess is wanted where nothing tells.
    `variables`: of the prompt, besides the questions (`asked`).
    """
    orders = [
        draw_order(len(q.options), blank.seed, f"{q.question_id}/{blank.filter}/set")
        for q in questions
    ]
    ranked = await asker.ask(
        prompt,
        rankings([len(order) for order in orders], forced=forced),
        seed=blank.seed,
        images=images,
        asked=[
            {"question": q.question if with_question else "", "options": [q.options[i] for i in o]}
            for q, o in zip(questions, orders, strict=True)
        ],
        **variables,
    )
    guesses: list[Guess] = []
    for question, order, (rank, why) in zip(questions, orders, ranked, strict=True):
        first = order[rank[0]] if rank else None
        answer = " > ".join(LETTERS[i] for i in rank) or "NONE"
        verdict = replace(
            blank,
            reply=f"* ANSWER: {answer}\n* EXPLANATION: {why}",
            correct=first == question.answer_index,
            detail=f"options shown as {''.join(LETTERS[i] for i in order)}, one of {len(orders)}",
        )
        guesses.append(Guess(verdict, first))
    return tuple(guesses)


async def rank(
    asked: Sequence[tuple[str, Sequence[str]]], asker: Asker, *, seed: int
) -> tuple[tuple[int, ...], ...]:
    """Return for each question with its options the options' indices, the most plausible first. The
    options of each are shown in an order drawn from the seed. Raises BadRow if no reply can be
    parsed.
    """
    orders = [draw_order(len(options), seed, question) for question, options in asked]
    ranked = await asker.ask(
        RANK_PROMPT,
        rankings([len(order) for order in orders]),
        seed=seed,
        asked=tuple(
            {"question": question, "options": tuple(options[i] for i in order)}
            for (question, options), order in zip(asked, orders, strict=True)
        ),
    )
    each = zip(orders, ranked, strict=True)
    return tuple(tuple(order[place] for place in ranking) for order, (ranking, _) in each)


async def match(
    questions: Sequence[str],
    answers: Sequence[str],
    asker: Asker,
    *,
    seed: int,
    transcript: str | None = None,
    recognised: bool = False,
) -> tuple[int, ...]:
    """Return for each question the index of the answer that the guesser gives it; each answer is
    given once. `transcript`: shown to it; `recognised`: by a machine. Raises BadRow if no reply can
    be parsed.
    """
    if len(questions) != len(answers):
        raise ValueError(f"{len(questions)} questions and {len(answers)} answers")
    asked = draw_order(len(questions), seed, "/".join(questions))
    shown = draw_order(len(answers), seed, "/".join(answers))
    matched = await asker.ask(
        MATCH_PROMPT,
        matching_form(len(questions)),
        seed=seed,
        asked=tuple(questions[i] for i in asked),
        answers=tuple(answers[i] for i in shown),
        transcript=transcript,
        recognised=recognised,
    )
    by_question = {i: shown[a] for i, a in zip(asked, matched, strict=True)}
    return tuple(by_question[i] for i in range(len(questions)))


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


def rankings(
    counts: Sequence[int], *, forced: bool = True
) -> Form[tuple[tuple[tuple[int, ...], str], ...]]:
    """Return the form of a reply with a ranking for each question, by its number of options: the
    options' indices, the most probable first, and why. Its `read` raises Unparsed unless each
    question has a ranking of all its options; if not `forced`, also NONE, an empty ranking.
    """

    def check(numbered: NumberedTexts) -> tuple[tuple[tuple[int, ...], str], ...]:
        texts = enumerate(zip(complete_texts(numbered, len(counts)), counts, strict=True), 1)
        return tuple(_ranking(text, n, count, forced) for n, (text, count) in texts)

    return form(text=_question_lines, shape=item_list("guesses", "question", "guess")).map(check)


def matching_form(count: int) -> Form[tuple[int, ...]]:
    """Return the form of a reply that gives each of `count` questions one of as many letters. Its
    `read` returns their indices and raises Unparsed unless each letter is given once.
    """

    def check(numbered: NumberedTexts) -> tuple[int, ...]:
        letters = [_letter(text, n) for n, text in enumerate(complete_texts(numbered, count), 1)]
        if sorted(letters) != list(LETTERS[:count]):
            raise Unparsed(
                f"its letters are {', '.join(letters)}; each of {', '.join(LETTERS[:count])} is "
                "the answer to exactly one question"
            )
        return tuple(map(LETTERS.index, letters))

    return form(text=_question_lines, shape=item_list("matches", "question", "answer")).map(check)


def _question_lines(reply: str) -> NumberedTexts:
    """Return the lines `QUESTION 1: ...` of a reply: their numbers and texts."""
    return [(int(number), text) for number, text in _LINE.findall(reply)]


def _ranking(text: str, number: int, count: int, forced: bool) -> tuple[tuple[int, ...], str]:
    if not forced and (none := _NONE.match(text)):
        return (), (none[1] or "").strip()
    match = _GUESS.match(text)
    letters = re.findall(r"[A-Z]", match[1]) if match else []
    if match is None or sorted(letters) != list(LETTERS[:count]):
        raise Unparsed(
            f"question {number} is answered with {text[:40]!r}; expected a ranking of all of "
            f"{', '.join(LETTERS[:count])}, then | and why"
        )
    return tuple(LETTERS.index(letter) for letter in letters), (match[2] or "").strip()


def _letter(text: str, number: int) -> str:
    found = _LETTER.match(text)
    if found is None:
        raise Unparsed(f"question {number} is answered with {text[:40]!r}; expected a letter")
    return found[1]
