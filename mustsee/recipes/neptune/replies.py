"""What models reply to Neptune's prompts about shots, topics and scenes, read part by part: what
can be understood is kept, and what is missing is asked for alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from mustsee.errors import Unparsed
from mustsee.questions.drafts import fields, plain
from mustsee.recipes.neptune.script import Member

Run = tuple[int, int, str]  # first unit, end (excluded), topic; counted from 0
Sightings = tuple[tuple[Member, frozenset[int]], ...]  # a member of the cast, and its units

_RUN = re.compile(
    r"^(?:shots?\s*)?(\d+)(?:\s*(?:-|–|—|to|through)\s*(?:shot\s*)?(\d+))?\s*[:|,.\-–—]*\s*(.*)$",
    re.IGNORECASE,
)
_RANGE = re.compile(r"(\d+)(?:\s*(?:-|–|—|to)\s*(\d+))?")
_EXPECTED = {"question": r"question", "answer": r"answer"}
_TOPICS = {"segment": r"segment|scene", "cast": r"cast"}


def parse_shots(reply: str, count: int) -> Mapping[int, str]:
    """`SHOT n: sentence` for n from 1 to `count`, by place from 0. Raises Unparsed for none."""
    found = {f.number: f.text for f in fields(reply, {"shot": r"shot"}) if f.text}
    known = {n - 1: found[str(n)] for n in range(1, count + 1) if str(n) in found}
    if not known:
        raise Unparsed(f"there is no line 'SHOT n: ...' for n = 1 to {count}")
    return known


def parse_topics(reply: str, count: int) -> tuple[Run, ...]:
    """`SEGMENT n: first-last: topic` as runs in order; what an earlier line has taken, a later one
    does not get. Raises Unparsed when no line can be read.
    """
    found: list[Run] = []
    fault = "it holds no line of the form 'SEGMENT 1: first-last: topic'"
    taken: set[int] = set()
    for field in fields(reply, _TOPICS):
        if field.label != "segment":
            continue
        match = _RUN.match(f"{field.tag} {field.text}".strip())
        if not match or not match[3].strip():
            fault = f"{field.text[:60]!r} is not of the form 'first-last: topic'"
            continue
        first, last = int(match[1]) - 1, min(int(match[2] or match[1]), count)
        free = [place for place in range(max(0, first), last) if place not in taken]
        if free:
            end = next((p for p in range(free[0], last) if p in taken), last)
            found.append((free[0], end, plain(match[3])))
            taken.update(range(free[0], end))
    if not found:
        raise Unparsed(f"{fault}; the shots are numbered 1 to {count}")
    return tuple(sorted(found))


def parse_expected(reply: str, count: int) -> tuple[tuple[str, ...], ...]:
    """For each of `count` questions the answers under `QUESTION n`, `ANSWER k: text`; none where
    the reply has none. Raises Unparsed when no answer can be read, unless it says NONE.
    """
    found: list[list[str]] = [[] for _ in range(count)]
    at = -1
    for field in fields(reply, _EXPECTED):
        if field.label == "question":
            at = int(field.number) - 1 if field.number.isdigit() else -1
        elif 0 <= at < count and (text := plain(field.text)):
            found[at].append(text)
    if not any(found) and reply.strip(" .*\n").upper() != "NONE":
        raise Unparsed("there is no line 'ANSWER 1: ...' below a line 'QUESTION 1'")
    return tuple(map(tuple, found))


def parse_cast(reply: str, count: int) -> Sightings:
    """`CAST n: name | looks | shots` for those who recur; a line of another form is left out."""
    found: list[tuple[Member, frozenset[int]]] = []
    for field in fields(reply, _TOPICS):
        parts = [plain(part) for part in field.text.split("|")]
        if field.label != "cast" or len(parts) < 2 or not parts[0] or len(parts[0].split()) > 6:
            continue
        ranges = _RANGE.findall(parts[2]) if len(parts) > 2 else []
        places = {n - 1 for a, b in ranges for n in range(int(a), min(int(b or a), count) + 1)}
        places &= set(range(count))
        found.append((Member(name=parts[0], looks=parts[1]), frozenset(places)))
    return tuple(found)


def holes(runs: Sequence[Run], count: int) -> Iterator[tuple[int, int]]:
    """The stretches, first and end, that no run covers."""
    borders = [0, *(border for first, end, _ in sorted(runs) for border in (first, end)), count]
    for end, first in zip(borders[::2], borders[1::2], strict=True):
        if end < first:
            yield end, first


def closed(runs: Sequence[Run], count: int) -> tuple[Run, ...]:
    """The runs without holes: each goes on to the next, and the first begins at the beginning."""
    order = sorted(runs)
    starts = [0, *(first for first, _, _ in order[1:])]
    ends = [*starts[1:], count]
    return tuple((a, b, topic) for a, b, (_, _, topic) in zip(starts, ends, order, strict=True))


def prose(reply: str) -> str:
    """Plain text: a heading or an introduction is left out. Raises Unparsed for a refusal."""
    kept = [
        x
        for x in reply.strip().splitlines()
        if not re.match(r"\s*(?:#|```|\*\*[^*]+\*\*:?\s*$)", x)
    ]
    if len(kept) > 1 and re.match(
        r"(?i)\s*(?:sure|certainly|here(?:'s| is| are))\b.*:\s*$", kept[0]
    ):
        kept = kept[1:]
    text = plain(" ".join(kept))
    if not text:
        raise Unparsed("it is empty")
    if re.match(r"(?i)(?:i(?:'m| am) sorry|i (?:can(?:no|')t|am unable))\b", text):
        raise Unparsed(f"it is a refusal: {text[:80]!r}")
    return text
