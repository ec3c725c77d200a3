"""Plausibility of answers for a guesser that sees no video."""

from __future__ import annotations

from collections.abc import Sequence

from mustsee.calls.llm import Asker
from mustsee.verify.guess_set import draw_order, rankings

PROMPT, EACH_PROMPT = "facts/rank", "facts/rank_each"


async def rank(
    questions: Sequence[str], answers: Sequence[str], asker: Asker, *, seed: int
) -> tuple[tuple[int, ...], ...]:
    """Return for each question the indices of all answers, the most plausible first. All questions
    share the list; both are shown in an order drawn from the seed. Raises BadRow if no reply can be
    parsed.
    """
    asked = draw_order(len(questions), seed, "/".join(questions))
    shown = draw_order(len(answers), seed, "/".join(answers))
    ranked = await asker.ask(
        PROMPT,
        rankings([len(answers)] * len(questions)),
        seed=seed,
        asked=tuple(questions[i] for i in asked),
        answers=tuple(answers[i] for i in shown),
    )
    by_question = {i: order for i, (order, _) in zip(asked, ranked, strict=True)}
    return tuple(tuple(shown[a] for a in by_question[i]) for i in range(len(questions)))


async def rank_apart_lists(
    asked: Sequence[tuple[str, Sequence[str]]], asker: Asker, *, seed: int
) -> tuple[tuple[int, ...], ...]:
    """Return for each question with its own answers the answers' indices, the most plausible first.
    The answers of each are shown in an order drawn from the seed. Raises BadRow if no reply can be
    parsed.
    """
    shown = [draw_order(len(answers), seed, question) for question, answers in asked]
    ranked = await asker.ask(
        EACH_PROMPT,
        rankings([len(answers) for _, answers in asked]),
        seed=seed,
        asked=tuple(
            {"question": question, "options": tuple(answers[i] for i in order)}
            for (question, answers), order in zip(asked, shown, strict=True)
        ),
    )
    return tuple(
        tuple(order[a] for a in ranking) for order, (ranking, _) in zip(shown, ranked, strict=True)
    )
