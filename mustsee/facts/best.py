"""Of more open questions than are wanted, an editor says which to publish first.

    ranked = await rank_open(questions, wanted, editor, seconds, tally, seed=seed)

BEST 1: 4, 1, 3, 2
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mustsee.calls.llm import Asker
from mustsee.errors import Unparsed
from mustsee.facts.unread import StepTally, gather_readable
from mustsee.questions.rows import Rows, numbered_rows, rows_form
from mustsee.records import COUNTED, Question
from mustsee.replies.forms import Form

PROMPT = "facts/best"
ORDERS = "orders of open questions"  # `what` of the requests


async def rank_open(
    questions: Sequence[Question],
    wanted: int,
    editor: Asker,
    seconds: float,
    tally: StepTally,
    *,
    seed: int,
) -> tuple[Question, ...]:
    """Return the questions that passed, the best first: by an editor, if more passed than are
    wanted and its reply can be parsed, or else those with most weight left. `seconds`: of the
    video.
    """
    passed = sorted(
        (question for question in questions if question.drop is None),
        key=lambda question: (-_weight_left(question), question.question_id),
    )
    if not 0 < wanted < len(passed):
        return tuple(passed)
    asked = sorted(passed, key=lambda question: question.question_id)  # no order to follow
    request = editor.ask(
        PROMPT, order_form(len(asked)), seed=seed, asked=asked, number=wanted, seconds=seconds
    )
    (order,) = await gather_readable([request], tally, ORDERS, may_lack=True)
    return tuple(passed if order is None else (asked[n - 1] for n in order))


def _weight_left(question: Question) -> int:
    return sum(point.weight for point in question.points if point.state == COUNTED)


def order_form(count: int) -> Form[tuple[int, ...]]:
    """Return the form of a reply with the numbers 1 to `count` in an order. Its `read` raises
    Unparsed unless each is there once.
    """

    def read_order(rows: Rows) -> tuple[int, ...]:
        (row,) = numbered_rows(rows["best"], 1, "best")
        numbers = tuple(map(int, re.findall(r"\d+", row["numbers"])))
        if sorted(numbers) != list(range(1, count + 1)):
            raise Unparsed(
                f"the order has {len(numbers)} numbers; expected each of 1 to {count} once"
            )
        return numbers

    cells = {"best": {"numbers": "the numbers of all questions, the best first"}}
    return rows_form(cells).map(read_order)
