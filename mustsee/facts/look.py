"""Looks at one moment: which of several phrases are seen in it.

1: SEEN
2: NOT SEEN | another man pours
3: UNSURE | the cup is hidden
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from mustsee.calls.llm import Asker
from mustsee.errors import Unparsed
from mustsee.questions.numbered import Items, complete
from mustsee.records import Fact, Span
from mustsee.replies.forms import Form, form, list_of, record, whole

PROMPT = "facts/look"
SEEN, NOT_SEEN, UNSURE = "SEEN", "NOT SEEN", "UNSURE"
TRUTH = {SEEN: True, NOT_SEEN: False, UNSURE: None}
_LINE = re.compile(
    r"^[\s>*_#•-]*(?:(?:phrase|fact|no\.?)\s*)?(\d{1,3})[*_]*\s*(?:[:：)]|\.(?=\s))[\s*_]*(.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_VERDICT = re.compile(
    r"[\[(\"'`*_\s]*(SEEN|NOT[ _-]?SEEN|UNSURE)[\])\"'`*_.\s]*(?:$|[|:(–—-])", re.IGNORECASE
)


async def look(
    facts: Sequence[Fact],
    images: Sequence[bytes],
    times: Sequence[float],
    span: Span,
    asker: Asker,
    *,
    seed: int,
) -> dict[str, bool | None]:
    """Return for each fact, by id, whether the model sees it in the moment `span`; null where it
    cannot tell. `images`, at `times`, may begin before it and end after it. Raises BadRow if no
    reply can be parsed.
    """
    phrases = sorted(facts, key=lambda fact: fact.fact_id)
    random.Random(f"{seed}/{span.start:.3f}/look").shuffle(phrases)
    verdicts = await asker.ask(
        PROMPT,
        verdicts_form(len(phrases)),
        seed=seed,
        images=images,
        phrases=tuple(phrases),
        frames=tuple(times),
        span=span,
    )
    return {fact.fact_id: TRUTH[said] for fact, said in zip(phrases, verdicts, strict=True)}


def verdicts_form(count: int) -> Form[tuple[str, ...]]:
    """Return the form of a reply with a verdict (a key of `TRUTH`) on each of `count` phrases. Its
    `read` raises Unparsed unless each number has exactly one.
    """

    def to_items(seen: Sequence[int], not_seen: Sequence[int], unsure: Sequence[int]) -> Items:
        lists = ((SEEN, seen), (NOT_SEEN, not_seen), (UNSURE, unsure))
        return [(number, verdict) for verdict, numbers in lists for number in numbers]

    number = whole("a phrase's number")
    shape = record(
        to_items,
        seen=list_of(number, "the phrases that are certainly so in the moment"),
        not_seen=list_of(number, "the phrases that are certainly not so in the moment"),
        unsure=list_of(number, "the phrases that the pictures do not decide"),
    )
    return form(text=_parse_lines, shape=shape).map(lambda items: complete(items, count))


def _parse_lines(reply: str) -> Items:
    return [(int(number), _verdict(number, text)) for number, text in _LINE.findall(reply)]


def _verdict(number: str, text: str) -> str:
    match = _VERDICT.match(text)
    if match is None:
        raise Unparsed(
            f"number {number} is answered with {text[:40]!r}; expected one of {', '.join(TRUTH)}, "
            "then | and the reason"
        )
    said = match[1].upper()
    return said if said in TRUTH else NOT_SEEN
