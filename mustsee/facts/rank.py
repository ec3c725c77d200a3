"""Plausibility of options for a guesser that sees no video."""

from __future__ import annotations

from collections.abc import Sequence

from mustsee.calls.llm import Asker
from mustsee.verify.guess.ask import draw_order
from mustsee.verify.guess.replies import rankings

PROMPT = "facts/rank"


async def rank(
    asked: Sequence[tuple[str, Sequence[str]]], asker: Asker, *, seed: int
) -> tuple[tuple[int, ...], ...]:
    """Return for each question with its options the options' indices, the most plausible first. The
    options of each are shown in an order drawn from the seed. Raises BadRow if no reply can be
    parsed.
    """
    shown = [draw_order(len(options), seed, question) for question, options in asked]
    ranked = await asker.ask(
        PROMPT,
        rankings([len(options) for _, options in asked]),
        seed=seed,
        asked=tuple(
            {"question": question, "options": tuple(options[i] for i in order)}
            for (question, options), order in zip(asked, shown, strict=True)
        ),
    )
    return tuple(
        tuple(order[a] for a in ranking) for order, (ranking, _) in zip(shown, ranked, strict=True)
    )
