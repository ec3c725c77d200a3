"""Questions composed by the forms of facts from a part of a script, without a look: the on-screen
texts, lines and measured captions of the part are the facts, and say where each does not hold.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

from mustsee.facts.cases import is_marked, shared_seconds
from mustsee.facts.draw import draw_groups
from mustsee.facts.extract import line_facts, text_facts
from mustsee.facts.forms.after import AfterForm
from mustsee.facts.forms.at import AtForm
from mustsee.facts.forms.before import BeforeForm
from mustsee.facts.forms.between import BetweenForm
from mustsee.facts.forms.order import OrderForm
from mustsee.facts.forms.spoken import SaidForm, WhileForm
from mustsee.facts.moments import MomentRules, moments_of
from mustsee.facts.select import SelectRules
from mustsee.facts.stem import QuestionForm, Stem
from mustsee.facts.table import Entry, TruthTable
from mustsee.media.certainty import is_surely_read
from mustsee.offline.facts_phrases import TEXT, resembles
from mustsee.offline.filters import giveaway
from mustsee.offline.wording import likeness
from mustsee.questions.checks import fault, holds
from mustsee.questions.course import has_known_place
from mustsee.recipes.neptune.ask import ScriptPart
from mustsee.recipes.neptune.offline.measured import state_facts
from mustsee.recipes.neptune.offline.quotable import one_line, quotable_texts
from mustsee.records import Fact, ScreenText, Span, Video
from mustsee.text import overlap

OPTIONS = 5
MIN_VISIBLE_S = 0.3  # seconds of a text within a moment from which it is seen there
_MARKED = "its place is known without the video"  # of titles, goodbyes, and the seasons
MAX_FACTS = 60  # facts that are joined with each other
MIN_APART_S = 10.0  # seconds between two facts that a question states
MAX_OF_FACT = 3  # questions on one fact, at most
KINDS = ("text", "state")  # of what is seen
FORMS: tuple[QuestionForm, ...] = (
    # Several lines are said at one moment: which comes next needs finer times.
    *(AfterForm(given=given, of=of) for given, of in product(KINDS, KINDS)),
    *(BeforeForm(given=given, of=of) for given, of in product(KINDS, KINDS)),
    *(BetweenForm(given=kind, of=kind, apart=MIN_APART_S) for kind in KINDS),
    BetweenForm(given="line", of="text", apart=MIN_APART_S),
    BetweenForm(given="text", of="line", apart=MIN_APART_S),
    *(OrderForm(of=kind) for kind in KINDS),
    AtForm(given="state", of="text"),
    AtForm(given="text", of="state"),
    *(WhileForm(of=kind) for kind in KINDS),
    *(SaidForm(given=kind) for kind in KINDS),
)
SELECTION = SelectRules(
    questions=60, least_questions=60, options=OPTIONS, least_options=OPTIONS, of_fact=MAX_OF_FACT
)


@dataclass(frozen=True, kw_only=True)
class RuleQuestion:
    """A question with its decoys; `tag`: its type."""

    tag: str
    question: str
    answer: str
    decoys: tuple[str, ...]
    evidence: tuple[Span, ...]


@lru_cache(maxsize=256)  # all parts of a long video are asked for at once, then their decoys
def make_questions(part: ScriptPart, seed: int) -> tuple[RuleQuestion, ...]:
    """Return the questions on a part that its words do not give away, forms in turns. None ask for
    what another one states and state what it asks for.
    """
    if part.overview:
        return ()
    table = truth_table(part)
    stems = _stems(table, seed)
    rankings = {
        number: rank_answers(stem, seed)
        for number, stem in enumerate(stems)
        if stem.options or len(stem.pool) >= OPTIONS - 1
    }
    groups = draw_groups(
        stems, rankings, _shared_terms, SELECTION, seconds=part.span.seconds, seed=seed
    )
    questions: list[RuleQuestion] = []
    about: set[frozenset[str]] = set()
    for chosen in (member for group in groups for member in group.members):
        stem = chosen.stem
        decoys = tuple(option for option in chosen.options if option != stem.answer)
        is_sound = fault(stem.question, stem.answer, decoys, count=len(decoys)) is None
        if is_sound and stem.about not in about:
            about.add(stem.about)
            questions.append(
                RuleQuestion(
                    tag=stem.question_type.lower(),
                    question=stem.question,
                    answer=stem.answer,
                    decoys=decoys,
                    evidence=stem.evidence,
                )
            )
    return tuple(questions)


def _shared_terms(question: str, answers: Sequence[str]) -> list[float]:
    return [overlap(answer, question) for answer in answers]


def _stems(table: TruthTable, seed: int) -> list[Stem]:
    """Return the stems of a table. Facts of a long part are joined with those near in time only."""
    stems: dict[str, Stem] = {}
    facts = [fact for fact in table.facts if fact.drop is None]
    count = max(1, -(-len(facts) // MAX_FACTS))
    size = -(-len(facts) // count)
    for start in range(0, len(facts), max(1, size)):
        near = replace(table, facts=tuple(facts[start : start + size]))
        for number, form in enumerate(FORMS):
            for stem in form.stems(near, random.Random(f"{seed}/{start}/{number}")):
                stems.setdefault(stem.question, stem)
    return list(stems.values())


def _answers(stem: Stem) -> tuple[str, ...]:
    return stem.options or (stem.answer, *stem.pool)


def rank_answers(stem: Stem, seed: int) -> list[str]:
    """Return the answers of a stem, those first that give themselves away."""
    answers = sorted(_answers(stem))
    scores = giveaway(stem.question, answers, seed)
    return [answers[i] for i in sorted(range(len(answers)), key=lambda i: -scores[i])]


def truth_table(part: ScriptPart) -> TruthTable:
    """Return the facts of a part with all entries: true where a text, line or measurement is, false
    where the frames were read or measured without it, and unknown where either is doubtful.
    """
    span, units = part.span, part.units
    shots = tuple(Span(unit.start, unit.end) for unit in units)
    clip = Video(
        video_id="", uri="", start=span.start, end=span.end, duration=span.seconds, shots=shots
    )
    moments = moments_of(clip, MomentRules())
    texts = tuple(dict.fromkeys(text for unit in units for text in unit.texts))
    captions = tuple(dict.fromkeys(caption for unit in units for caption in unit.captions))
    lines = tuple(dict.fromkeys(line for unit in units for line in unit.lines))
    spoken = line_facts([replace(line, text=one_line(line.text)) for line in lines])
    written = text_facts(quotable_texts(texts))
    states, truth = state_facts(captions, moments)
    facts = tuple(sorted((*spoken, *written, *states), key=lambda fact: fact.spans[0].start))
    # Texts, lines and light tell nobody which place or cast they belong to: one scene holds all.
    table = TruthTable(facts=facts, moments=moments, scenes=(0,) * len(moments))
    for fact in spoken:
        for n in range(len(moments)):
            truth[fact.fact_id, n] = n in table.claims[fact.fact_id]
    visible = [
        [t for t in texts if t.time < moment.end and (t.end or t.time) >= moment.start]
        for moment in moments
    ]
    for fact in written:
        truth.update(_entries(fact, visible, table))
    table = replace(table, truth=truth)
    phrases = [fact.phrase for fact in written]

    def is_known(fact: Fact) -> bool:
        others = phrases if fact.kind == "text" else ()
        return is_marked(table, fact) or has_known_place(fact.phrase, others)

    marked = (replace(fact, drop=_MARKED) if is_known(fact) else fact for fact in facts)
    return replace(table, facts=tuple(marked))


def _entries(
    fact: Fact, visible: Sequence[Sequence[ScreenText]], table: TruthTable
) -> dict[Entry, bool | None]:
    """Return where an on-screen text is visible; null where only a reading is that may be of it.
    `visible`: the readings of each moment.
    """
    entries: dict[Entry, bool | None] = {}
    quoted = TEXT.fullmatch(fact.phrase)
    assert quoted is not None
    for number, moment in enumerate(table.moments):
        is_like = any(
            _may_be(quoted[1], text.text, is_surely_read(text)) for text in visible[number]
        )
        is_there = any(shared_seconds(span, moment) > MIN_VISIBLE_S for span in fact.spans)
        entries[fact.fact_id, number] = True if is_there else None if is_like else False
    return entries


@lru_cache(maxsize=65536)
def _may_be(text: str, reading: str, is_sure: bool) -> bool:
    """Whether a reading may be of a text; a sure one only if they are nearly the same."""
    if is_sure:
        return holds(text, reading) or holds(reading, text) or likeness(text, reading) >= SAME_TEXT
    return resembles(text, reading)


SAME_TEXT = 0.85  # likeness from which two sure readings are of one text
