"""Verifies claims by choosing: the verifier judges each claim among altered versions of it.

    claims = await weigh_claims(work, table, claims, rules)

The versions of some claims are shown in one list, shuffled and unmarked, beside the frames and
lines of all their moments. Two looks with other orders and other frames judge each statement; where
they differ a third decides. A claim stays if it holds, none of its altered versions does, and a
closer look finds each of its parts (`mustsee.facts.parts`), which decides, too, where one look
finds it, one does not, and one cannot tell. What is only plausible cannot be told, and falls.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from mustsee.errors import BadRow, Unparsed
from mustsee.facts.claims import claim_spans
from mustsee.facts.parts import check_parts
from mustsee.facts.settings import ClaimRules
from mustsee.facts.table import TruthTable
from mustsee.facts.work import VideoWork, divide_by
from mustsee.questions.drafts import exact_spans
from mustsee.questions.rows import Row, Rows, numbered_rows, parse_choice, rows_form
from mustsee.records import Claim, Span
from mustsee.replies.forms import Form
from mustsee.verify.conditions.seen import merge_spans
from mustsee.verify.guess.ask import rank

PROMPT = "facts/weigh"
HOLDS, FAILS, UNTOLD = "HOLDS", "DOES NOT HOLD", "CANNOT BE TOLD"
TRUTH: Mapping[str, bool | None] = {HOLDS: True, FAILS: False, UNTOLD: None}
CLAIM_LOOKS = "looks at claims"  # `what` of the requests
CLAIM_CONTROLS = "controls of claims without the video"  # `what` of the requests
HELD = "claims that hold"
NOT_HELD = "claims that do not hold, or cannot be told"
PLAUSIBLE = "claims that hold and are told by plausibility"
NO_TWO_AGREE = "no two looks agree whether it holds"  # until its parts are looked at
WHOLE_KINDS = ("never",)  # kinds of claims for which the whole video is shown
CONTROL_QUESTION = "Which of these statements about the video is true?"
CONTROL_TOGETHER = 20  # claims of one request without the video
# Where a frame lies in its interval, by round: each look sees frames between those of the others.
AT = {1: 0.5, 2: 0.0, 3: 0.25}


@dataclass(frozen=True)
class Weight:
    """What one look says of a statement. `holds`: null: it cannot be told. `shown`: where."""

    holds: bool | None
    shown: tuple[Span, ...] = ()


async def weigh_claims(
    work: VideoWork, table: TruthTable, claims: Sequence[Claim], rules: ClaimRules
) -> tuple[Claim, ...]:
    """Return the claims with what looks found of them and of their altered versions; those that do
    not hold have the reason in `drop`. Raises BadRow if no look of a round could be read.
    """
    groups = group_claims([claim for claim in claims if claim.drop is None], table, rules)

    async def weigh_round(number: int, asked: Sequence[Sequence[Claim]]) -> dict[str, Weight]:
        weights: dict[str, Weight] = {}
        looks = [weigh_group(work, table, group, rules, number) for group in asked]
        for found in await work.gather_readable(looks, CLAIM_LOOKS):
            weights |= found or {}
        return weights

    rounds = [await weigh_round(number, groups) for number in (1, 2)] if groups else []
    disputed = [[c for c in group if is_disputed(c, rounds)] for group in groups]
    if third := [group for group in disputed if group]:
        with suppress(BadRow):  # What the third round could not read stays open.
            rounds.append(await weigh_round(3, third))
    judged = {c.claim_id: judge_claim(c, rounds) for group in groups for c in group}
    found = [c for c in judged.values() if c.drop in (None, NO_TWO_AGREE)]
    apart = [claim for claim in found if claim.kind not in WHOLE_KINDS]
    judged |= await check_parts(work, apart, rules)
    held = [claim for claim in judged.values() if claim.drop is None]
    work.count(HELD, len(held))
    work.count(NOT_HELD, len(judged) - len(held))
    plausible = await find_plausible(work, held)
    work.count(PLAUSIBLE, sum(plausible.values()))
    return tuple(
        replace(done, plausible=plausible.get(done.claim_id))
        for claim in claims
        for done in (judged.get(claim.claim_id, claim),)
    )


def group_claims(
    claims: Sequence[Claim], table: TruthTable, rules: ClaimRules
) -> list[Sequence[Claim]]:
    """Return the claims in groups that one look judges: neighbours in time; those for which the
    whole video must be shown by themselves.
    """

    ordered = sorted(claims, key=lambda c: (claim_spans(c, table)[0].start, c.claim_id))
    return [
        group
        for whole in (False, True)
        for group in divide_by(
            [c for c in ordered if (c.kind in WHOLE_KINDS) == whole], rules.together
        )
    ]


async def weigh_group(
    work: VideoWork, table: TruthTable, claims: Sequence[Claim], rules: ClaimRules, number: int
) -> dict[str, Weight]:
    """Return what one look says of some claims and of their altered versions, by their text.
    `number`: of its round.
    """
    seed = work.seed + number
    texts = sorted({text for claim in claims for text in versions(claim)})
    random.Random(f"{seed}/{claims[0].claim_id}/weigh").shuffle(texts)
    see, spans = rules.look, [s for claim in claims for s in claim_spans(claim, table)]
    if claims[0].kind in WHOLE_KINDS:
        see, spans = rules.whole, [work.span]
    see = replace(see, at=AT[number])
    shown = await work.show_spans(spans, see, spoken=rules.spoken_margin)
    weights = await work.roles.verifier.ask(
        PROMPT, weigh_form(len(texts), shown["video"]), seed=seed, **shown, statements=tuple(texts)
    )
    return dict(zip(texts, weights, strict=True))


def versions(claim: Claim) -> tuple[str, ...]:
    """Return a claim's text, and those of its altered versions."""
    return (claim.text, *(altered.text for altered in claim.altered))


def weigh_form(count: int, video: Span) -> Form[tuple[Weight, ...]]:
    """Return the form of a reply with a verdict on each of `count` statements. Its `read` raises
    Unparsed unless each has exactly one, and each that holds names where it is shown.
    """
    cells = {
        "verdict": f"one of {', '.join(TRUTH)}",
        "stretches": "where that is shown, in seconds; NONE if it does not hold or cannot be told",
        "reason": "what is seen or heard there, or what is missing, in a few words",
    }

    def read_weight(row: Row) -> Weight:
        verdict = parse_choice(row["verdict"], TRUTH, f"statement {row.number}")
        if verdict != HOLDS:
            return Weight(TRUTH[verdict])
        try:
            return Weight(True, exact_spans(row["stretches"], video))
        except Unparsed as error:
            raise Unparsed(f"statement {row.number} holds, but {error}") from None

    def read_weights(rows: Rows) -> tuple[Weight, ...]:
        return tuple(map(read_weight, numbered_rows(rows["statement"], count, "statement")))

    return rows_form({"statement": cells}, brief=("statement",)).map(read_weights)


def is_disputed(claim: Claim, rounds: Sequence[Mapping[str, Weight]]) -> bool:
    """Whether two looks differ about a claim or one of its altered versions, or were not read."""
    seen = [[r[text].holds if text in r else "unread" for r in rounds] for text in versions(claim)]
    return any(len(set(verdicts)) > 1 or "unread" in verdicts for verdicts in seen)


def settle(text: str, rounds: Sequence[Mapping[str, Weight]]) -> Weight:
    """Return what two of the looks agree on about a statement; else that it cannot be told, and
    where a look found it.
    """
    weights = [found[text] for found in rounds if text in found]
    verdict, times = Counter(w.holds for w in weights).most_common(1)[0] if weights else (None, 0)
    agreed = [w for w in weights if times < 2 or w.holds == verdict]
    spans = [span for w in agreed for span in w.shown]
    return Weight(verdict if times > 1 else None, merge_spans(spans, Span(0.0, float("inf"))))


def judge_claim(claim: Claim, rounds: Sequence[Mapping[str, Weight]]) -> Claim:
    """Return a claim with what the looks agree on; dropped unless it holds and none of its altered
    versions does.
    """
    own = settle(claim.text, rounds)
    altered = tuple(replace(a, holds=settle(a.text, rounds).holds) for a in claim.altered)
    drop = None
    if own.holds is False:
        drop = "it does not hold"
    elif also := next((a for a in altered if a.holds), None):
        drop = f"an altered version ({also.change}) holds, too"
    elif own.holds is None:
        drop = NO_TWO_AGREE if own.shown else "looks cannot tell whether it holds"
    return replace(claim, altered=altered, shown=own.shown, drop=drop)


async def find_plausible(work: VideoWork, claims: Sequence[Claim]) -> dict[str, bool]:
    """Return for each claim, by id, whether a reader without the video ranks it before its altered
    versions. Claims of a request that cannot be read have no entry.
    """
    parts = [claims[n : n + CONTROL_TOGETHER] for n in range(0, len(claims), CONTROL_TOGETHER)]
    asked = [
        [(f"{CONTROL_QUESTION} ({n})", versions(c)) for n, c in enumerate(part, 1)]
        for part in parts
    ]
    ranks = [rank(each, work.roles.guesser, seed=work.seed) for each in asked]
    found = await work.gather_readable(ranks, CLAIM_CONTROLS, may_lack=True)
    read = [(p, ranked) for p, ranked in zip(parts, found, strict=True) if ranked is not None]
    return {c.claim_id: o[0] == 0 for p, r in read for c, o in zip(p, r, strict=True)}
