"""Takes claims apart: each that holds is looked at closer, part by part.

    claims = await check_parts(work, claims, rules)

PART 1: the dog gets out over the hedge | WRONG | 96.5: it slips through a gap below

Altered versions test what a claim turns on. What it says by the way, such as where somebody falls,
no version tests, and a look that judges whole sentences lets it pass. Here the verifier writes down
all that a sentence says, and beside each part what it sees. A claim with a part that is not so, or
that nothing shows, is looked at a second time, and falls if this look finds fault with the same
part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mustsee.errors import Unparsed
from mustsee.facts.settings import ClaimRules
from mustsee.facts.work import VideoWork
from mustsee.questions.rows import Rows, parse_choice, rows_form
from mustsee.records import Claim, Span
from mustsee.replies.forms import Form
from mustsee.text import terms, words
from mustsee.verify.conditions.seen import Condition, merge_spans
from mustsee.verify.conditions.video_frames import SHOWN_MARGIN_S

PROMPT = "facts/parts"
SHOWN, WRONG, NOT_SHOWN = "SHOWN", "WRONG", "NOT SHOWN"
PART_LOOKS = "looks at the parts of claims"  # `what` of the requests
NOT_WHOLLY = "claims that hold, but for a part"  # name of a count in run.json
UNREAD = "a look at its parts could not be read"
SECOND_AT = 0.0  # `at` of the second look


FaultsById = dict[str, "list[StatedPart] | None"]  # faults of claims by id; null: not read


@dataclass(frozen=True)
class StatedPart:
    """A part of a statement, in its words or near them, and whether it is so: null: nothing shows
    it.
    """

    text: str
    is_so: bool | None


async def check_parts(
    work: VideoWork, claims: Sequence[Claim], rules: ClaimRules
) -> dict[str, Claim]:
    """Return the claims by their id; those of which two looks, at other frames, find the same part
    wrong or not shown have the reason in `drop`, the others none. Raises BadRow if no first look
    could be read. `claims`: with the spans where a look found them.
    """

    async def look_once(number: int, some: Sequence[Claim], see: Condition) -> FaultsById:
        groups = group_shown(some, see, rules.parts_together)
        own = work.with_seed(number)
        looks = [look_at_parts(own, group, rules, see) for group in groups]
        found = await work.gather_readable(looks, PART_LOOKS, may_lack=number > 1)
        return {
            claim.claim_id: faults
            for group, parts in zip(groups, found, strict=True)
            for n, claim in enumerate(group)
            if (faults := [p for p in parts[n] if not p.is_so] if parts else None) != []
        }

    if rules.parts is None or not claims:
        return {claim.claim_id: claim for claim in claims}
    first = await look_once(1, claims, rules.parts)
    doubted = [claim for claim in claims if claim.claim_id in first]
    second: FaultsById = {}
    if doubted:
        second = await look_once(2, doubted, replace(rules.parts, at=SECOND_AT))
    drops = {name: drop_reason(first[name], faults) for name, faults in second.items()}
    work.count(NOT_WHOLLY, sum(drop is not None for drop in drops.values()))
    return {claim.claim_id: replace(claim, drop=drops.get(claim.claim_id)) for claim in claims}


def group_shown(claims: Sequence[Claim], see: Condition, most: int) -> list[list[Claim]]:
    """Return the claims in groups that one look judges: at most `most`, whose moments take no more
    frames than are shown at once. Each joins those whose moments it shares the most.
    """

    def shown_seconds(some: Sequence[Claim]) -> float:
        spans = merge_spans(wide_spans(some), Span(0.0, float("inf")))
        return sum(span.seconds for span in spans)

    groups: list[list[Claim]] = []
    for claim in sorted(claims, key=lambda c: (c.shown[0].start, c.claim_id)):
        joined = [
            (seconds - shown_seconds(group), n)
            for n, group in enumerate(groups)
            if len(group) < most
            and (seconds := shown_seconds([*group, claim])) * (see.fps or 1.0) <= see.most
        ]
        if joined:
            groups[min(joined)[1]].append(claim)
        else:
            groups.append([claim])
    return groups


def wide_spans(claims: Sequence[Claim]) -> list[Span]:
    """Return where claims are shown, with a margin."""
    return [
        Span(span.start - SHOWN_MARGIN_S, span.end + SHOWN_MARGIN_S)
        for claim in claims
        for span in claim.shown
    ]


async def look_at_parts(
    work: VideoWork, claims: Sequence[Claim], rules: ClaimRules, see: Condition
) -> tuple[tuple[StatedPart, ...], ...]:
    """Return the parts of each claim as one look finds them."""
    spans = [span for claim in claims for span in claim.shown]
    return await work.roles.verifier.ask(
        PROMPT,
        parts_form(len(claims)),
        seed=work.seed,
        **await work.show_spans(spans, see, spoken=rules.spoken_margin),
        statements=tuple(claim.text for claim in claims),
    )


def parts_form(count: int) -> Form[tuple[tuple[StatedPart, ...], ...]]:
    """Return the form of a reply with the parts of each of `count` statements. Its `read` raises
    Unparsed unless each has two or more, and each part one verdict.
    """
    truth = {SHOWN: True, WRONG: False, NOT_SHOWN: None}
    cells = {
        "part": {
            "part": "what the statement of this number says, in its own words",
            "verdict": f"one of {', '.join(truth)}",
            "second": "the second, and what is seen or heard there",
        }
    }

    def read_parts(rows: Rows) -> tuple[tuple[StatedPart, ...], ...]:
        parts: list[list[StatedPart]] = [[] for _ in range(count)]
        for row in rows["part"]:
            if not 1 <= row.number <= count:
                raise Unparsed(f"PART {row.number}, but there are {count} statements")
            verdict = parse_choice(row["verdict"], truth, f"a part of statement {row.number}")
            parts[row.number - 1].append(StatedPart(row["part"], truth[verdict]))
        if few := [n for n, some in enumerate(parts, 1) if len(some) < 2]:
            raise Unparsed(f"statement {few[0]} is not taken apart: two parts or more are wanted")
        return tuple(map(tuple, parts))

    return rows_form(cells).map(read_parts)


def drop_reason(
    first: Sequence[StatedPart] | None, second: Sequence[StatedPart] | None
) -> str | None:
    """Return why a claim falls in which two looks found these faults (null: one could not be read),
    or None if they find fault with other parts of it.
    """
    if first is None and second is None:
        return UNREAD
    for part in first or second or ():
        if not first or not second or any(share_words(part.text, p.text) for p in second):
            is_wrong = part.is_so is False
            return f"a part of it is {'wrong' if is_wrong else 'not shown'} ({part.text})"
    return None


def share_words(a: str, b: str) -> bool:
    """Whether two parts share a word that is no stop word, or, of parts without others, any."""
    return bool(set(terms(a) or words(a)) & set(terms(b) or words(b)))
