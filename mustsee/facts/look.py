"""Looks at one moment or some: which of several phrases are seen, each in its moment.

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
from mustsee.questions.rows import NumberedTexts, complete_texts
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
    asked: Sequence[tuple[Fact, Span]],
    images: Sequence[bytes],
    times: Sequence[float],
    asker: Asker,
    *,
    seed: int,
) -> list[bool | None]:
    """Return for each fact whether the model sees it in the moment beside it; null where it cannot
    tell. `images`, at `times`, may begin before the first moment and end after the last. Raises
    BadRow if no reply can be parsed.
    """
    span = Span(min(moment.start for _, moment in asked), max(moment.end for _, moment in asked))
    order = sorted(range(len(asked)), key=lambda n: (asked[n][0].fact_id, asked[n][1].start))
    random.Random(f"{seed}/{span.start:.3f}/look").shuffle(order)
    order.sort(key=lambda n: asked[n][1].start)
    moments = tuple(asked[n][1] for n in order)
    verdicts = await asker.ask(
        PROMPT,
        verdicts_form(len(asked)),
        seed=seed,
        images=images,
        phrases=tuple(asked[n][0] for n in order),
        moments=() if all(moment == span for moment in moments) else moments,
        frames=tuple(times),
        span=span,
    )
    said = dict(zip(order, verdicts, strict=True))
    return [TRUTH[said[n]] for n in range(len(asked))]


def verdicts_form(count: int) -> Form[tuple[str, ...]]:
    """Return the form of a reply with a verdict (a key of `TRUTH`) on each of `count` phrases. Its
    `read` raises Unparsed unless each number has exactly one.
    """

    def to_items(
        seen: Sequence[int], not_seen: Sequence[int], unsure: Sequence[int]
    ) -> NumberedTexts:
        lists = ((SEEN, seen), (NOT_SEEN, not_seen), (UNSURE, unsure))
        return [(number, verdict) for verdict, numbers in lists for number in numbers]

    number = whole("a phrase's number")
    shape = record(
        to_items,
        seen=list_of(number, "the phrases that are certainly so in the moment"),
        not_seen=list_of(number, "the phrases that are certainly not so in the moment"),
        unsure=list_of(number, "the phrases that the pictures do not decide"),
    )
    return form(text=_parse_lines, shape=shape).map(lambda items: complete_texts(items, count))


def _parse_lines(reply: str) -> NumberedTexts:
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
