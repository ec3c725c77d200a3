"""Reply forms: text and JSON parse to the same value, and nothing is guessed."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.calls.connection import ParameterRefused
from actors.llm.openai import OpenAI, is_strict
from loopback.schemas import as_object, instance
from mustsee.calls.refusals import Change
from mustsee.errors import BadRow, Unparsed
from mustsee.evaluate.open_scores import RubricGrade
from mustsee.facts.claims import claims_form
from mustsee.facts.extract import facts_form
from mustsee.facts.look import verdicts_form
from mustsee.facts.point_exam import answers_form, seen_answers_form
from mustsee.facts.points import Statement, Statements, questions_form
from mustsee.facts.select import Chosen
from mustsee.facts.settings import PointRules
from mustsee.facts.stem import Stem
from mustsee.facts.weigh import weigh_form
from mustsee.facts.wording import readings_form, wordings_form
from mustsee.judge.points import grade_form
from mustsee.prompts import Prompts, without_fenced_texts
from mustsee.questions import labelled
from mustsee.questions.drafts import Draft
from mustsee.questions.replies import decoys, questions
from mustsee.questions.rows import levels_form, numbered_texts
from mustsee.recipes.cinepile.ask import shortlist
from mustsee.recipes.cinepile.induction import rewrites_form
from mustsee.recipes.cinepile.mcq import OptionChoice, choice, mcqs
from mustsee.recipes.cinepile.templates import templates_form
from mustsee.recipes.mlvu.ask import needle_form
from mustsee.recipes.neptune.replies import PROSE, shots, topics
from mustsee.records import Span
from mustsee.replies.forms import Form, find_json, free
from mustsee.server_probe.steps import (
    DIGITS_FORM,
    FRUIT_FORM,
    NUMERALS_FORM,
    TONES_FORM,
    times_form,
)
from mustsee.text import LETTERS
from mustsee.verify.guess.ask import ANSWER, matching_form, ranking, rankings
from mustsee.verify.look_replies import (
    CANNOT,
    HOLDS,
    OPEN,
    PREMISE,
    RIGHT,
    SEVERAL,
    WRONG,
    Choice,
    OptionVerdict,
    ParsedLook,
    decide,
    look_form,
    say,
)
from mustsee.verify.repair import repair_form
from mustsee.verify.traces import steps_form
from tests.support.every_prompt import FACT_REPLIES, KINDS, Rules, calls

ASKED = (Draft(question="What burns?", answer="a"), Draft(question="Who is at sea?", answer="b"))
STATEMENTS = Statements(
    claims=(Statement(text="A boat sinks.", facts=("c", "f"), spans=(Span(1.0, 2.0),)),),
    facts=(Statement(text="A drum is lost.", facts=("f",), spans=(Span(5.0, 7.0),)),),
    rules=PointRules(least=1),
)
SEA_PHRASES = ("a boat sinks", "a drum is lost")
WORDED = [
    Chosen(
        stem=Stem(
            form="after", question="Which is next after “Ahoy”?", question_type="Other",
            answer=SEA_PHRASES[0], evidence=(),
        ),
        options=SEA_PHRASES, rank=0,
    )
]  # fmt: skip
FORMS: Mapping[str, Form[Any]] = {
    "questions": questions(3, evidence=True),
    "decoys": decoys(ASKED, 2),
    "ranking": ranking(4),
    "look": look_form(3),
    "look in words": look_form(0),
    "repaired": repair_form(2),
    "needle": needle_form(2, 2),
    "frames": numbered_texts(3),
    "one frame": numbered_texts(1),
    "shots": shots(3),
    "topics": topics(9),
    "prose": PROSE,
    "shortlist": shortlist(9, 3),
    "mcqs": mcqs(),
    "choice": choice(("a", "b", "c")),
    "templates": templates_form(2),
    "rewritten": rewrites_form(2),
    "guess": ANSWER,
    "steps": steps_form(Span(0.0, 90.0), 4),
    "levels": levels_form({"logic": (0, 1, 2)}),
    "labelled": labelled.drafts(2, wrong=2, with_question=True),
    "asked": labelled.questions_in(2),
    "facts": facts_form(Span(0.0, 90.0), KINDS, 9),
    "verdicts": verdicts_form(3),
    "rankings": rankings([3, 3]),
    "graded points": grade_form(2, 1),
    "claims": claims_form(5, 4),
    "weights": weigh_form(2, Span(0.0, 90.0)),
    "open questions": questions_form(STATEMENTS, ["cause", "goal"]),
    "answers": answers_form(2),
    "seen answers": seen_answers_form(2),
    "wordings": wordings_form(WORDED, SEA_PHRASES),
    "readings": readings_form([3, 2]),
    "matching": matching_form(3),
    "numerals": NUMERALS_FORM,
    "digits": DIGITS_FORM,
    "tones": TONES_FORM,
    "times": times_form([17, 40]),
    "fruit": FRUIT_FORM,
}

OF_LINES = re.compile(
    r"\b(?:in this|of the) form\b|\bthese (?:two )?lines\b|\bexactly so\b|\bone word NONE\b|"
    r"\blabels?\b|\b(?:in|into the) brackets\b|\bJSON\b|\bschema\b",
    re.IGNORECASE,
)
LABEL = re.compile(r"^[\s*-]*((?:\w+ )*\w+[:)])", re.MULTILINE)
# Fields that the text form writes without a label, by their place in a line.
BY_PLACE = {
    "NUMBER", "SENTENCE", "FIRST", "LAST", "START", "END", "VERDICT", "SPANS",
    "STATED BY", "CONTRADICTED BY", "MADE BY",
}.union(f"OPTION {letter}" for letter in LETTERS)  # fmt: skip
STEM = "QUESTION 1: ({}) What is broken first?\nCORRECT ANSWER: an egg\n"
PROBE_REPLIES = {  # of a server that sees and hears everything
    "server_probe/digits": "* DIGITS: 4, 0, 9",
    "server_probe/fruit": "* COLOUR: green\n* COUNT: 7\n* SIZES: small, large",
    "server_probe/images": "* NUMERALS: 47, 12, 90",
    "server_probe/tones": "* TONES: high, low, low",
    "server_probe/video": "* NUMERALS: 47, 12, 90",
}
WRITTEN = {  # replies to prompts that the rules do not answer, or answer with nothing
    "caption/clips": "1: A man cooks.\n2: A dog runs.",
    "caption/frames": "1: A man cooks.\n2: A dog runs.",
    "caption/wearer": "1: C lifts a cup.\n2: C opens the door.",
    "caption/wearer_clips": "1: C lifts a cup.\n2: C opens the door.",
    "enrich/trace": "STEP 1: 40-50: It is red.\nCONCLUSION: So it is red.",
    **FACT_REPLIES,
    **PROBE_REPLIES,
    "cinepile/questions": "Template: Kind 1\nQuestion: What is broken?\n- A) an egg\n- B) a cup\n"
    "- C) a jar\n- D) a bowl\n- E) a plate\nCorrect Answer: A\nRationale: So.\n"
    "Evidence: 1.0-2.0",
    "filters/repair": STEM.format("other")
    + "".join(
        f"WRONG ANSWER {n}: a {what}\n" for n, what in enumerate(("cup", "jar", "pan", "can"), 1)
    )
    + "EVIDENCE: 41.0-49.0",
    "filters/sight": say(
        [
            OptionVerdict(RIGHT, (Span(1.0, 2.0),)),
            *[OptionVerdict(WRONG)] * 3,
            OptionVerdict(OPEN, (Span(3.0, 4.5),)),
        ],
        "it",
    ),
    "filters/sight_open": "* SEEN: it\n* PREMISE: HOLDS\n* EVIDENCE: 1.0-2.0\n* LOOK: NONE\n"
    "* ANSWER: an egg",
    "neptune/further": STEM.format("other") + "EVIDENCE: 1.0-2.0; 30.0-31.0",
    "neptune/questions": STEM.format("other") + "EVIDENCE: 1.0-2.0; 30.0-31.0",
    "neptune/script": STEM.format("other") + "EVIDENCE: 1.0-2.0; 30.0-31.0",
    "neptune/whole": STEM.format("other") + "EVIDENCE: 1.0-2.0; 30.0-31.0",
}
EMPTY = {"questions": list[Any]()}
NOTHING: Mapping[str, Any] = {  # replies by a schema where there is nothing to write
    "enrich/trace": {"steps": [], "conclusion": ""},
    "facts/claims": {"claim": [], "altered": []},
    "facts/choices": {"question": []},
    "facts/extract": {"facts": []},
    "facts/questions": {"question": [], "point": [], "answer": []},
    "filters/repair": EMPTY,
    "neptune/further": EMPTY,
    "neptune/questions": EMPTY,
    "neptune/script": EMPTY,
    "neptune/whole": EMPTY,
}
SEA = ("amber", "boat", "cliff", "drum", "eel", "fog", "gull", "hull")
words = st.lists(st.sampled_from(SEA), min_size=2, max_size=5, unique=True).map(" ".join)
seconds = st.integers(0, 5000).map(lambda n: n / 10)


@pytest.fixture(scope="module")
def asked() -> Mapping[str, Any]:
    return calls()


def test_every_schema_is_accepted_by_all_endpoints(asked: Mapping[str, Any]) -> None:
    """Schemas are strict and avoid keywords that Anthropic, Azure or Gemini refuse."""
    known = {"type", "properties", "required", "additionalProperties", "items", "enum"}
    schemas = [call.form.schema for call in asked.values() if call.form.schema is not None]
    assert len(schemas) >= 20

    def check(schema: Mapping[str, Any]) -> None:
        assert schema.keys() <= known | {"description"}
        for inner in (*schema.get("properties", {}).values(), schema.get("items")):
            if inner is not None:
                check(inner)

    for schema in schemas:
        assert schema["type"] == "object"
        assert is_strict(schema)
        check(schema)
        json.dumps(schema)


def meant(value: Any, reply: str) -> Any:
    """Return a value without its quoted reply."""
    if isinstance(value, tuple) and value[:1] == (reply,):
        return value[1]
    return replace(value, reply="") if isinstance(value, (OptionChoice, RubricGrade)) else value


def times_told(call: Any) -> str:
    """Return a time for each numeral that the prompt of a probe asks for."""
    return "\n".join(f"* NUMERAL {n}: {n / 10} s" for n in call.variables().get("numerals", ()))


def test_a_reply_to_each_prompt_parses_the_same_as_text_and_as_json(
    asked: Mapping[str, Any],
) -> None:
    """The rules' reply to each prompt, or a written one, parsed as text and as an object."""
    for name, call in asked.items():
        if call.form.schema is None:
            continue
        written = {**WRITTEN, "server_probe/times": times_told(call)}
        text = asyncio.run(Rules(written).complete(call.request())).text
        said = json.dumps(as_object(text, call.form.schema))
        value = call.form.read(text)
        assert value, name
        assert meant(call.form.read(said), said) == meant(value, text), name


def test_nothing_to_write_parses_the_same_as_text_and_as_json(asked: Mapping[str, Any]) -> None:
    for name, empty in NOTHING.items():
        said = json.dumps(empty)
        form = asked[name].form
        assert meant(form.read(said), said) == meant(form.read("NONE"), "NONE"), name
    offered = {name for name, call in asked.items() if "one word NONE" in call.rendered().lines}
    assert offered == set(NOTHING)
    scene = {**asked["cinepile/questions"].variables(), "kind": "perceptual"}
    assert "one word NONE" in Prompts().render("cinepile/questions", **scene).lines
    assert mcqs(or_none=True).read(json.dumps(EMPTY)) == mcqs(or_none=True).read("NONE") == ()


def test_a_prompt_says_nothing_of_lines_beside_a_schema(asked: Mapping[str, Any]) -> None:
    for name, call in asked.items():
        if call.form.schema is None:
            continue
        made = call.rendered()
        own = without_fenced_texts(f"{made.system}\n{made.user}")
        assert not OF_LINES.search(own), name
        starts = {line.strip(" *-") for line in own.splitlines()}
        labels = set(LABEL.findall(made.lines))
        assert labels or name == "neptune/further", name
        assert not [s for s in starts if s.startswith(tuple(labels))], name


def test_a_prompt_without_a_schema_asks_for_each_field_in_a_line(asked: Mapping[str, Any]) -> None:
    for name, call in asked.items():
        if call.form.schema is None or name == "neptune/further":
            continue
        lines = call.rendered().lines
        shown = re.sub(r"\W+", " ", lines).upper()
        labels = {n.replace("_", " ").upper() for n in names_in(call.form.schema)}
        assert not [label for label in labels - BY_PLACE if label.removesuffix("S") not in shown], (
            name
        )
        (*_, last) = call.request().messages_for(schema=False)
        assert last.text.endswith(lines), name


def names_in(schema: Mapping[str, Any]) -> set[str]:
    """Return the names of the properties at any depth that hold texts, numbers or spans."""
    if "items" in schema:
        return names_in(schema["items"])
    properties = schema.get("properties", {})
    leaves = {name for name, part in properties.items() if not names_in(part)}
    spans = {
        n for n, p in properties.items() if "start" in p.get("items", {}).get("properties", {})
    }
    inner = (names_in(part) for name, part in properties.items() if name not in spans)
    return leaves.union(spans, *inner)


@pytest.mark.parametrize("structured", ["auto", "json_schema", "none"])
def test_a_request_carries_a_schema_or_lines(
    asked: Mapping[str, Any], structured: Literal["auto", "json_schema", "none"]
) -> None:
    """Every prompt, before and after the endpoint has refused a schema."""
    config = OpenAI(
        model="m", base_url="http://localhost:1/v1", key_env=None, structured=structured
    )
    chat = config.open()
    for refused in (False, True):
        for name, call in asked.items():
            request = call.request()
            lines = [message.lines for message in request.messages if message.lines]
            sent = json.dumps(chat.body(request)["messages"])
            is_sent = [json.dumps(text)[1:-1] in sent for text in lines]
            has_schema = "response_format" in chat.body(request)
            takes = structured == "json_schema" or (structured == "auto" and not refused)
            assert has_schema == (takes and call.form.schema is not None), name
            assert bool(lines) or call.form.schema is None, name
            assert set(is_sent) <= {not has_schema}, name
        error = ParameterRefused.of("unknown response_format", (Change("response_format"),))
        with pytest.raises(BadRow) if structured == "json_schema" else nullcontext():
            asyncio.run(chat.parameters.learn(error))


def shaped(schema: Mapping[str, Any], string: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Draw instances of a schema."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema["type"]:
        case "object":
            return st.fixed_dictionaries(
                {name: shaped(part, string) for name, part in schema["properties"].items()}
            )
        case "array":
            return st.lists(shaped(schema["items"], string), max_size=4)
        case "string":
            return string
        case "integer":
            return st.integers(-3, 10**7)
        case _:
            return st.floats() | st.integers(-3, 400)


marks = st.text('ABC123:>.-*#[]{}",\\ \n\rQUESTIONANSWERwrong：')
PIECES = (
    "QUESTION 1:", "ANSWER: B", "\n", "1.", "SEGMENT 1:", "[1-4]", "WRONG ANSWERS:", "Question: x",
    "- A) x", "EVIDENCE: 1-2", "CAST 1: a | b | 1", '{"', "```", ">", "TEMPLATES:", "9" * 5000,
    "A > B", "{", "[" * 3000, '{"a":' * 2000,
)  # fmt: skip
pieces = st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join)
noise = st.text(max_size=200) | marks | pieces


@pytest.mark.parametrize("name", FORMS)
@settings(max_examples=25)
@given(data=st.data())
def test_garbage_raises_unparsed_only(name: str, data: st.DataObject) -> None:
    form = FORMS[name]
    replies = noise
    if form.schema is not None:
        objects = shaped(form.schema, noise).map(json.dumps)
        replies |= objects | objects.flatmap(
            lambda text: st.integers(0, len(text)).map(lambda at: text[:at])
        )
        replies |= st.just(json.dumps(instance(form.schema)))
    with suppress(Unparsed):
        form.read(data.draw(replies))


Both = tuple[Any, str, Any]  # what is meant, in text, as an object


@st.composite
def asked_of(draw: st.DrawFn) -> Both:
    n = draw(st.integers(1, 3))
    texts = draw(st.lists(words, min_size=4 * n, max_size=4 * n, unique=True))
    drafts, lines, objects = [], [], []
    for place in range(n):
        question, answer, *wrong = texts[4 * place : 4 * place + 4]
        start, length = draw(seconds), draw(seconds)
        span = Span(start, round(start + length, 1))
        drafts.append(Draft(question=f"{question}?", answer=answer, tag="other", evidence=(span,),
                            decoys=tuple(wrong)))  # fmt: skip
        lines += [f"QUESTION {place + 1}: (other) {question}?", f"CORRECT ANSWER: {answer}",
                  f"WRONG ANSWER 1: {wrong[0]}", f"WRONG ANSWER 2: {wrong[1]}",
                  f"EVIDENCE: {span.start}-{span.end}"]  # fmt: skip
        objects.append({"kind": "other", "question": f"{question}?", "correct_answer": answer,
                        "wrong_answer_1": wrong[0], "wrong_answer_2": wrong[1],
                        "evidence": [{"start": span.start, "end": span.end}]})  # fmt: skip
    return tuple(drafts), "\n".join(lines), {"questions": objects}


@st.composite
def ranked(draw: st.DrawFn) -> Both:
    order = draw(st.permutations(range(4)))
    letters, why = [LETTERS[n] for n in order], draw(words)
    text = f"* ANSWER: {' > '.join(letters)}\n* EXPLANATION: {why}"
    return tuple(order), text, {"answer": letters, "explanation": why}


@st.composite
def described(draw: st.DrawFn) -> Both:
    texts = draw(st.lists(words, min_size=3, max_size=3))
    order = draw(st.permutations(range(3)))
    text = "\n".join(f"{n + 1}: {texts[n]}" for n in order)
    return (
        tuple(texts),
        text,
        {"sentences": [{"number": n + 1, "sentence": texts[n]} for n in order]},
    )


@st.composite
def divided(draw: st.DrawFn) -> Both:
    ends = sorted(draw(st.sets(st.integers(1, 9), min_size=1, max_size=4)) | {9})
    names = draw(st.lists(words, min_size=len(ends), max_size=len(ends)))
    runs = tuple(zip([0, *ends], ends, names, strict=False))
    text = "\n".join(f"SEGMENT {n}: {a + 1}-{b}: {t}" for n, (a, b, t) in enumerate(runs, 1))
    segments = [{"first": a + 1, "last": b, "topic": t} for a, b, t in runs]
    kind = draw(st.sampled_from(("story", "compilation", "trailer")))
    said = {"cast": [], "segments": segments, "kind": kind}
    return (runs, (), kind), f"{text}\nKIND: {kind}", said


@st.composite
def stretches(draw: st.DrawFn, least: int = 0) -> tuple[Span, ...]:
    pairs = draw(st.lists(st.tuples(seconds, seconds), min_size=least, max_size=3))
    return tuple(sorted({Span(*sorted(pair)) for pair in pairs}, key=lambda s: (s.start, s.end)))


@st.composite
def looked(draw: st.DrawFn) -> Both:
    """Verdicts on three options and on the premise."""
    options: list[OptionVerdict] = []
    for _ in range(3):
        verdict = draw(st.sampled_from((RIGHT, WRONG, OPEN)))
        options.append(OptionVerdict(verdict, draw(stretches(verdict == RIGHT))))
    seen, premise = draw(words), draw(st.sampled_from((HOLDS, OPEN)) | words)
    text = say(options, seen, premise)
    said: dict[str, Any] = {"seen": seen, "premise": premise}
    for letter, option in zip("abc", options, strict=True):
        named = [{"start": s.start, "end": s.end} for s in option.spans]
        said[f"option_{letter}"] = {"verdict": option.verdict, "spans": named}
    return decide(options, premise), text, said


@st.composite
def looked_in_words(draw: st.DrawFn) -> Both:
    answer = draw(st.sampled_from(("CANNOT BE TOLD", "SEVERAL")) | words)
    choice_: Choice = {"CANNOT BE TOLD": CANNOT, "SEVERAL": SEVERAL}.get(answer, 0)
    seen, premise = draw(words), draw(st.sampled_from((HOLDS, OPEN)) | words)
    evidence, look = draw(stretches()), draw(stretches())
    lines = [f"* {name}: {'; '.join(f'{s.start}-{s.end}' for s in named) or 'NONE'}"
             for name, named in (("EVIDENCE", evidence), ("LOOK", look))]  # fmt: skip
    text = "\n".join((f"* SEEN: {seen}", f"* PREMISE: {premise}", *lines, f"* ANSWER: {answer}"))
    said: dict[str, Any] = {"seen": seen, "premise": premise, "answer": answer}
    for name, named in (("evidence", evidence), ("look", look)):
        said[name] = [{"start": s.start, "end": s.end} for s in named]
    holds = premise in (HOLDS, OPEN)
    meant_ = ParsedLook(choice=choice_ if holds else PREMISE, words=answer if holds else premise,
                        evidence=evidence, where=look)  # fmt: skip
    return meant_, text, said


@st.composite
def chosen(draw: st.DrawFn) -> Both:
    options = draw(st.lists(words, min_size=5, max_size=5, unique=True))
    right, why, text = draw(st.integers(0, 4)), draw(words), draw(words)
    letter = LETTERS[right]
    lines = [f"- {LETTERS[n]}) {option}" for n, option in enumerate(options)]
    said = "\n".join((f"Template: {text}", f"Question: {text}?", *lines,
                      f"Correct Answer: {letter}", f"Rationale: {why}",
                      "Evidence: 1.0-2.0"))  # fmt: skip
    parts = {f"option_{LETTERS[n].lower()}": option for n, option in enumerate(options)}
    whole = {"template": text, "question": f"{text}?", **parts, "correct_answer": letter,
             "rationale": why, "evidence": [{"start": 1, "end": 2}]}  # fmt: skip
    return (f"{text}?", tuple(options), right, why), said, {"questions": [whole]}


def _mcq(value: Any) -> Any:
    (one,) = value
    return one.question, one.options, one.answer, one.rationale


ROUND: Mapping[str, tuple[st.SearchStrategy[Both], Form[Any], Callable[[Any], Any]]] = {
    "questions": (asked_of(), questions(evidence=True, wrong=2), lambda v: v),
    "ranking": (ranked(), ranking(4), lambda v: v),
    "frames": (described(), numbered_texts(3), lambda v: v),
    "topics": (divided(), topics(9), lambda v: v),
    "look": (looked(), look_form(3), lambda v: v),
    "look in words": (looked_in_words(), look_form(0), lambda v: v),
    "mcqs": (chosen(), mcqs(), _mcq),
}
AROUND = ("{}", "Sure! Here is what you asked for:\n\n{}\n\nLet me know if you need more.",
          "```\n{}\n```")  # fmt: skip


@settings(max_examples=30)
@pytest.mark.parametrize("name", ROUND)
@given(data=st.data(), around=st.sampled_from(AROUND), ends=st.sampled_from(["\n", "\r\n"]))
def test_text_and_json_replies_parse_to_the_same_value(
    name: str, data: st.DataObject, around: str, ends: str
) -> None:
    drawn, form, seen = ROUND[name]
    meant, text, said = data.draw(drawn)
    assert seen(form.read(around.format(text).replace("\n", ends))) == meant
    pretty = json.dumps(said, indent=data.draw(st.sampled_from([None, 2])))
    for reply in (pretty, around.format(pretty), f"```json\n{pretty}\n```"):
        assert seen(form.read(reply.replace("\n", ends))) == meant


def test_text_that_is_not_json_gives_none() -> None:
    for reply in ("", "B", '"B"', "3", "SEGMENT 1: [1, 4]: a", "He says {so}.", "null"):
        assert find_json(reply) is None
    assert find_json("[1, 2]") == [1, 2]
    with pytest.raises(Unparsed, match="several"):
        find_json('```json\n{"a": 1}\n```\nor\n```json\n{"a": 2}\n```')


def test_free_text_replies_have_no_schema() -> None:
    assert free(str).schema is None
    assert PROSE.schema is None
    assert numbered_texts(1).schema is None
