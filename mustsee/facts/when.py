"""Questions that ask when something is seen, with ends that closer looks set (`forms.when`).

    asked = await ask_when(work, table, settings)

The truth table proves that there is no other time: at every moment but those of the answer a look
found the fact false. Where it begins and ends within a moment, closer looks find: each sees half of
the stretch in which the end lies, until that is short enough. Two more looks check it, as one wrong
verdict leads to a wrong end: just outside of it the fact must not be seen, and at it it must.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from mustsee.errors import BadRow
from mustsee.facts.cases import Stretch
from mustsee.facts.forms.when import WhenForm, runs_of
from mustsee.facts.look import look
from mustsee.facts.settings import FactSettings
from mustsee.facts.stem import Stem
from mustsee.facts.table import TruthTable
from mustsee.facts.work import VideoWork
from mustsee.questions.drafts import Draft, evidence_metrics
from mustsee.questions.templates import word_spans
from mustsee.records import WHEN, Fact, FormCount, Question, Span

END_LOOKS = "looks at ends of spans"  # `what` of the requests
ENDS_SET = "questions that ask when, with ends set by closer looks"  # name of a count in run.json
ENDS_OPEN = "questions that ask when, left out: closer looks do not agree on their ends"
# Before a border a look at the whole moment may have missed what begins there.
EDGE_S = 1.0
CHECKED_S = 2.0  # seconds outside of an end in which the fact must not be seen
SEARCH, CHECK = 0, 1  # added to the seed: a check of a span that was seen is another look
Judge = Callable[[Sequence[tuple[Fact, Span]], int], Awaitable[list[bool | None]]]


@dataclass(frozen=True, kw_only=True)
class WhenQuestions:
    """Questions of a video that ask when something is seen, and their number after each step."""

    questions: tuple[Question, ...] = ()
    forms: tuple[FormCount, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SpanEnd:
    """An end of a span of a fact: it lies between the times `absent`, up to which the fact is not
    seen, and `present`, in seconds. `is_open`: a look could not tell on which side of the middle.
    """

    fact: Fact
    absent: float
    present: float
    is_open: bool = False

    @property
    def width(self) -> float:
        return abs(self.present - self.absent)

    @property
    def middle(self) -> float:
        return (self.absent + self.present) / 2

    @property
    def half(self) -> Span:
        """The half beside `absent`, which the next look sees."""
        return _span(self.absent, self.middle)

    @property
    def stretch(self) -> Span:
        """The stretch in which it lies."""
        return _span(self.absent, self.present)

    def narrow(self, verdict: bool | None) -> SpanEnd:
        """Return the end after a look at its `half`."""
        if verdict is None:
            return replace(self, is_open=True)
        return replace(self, **{"present" if verdict else "absent": self.middle})


def asks_when(settings: FactSettings) -> bool:
    """Whether questions that ask when are wanted."""
    return _find_form(settings) is not None


def _find_form(settings: FactSettings) -> tuple[str, WhenForm] | None:
    """Return the form that asks when, with its key; null if no such questions are wanted."""
    forms = settings.forms.items()
    return next(((k, f) for k, f in forms if isinstance(f, WhenForm) and f.questions > 0), None)


async def ask_when(work: VideoWork, table: TruthTable, settings: FactSettings) -> WhenQuestions:
    """Return the questions that ask when, as many as are wanted and have ends that closer
    looks agree on. A look without a readable reply tells nothing, and is counted.
    """
    wanted = _find_form(settings)
    if wanted is None:
        return WhenQuestions()
    key, form = wanted
    stems = list(form.stems(table, Random(f"{settings.seed}/{key}")))
    judge = _make_judge(work, form)
    asked: list[Question] = []
    tried = 0
    while tried < len(stems) and (missing := form.questions - len(asked)) > 0:
        part = stems[tried : tried + missing]
        found = await find_spans(table, part, judge, form.ends)
        asked += [
            compose_when(stem, spans, work)
            for stem, spans in zip(part, found, strict=True)
            if spans is not None
        ]
        tried += len(part)
    work.count(ENDS_SET, len(asked))
    work.count(ENDS_OPEN, tried - len(asked))
    count = FormCount(form=key, possible=len(stems), drafted=tried, chosen=len(asked))
    return WhenQuestions(questions=tuple(asked), forms=(count,) if stems else ())


async def find_spans(
    table: TruthTable, stems: Sequence[Stem], judge: Judge, width: float
) -> list[tuple[Span, ...] | None]:
    """Return the spans of each question, in order; null for one of which an end is not found, or a
    span is shorter than its ends are sure.
    """
    runs = [(n, run) for n, stem in enumerate(stems) for run in runs_of(table, stem)]
    ends = [end for n, run in runs for end in _list_ends(table, table.by_id[stems[n].centre], run)]
    times = await set_ends(ends, judge, width, table.whole)
    found: list[list[Span] | None] = [[] for _ in stems]
    for (n, _), start, end in zip(runs, times[::2], times[1::2], strict=True):
        spans = found[n]
        if start is None or end is None or end - start < 2 * width:
            found[n] = None
        elif spans is not None:
            spans.append(Span(round(start, 1), round(end, 1)))
    return [None if spans is None else tuple(spans) for spans in found]


def _list_ends(table: TruthTable, fact: Fact, run: Stretch) -> tuple[SpanEnd, SpanEnd]:
    """Return the start and the end of a run of moments at which a fact holds, with where they may
    lie: from the edge of the moment beside it, at which it does not hold, to its far border.
    """
    moments = table.moments
    first, last = moments[run.first], moments[run.last]
    before = max(first.start - EDGE_S, moments[max(0, run.first - 1)].start)
    after = min(last.end + EDGE_S, moments[min(len(moments) - 1, run.last + 1)].end)
    return (
        SpanEnd(fact=fact, absent=before, present=first.end),
        SpanEnd(fact=fact, absent=after, present=last.start),
    )


async def set_ends(
    ends: Sequence[SpanEnd], judge: Judge, width: float, whole: Span
) -> list[float | None]:
    """Return the time of each end, in seconds; null for one that looks do not agree on. `width`:
    seconds between times without and with the fact at which halving stops. `whole`: the video; what
    is seen at its very edge begins or ends there.
    """
    current = list(ends)
    while due := [n for n, end in enumerate(current) if end.width > width and not end.is_open]:
        verdicts = await judge([(current[n].fact, current[n].half) for n in due], SEARCH)
        for n, verdict in zip(due, verdicts, strict=True):
            current[n] = current[n].narrow(verdict)
    # An end between times twice as far apart is still right to `width`, if its middle is taken.
    near = [n for n, end in enumerate(current) if end.width <= 2 * width]
    inside = await judge([(current[n].fact, current[n].stretch) for n in near], CHECK)
    outside = await judge([(current[n].fact, _outside(current[n], whole)) for n in near], CHECK)
    times: list[float | None] = [None] * len(current)
    for n, seen, seen_before in zip(near, inside, outside, strict=True):
        end = current[n]
        at_edge = end.absent in (whole.start, whole.end)
        if seen and (at_edge or seen_before is False):
            times[n] = end.absent if at_edge else end.middle
    return times


def _outside(end: SpanEnd, whole: Span) -> Span:
    """Return the seconds outside of an end, within the video."""
    far = end.absent + (-CHECKED_S if end.absent <= end.present else CHECKED_S)
    return _span(end.absent, min(max(far, whole.start), whole.end))


def _span(one: float, other: float) -> Span:
    return Span(min(one, other), max(one, other))


def _make_judge(work: VideoWork, form: WhenForm) -> Judge:
    """Return what says of facts whether they are seen in a span each; null where a look cannot tell
    or has no readable reply. One look judges all facts of one span.
    """

    async def look_once(span: Span, facts: Sequence[Fact], more: int) -> list[bool | None]:
        work.requests.add_sent(END_LOOKS)
        try:
            times, images = await work.show(form.look, (span,))
            asked, verifier = [(fact, span) for fact in facts], work.roles.verifier
            return await look(asked, images, times, verifier, seed=work.seed + more)
        except BadRow as error:
            work.requests.add_unread(END_LOOKS, error)
            return [None] * len(facts)

    async def judge(asked: Sequence[tuple[Fact, Span]], more: int) -> list[bool | None]:
        by_span: dict[Span, dict[str, Fact]] = {}
        for fact, span in asked:
            if span.seconds > 0:
                by_span.setdefault(span, {})[fact.fact_id] = fact
        looks = [look_once(span, list(facts.values()), more) for span, facts in by_span.items()]
        found = {
            (name, span): verdict
            for (span, facts), seen in zip(by_span.items(), await gather(*looks), strict=True)
            for name, verdict in zip(facts, seen, strict=True)
        }
        return [found.get((fact.fact_id, span)) for fact, span in asked]

    return judge


def compose_when(stem: Stem, spans: tuple[Span, ...], work: VideoWork) -> Question:
    """Return a question whose answer is its evidence: when its fact is seen."""
    draft = Draft(question=stem.question, answer=word_spans(spans))
    return work.make_question(
        draft,
        question_type=stem.question_type,
        evidence=spans,
        metrics=evidence_metrics(spans),
        subsets=("full", WHEN),
        form=WHEN,
    )
