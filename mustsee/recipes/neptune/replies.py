"""Parsers of the replies to Neptune's prompts about shots, topics and scenes. They keep every item
that can be parsed; the caller requests the missing ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar, cast

from mustsee.errors import Unparsed
from mustsee.questions.drafts import fields, plain
from mustsee.questions.rows import NumberedTexts, item_list
from mustsee.recipes.neptune.script import Member
from mustsee.replies.forms import (
    Form,
    form,
    free,
    list_of,
    normalize_keys,
    one_of,
    record,
    whole,
    words,
)

T = TypeVar("T")
Run = tuple[int, int, str]  # first unit, end (excluded), topic; units are counted from 0
Sightings = tuple[tuple[Member, frozenset[int]], ...]  # members of the cast with their units
MAX_SHOTS = 100_000  # shots of a script at most
KINDS = ("story", "compilation", "trailer")  # kinds of videos

_RUN = re.compile(
    r"^[\[(]?(?:shots?\s*)?(\d{1,6})(?:\s*(?:-|–|—|to|through)\s*(?:shot\s*)?(\d{1,6}))?[\])]?"
    r"\s*[:：|,.\-–—]*\s*(.*)$",
    re.IGNORECASE,
)
_RANGE = re.compile(r"(\d{1,6})(?:\s*(?:-|–|—|to)\s*(\d{1,6}))?")
_OFFER = re.compile(
    r"(?i)\s*(?:please )?(?:let me know|feel free|i hope this|would you like|if you(?:'d| would))\b"
)
_LABELS = {"segment": r"segment|scene", "cast": r"cast", "kind": r"kind"}


@dataclass(frozen=True, kw_only=True)
class UnitRun:
    """A run of units as in a reply: counted from 1, including the last one."""

    first: int
    last: int
    topic: str


class ParsedTopics(NamedTuple):
    """A video's runs of units by topic, its cast, and its kind: one of `KINDS`."""

    runs: tuple[Run, ...]
    cast: Sightings
    kind: str


def shots(count: int) -> Form[Mapping[int, str]]:
    """Parse `SHOT n: sentence` for n from 1 to `count`, into sentences by index from 0. Raises
    Unparsed if there is none.
    """

    def check_shots(items_found: NumberedTexts) -> Mapping[int, str]:
        sentences = {n - 1: text for n, text in items_found if 1 <= n <= count and text}
        if not sentences:
            raise Unparsed(f"there is no line 'SHOT n: ...' for n = 1 to {count}")
        return sentences

    return form(text=_shots, shape=item_list("shots", "shot", "sentence")).map(check_shots)


def _shots(reply: str) -> NumberedTexts:
    shot_fields = fields(reply, {"shot": r"shot"})
    return [(int(f.number), f.text) for f in shot_fields if f.number.isdecimal()]


def topics(count: int) -> Form[ParsedTopics]:
    """Parse the runs of `count` units by topic, in order, the cast with the units of each member,
    and the video's kind, which is a story if the reply does not say. A unit belongs to the first
    run that names it. Raises Unparsed if there is no run.
    """

    def split_runs(parsed: tuple[Sequence[UnitRun], Sightings, str]) -> ParsedTopics:
        unit_runs, cast, kind = parsed
        indices = range(count)
        sightings = tuple((m, frozenset(n for n in places if n in indices)) for m, places in cast)
        return ParsedTopics(_runs(unit_runs, count), sightings, kind)

    segment = record(UnitRun, first=whole("number of its first shot"),
                     last=whole("number of its last shot"),
                     topic=words("its topic"))  # fmt: skip
    run = record(_between, first=whole("number of its first shot"),
                 last=whole("number of its last shot"))  # fmt: skip
    member = record(_member, name=words("the name"), looks=words("the looks"),
                    shots=list_of(run, "the runs of shots in which they are seen"))  # fmt: skip
    shape = record(
        _parsed,
        cast=list_of(member, "who and what recurs; empty if nobody and nothing does").map(_named),
        segments=list_of(segment, f"the segments in order, from shot 1 to shot {count}"),
        kind=one_of(KINDS, "what the video is"),
    )
    shape = replace(shape, read=_with_default_kind(shape.read))
    return form(text=lambda reply: _topics(reply, count), shape=shape).map(split_runs)


def _with_default_kind(read: Callable[[Any, str], T]) -> Callable[[Any, str], T]:
    """Return the parser of an object that may lack its `kind`, as in replies to earlier prompts."""

    def read_object(value: Any, where: str) -> T:
        if isinstance(value, dict):
            value = {"kind": KINDS[0], **normalize_keys(cast(dict[str, Any], value))}
        return read(value, where)

    return read_object


def _parsed(
    *, cast: Sightings, segments: Sequence[UnitRun], kind: str
) -> tuple[Sequence[UnitRun], Sightings, str]:
    return segments, cast, kind


def _between(first: int, last: int) -> range:
    """Return the indices of a run, at most `MAX_SHOTS`."""
    return range(max(0, first - 1), min(last, MAX_SHOTS))


def _member(name: str, looks: str, shots: Sequence[range]) -> tuple[Member, frozenset[int]]:
    indices = frozenset(place for indices_of_run in shots for place in indices_of_run)
    return Member(name=plain(name), looks=plain(looks)), indices


def _named(sightings: Sightings) -> Sightings:
    """Return the members that have a name, however long: later prompts need every one."""
    return tuple((m, indices) for m, indices in sightings if m.name)


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


def _topics(reply: str, count: int) -> tuple[Sequence[UnitRun], Sightings, str]:
    """Parse `SEGMENT n: first-last: topic`, `CAST n: name | looks | shots` and `KIND: story`. A
    cast line of another form is left out. Raises Unparsed for another kind than one of `KINDS`, and
    for two kinds.
    """
    fault = "it holds no line of the form 'SEGMENT 1: first-last: topic'"
    unit_runs: list[UnitRun] = []
    cast: list[tuple[Member, frozenset[int]]] = []
    kinds: set[str] = set()
    for field in fields(reply, _LABELS):
        if field.label == "kind":
            kinds.add(field.text.strip(" .").lower())
            continue
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
    if len(kinds) > 1 or kinds - {*KINDS}:
        raise Unparsed(f"KIND is {' and '.join(sorted(kinds))!r}, not one of {', '.join(KINDS)}")
    return unit_runs, _named(tuple(cast)), next(iter(kinds), KINDS[0])


def _sighted(text: str) -> Sightings:
    parts = [plain(part) for part in text.split("|")]
    if len(parts) < 2:
        return ()
    ranges = _RANGE.findall(parts[2]) if len(parts) > 2 else []
    return (_member(parts[0], parts[1], [_between(int(a), int(b or a)) for a, b in ranges]),)


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
