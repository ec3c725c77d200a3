"""Choose wrong answers for questions whose answer a form knows (cases); both make a stem.

A wrong answer is a fact of the answer's kind that is true elsewhere in the video, known to be false
where the question asks, and no more strange to the question's words and scene than the answer:

- It shares at least as many content words with the question as the answer does.
- Either the answer and all wrong answers belong to the scene of the question, or none does.
- No two of them contain each other.
- Either all are words on the screen, or none is: in a mixture, readers found what stood out.

Questions with the same list of candidates get the same name of list, so that sets can share one.
The candidates of a list are drawn from what the facts claim. So a draft made before the looks draws
the same ones as the final run, and all entries that the final run needs were looked at.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from random import Random
from typing import ClassVar, TypeVar

from mustsee.facts.stem import QuestionForm, Stem
from mustsee.facts.table import Need, TruthTable, is_thing, is_written
from mustsee.questions.checks import fault, holds
from mustsee.records import Fact, Span
from mustsee.text import terms

T = TypeVar("T")
MAX_CANDIDATES = 13  # wrong answers that a stem may choose from, at most
MAX_MOMENTS = 3  # moments of the stretch of a fact that a question names, at most
MIN_ALONE = 3  # wrong answers of a question that stands alone, at least
MIN_BESIDE = 4  # other facts of a scene from which wrong answers of that scene can be drawn
MARKED_KINDS = frozenset({"event", "text", "line", "sound"})  # titles and goodbyes are of these
TIMED_KINDS = frozenset({"line"})  # their spans are exact

ASKS = {  # kind -> how a question asks for a fact of this kind
    "event": "What happens",
    "place": "Which place is seen",
    "person": "Who is seen",
    "object": "What is seen",
    "text": "Which words are seen",
    "view": "What is seen",
    "state": "Which of these is so",
    "line": "What is said",
    "sound": "What is heard",
}
VERBS = {"event": "happens", "state": "is so", "line": "is said", "sound": "is heard"}
ALL_VERBS = (*VERBS.values(), "is seen")
_CLAUSES = {"event": "{}", "state": "{}", "line": "{} is said", "sound": "{} can be heard"}
_OTHER_CLAUSE = "{} can be seen"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A question and the fact that is its answer.

    `given`: the phrases that the question states. `wrong_at`: moments at which a wrong answer must
    be known to be false. `outside`: moments among which none of its places may be. `excluded`: ids
    of facts that may be right, too. `scenes`: the scenes of the given phrases. `needs_scene`:
    whether all wrong answers must belong to these scenes if the answer does; otherwise only where
    the scenes have enough of them. `needs`: entries by which the answer is the only one, besides
    those where its facts are claimed.
    """

    question: str
    given: str
    answer: Fact
    wrong_at: tuple[int, ...]
    scenes: frozenset[int]
    evidence: tuple[Span, ...]
    about: frozenset[str]
    question_type: str = "Identification"
    outside: range = range(0)
    excluded: frozenset[str] = frozenset()
    needs_scene: bool = True
    needs: tuple[Need, ...] = ()


def verb(kind: str) -> str:
    """Return what facts of a kind do: "happens", "is seen"."""
    return VERBS.get(kind, "is seen")


def clause(fact: Fact) -> str:
    """Return a fact as a clause, such as "the words “PARTS LIST” can be seen"."""
    return _CLAUSES.get(fact.kind, _OTHER_CLAUSE).format(fact.phrase)


def phrase_in(text: str) -> str:
    """Return the phrase of a clause; a phrase is one, too."""
    ends = {form.removeprefix("{}") for form in (*_CLAUSES.values(), _OTHER_CLAUSE)} - {""}
    return next((text.removesuffix(end) for end in sorted(ends) if text.endswith(end)), text)


@dataclass(frozen=True, kw_only=True)
class CaseForm(QuestionForm):
    """A form that makes a stem of each of its cases, with at most `pool` wrong answers."""

    form: ClassVar[str]
    pool: int = MAX_CANDIDATES

    @property
    def name(self) -> str:
        return self.form

    @abstractmethod
    def cases(self, table: TruthTable) -> Iterable[Case]:
        """Return the questions that the table allows, with their answers."""

    def stems(self, table: TruthTable, rng: Random) -> Iterator[Stem]:
        seed = rng.random()
        lists = _candidates(self.name, self.cases(table.as_claimed), table, seed, self.pool)
        for case in self.cases(table):
            stated = [table.by_id[name] for name in case.about if name in table.by_id]
            quoted = [f for f in (case.answer, *stated) if f.kind == "line" or is_written(f)]
            if any(is_marked(table, fact) for fact in quoted):  # as a greeting or a title is
                continue
            key = list_key(self.name, case, table)
            names = lists.get(key, ())
            own = next((n for n, part in enumerate(names) if case.answer.fact_id in part), 0)
            order = [name for part in (*names[own:], *names[:own]) for name in part]
            candidates = _in_order(table, case.answer.kind, order, seed)
            pool = draw_wrong(table, case, key, candidates, self.pool)
            if not pool:
                continue
            apart = key.endswith("/any")
            scene = -1 if apart else min(case.scenes, default=-1)
            yield Stem(
                form=self.name,
                question=case.question,
                question_type=case.question_type,
                answer=case.answer.phrase,
                pool=tuple(fact.phrase for fact in pool),
                list_name=f"{key}/{own}" if len(names) > 1 else key,
                evidence=case.evidence,
                needs=(
                    *case.needs,
                    *((fact.fact_id, table.to_check(fact)) for fact in quoted),
                    *(need for fact in pool for need in table.absence(fact, case.wrong_at)),
                ),
                about=case.about | {case.answer.fact_id},
                scene=scene,
                scenes={}
                if apart
                else {
                    fact.phrase: _scene(table, fact, case.scenes, scene)
                    for fact in (case.answer, *pool)
                },
            )


def compose_alone(
    form: str,
    question_type: str,
    question: str,
    answer: Fact,
    others: Iterable[Fact],
    evidence: tuple[Span, ...],
    *,
    about: Iterable[str] = (),
    seed: float,
    size: int,
    needs: Callable[[Fact], Iterable[Need]] = lambda fact: (),
) -> Iterator[Stem]:
    """Yield a stem whose wrong answers are the given ones: at most `size`, distinct from each other
    and from the answer; none if there are fewer than `MIN_ALONE`. Things are left out, since none
    is surely absent from a long stretch. `needs`: the entries by which a fact of the stem is right
    or wrong.
    """
    pool: list[str] = []
    by_phrase = {
        f.phrase: f for f in others if not is_thing(f) and is_written(f) == is_written(answer)
    }
    for text in by_chance(f"{seed}/{question}", by_phrase, str):
        if (
            len(pool) < size
            and all(are_distinct(text, p) for p in (answer.phrase, *pool))
            and fault(question, answer.phrase, [text], count=1) is None
        ):
            pool.append(text)
    if len(pool) >= MIN_ALONE:
        yield Stem(
            form=form,
            question=question,
            question_type=question_type,
            answer=answer.phrase,
            pool=tuple(pool),
            evidence=evidence,
            needs=tuple(
                need
                for fact in (answer, *map(by_phrase.__getitem__, pool))
                for need in ((fact.fact_id, ()), *needs(fact))
            ),
            about=frozenset({answer.fact_id, *about}),
            centre=answer.fact_id,
        )


def list_key(form: str, case: Case, table: TruthTable) -> str:
    """Return the name of the list of a case: of the form, the kind of its answers, and whether they
    belong to the scenes of the question.
    """
    name = f"{form}/{case.answer.kind}"
    if not case.needs_scene:
        facts = [f for f in table.facts if f.kind == case.answer.kind]
        beside = [f for f in facts if table.scenes_of(f) & case.scenes and f != case.answer]
        if len(beside) < MIN_BESIDE:
            return f"{name}/any"
    if not table.scenes_of(case.answer) & case.scenes:
        return f"{name}/across"
    return f"{name}/within/{'-'.join(map(str, sorted(case.scenes)))}"


def draw_wrong(
    table: TruthTable, case: Case, key: str, candidates: Iterable[Fact], size: int
) -> list[Fact]:
    """Return the first `size` candidates that can stand beside the answer of a case."""
    own = bool(table.scenes_of(case.answer) & case.scenes)
    least = shared_words(case.given, case.answer.phrase)
    pool: list[Fact] = []
    for fact in candidates:
        if len(pool) == size:
            break
        if not key.endswith("/any") and bool(table.scenes_of(fact) & case.scenes) != own:
            continue
        if (
            fact.fact_id not in case.excluded
            and is_written(fact) == is_written(case.answer)
            and shared_words(case.given, fact.phrase) >= least
            and all(are_distinct(fact.phrase, f.phrase) for f in (case.answer, *pool))
            and fault(case.question, case.answer.phrase, [fact.phrase], count=1) is None
            and is_wrong(table, fact, case.wrong_at)
            and is_true_somewhere(table, fact)
            and not (case.outside and touches(table, fact, case.outside))
        ):
            pool.append(fact)
    return pool


def is_wrong(table: TruthTable, fact: Fact, moments: Iterable[int]) -> bool:
    """Whether a fact, and each that says the same, is known to be false at all of the moments."""
    facts = table.alike[fact.fact_id]
    numbers = list(moments)
    if fact.kind in TIMED_KINDS:
        times = [table.moments[n] for n in numbers if 0 <= n < len(table.moments)]
        if any(shared_seconds(s, time) > 0 for f in facts for s in f.spans for time in times):
            return False
    return all(table.none_hold(facts, moment) for moment in numbers)


def touches(table: TruthTable, fact: Fact, moments: range) -> bool:
    """Whether a fact, or one that says the same, holds or may hold at one of the moments."""
    return any(n in moments for other in table.alike[fact.fact_id] for n in table.possible(other))


def holds_with(table: TruthTable, answer: Fact, fact: Fact, stretch: Stretch) -> bool:
    """Whether an answer is known to hold at all moments of another fact's stretch, and claimed to
    do so for half of the time of that one, or of its own: two things of one moment need not be
    seen together.
    """
    return all(table.holds(answer, n) for n in stretch.moments) and any(
        2 * shared_seconds(one, other) >= min(one.end - one.start, other.end - other.start)
        for one in answer.spans
        for other in fact.spans
    )


def is_true_somewhere(table: TruthTable, fact: Fact) -> bool:
    """Whether a fact is known to be true at a moment where it is claimed."""
    return any(table.holds(fact, moment) for moment in table.claims[fact.fact_id])


@dataclass(frozen=True)
class Stretch:
    """The moments `first` to `last`, at which a fact is known to hold, and the `doubts`: other
    moments at which it may hold, too.
    """

    first: int
    last: int
    doubts: tuple[int, ...] = ()

    @property
    def moments(self) -> range:
        return range(self.first, self.last + 1)

    @property
    def reach(self) -> range:
        """All moments from the first to the last at which it may hold."""
        moments = (self.first, self.last, *self.doubts)
        return range(min(moments), max(moments) + 1)


def find_stretch(table: TruthTable, fact: Fact, most: int = MAX_MOMENTS) -> Stretch | None:
    """Return where a fact holds, if it is one stretch of at most `most` moments, together with the
    facts that say the same; else null.
    """
    places: set[int] = set()
    doubts: set[int] = set()
    for other in table.alike[fact.fact_id]:
        places.update(table.places(other))
        doubts.update(table.doubts(other))
    if not places or max(places) - min(places) >= min(most, len(places)):
        return None
    return Stretch(min(places), max(places), tuple(sorted(doubts - places)))


def find_runs(table: TruthTable, fact: Fact) -> list[Stretch]:
    """Return the runs of moments at which a fact holds, in order; none if it is unknown of any
    moment of the video whether it holds there.
    """
    entries = [table.holds(fact, n) for n in range(len(table.moments))]
    if None in entries:
        return []
    numbered = groupby(enumerate(entries), key=lambda item: item[1])
    runs = [[n for n, _ in run] for holds, run in numbered if holds]
    return [Stretch(run[0], run[-1]) for run in runs]


def find_stretches(table: TruthTable, kind: str, most: int) -> Iterator[tuple[Fact, Stretch]]:
    """Yield the facts of a kind that hold in one stretch of at most `most` moments."""
    for fact in table.of_kind(kind):
        if (stretch := find_stretch(table, fact, most)) is not None:
            yield fact, stretch


def is_marked(table: TruthTable, fact: Fact) -> bool:
    """Whether the place of a fact gives it away: its words tell it, or it is shown or heard at the
    first or last moment of the video, as titles and goodbyes are, or may be. True also of a fact
    that is not known to hold anywhere.
    """
    if fact.fact_id in table.known_places:
        return True
    if fact.kind not in MARKED_KINDS and not is_written(fact):
        return False
    places, ends = table.places(fact), {0, len(table.moments) - 1}
    return not places or bool(ends & set(table.possible(fact)))


def find_span(table: TruthTable, fact: Fact, stretch: Stretch) -> Span:
    """Return the span of a fact that holds in a stretch."""
    return Span(table.span(fact, stretch.first).start, table.span(fact, stretch.last).end)


def seconds_between(table: TruthTable, earlier: range, later: range) -> float:
    """Return the seconds from the end of some moments to the start of later ones; below 0 if they
    are not later.
    """
    return table.moments[later[0]].start - table.moments[earlier[-1]].end


def shared_seconds(one: Span, other: Span) -> float:
    return min(one.end, other.end) - max(one.start, other.start)


def shared_words(one: str, other: str) -> int:
    """Return the number of content words that two texts share."""
    return len(_terms(one) & _terms(other))


@lru_cache(maxsize=65536)
def are_distinct(one: str, other: str) -> bool:
    """Whether two answers are surely not the same: neither contains the other or its words."""
    first, second = _terms(one), _terms(other)
    return not (first <= second or second <= first or holds(one, other) or holds(other, one))


@lru_cache(maxsize=65536)
def _terms(text: str) -> frozenset[str]:
    return frozenset(terms(text))


def by_chance(seed: object, items: Iterable[T], name: Callable[[T], str]) -> list[T]:
    """Return items in an order that depends on their names only: without one of them, the others
    keep theirs.
    """
    return sorted(items, key=lambda item: Random(f"{seed}/{name(item)}").random())


def _candidates(
    form: str, cases: Iterable[Case], table: TruthTable, seed: float, size: int
) -> Mapping[str, Sequence[Sequence[str]]]:
    """Return, for each list, the ids of the facts that answer one of its cases, in parts of at most
    `size` + 1 for the sets to be drawn from.
    """
    answers: dict[str, set[str]] = {}
    for case in cases:
        answers.setdefault(list_key(form, case, table), set()).add(case.answer.fact_id)
    lists: dict[str, Sequence[Sequence[str]]] = {}
    for key, names in answers.items():
        order = by_chance(seed, names, str)
        count = -(-len(order) // (size + 1))
        lists[key] = [order[n::count] for n in range(count)]
    return lists


def _in_order(table: TruthTable, kind: str, names: Sequence[str], seed: float) -> list[Fact]:
    """Return the named facts, then the others of a kind, without the dropped ones."""
    facts = {fact.fact_id: fact for fact in table.of_kind(kind)}
    named = [facts.pop(name) for name in names if name in facts]
    return [*named, *by_chance(seed, facts.values(), lambda fact: fact.fact_id)]


def _scene(table: TruthTable, fact: Fact, scenes: frozenset[int], scene: int) -> int:
    """Return `scene` for a fact that belongs to one of the scenes, else its own first one."""
    own = table.scenes_of(fact)
    return scene if own & scenes else min(own, default=-1)
