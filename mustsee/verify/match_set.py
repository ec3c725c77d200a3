"""A guess at all questions of a set and their shared list of answers at once.

Sure pairs shrink the rest, so that a matching is easier to guess than its questions one by one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mustsee.calls.llm import Asker
from mustsee.errors import Unparsed
from mustsee.questions.numbered import Items, complete, items
from mustsee.replies.forms import Form, form
from mustsee.text import LETTERS
from mustsee.verify.guess_set import draw_order, question_lines

PROMPT = "filters/match"
_LETTER = re.compile(r"[\[(\"'*_\s]*([A-Z])[\])\"'*_\s]*(?:[|:.(–—-]|$)")


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
        PROMPT,
        matching_form(len(questions)),
        seed=seed,
        asked=tuple(questions[i] for i in asked),
        answers=tuple(answers[i] for i in shown),
        transcript=transcript,
        recognised=recognised,
    )
    by_question = {i: shown[a] for i, a in zip(asked, matched, strict=True)}
    return tuple(by_question[i] for i in range(len(questions)))


def matching_form(count: int) -> Form[tuple[int, ...]]:
    """Return the form of a reply that gives each of `count` questions one of as many letters. Its
    `read` returns their indices and raises Unparsed unless each letter is given once.
    """

    def check(numbered: Items) -> tuple[int, ...]:
        letters = [_letter(text, n) for n, text in enumerate(complete(numbered, count), 1)]
        if sorted(letters) != list(LETTERS[:count]):
            raise Unparsed(
                f"its letters are {', '.join(letters)}; each of {', '.join(LETTERS[:count])} is "
                "the answer to exactly one question"
            )
        return tuple(map(LETTERS.index, letters))

    return form(text=question_lines, shape=items("matches", "question", "answer")).map(check)


def _letter(text: str, number: int) -> str:
    found = _LETTER.match(text)
    if found is None:
        raise Unparsed(f"question {number} is answered with {text[:40]!r}; expected a letter")
    return found[1]
