"""Facts that a model lists of a window of a video, and those that code makes of texts and lines.

FACT 1: event | a woman in grey opens a wooden door | 12.0-14.5
FACT 2: cause | the bell rings | 10.0-12.0 | a woman in grey opens a wooden door
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from mustsee.calls.llm import Asker
from mustsee.errors import Unparsed
from mustsee.facts.table import TEXTS, VIEW
from mustsee.media.transcript_quality import is_surely_heard, is_surely_read
from mustsee.questions.checks import normal
from mustsee.questions.drafts import END_TOLERANCE_S, exact_spans, plain
from mustsee.questions.replies import is_none, span_list
from mustsee.records import Fact, Line, ScreenText, SeenObject, Span, is_rules
from mustsee.replies.forms import Form, form, list_of, object_with, one_of, record, words
from mustsee.text import length
from mustsee.verify.conditions.seen import merge_spans

PROMPT = "facts/extract"
MAX_WORDS = 14  # words of a phrase, at most
SPREAD_S = 0.5  # seconds added on both sides of a single time, which one picture gave
MIN_LINE_WORDS = 3
MIN_LETTERS = 4  # letters of an on-screen text, at least
SAME_TEXT_RATIO = 0.85  # difflib ratio from which two texts are readings of one
_HEAD = re.compile(r"[\s>*_#•-]*(?:(fact\s*\d{0,3}|\d{1,3})[*_]*\s*[:：.)])?[\s*_]*", re.IGNORECASE)
_BULLETS = re.compile(r"^\s*(?:[•●▪◦·]\s*|[*-]\s+)+")  # none begins "-20%" or "*NSYNC"
_RULE = re.compile(r"[\s|:-]*")  # the line below the head of a table
_ARTICLE = re.compile(r"(?:An?|The)(?= )")
_NO_EVENT = re.compile(r"[\W_]*(?:none|n/a)?[\W_]*", re.IGNORECASE)
_NOT_SPOKEN = re.compile(r"[\[\](){}♪♫]")
_POINT = re.compile(r"(?<![\d.:])(\d+(?:\.\d+)?)\s*-\s*\1(?![\d.:])")
_ALWAYS = Span(0.0, math.inf)


@dataclass(frozen=True, kw_only=True)
class Window:
    """A part of a video of which facts are listed.

    `moments`, `lines`, `texts`, `objects`: those within its span. `names`: phrases by which people
    and places of the video are called.
    """

    span: Span
    moments: tuple[Span, ...] = ()
    lines: tuple[Line, ...] = ()
    texts: tuple[ScreenText, ...] = ()
    objects: tuple[SeenObject, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _ListedFact:
    """A fact as a model wrote it."""

    kind: str
    phrase: str
    spans: tuple[Span, ...]
    of: str = ""


async def extract(
    window: Window,
    asker: Asker,
    *,
    images: Sequence[bytes],
    times: Sequence[float],
    kinds: Sequence[str],
    most: int,
    seed: int,
) -> tuple[Fact, ...]:
    """Return at most `most` facts of some kinds that the model sees in a window, in the order of
    time; what rules list is of the kind `VIEW`. `times`: of the `images`. Raises BadRow if no reply
    can be parsed.
    """
    listed_kinds = (VIEW,) if is_rules(asker.llm.identity) else kinds
    listed = await asker.ask(
        PROMPT,
        facts_form(window.span, listed_kinds, most),
        seed=seed,
        images=images,
        window=window,
        frames=tuple(times),
        kinds=tuple(kinds),
        most=most,
    )
    return tuple(replace(fact, source=asker.llm.identity) for fact in listed)


def facts_form(window: Span, kinds: Sequence[str], most: int) -> Form[tuple[Fact, ...]]:
    """Return the form of a reply with at most `most` facts of the `kinds`, or NONE; their
    `source` is empty. Equal phrases of a kind are one fact with all their spans.
    """
    fact = record(
        _ListedFact,
        kind=one_of(kinds, "the kind"),
        phrase=words("the fact in the form of its kind, 3 to 9 words"),
        spans=span_list("where it is so, as tight as the pictures tell, in seconds"),
        of=words("of a cause: the phrase of the event that it explains; of another kind: empty"),
    )
    listed = list_of(fact, "the facts; empty if there are none that are certain")

    def check(facts: Sequence[_ListedFact]) -> tuple[Fact, ...]:
        return _merged([_checked(f, n, window) for n, f in enumerate(facts, 1)])[:most]

    shape = object_with("facts", listed)
    return form(text=lambda reply: _parse_lines(reply, kinds), shape=shape).map(check)


def _parse_lines(reply: str, kinds: Sequence[str]) -> tuple[_ListedFact, ...]:
    facts: list[_ListedFact] = []
    for line in reply.splitlines():
        head = _HEAD.match(line)
        text = line[head.end() :] if head else line
        if _RULE.fullmatch(line):
            continue
        if "|" in text:
            facts.append(_parse_fact(text, len(facts) + 1, kinds))
        elif head and head[1] and head[1].lower().startswith("fact"):
            raise Unparsed(f"{line.strip()[:60]!r} is not a fact: kind | phrase | seconds")
    if not facts and not is_none(reply):
        raise Unparsed("it has no line of the form 'FACT 1: kind | phrase | seconds'")
    return tuple(facts)


def _parse_fact(text: str, number: int, kinds: Sequence[str]) -> _ListedFact:
    cells = [plain(cell) for cell in text.strip(" |").split("|")]
    if len(cells) not in (3, 4):
        raise Unparsed(f"fact {number} has {len(cells)} parts, expected kind | phrase | seconds")
    kind, phrase, seconds, *of = cells
    if kind.casefold() not in kinds:
        raise Unparsed(f"fact {number} has the kind {kind[:40]!r}, not one of {', '.join(kinds)}")
    try:
        spans = exact_spans(_POINT.sub(_widen, seconds), _ALWAYS)
    except Unparsed:
        raise Unparsed(
            f"fact {number}: {seconds[:40]!r} are not seconds like 12.0-14.5; 40.0-44.0"
        ) from None
    return _ListedFact(kind=kind.casefold(), phrase=phrase, spans=spans, of="".join(of))


def _widen(match: re.Match[str]) -> str:
    time = float(match[1])
    return f"{max(0.0, time - SPREAD_S)}-{time + SPREAD_S}"


def _checked(fact: _ListedFact, number: int, window: Span) -> _ListedFact:
    """Return a fact with its phrase and spans in form. Raises Unparsed for one that has none."""
    phrase = _ARTICLE.sub(lambda m: m[0].lower(), plain(fact.phrase).rstrip(" .;,"), count=1)
    of = ""
    if fact.kind == "cause":
        phrase = re.sub(r"^because\s+", "", phrase, flags=re.IGNORECASE)
        of = plain(re.sub(r"^\W*of\s*[:：]", "", fact.of, flags=re.IGNORECASE)).rstrip(" .;,")
        if _NO_EVENT.fullmatch(of):
            raise Unparsed(f"fact {number} is a cause without the phrase of the event it explains")
    if not any(c.isalnum() for c in phrase):
        raise Unparsed(f"the phrase of fact {number} is empty")
    if length(phrase) > MAX_WORDS:
        raise Unparsed(
            f"the phrase of fact {number} has {length(phrase)} words; 3 to 9 are wanted and "
            f"{MAX_WORDS} are the most"
        )
    widened = [
        s if s.seconds > 0 else Span(s.start - SPREAD_S, s.end + SPREAD_S) for s in fact.spans
    ]
    inside = tuple(s for s in merge_spans(widened, window) if s.seconds > 0)
    earliest, latest = window.start - END_TOLERANCE_S, window.end + END_TOLERANCE_S
    if not inside or not all(earliest <= s.start <= s.end <= latest for s in fact.spans):
        named = "; ".join(f"{s.start:g}-{s.end:g}" for s in fact.spans) or "nothing"
        raise Unparsed(
            f"fact {number} names {named} as its seconds; expected stretches within "
            f"{window.start:.1f}-{window.end:.1f}"
        )
    return _ListedFact(kind=fact.kind, phrase=phrase, spans=inside, of=of)


def _merged(listed: Sequence[_ListedFact]) -> tuple[Fact, ...]:
    """Return the facts in the order of time, those with equal phrases as one."""
    events = {normal(fact.phrase): fact.phrase for fact in listed if fact.kind == "event"}
    merged: dict[tuple[str, str, str], _ListedFact] = {}
    for fact in listed:
        of = events.get(normal(fact.of), fact.of)
        key = (fact.kind, normal(fact.phrase) or fact.phrase, normal(of))
        first = merged.get(key, fact)
        spans = merge_spans((*first.spans, *fact.spans), _ALWAYS)
        merged[key] = replace(first, spans=spans, of=of)
    facts = (make_fact(f.kind, f.phrase, f.spans, "", f.of) for f in merged.values())
    return tuple(sorted(facts, key=lambda f: (f.spans[0].start, f.spans[0].end)))


def make_fact(kind: str, phrase: str, spans: Sequence[Span], source: str, of: str = "") -> Fact:
    """Return a fact with the hash (16 hex digits) of its kind, phrase and first span as its id."""
    content = json.dumps([kind, phrase, spans[0].start, spans[0].end], ensure_ascii=False)
    fact_id = hashlib.sha256(content.encode()).hexdigest()[:16]
    return Fact(fact_id=fact_id, kind=kind, phrase=phrase, spans=tuple(spans), source=source, of=of)


def text_facts(texts: Sequence[ScreenText]) -> tuple[Fact, ...]:
    """Return a fact for each distinct on-screen text that is surely read, with all its spans and
    those of longer texts with its words, in the order of time. Readings that differ in a few
    letters, but in no digit, are of one text.
    """
    groups: list[list[ScreenText]] = []
    for text in texts:
        if not (is_surely_read(text) and sum(map(str.isalpha, text.text)) >= MIN_LETTERS):
            continue
        group = next((g for g in groups if _is_same_text(g[0].text, text.text)), None)
        if group is None:
            groups.append([text])
        else:
            group.append(text)
    facts: list[Fact] = []
    for group in groups:
        best = max(group, key=lambda t: t.score)
        phrase = f"the words {_quoted(_BULLETS.sub('', best.text))}"
        if length(phrase) <= MAX_WORDS:
            words_read = f" {normal(best.text)} "
            longer = [t for t in texts if words_read in f" {normal(t.text)} "]
            spans = merge_spans([_span_of_text(t) for t in (*group, *longer)], _ALWAYS)
            facts.append(make_fact("text", phrase, spans, TEXTS))
    return tuple(sorted(facts, key=lambda f: f.spans[0].start))


def _is_same_text(one: str, other: str) -> bool:
    first, second = ("".join(filter(str.isalnum, t.casefold())) for t in (one, other))
    digits = [re.sub(r"\D", "", text) for text in (first, second)]
    return first == second or (
        digits[0] == digits[1]
        and SequenceMatcher(None, first, second, autojunk=False).ratio() >= SAME_TEXT_RATIO
    )


def _span_of_text(text: ScreenText) -> Span:
    """Return where a text is visible: half a second around it where it was read once."""
    end = text.end or text.time
    if end > text.time:
        return Span(text.time, end)
    return Span(max(0.0, text.time - 0.5), text.time + 0.5)


def line_facts(lines: Sequence[Line]) -> tuple[Fact, ...]:
    """Return a fact for each transcript line of `MIN_LINE_WORDS` to `MAX_WORDS` words that is
    surely heard, and whose words are said in no other line.
    """
    spoken = f" / {' / '.join(normal(line.text) for line in lines)} / "
    return tuple(
        make_fact("line", _quoted(line.text), [Span(line.start, line.end)], "lines")
        for line in lines
        if MIN_LINE_WORDS <= length(line.text) <= MAX_WORDS
        and line.start < line.end
        and is_surely_heard(line)
        and not _NOT_SPOKEN.search(line.text)
        and spoken.count(f" {normal(line.text)} ") == 1
    )


def other_line_facts(facts: Sequence[Fact], lines: Sequence[Line]) -> tuple[Fact, ...]:
    """Return a fact for each transcript line that is none of the facts: one of few or many words,
    one whose words are said again, or one that is not surely heard. Claims may rest on these, since
    they are verified.
    """
    known = {(fact.spans[0].start, fact.spans[0].end) for fact in facts if fact.kind == "line"}
    return tuple(
        make_fact("line", _quoted(line.text), [Span(line.start, line.end)], "lines")
        for line in lines
        if (line.start, line.end) not in known
        and line.start < line.end
        and not _NOT_SPOKEN.search(line.text)
    )


def _quoted(text: str) -> str:
    """Return a text on one line in curly quotes; quotes within it become single ones."""
    inside = re.sub(r"[“„\"](?=\w)", "‘", " ".join(text.split()))
    inside = re.sub(r"[“”„\"]", "’", inside)
    return f"“{inside}”"
