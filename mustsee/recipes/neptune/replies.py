"""Parsers of the replies to Neptune's prompts about shots, topics and scenes. They keep every item
that can be parsed; the caller requests the missing ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mustsee.errors import Unparsed
from mustsee.questions.drafts import fields, plain
from mustsee.questions.numbered import Items, items
from mustsee.questions.replies import is_none
from mustsee.recipes.neptune.script import Member
from mustsee.replies.forms import Form, form, free, list_of, record, whole, words

Run = tuple[int, int, str]  # first unit, end (excluded), topic; units are counted from 0
Sightings = tuple[tuple[Member, frozenset[int]], ...]  # members of the cast with their units
Answers = list[tuple[int, tuple[str, ...]]]  # indices of questions with answers to them
MAX_SHOTS = 100_000  # shots of a script at most

_RUN = re.compile(
    r"^[\[(]?(?:shots?\s*)?(\d{1,6})(?:\s*(?:-|–|—|to|through)\s*(?:shot\s*)?(\d{1,6}))?[\])]?"
    r"\s*[:：|,.\-–—]*\s*(.*)$",
    re.IGNORECASE,
)
_RANGE = re.compile(r"(\d{1,6})(?:\s*(?:-|–|—|to)\s*(\d{1,6}))?")
_OFFER = re.compile(
    r"(?i)\s*(?:please )?(?:let me know|feel free|i hope this|would you like|if you(?:'d| would))\b"
)
_EXPECTED = {"question": r"question", "answer": r"answer"}
_LABELS = {"segment": r"segment|scene", "cast": r"cast"}


@dataclass(frozen=True, kw_only=True)
class UnitRun:
    """A run of units as in a reply: counted from 1, including the last one."""

    first: int
    last: int
    topic: str


def shots(count: int) -> Form[Mapping[int, str]]:
    """Parse `SHOT n: sentence` for n from 1 to `count`, into sentences by index from 0. Raises
    Unparsed if there is none.
    """

    def check_shots(items_found: Items) -> Mapping[int, str]:
        sentences = {n - 1: text for n, text in items_found if 1 <= n <= count and text}
        if not sentences:
            raise Unparsed(f"there is no line 'SHOT n: ...' for n = 1 to {count}")
        return sentences

    return form(text=_shots, shape=items("shots", "shot", "sentence")).map(check_shots)


def _shots(reply: str) -> Items:
    shot_fields = fields(reply, {"shot": r"shot"})
    return [(int(f.number), f.text) for f in shot_fields if f.number.isdecimal()]


def topics(count: int) -> Form[tuple[tuple[Run, ...], Sightings]]:
    """Parse the runs of `count` units by topic, in order, and the cast with the units of each
    member. A unit belongs to the first run that names it. Raises Unparsed if there is no run.
    """

    def split_runs(
        parsed: tuple[Sequence[UnitRun], Sightings],
    ) -> tuple[tuple[Run, ...], Sightings]:
        unit_runs, cast = parsed
        indices = range(count)
        sightings = tuple((m, frozenset(n for n in places if n in indices)) for m, places in cast)
        return _runs(unit_runs, count), sightings

    segment = record(UnitRun, first=whole("number of its first shot"),
                     last=whole("number of its last shot"),
                     topic=words("its topic"))  # fmt: skip
    run = record(_between, first=whole("number of its first shot"),
                 last=whole("number of its last shot"))  # fmt: skip
    member = record(_member, name=words("the name"), looks=words("the looks"),
                    shots=list_of(run, "the runs of shots in which they are seen"))  # fmt: skip
    shape = record(
        _both,
        cast=list_of(member, "who and what recurs; empty if nobody and nothing does").map(
            _recurring
        ),
        segments=list_of(segment, f"the segments in order, from shot 1 to shot {count}"),
    )
    return form(text=lambda reply: _topics(reply, count), shape=shape).map(split_runs)


def _both(*, cast: Sightings, segments: Sequence[UnitRun]) -> tuple[Sequence[UnitRun], Sightings]:
    return segments, cast


def _between(first: int, last: int) -> range:
    """Return the indices of a run, at most `MAX_SHOTS`."""
    return range(max(0, first - 1), min(last, MAX_SHOTS))


def _member(name: str, looks: str, shots: Sequence[range]) -> tuple[Member, frozenset[int]]:
    indices = frozenset(place for indices_of_run in shots for place in indices_of_run)
    return Member(name=plain(name), looks=plain(looks)), indices


def _recurring(sightings: Sightings) -> Sightings:
    """Return the members whose name has one to six words."""
    return tuple((m, indices) for m, indices in sightings if 0 < len(m.name.split()) <= 6)


def _runs(unit_runs: Sequence[UnitRun], count: int) -> tuple[Run, ...]:
    runs: list[Run] = []
    taken: set[int] = set()
    for run in unit_runs:
        first, last = run.first - 1, min(run.last, count)
        free = [index for index in range(max(0, first), last) if index not in taken]
        if free and run.topic.strip():
            end = next((p for p in range(free[0], last) if p in taken), last)
            runs.append((free[0], end, plain(run.topic)))
            taken.update(range(free[0], end))
    if not runs:
        raise Unparsed(f"it holds no segment with a topic; the shots are numbered 1 to {count}")
    return tuple(sorted(runs))


def _topics(reply: str, count: int) -> tuple[Sequence[UnitRun], Sightings]:
    """Parse `SEGMENT n: first-last: topic` and `CAST n: name | looks | shots`. A cast line of
    another form is left out.
    """
    fault = "it holds no line of the form 'SEGMENT 1: first-last: topic'"
    unit_runs: list[UnitRun] = []
    cast: list[tuple[Member, frozenset[int]]] = []
    for field in fields(reply, _LABELS):
        if field.label == "cast":
            cast += _sighted(field.text)
            continue
        match = _RUN.match(f"{field.tag} {field.text}".strip())
        if not match or not match[3].strip():
            fault = f"{field.text[:60]!r} is not of the form 'first-last: topic'"
            continue
        first, last = int(match[1]), int(match[2] or match[1])
        unit_runs.append(UnitRun(first=first, last=last, topic=match[3]))
    if not unit_runs:
        raise Unparsed(f"{fault}; the shots are numbered 1 to {count}")
    return unit_runs, _recurring(tuple(cast))


def _sighted(text: str) -> Sightings:
    parts = [plain(part) for part in text.split("|")]
    if len(parts) < 2:
        return ()
    ranges = _RANGE.findall(parts[2]) if len(parts) > 2 else []
    return (_member(parts[0], parts[1], [_between(int(a), int(b or a)) for a, b in ranges]),)


def expected_answers(questions: int, answers: int) -> Form[tuple[tuple[str, ...], ...]]:
    """Parse `QUESTION n` and `ANSWER k: text` into the answers of each of `questions`, which may be
    none. Raises Unparsed if there is no answer and the reply is not NONE.
    """

    def make_answers(**parts: str) -> tuple[str, ...]:
        return tuple(text for answer in parts.values() if (text := plain(answer)))

    def number_answers(**parts: tuple[str, ...]) -> Answers:
        return list(enumerate(parts.values()))

    def place_answers(answers_found: Answers) -> tuple[tuple[str, ...], ...]:
        lists: list[list[str]] = [[] for _ in range(questions)]
        for index, texts in answers_found:
            if 0 <= index < questions:
                lists[index] += texts
        if any(texts for _, texts in answers_found) and not any(lists):
            raise Unparsed("there is no line 'ANSWER 1: ...' below a line 'QUESTION 1'")
        return tuple(map(tuple, lists))

    each = {
        f"answer_{k}": words("an answer" if k > 1 else "the likeliest answer")
        for k in range(1, answers + 1)
    }
    question = record(make_answers, **each)
    shape = record(number_answers, **{f"question_{n}": question for n in range(1, questions + 1)})
    return form(text=_expected, shape=shape).map(place_answers)


def _expected(reply: str) -> Answers:
    answers: Answers = []
    index = -1
    for field in fields(reply, _EXPECTED):
        if field.label == "question":
            index = int(field.number) - 1 if field.number.isdecimal() else -1
        elif text := plain(field.text):
            answers.append((index, (text,)))
    if not answers and not is_none(reply):
        raise Unparsed("there is no line 'ANSWER 1: ...' below a line 'QUESTION 1'")
    return answers


def holes(runs: Sequence[Run], count: int) -> Iterator[tuple[int, int]]:
    """Yield first and end of the gaps that no run covers."""
    borders = [0, *(border for first, end, _ in sorted(runs) for border in (first, end)), count]
    for end, first in zip(borders[::2], borders[1::2], strict=True):
        if end < first:
            yield end, first


def close_gaps(runs: Sequence[Run], count: int) -> tuple[Run, ...]:
    """Return the runs without gaps: the first begins at 0, and each ends where the next begins."""
    order = sorted(runs)
    starts = [0, *(first for first, _, _ in order[1:])]
    ends = [*starts[1:], count]
    return tuple((a, b, topic) for a, b, (_, _, topic) in zip(starts, ends, order, strict=True))


def prose(reply: str) -> str:
    """Return the text of a reply without a heading, an introduction, or an offer of more help.
    Raises Unparsed for a refusal.
    """
    kept = [
        x for x in reply.strip().splitlines() if not re.match(r"\s*(?:#|\*\*[^*]+\*\*:?\s*$)", x)
    ]
    if len(kept) > 1 and re.match(
        r"(?i)\s*(?:sure|certainly|here(?:'s| is| are))\b.*[:：]\s*$", kept[0]
    ):
        kept = kept[1:]
    if len(kept) > 1 and not kept[-2].strip() and _OFFER.match(kept[-1]):
        kept = kept[:-1]
    text = plain(" ".join(kept))
    if not text:
        raise Unparsed("it is empty")
    if re.match(r"(?i)(?:i(?:'m| am) sorry|i (?:can(?:no|')t|am unable))\b", text):
        raise Unparsed(f"it is a refusal: {text[:80]!r}")
    return text


PROSE = free(prose)
