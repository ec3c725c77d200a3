"""Claims: how the facts of a video hang together, listed by a model and not verified yet.

    claims = await list_claims(work, table, rules)

CLAIM 1: cause | F3, F8 | He falls because she pulled the rug away.
ALTERED 1: role | She falls because he pulled the rug away.
ALTERED 1: cause | He falls because the dog ran between his feet.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mustsee.errors import Unparsed
from mustsee.facts.extract import other_line_facts
from mustsee.facts.settings import ClaimRules
from mustsee.facts.table import TruthTable
from mustsee.facts.work import VideoWork
from mustsee.questions.checks import normal
from mustsee.questions.rows import Row, Rows, rows_form
from mustsee.records import AlteredClaim, Claim, Fact, Line, Span
from mustsee.replies.forms import Form
from mustsee.verify.conditions.seen import lines_within

PROMPT = "facts/claims"
CLAIM_LISTS = "lists of claims"  # `what` of the requests
LOOSE_CLAIMS = "claims that do not rest on two facts of two moments"
KINDS = (
    "cause", "goal", "belief", "change", "rest", "identity", "never", "link", "comparison",
    "thread",
)  # fmt: skip
CHANGES = ("role", "order", "cause", "purpose", "object", "outcome")
MAX_WORDS = 40  # words of a claim, at most
MIN_APART_S = 2.0  # seconds between the middles of the first and the last span of a claim's facts
_ID = re.compile(r"[\[(]?\s*F?\s*(\d{1,4})\s*[\])]?", re.IGNORECASE)


@dataclass(frozen=True)
class ListedClaim:
    """A claim as a model wrote it. `places`: of its facts among those that were shown, from 0."""

    kind: str
    text: str
    places: tuple[int, ...]
    altered: tuple[AlteredClaim, ...]


async def list_claims(work: VideoWork, table: TruthTable, rules: ClaimRules) -> tuple[Claim, ...]:
    """Return the claims that a writer lists of a video, in the order of the first facts that they
    rest on. It is shown the facts that hold, frames and lines: of a long video part by part, and
    then of the whole. Lines that are no facts of the table stand behind its facts in the order.
    Claims that do not rest on two facts of two moments have a reason in `drop`. Raises BadRow if no
    reply can be parsed.
    """

    writer = work.roles.writer

    async def list_part(part: Span) -> tuple[Claim, ...]:
        times, images = await work.show(rules.overview, (part,))
        facts = choose_facts(table.facts, part, rules.facts)
        lines = part_lines(work.video.lines or (), part, rules.words)
        spoken = number_lines(lines, others, len(facts))
        shown = (*facts, *(one.fact for one in spoken if one.fact is not None))
        if len(shown) < 2:
            return ()
        listed = await writer.ask(
            PROMPT,
            claims_form(len(shown), most),
            seed=work.seed,
            images=images,
            span=part,
            frames=times,
            facts=facts,
            spoken=spoken,
            kinds=KINDS,
            most=most,
            altered=rules.altered,
        )
        return tuple(make_claim(one, shown, writer.llm.identity) for one in listed)

    others = other_line_facts(table.facts, work.video.lines or ())
    parts = divide_video(work.span, rules.part_seconds)
    most = rules.list_limit(len(parts))
    found = await work.gather_readable([list_part(part) for part in parts], CLAIM_LISTS)
    merged: dict[str, Claim] = {}
    for claim in (claim for claims in found if claims is not None for claim in claims):
        merged.setdefault(normal(claim.text), claim)
    work.count(LOOSE_CLAIMS, sum(claim.drop is not None for claim in merged.values()))
    order = {fact.fact_id: n for n, fact in enumerate((*table.facts, *others))}
    return tuple(sorted(merged.values(), key=lambda c: [order[name] for name in c.facts]))


def add_lines(table: TruthTable, claims: Sequence[Claim], lines: Sequence[Line]) -> TruthTable:
    """Return the table with the transcript lines that claims rest on among its facts."""
    used = {name for claim in claims for name in claim.facts}
    added = [fact for fact in other_line_facts(table.facts, lines) if fact.fact_id in used]
    return replace(table, facts=(*table.facts, *added))


@dataclass(frozen=True)
class SpokenLine:
    """A transcript line in the prompt. `fact`: the fact that stands for it, with its number; null:
    it is among the listed facts, or no speech.
    """

    line: Line
    fact: Fact | None = None
    number: int = 0


def number_lines(
    lines: Sequence[Line], others: Sequence[Fact], listed: int
) -> tuple[SpokenLine, ...]:
    """Return the lines with numbers behind those of the `listed` facts."""
    by_span = {(fact.spans[0].start, fact.spans[0].end): fact for fact in others}
    spoken = list[SpokenLine]()
    for line in lines:
        fact = by_span.get((line.start, line.end))
        if fact is not None:
            listed += 1
        spoken.append(SpokenLine(line, fact, listed if fact is not None else 0))
    return tuple(spoken)


def divide_video(whole: Span, part_seconds: float) -> tuple[Span, ...]:
    """Return the parts of a video that are shown to the writer: the whole; of one longer than
    `part_seconds` equal parts, and then the whole.
    """
    parts = math.ceil(whole.seconds / part_seconds)
    if parts <= 1:
        return (whole,)
    step = whole.seconds / parts
    starts = (whole.start + step * n for n in range(parts))
    return (*(Span(start, start + step) for start in starts), whole)


def choose_facts(facts: Sequence[Fact], part: Span, most: int) -> tuple[Fact, ...]:
    """Return the facts that hold and are claimed in a part of a video, in the order of time; of
    more than `most` as many, evenly over time.
    """
    held = [
        fact
        for fact in facts
        if fact.drop is None and any(s.start < part.end and part.start < s.end for s in fact.spans)
    ]
    if len(held) <= most:
        return tuple(held)
    return tuple(held[n * len(held) // most] for n in range(most))


def part_lines(lines: Sequence[Line], part: Span, words: int) -> tuple[Line, ...]:
    """Return the lines of a part of a video; of more than `words` words as many, evenly."""
    inside = lines_within(lines, (part,))
    total = sum(len(line.text.split()) for line in inside)
    if total <= words:
        return inside
    kept = max(1, math.floor(len(inside) * words / total))
    return tuple(inside[n * len(inside) // kept] for n in range(kept))


def claims_form(facts: int, most: int) -> Form[tuple[ListedClaim, ...]]:
    """Return the form of a reply with at most `most` claims on some of `facts` facts. Its `read`
    raises Unparsed for an unknown kind or fact, and for an altered version of no claim.
    """
    cells: Mapping[str, Mapping[str, str]] = {
        "claim": {
            "kind": f"one of {', '.join(KINDS)}",
            "rests_on": "the ids of the facts that it rests on, such as F3, F8",
            "statement": "the claim, one sentence that can be understood alone",
        },
        "altered": {
            "change": f"what is changed, one of {', '.join(CHANGES)}",
            "statement": "the claim of this number with this one change, which makes it wrong",
        },
    }

    def read_claims(rows: Rows) -> tuple[ListedClaim, ...]:
        numbers = [row.number for row in rows["claim"]]
        if len(set(numbers)) < len(numbers):
            raise Unparsed("two claims have the same number")
        if strays := {row.number for row in rows["altered"]} - set(numbers):
            raise Unparsed(f"ALTERED {min(strays)} belongs to no claim of this number")
        return tuple(_read_claim(row, rows["altered"], facts) for row in rows["claim"])[:most]

    return rows_form(cells, optional=cells).map(read_claims)


def _read_claim(row: Row, altered: Sequence[Row], facts: int) -> ListedClaim:
    kind = row["kind"].casefold()
    if kind not in KINDS:
        raise Unparsed(f"claim {row.number} has the kind {kind[:40]!r}, not one of {KINDS}")
    text = sentence(row["statement"], f"claim {row.number}")
    versions: list[AlteredClaim] = []
    for version in altered:
        if version.number != row.number:
            continue
        change = version["change"].casefold()
        if change not in CHANGES:
            raise Unparsed(f"ALTERED {row.number} changes {change[:40]!r}, not one of {CHANGES}")
        other = sentence(version["statement"], f"ALTERED {row.number}")
        known = {normal(text), *(normal(v.text) for v in versions)}
        if normal(other) not in known:
            versions.append(AlteredClaim(change=change, text=other))
    places = read_ids(row["rests_on"], facts, f"claim {row.number}")
    return ListedClaim(kind=kind, text=text, places=places, altered=tuple(versions))


def read_ids(text: str, count: int, what: str) -> tuple[int, ...]:
    """Return the places, from 0, of ids such as "F3, F8" of `count` facts, each once. Raises
    Unparsed for any other text and for an unknown id; `what` names the row.
    """
    places: dict[int, None] = {}
    for part in re.split(r"\s*[,;+]\s*|\s+and\s+", text.strip(" .,;")):
        match = _ID.fullmatch(part)
        if match is None:
            raise Unparsed(f"{what} rests on {part[:40]!r}; expected ids such as F3, F8")
        place = int(match[1]) - 1
        if not 0 <= place < count:
            raise Unparsed(f"{what} rests on F{place + 1}, but there are F1 to F{count}")
        places[place] = None
    return tuple(places)


def sentence(text: str, what: str) -> str:
    """Return a statement as a sentence. Raises Unparsed for an empty one and for one of more than
    `MAX_WORDS` words.
    """
    words = text.split()
    if not any(c.isalnum() for c in text):
        raise Unparsed(f"the statement of {what} is empty")
    if len(words) > MAX_WORDS:
        raise Unparsed(f"the statement of {what} has {len(words)} words, more than {MAX_WORDS}")
    return text[0].upper() + text[1:] + ("" if text[-1] in '.!?”"' else ".")


def make_claim(listed: ListedClaim, shown: Sequence[Fact], source: str) -> Claim:
    """Return the record of a claim; with the reason in `drop` if it does not rest on two facts of
    two moments, or has no altered version.
    """
    facts = sorted((shown[place] for place in listed.places), key=lambda f: f.spans[0].start)
    names = tuple(fact.fact_id for fact in facts)
    middles = [(span.start + span.end) / 2 for fact in facts for span in fact.spans]
    drop = None
    if len(names) < 2:
        drop = "it rests on one fact"
    elif max(middles) - min(middles) < MIN_APART_S:
        drop = "its facts are of one moment"
    elif not listed.altered:
        drop = "it has no altered version beside which it can be verified"
    content = json.dumps([listed.kind, listed.text, names], ensure_ascii=False)
    return Claim(
        claim_id="c" + hashlib.sha256(content.encode()).hexdigest()[:15],
        kind=listed.kind,
        text=listed.text,
        facts=names,
        altered=listed.altered,
        source=source,
        drop=drop,
    )


def claim_spans(claim: Claim, table: TruthTable) -> tuple[Span, ...]:
    """Return the spans of the facts that a claim rests on, in order."""
    spans = (span for name in claim.facts for span in table.by_id[name].spans)
    return tuple(sorted(spans, key=lambda s: (s.start, s.end)))
