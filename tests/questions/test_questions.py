"""Replies of real models are parsed; checks, ids and shuffles of questions."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import Unparsed
from mustsee.questions.checks import fault, holds, is_order, items
from mustsee.questions.drafts import (
    Draft,
    clip_spans,
    fields,
    finish_question,
    needed_seconds,
    question_id,
    reach,
    shuffle_options,
    spans,
)
from mustsee.questions.replies import decoys, questions
from mustsee.records import Span

GOLDEN = Path(__file__).parents[1] / "golden"
EGGS = Draft(question="How many eggs are broken into the bowl?", answer="Three", tag="counting")
ORDER = Draft(
    question="In what order are these shown: the pan; the bowl; the plate?",
    answer="The bowl; the pan; the plate",
    tag="temporal ordering",
)
PLAIN = """QUESTION 1: (counting) How many eggs are broken into the bowl?
CORRECT ANSWER: Three
QUESTION 2: (temporal ordering) In what order are these shown: the pan; the bowl; the plate?
CORRECT ANSWER: The bowl; the pan; the plate"""

word = st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=9).filter(
    lambda w: w not in {"question", "answer", "evidence", "decoy", "distractor", "an", "the"}
)
phrase = st.lists(word, min_size=1, max_size=6).map(" ".join)


def pairs(drafts: tuple[Draft, ...]) -> list[tuple[str, str, str]]:
    return [(d.tag, d.question, d.answer) for d in drafts]


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("questions_*.txt")), ids=lambda p: p.stem)
def test_deviating_replies_parse_to_the_same_questions(path: Path) -> None:
    assert pairs(questions().read(path.read_text())) == pairs((EGGS, ORDER))


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("decoys_*.txt")), ids=lambda p: p.stem)
def test_deviating_replies_parse_to_the_same_decoys(path: Path) -> None:
    eggs, order = decoys((EGGS, ORDER), 4).read(path.read_text())
    assert eggs.decoys == ("Two", "Four", "Five", "Six")
    assert len(order.decoys) == 4
    assert order.decoys[0] == "The pan; the bowl; the plate"
    assert (eggs.question, order.answer) == (EGGS.question, ORDER.answer)


STYLES = (
    "QUESTION {n}: ({t}) {q}\nCORRECT ANSWER: {a}\nEVIDENCE: 1.0-2.0\n",
    "**QUESTION {n}:** *({t})* {q}\n**CORRECT ANSWER:** {a}\n\n",
    "{n}. Question ({t}): {q}\n   - Correct Answer: {a}\n",
    "### QUESTION {n} ({t})\n{q}\nCORRECT ANSWER {a}\n---\n",
    "Question {n} ({t}) - {q}  Correct Answer: {a}\n",
    "> QUESTION {n}: [{t}] {q}\n> CORRECT ANSWER - {a}\n",
)


@given(st.lists(st.tuples(phrase, phrase), min_size=1, max_size=4), st.sampled_from(STYLES))
def test_every_style_is_parsed_back(written: list[tuple[str, str]], style: str) -> None:
    reply = "Here is what you asked for.\n\n" + "".join(
        style.format(n=n, t="counting", q=q, a=a) for n, (q, a) in enumerate(written, 1)
    )
    assert pairs(questions().read(reply)) == [("counting", q, a) for q, a in written]


@given(st.text(max_size=400))
def test_any_text_is_parsed_or_refused(reply: str) -> None:
    try:
        drafts = questions().read(reply)
    except Unparsed:
        return
    assert all(d.question and d.answer for d in drafts)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "QUESTION 1"),
        ("I cannot answer questions about this video.", "QUESTION 1"),
        ("Question types vary; the answer is below.", "QUESTION 1"),
        ("QUESTION 1: (counting) How many?", "CORRECT ANSWER"),
    ],
)
def test_unparseable_replies_have_a_reason(reply: str, reason: str) -> None:
    with pytest.raises(Unparsed, match=reason.replace("?", r"\?")):
        questions().read(reply)


def test_a_question_without_its_answer_is_left_out_alone() -> None:
    reply = f"QUESTION 3: (other) Why?\n{PLAIN}"
    assert pairs(questions().read(reply)) == pairs((EGGS, ORDER))


def test_a_question_without_its_decoys_gets_none() -> None:
    reply = PLAIN.replace("Three\n", "Three\nWRONG ANSWER 1: a\nWRONG ANSWER 2: b\n")
    assert [d.decoys for d in decoys((EGGS, ORDER), 2).read(reply)] == [("a", "b"), ()]


@pytest.mark.parametrize(
    ("evidence", "seconds", "needed"),
    [
        ([(10, 20)], 0, 10),
        ([(10, 20), (100, 110)], 80, 20),
        ([(100, 110), (10, 20), (50, 60)], 80, 30),
        ([(10, 200), (100, 110)], 0, 190),
        ([(15, 30), (10, 20), (30, 31)], 10, 21),
    ],
)
def test_evidence_is_measured_in_sum_and_from_the_first_to_the_last_span(
    evidence: list[tuple[float, float]], seconds: float, needed: float
) -> None:
    """What overlaps counts once; the way between begins where the first span ends."""
    draft = replace(EGGS, evidence=tuple(Span(*e) for e in evidence), decoys=GOOD)
    question = finish_question(draft, video_id="v", recipe="r", question_type="Other", seed=0)
    assert reach(draft.evidence) == question.metrics["apart_seconds"] == seconds
    assert needed_seconds(draft.evidence) == question.metrics["reach_seconds"] == needed


def test_questions_beyond_the_limit_are_left_out() -> None:
    assert len(questions(1).read(PLAIN)) == 1


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (PLAIN, "0 lines"),
        (PLAIN + "\nWRONG ANSWER 1: a\nWRONG ANSWER 2: b", "QUESTION 1"),
        ("QUESTION 7: (other) Something else?\nWRONG ANSWER 1: a", "QUESTION 1"),
    ],
)
def test_missing_decoys_are_named(reply: str, reason: str) -> None:
    with pytest.raises(Unparsed, match=reason):
        decoys((EGGS, ORDER), 4).read(reply)


def test_labels_of_other_recipes_are_parsed() -> None:
    found = fields("Wrong Answer A : one\n**Wrong Answer B:** two\nwrong answer c) three")
    assert [f.text for f in found] == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("12.0-31.5; 40-44", [(12, 31.5), (40, 44)]),
        ("[0:12 - 0:31]", [(12, 31)]),
        ("1:02:03 to 1:02:10", [(3723, 3730)]),
        ("from 12s until 14 s", [(12, 14)]),
        ("31.5 – 12.0", [(12, 31.5)]),
        ("12.5", [(12.5, 12.5)]),
        ("nowhere", []),
    ],
)
def test_time_spans_are_parsed(text: str, found: list[tuple[float, float]]) -> None:
    assert [(s.start, s.end) for s in spans(text)] == found


@given(
    st.lists(st.tuples(st.floats(0, 9e3), st.floats(0, 9e3))), st.floats(0, 5e3), st.floats(0, 5e3)
)
def test_clipped_spans_lie_within_the_limits(
    raw: list[tuple[float, float]], one: float, two: float
) -> None:
    low, high = min(one, two), max(one, two)
    for span in clip_spans([Span(min(p), max(p)) for p in raw], low, high):
        assert low <= span.start <= span.end <= high


GOOD = ("Two", "Four", "Five", "Six")
ITEMS = ("The pan; the bowl; the plate", "The plate; the pan; the bowl",
         "The plate; the bowl; the pan", "The pan; the plate; the bowl")  # fmt: skip


@pytest.mark.parametrize(
    ("question", "answer", "decoys", "reason"),
    [
        (EGGS.question, "Three", GOOD, None),
        (EGGS.question, "Three", GOOD[:3], "3 wrong answers"),
        (EGGS.question, "Three", ("Two", "two.", "Five", "Six"), "the same"),
        (EGGS.question, "Three", ("three", "Four", "Five", "Six"), "the same"),
        (EGGS.question, "Three", ("Three eggs", "Four", "Five", "Six"), "contain each other"),
        (EGGS.question, "The red bowl", ("Red", "Blue", "Green", "Grey"), "contain each other"),
        ("Which of the three eggs breaks?", "Three", GOOD, "gives away"),
        ("What happens at 1:20?", "It burns", ("A", "B", "C", "D"), "timestamp"),
        ("When does the meeting begin, 9:30 am or later?", "Early", GOOD, None),
        ("What is shown at the 30-second mark?", "It burns", GOOD, "timestamp"),
        ("What does the clock show?", "10:24", ("10:25", "9:24", "8:00", "7:30"), None),
        ("What does the caption say?", "It burns", GOOD, "'caption'"),
        ("What is in the second segment?", "It burns", GOOD, "'second segment'"),
        ("What becomes of segment 2?", "It burns", GOOD, "'segment 2'"),
        ("What are the segments of the orange laid on?", "It burns", GOOD, None),
        ("What is done with the last segment of the pipe?", "It burns", GOOD, None),
        ("Is the wall three or four bricks high?", "Three", GOOD, None),
        ("What changes when four men come in?", "Three", GOOD, "gives away the option 'Four'"),
        ("Why is option B wrong?", "It burns", GOOD, "letters"),
        ("What burns?", "All of the above", GOOD, "letters"),
        ("What burns?", "Vitamin A and more", GOOD, None),
        ("What burns?", "", GOOD, "empty"),
        (ORDER.question, ORDER.answer, ITEMS, None),
        (ORDER.question, ORDER.answer, (*ITEMS[:3], "The cup; the pan; the bowl"), "same things"),
        (ORDER.question, ITEMS[0], (ORDER.answer, *ITEMS[1:]), "order of the answer"),
        (ORDER.question, "The pan; the pan; the plate", ITEMS, "twice"),
    ],
)  # fmt: skip
def test_each_fault_is_found(
    question: str, answer: str, decoys: tuple[str, ...], reason: str | None
) -> None:
    found = fault(question, answer, decoys)
    assert found is None if reason is None else found is not None and reason in found


@given(phrase, phrase, phrase)
def test_a_text_contains_its_words_in_order(one: str, two: str, three: str) -> None:
    assert holds(f"{one}, {two}! {three}", two)
    assert holds(one, one.upper())


@given(st.lists(phrase, min_size=3, max_size=5, unique=True), st.sampled_from(["; ", " -> ", ", "]))
def test_orders_are_split_into_items(things: list[str], mark: str) -> None:
    assert items(mark.join(things)) == items("; ".join(things))
    assert is_order("In what order do they come?", mark.join(things))


@given(phrase, phrase, st.lists(phrase, min_size=4, max_size=4), st.integers(0, 99))
def test_options_are_shuffled_by_seed_alone(q: str, a: str, wrong: list[str], seed: int) -> None:
    draft = Draft(question=q, answer=a, decoys=tuple(wrong))
    options, index = shuffle_options(draft, seed, "id")
    assert Counter(options) == Counter((a, *wrong))
    assert options[index] == a
    assert shuffle_options(draft, seed, "id") == (options, index)


def test_answer_slots_are_even() -> None:
    draft = Draft(question="q", answer="a", decoys=("b", "c", "d", "e"))
    slots = Counter(shuffle_options(draft, 7, str(n))[1] for n in range(2000))
    assert set(slots) == set(range(5))
    assert all(330 <= n <= 470 for n in slots.values())  # 5 standard deviations around 400


@given(phrase, phrase, st.permutations(["w", "x", "y", "z"]))
def test_ids_depend_on_the_content_and_not_on_the_order_of_options(
    q: str, a: str, wrong: list[str]
) -> None:
    one = question_id("v", "r", Draft(question=q, answer=a, decoys=tuple(wrong)))
    assert one == question_id("v", "r", Draft(question=q, answer=a, decoys=("w", "x", "y", "z")))
    assert one != question_id("v2", "r", Draft(question=q, answer=a, decoys=tuple(wrong)))
    assert one != question_id("v", "r", Draft(question=q + "x", answer=a, decoys=tuple(wrong)))


def test_a_faulty_question_is_kept_with_its_reason() -> None:
    draft = Draft(question="What happens at 1:20?", answer="It burns", decoys=GOOD)
    question = finish_question(draft, video_id="v", recipe="r", question_type="Other", seed=0)
    assert question.drop == "check: a timestamp in the question"
    assert question.options[question.answer_index or 0] == "It burns"
