"""Calls of a model that chooses an option, without context, with dialogue, or with the scene."""

from __future__ import annotations

from collections.abc import Sequence

from mustsee.calls.llm import Asker
from mustsee.errors import BadRow
from mustsee.recipes.cinepile.mcq import OptionChoice, choice
from mustsee.records import Question, Verdict
from mustsee.text import LETTERS

DIALOGUE = "What is said in the scene, with times in seconds:"
SCENE = (
    "A scene: what is said (<subtitle>) and what a narrator says of the picture "
    "(<visual descriptions>), with times in seconds:"
)


def rotate_options(options: Sequence[str], by: int) -> tuple[str, ...]:
    """Rotate the options to the right by `by` places."""
    by %= len(options)
    return (*options[len(options) - by :], *options[: len(options) - by])


async def choose(
    asker: Asker,
    question: str,
    options: Sequence[str],
    *,
    context: str | None = None,
    about: str = "",
    seed: int = 0,
) -> OptionChoice | None:
    """Return the model's choice, or None if its replies cannot be parsed: such a call is neither
    right nor wrong. Raises Transient, so that a later run repeats the call.
    """
    all_options = tuple(options)
    try:
        return await asker.ask(
            "cinepile/choose",
            choice(all_options),
            seed=seed,
            question=question,
            options=all_options,
            context=context,
            about=about,
        )
    except BadRow:
        return None


def verdict(
    name: str, asker: Asker, question: Question, choice: OptionChoice | None, *, seed: int = 0,
    detail: str = "",
) -> Verdict:  # fmt: skip
    """Return the verdict of a choice on a question."""
    chosen = "no answer" if choice is None else f"chose {LETTERS[choice.place]}"
    return Verdict(
        filter=name,
        model=asker.llm.identity,
        seed=seed,
        prompt=asker.prompts.digest("cinepile/choose"),
        reply=choice.reply if choice else "",
        correct=None if choice is None else choice.place == question.answer_index,
        detail=f"{detail}; {chosen}" if detail else chosen,
    )
