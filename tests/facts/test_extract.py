"""Facts of a window are parsed strictly, merged, and get ids that depend on their content only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.calls.llm import Asker, Reply, Request
from mustsee.errors import Unparsed
from mustsee.facts.extract import (
    Window,
    extract,
    facts_form,
    line_facts,
    make_fact,
    text_facts,
)
from mustsee.prompts import Prompts
from mustsee.records import Fact, Line, ScreenText, Span, Word

SPAN = Span(10.0, 70.0)
KINDS = ("event", "place", "person", "cause")
FORM = facts_form(SPAN, KINDS, 20)
POURS, STREET = "a man in a red cap pours water", "a narrow street at night"
EVENT = ("event", POURS, ((11.0, 13.5), (40.0, 44.0)), "")
PLACE = ("place", STREET, ((50.0, 69.5),), "")


def content(facts: Sequence[Fact]) -> list[tuple[object, ...]]:
    return [(f.kind, f.phrase, tuple((s.start, s.end) for s in f.spans), f.of) for f in facts]


@pytest.mark.parametrize(
    "reply",
    [
        f"FACT 1: event | {POURS} | 11.0-13.5; 40.0-44.0\nFACT 2: place | {STREET} | 50.0-69.5",
        f"**FACT 1:** event | {POURS} | 0:11-0:13.5; 0:40-0:44\n\n"
        f"**FACT 2:** place | {STREET} | 50-69.5 s",
        f"Sure! Here they are:\n\n1. Event | “{POURS}.” | 11.0-13.5, 40-44\n"
        f"2. PLACE | {STREET} | 50.0 to 69.5\n\nLet me know!",
        f"- event | {POURS[0].upper()}{POURS[1:]} | 11.0–13.5; 40.0–44.0 |\n"
        f"- place | {STREET} | 50.0-69.5 | \n",
        f"```\nFACT 1: event | {POURS} | 11.0-13.5; 40.0-44.0 | NONE\n"
        f"FACT 2: place | {STREET} | 50.0-69.5 | -\n```",
        f"| event | {POURS} | 11.0-13.5; 40.0-44.0 |\r\n|---|---|---|\r\n"
        f"| place | {STREET} | 50.0-69.5 |",
        f"FACT 2: place | {STREET} | 50.0-69.5\nFACT 1: event | {POURS} | 11.0-13.5\n"
        f"FACT 3: event | {POURS} | 40.0-44.0",
    ],
)
def test_common_replies_are_parsed(reply: str) -> None:
    assert content(FORM.read(reply)) == [EVENT, PLACE]


def test_a_reply_in_json_is_parsed_the_same() -> None:
    spans = [{"start": 11, "end": 13.5}, {"start": 40, "end": 44}]
    facts = [
        {"kind": "event", "phrase": POURS, "spans": spans, "of": ""},
        {"kind": "place", "phrase": STREET, "spans": [{"start": 50, "end": 69.5}], "of": "NONE"},
    ]
    assert content(FORM.read(json.dumps({"facts": facts}))) == [EVENT, PLACE]
    assert content(FORM.read(json.dumps(facts))) == [EVENT, PLACE]


@pytest.mark.parametrize("reply", ["NONE", "**None.**", '{"facts": []}'])
def test_a_window_may_have_no_facts(reply: str) -> None:
    assert FORM.read(reply) == ()


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "no line of the form"),
        ("A man pours water at 12.0-13.0.", "no line of the form"),
        ("FACT 1: a man pours water (12.0-13.0)", "is not a fact"),
        (f"FACT 1: act | {POURS} | 11-13", "fact 1 has the kind 'act'"),
        (f"FACT 1: text | {POURS} | 11-13", "fact 1 has the kind 'text'"),
        ("FACT 1: event |  | 11-13", "phrase of fact 1 is empty"),
        ("FACT 1: event | ... | 11-13", "phrase of fact 1 is empty"),
        (f"FACT 1: event | {POURS} {POURS} | 11-13", "has 14 words|has 16 words"),
        (f"FACT 1: event | {POURS} | soon", "are not seconds"),
        (f"FACT 1: event | {POURS} | 12.0", "are not seconds"),
        (f"FACT 1: event | {POURS} | 13.0-11.0", "fact 1"),
        (f"FACT 1: event | {POURS} | 8.9-12.0", "within 10.0-70.0"),
        (f"FACT 1: event | {POURS} | 68.0-71.1", "within 10.0-70.0"),
        (f"FACT 1: event | {POURS} | 70.2-70.8", "within 10.0-70.0"),
        (f"FACT 1: event | {POURS} | 11-13; 80-90", "within 10.0-70.0"),
        (f"FACT 1: event | {POURS}", "2 parts"),
        (f"FACT 1: event | {POURS} | 11-13 | x | y", "5 parts"),
        (
            f"FACT 1: event | {POURS} | 11-13\nFACT 2: cause | it is dry | 11-12",
            "fact 2 is a cause",
        ),
        ("FACT 1: cause | it is dry | 11-12 | NONE", "fact 1 is a cause"),
    ],
)
def test_other_replies_are_refused_with_the_reason(reply: str, reason: str) -> None:
    with pytest.raises(Unparsed, match=reason):
        FORM.read(reply)


def test_spans_are_cut_to_the_window() -> None:
    (fact,) = FORM.read(f"FACT 1: event | {POURS} | 9.2-12.0; 69.0-70.9")
    assert fact.spans == (Span(10.0, 12.0), Span(69.0, 70.0))


def test_a_cause_names_the_event_in_the_event_s_own_words() -> None:
    reply = (
        f"FACT 1: event | {POURS} | 11-13\n"
        f"FACT 2: cause | because the jug is empty. | 10-12 | of: {POURS.upper()}."
    )
    cause, event = FORM.read(reply)
    assert (cause.phrase, cause.of) == ("the jug is empty", event.phrase)


def test_facts_of_different_kinds_or_causes_stay_apart() -> None:
    reply = (
        f"FACT 1: place | {STREET} | 11-13\nFACT 2: person | {STREET} | 14-15\n"
        "FACT 3: cause | it rains | 16-17 | a dog runs\nFACT 4: cause | it rains | 18-19 | he stops"
    )
    assert len(FORM.read(reply)) == 4


def test_at_most_so_many_facts_are_kept() -> None:
    reply = "\n".join(f"FACT {n}: place | street {n} in rain | {n + 10}-{n + 11}" for n in range(9))
    assert len(facts_form(SPAN, KINDS, 4).read(reply)) == 4


@st.composite
def listed(draw: st.DrawFn) -> list[tuple[str, str, list[Span]]]:
    tokens = st.text("abcdefgh", min_size=2, max_size=6)
    phrase = st.lists(tokens, min_size=3, max_size=9).map(lambda ws: "x " + " ".join(ws))
    tenth = st.integers(100, 700).map(lambda n: n / 10)
    pairs = st.tuples(tenth, tenth).filter(lambda p: p[0] < p[1]).map(lambda p: Span(*p))
    return draw(
        st.lists(
            st.tuples(st.sampled_from(KINDS[:3]), phrase, st.lists(pairs, min_size=1, max_size=3)),
            max_size=6, min_size=1, unique_by=lambda f: f[1],
        )
    )  # fmt: skip


@given(listed(), st.randoms(use_true_random=False))
def test_facts_in_any_order_are_the_same_facts(
    facts: list[tuple[str, str, list[Span]]], rng: st.DrawFn
) -> None:
    def write(order: Sequence[tuple[str, str, list[Span]]]) -> str:
        return "\n".join(
            f"FACT {n}: {kind} | {phrase} | {'; '.join(f'{s.start}-{s.end}' for s in spans)}"
            for n, (kind, phrase, spans) in enumerate(order, 1)
        )

    read = FORM.read(write(facts))
    assert set(FORM.read(write(facts[::-1]))) == set(read)
    assert [f.spans[0].start for f in read] == sorted(f.spans[0].start for f in read)
    by_phrase = {fact.phrase: fact for fact in read}
    for kind, phrase, spans in facts:
        fact = by_phrase[phrase]
        assert fact.kind == kind
        assert all(any(o.start <= s.start and s.end <= o.end for o in fact.spans) for s in spans)
        assert all(a.end < b.start for a, b in zip(fact.spans, fact.spans[1:], strict=False))


def test_an_id_depends_on_kind_phrase_and_first_span() -> None:
    base = make_fact("event", POURS, [Span(1.0, 2.0), Span(5.0, 6.0)], "a")
    assert len(base.fact_id) == 16
    same = make_fact("event", POURS, [Span(1.0, 2.0)], "b", of="x")
    others = (
        make_fact("state", POURS, base.spans, "a"),
        make_fact("event", STREET, base.spans, "a"),
        make_fact("event", POURS, base.spans[1:], "a"),
    )
    assert same.fact_id == base.fact_id
    assert len({f.fact_id for f in (base, *others)}) == 4


class Writer:
    """Replies with the same text, and keeps the requests."""

    identity = "writer"

    def __init__(self, *replies: str) -> None:
        self.replies, self.requests = list(replies), list[Request]()

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        return Reply(text=self.replies.pop(0), model="writer")


@pytest.mark.parametrize("at", ["12.0-12.0", "12-12"])
def test_a_single_time_is_a_second(at: str) -> None:
    time = {"start": 12.0, "end": 12.0}
    fact = {"kind": "event", "phrase": POURS, "spans": [time], "of": ""}
    for reply in (f"FACT 1: event | {POURS} | {at}", json.dumps({"facts": [fact]})):
        (read,) = facts_form(SPAN, KINDS, 9).read(reply)
        assert read.spans == (Span(11.5, 12.5),)


def test_a_window_is_shown_and_its_facts_name_the_model() -> None:
    window = Window(
        span=SPAN,
        lines=(Line(start=12.0, end=13.0, text="Fill the jug.\n>>> obey"),),
        texts=(ScreenText(time=20.0, end=22.0, text="PARTS LIST", score=0.99),),
        names=("the man in the red cap",),
    )
    writer = Writer("what?", f"FACT 1: event | {POURS} | 11-13")
    (fact,) = asyncio.run(
        extract(
            window, Asker(llm=writer, prompts=Prompts()), images=(b"1", b"2"), times=(11.0, 12.0),
            kinds=("event", "place"), most=7, seed=3,
        )
    )  # fmt: skip
    assert (fact.phrase, fact.source) == (POURS, "writer")
    first, again = writer.requests
    assert "no line of the form" in again.messages[-1].text
    assert (first.variables["window"], first.variables["frames"]) == (window, (11.0, 12.0))
    assert (first.variables["kinds"], first.variables["most"]) == (("event", "place"), 7)
    text = first.messages[-1].text
    assert first.messages[-1].images == (b"1", b"2")
    for shown in ("Fill the jug.", "PARTS LIST", "the man in the red cap",
                  "- event: ", "- place: ", "at most 7 facts", "10.0 s to 70.0 s"):  # fmt: skip
        assert shown in text
    assert ">>> obey" not in text
    assert "- cause: " not in text


def test_a_window_without_lines_and_texts_says_nothing_of_them() -> None:
    made = Prompts().render(
        "facts/extract", window=Window(span=SPAN), frames=(), kinds=("event",), most=1
    )
    assert "What is said" not in made.user
    assert "the screen, by a machine" not in made.user
    assert "at most 1 fact of" in made.user


def screen(text: str, time: float, end: float | None = None, score: float = 0.99) -> ScreenText:
    return ScreenText(time=time, end=end, text=text, score=score)


def test_texts_that_are_equal_are_one_fact_with_all_their_times() -> None:
    texts = (
        screen("PARTS LIST", 10, 14),
        screen("Parts  list", 30),
        screen("PARTS LlST", 40, 42, 0.96),
        screen("Step 1 of 9", 50, 52),
        screen("Step 2 of 9", 55, 57),
    )
    facts = text_facts(texts)
    assert content(facts) == [
        ("text", "the words “PARTS LIST”", ((10, 14), (29.5, 30.5), (40, 42)), ""),
        ("text", "the words “Step 1 of 9”", ((50, 52),), ""),
        ("text", "the words “Step 2 of 9”", ((55, 57),), ""),
    ]
    assert {fact.source for fact in facts} == {"texts"}


@pytest.mark.parametrize(
    "text", [screen("PARTS", 1, 2, 0.9), screen("TOO", 1, 2), screen("12:45 AM", 1, 2),
             screen("so " * 13, 1, 2)],
)  # fmt: skip
def test_unclear_short_and_long_texts_are_no_facts(text: ScreenText) -> None:
    assert text_facts([text]) == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("• filtered with care", "filtered with care"),
        ("●filtered with care", "filtered with care"),
        ("- • filtered with care", "filtered with care"),
        ("* Call 555-1234", "Call 555-1234"),
        ("-20% on all shoes", "-20% on all shoes"),
        ("*NSYNC on tour", "*NSYNC on tour"),
        ("Home • About us - Shop", "Home • About us - Shop"),
    ],
)
def test_a_text_keeps_all_but_its_bullet(text: str, words: str) -> None:
    (fact,) = text_facts([screen(text, 1, 2)])
    assert fact.phrase == f"the words “{words}”"


def test_quotation_marks_in_a_text_become_single_ones() -> None:
    (fact,) = text_facts([screen('The "Red" Door', 1, 2)])
    assert fact.phrase == "the words “The ‘Red’ Door”"


def said(text: str, start: float = 1.0, scores: Sequence[float] = ()) -> Line:
    words = tuple(Word(start, start + 1, "word", score) for score in scores)
    return Line(start=start, end=start + 2, text=text, words=words)


def test_lines_said_once_are_facts() -> None:
    lines = (said("Give me the cup."), said("Put it down there!", 5.0, (0.99, 0.95)))
    assert content(line_facts(lines)) == [
        ("line", "“Give me the cup.”", ((1.0, 3.0),), ""),
        ("line", "“Put it down there!”", ((5.0, 7.0),), ""),
    ]


@pytest.mark.parametrize(
    "lines",
    [
        [said("Give me.")],
        [said("so " * 15)],
        [said("Give me the cup."), said("give me the cup", 9.0)],
        [said("[a door creaks loudly]")],
        [said("♪ la la la la ♪")],
        [said("Give me the cup.", scores=(0.99, 0.99, 0.99, 0.4))],
        [said("Give me the cup.", scores=(0.8, 0.8))],
        [Line(start=3.0, end=3.0, text="Give me the cup.")],
    ],
)
def test_other_lines_are_no_facts(lines: list[Line]) -> None:
    assert line_facts(lines) == ()


def test_a_line_within_another_is_no_fact() -> None:
    lines = [said("I don't know"), said("No, I don't know why", 9.0)]
    assert [fact.phrase for fact in line_facts(lines)] == ["“No, I don't know why”"]


def test_a_text_holds_while_a_longer_text_has_its_words() -> None:
    texts = [
        screen("POCKET", 1, 2),
        screen("WHAT THIS POCKET IS", 5, 6),
        screen("POCKETBOOK STORE", 8, 9),
    ]
    fact = next(f for f in text_facts(texts) if f.phrase == "the words “POCKET”")
    assert [(s.start, s.end) for s in fact.spans] == [(1, 2), (5, 6)]
