"""A stem, which a form makes: a question, its right answer, and the facts that may be options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from mustsee.facts.table import Need, TruthTable
from mustsee.records import Fact, Span


@dataclass(frozen=True, kw_only=True)
class FormTraits:
    """What is so of all questions of a form."""

    needs_options: bool = True
    """Without options its answer is not one: of things many are seen at once; an order, and what is
    longest, first or next, are of those that are named."""
    names_moment: bool = True
    """It names the moment that it asks about; otherwise it asks of the whole video."""
    asks_time: bool = False
    """Its answer is when something is seen: it has no options, and sits no exam."""
    is_beside: bool = False
    """It asks what is seen beside something; guessers know what goes together."""
    lists_order: bool = False
    """Its options are orders; whoever compares several questions of one video finds its course."""
    for_rules: bool = False
    """Only rules ask so: no person would, and a model has better questions."""


@dataclass(frozen=True, kw_only=True)
class Stem:
    """A question with its right answer.

    `pool`: further answers of the same kind and form, each true elsewhere in the video and known to
    be wrong here. `options`: all options, in place of a pool, where a form makes them together (an
    order, a count); the answer is one of them.
    `list_name`: stems with the same one may share a list of options, of which each is the answer to
    one of them; empty: the question stands alone.
    `evidence`: the spans that one must see, one for each entry that the question joins. `needs`:
    its facts, with the moments at which it must be known of them whether they hold, besides those
    at which they are claimed, and those of `QuestionForm.facts`.
    `about`: the ids of its facts, whose number of questions is limited, and names with a slash of
    what is asked once in a video. `centre`: the id of the one of them that the question relates to
    each of the others; empty: it relates each to each.
    `scene`: of the stem; `scenes`: of the answer and of the pool, by answer.
    `form`: the family of the form that made it, with the `traits` of that; `key`: its key under
    `ask.settings.forms`.
    """

    form: str
    traits: FormTraits = FormTraits()
    question: str
    question_type: str
    answer: str
    pool: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    list_name: str = ""
    evidence: tuple[Span, ...]
    needs: tuple[Need, ...] = ()
    about: frozenset[str] = frozenset()
    centre: str = ""
    scene: int = -1
    scenes: Mapping[str, int] = field(default_factory=dict[str, int])
    key: str = ""


class QuestionForm(Protocol):
    """A form of question: a frozen dataclass with its settings. See `mustsee.facts.forms`."""

    @property
    def traits(self) -> FormTraits:
        return FormTraits()

    def facts(self, table: TruthTable) -> Iterable[Fact]:
        """Return the facts of which it must know where they hold and where they may hold, whatever
        comes out; they are looked at at the moments to check.
        """
        return ()

    def stems(self, table: TruthTable, rng: Random) -> Iterable[Stem]:
        """Return all stems that the table allows, each with the entries that it needs: a draft is
        made of what the facts claim, and no other entries are looked at.
        """
        ...
