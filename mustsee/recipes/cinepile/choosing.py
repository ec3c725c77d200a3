"""Asking a model to choose an option, with no context, with dialogue, or with the whole scene."""

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
    """The options moved on by so many places, the last ones to the front."""
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
    """The model's choice, or None where it gave none that could be read: such a call is neither
    right nor wrong, and its caller must not take it for either. Raises Transient: what may work
    later is not kept as a question without a value.
    """
    shown = tuple(options)
    try:
        return await asker.ask(
            "cinepile/choose",
            choice(shown),
            seed=seed,
            question=question,
            options=shown,
            context=context,
            about=about,
        )
    except BadRow:
        return None


def verdict(
    name: str, asker: Asker, question: Question, choice: OptionChoice | None, *, seed: int = 0,
    detail: str = "",
) -> Verdict:  # fmt: skip
    """What a choice says of a question as it stands."""
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
