"""`extract` reads the case list, real replies, and any reply that Hypothesis makes."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mustsee.replies.extract import choice, extract
from mustsee.replies.extract.rules import OptionReader
from mustsee.text import LETTERS
from tests.support.material import material

WORDS = ["first", "second", "third", "fourth", "fifth", "sixth"]
VIDEO = ["Mystery", "Action", "Comedy", "Romance"]
EGO = [
    "They have a friendly talk.",
    "C and the woman quarrel about the dishes.",
    "C ignores the woman.",
    "The woman leaves C alone.",
]


def test_the_case_list() -> None:
    lines = material("mcq_cases.jsonl", root="spec").read_text().splitlines()
    wrong = []
    for case in map(json.loads, lines):
        got = extract(case["response"], case["options"])
        if got.letter != case["expected"]:
            wrong.append((case["response"], case["expected"], got))
    assert len(lines) == 65
    assert wrong == []


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("The answer is\nA", "A"),
        ("B. I think that is it", "B"),
        ("Therefore, B is correct", "B"),
        ("I'd go with B", "B"),
        ("the most probable answer is B", "B"),
        ("The answer to the question is B.", "B"),
        ("Answer: b) second", "B"),
        ("答案是B", "B"),
        ("故选B", "B"),
        ("answer：B", "B"),
        ("reasoning that ends</think>\nB", "B"),
        ("B</s><s>user: is it A?", "B"),
        ('{"answer": "B", "reason": "the', "B"),
        ('{"reason": "A is wrong", "answer": "C"}', "C"),
        (r"\boxed{\text{(C)}}", "C"),
        (r"\boxed{third}", "C"),
        ("A. first\nB. second\nC. third\nD. fourth\n\nB", "B"),
        ("The answer could be A or B, but I would choose B.", "B"),
        ("Between A and C, C is better, so the answer is C.", "C"),
        ("Neither A nor B is correct; the answer is D", "D"),
        ("Answer: A. No, wait, it's C.", "C"),
        ("The correct answer is B, not A.", "B"),
        ("A or B", None),
        ("Both A and B", None),
        ("A, B", None),
        ("The answer is either A or B", None),
        ("A is incorrect", None),
        ("I don't think it's A.", None),
        ("I do not believe the answer is A.", None),
        ("The answer is neither A nor B", None),
        ("The answer is B. Actually the answer is not B.", None),
        ("A man is walking", None),
        ("The answer is a man with a hat", None),
        ("ANSWER: Caffeine", None),
        ("Vitamin C is important", None),
        ("Maybe A?", None),
        ("C) fourth", None),
        ("A. first: incorrect\nB. second: correct", None),
        ("Option A shows a fight.", None),
        ("Which is correct: A, B, C or D?", None),
        ("Answer: G", None),
        ("2", None),
    ],
)
def test_more_replies(reply: str, letter: str | None) -> None:
    assert extract(reply, WORDS).letter == letter


@pytest.mark.parametrize("name", ["explained", "languages", "reworded"])
def test_replies_that_explain_themselves(name: str) -> None:
    """Replies of models that were not asked for a bare letter, in several languages."""
    lines = Path(__file__).with_name(f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    for case in map(json.loads, lines):
        got = extract(case["response"], case["options"])
        assert got.letter == case["expected"], (case["response"], got)


def test_the_table_of_rules_lists_them_in_the_order_in_which_they_run() -> None:
    rows = re.findall(r"^ {4}\d+\. (\w+) +\S", choice.__doc__ or "", re.MULTILINE)
    assert rows == [rule.__name__ for rule in choice.RULES]


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        ("Slow motion.", "whole_option_text"),
        ("(B)", "lone_label"),
        ("C > A > B", "ranking"),
        ("A (10%), B (85%), C (5%)", "shares"),
        ("A ✗ B ✓ C ✗", "marked_list"),
        ("[ ] A / [x] B / [ ] C", "marked_list"),
        ("The answer is B.", "declaration"),
        ("It is not A or C, but B.", "declaration"),
        ("B. slow motion ✓", "ticked_line"),
        ("Caption B: a slow clip", "leading_label"),
        ("B because the drops hang in the air", "leading_label"),
        ("It plays in slow motion. There is no sign of a time-lapse.", "named_option"),
    ],
)
def test_each_rule_reads_the_form_that_the_table_shows(reply: str, rule: str) -> None:
    reader = OptionReader(("normal speed", "slow motion", "a time-lapse"), None)
    assert next(r.__name__ for r in choice.RULES if r(reader, reply) is not None) == rule


COLOURS = ["red", "blue", "green"]


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("A ✗ B ✓ C ✗", "B"),
        ("✗ A ✓ B ✗ C", "B"),
        ("A. red ✗ B. blue ✓ C. green ✗", "B"),
        ("[ ] A / [x] B / [ ] C", "B"),
        ("- [ ] A. red\n- [x] B. blue\n- [ ] C. green", "B"),
        ("❌ A\n✅ B\n❌ C", "B"),
        ("A ✓ B ✗ C ✗. But the answer is C.", "C"),
        ("A ✗ B ✓ C ✓", None),
        ("A ✗ B ✗ C ✗", None),
        ("A no ✗ B yes ✓ C no ✗", None),
        ("A ✗ B ✓ C", None),
    ],
)
def test_a_tick_counts_for_the_option_that_it_stands_beside(reply: str, letter: str | None) -> None:
    assert extract(reply, COLOURS).letter == letter


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("A (10%), B (85%), C (5%)", "B"),
        ("Answer: A (10%), B (85%), C (5%)", "B"),
        ("10% A, 85% B, 5% C", "B"),
        ("A. red: 10%\nB. blue: 12.5 %\nC. green: 5%", "B"),
        ("| A | 10% |\n| B | 85% |\n| C | 5% |", "B"),
        ("A (10%), B (85%)", "B"),
        ("A (40%), B (35%), C (25%). On reflection I choose B.", "B"),
        ("I choose C. A (10%), B (85%), C (5%)", "C"),
        ("A (10%), B (45%), C (45%)", None),
        ("A (10%), B (25%)", None),
        ("A (10%), B (85%), C (5%), A (90%)", None),
        ("A (85%)", "A"),
    ],
)
def test_the_highest_stated_share_is_the_answer(reply: str, letter: str | None) -> None:
    assert extract(reply, COLOURS).letter == letter


def test_percentages_that_are_options_are_not_shares() -> None:
    options = ["10%", "85%", "5%"]
    assert extract("A. 10% B. 85% C. 5%", options).rule != "share"
    assert extract("A. 10%\nB. 85%\nC. 5%\nThe answer is A.", options).letter == "A"


@given(
    st.lists(st.integers(0, 100), min_size=2, max_size=6),
    st.sampled_from(["{} ({}%)", "{}: {}%", "{} = {} %", "({}) {}%"]),
    st.sampled_from([", ", "; ", "\n", " / "]),
)
def test_shares_in_any_form_give_their_only_maximum(
    shares: list[int], form: str, joined: str
) -> None:
    reply = joined.join(form.format(LETTERS[i], share) for i, share in enumerate(shares))
    best = [LETTERS[i] for i, share in enumerate(shares) if share == max(shares)]
    options = [f"it is number {i} of the things" for i in range(len(shares))]
    assert extract(reply, options).letter == (best[0] if len(best) == 1 else None)


@given(
    st.permutations(["climbing", "swimming a length", "slow-motion running", "cycling"]),
    st.sampled_from(["There is no sign of {}.", "It is not {}.", "It would look other than {}."]),
    st.integers(0, 3),
)
def test_options_that_the_rest_of_a_reply_denies_are_not_its_answer(
    options: list[str], against: str, index: int
) -> None:
    others = " ".join(against.format(o) for i, o in enumerate(options) if i != index)
    reply = f"The man in the video is {options[index]}. {others}"
    assert extract(reply, options).letter == LETTERS[index]
    assert extract(others, options).letter is None


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("C and the woman quarrel about the dishes", "B"),
        ("C and the woman quarrel", "B"),
        ("The answer is C and the woman quarrel about the dishes.", "B"),
        ("C walks to the woman", None),
        ("C is cleaning the kitchen.", None),
        ("C was likely cooking all the time.", None),
        ("C is the best option, since the woman leaves.", "C"),
        ("C is correct.", "C"),
        ("C because the woman leaves", "C"),
        ("The answer is C.", "C"),
        ("C", "C"),
        ("C. C ignores the woman.", "C"),
        ("C. C and the woman quarrel about the dishes.", None),
    ],
)
def test_the_camera_wearer_is_not_a_letter(reply: str, letter: str | None) -> None:
    assert extract(reply, EGO).letter == letter


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("The coat is not red", None),
        ("Red, not blue", "A"),
        ("dark red", "C"),
        ("red or blue", None),
        ("I'm sorry, I cannot see whether it is red.", None),
        ("Outside it is red (B)", None),
    ],
)
def test_option_text(reply: str, letter: str | None) -> None:
    assert extract(reply, ["Red", "Blue", "Dark red"]).letter == letter


def test_numbers_are_labels_only_where_the_prompt_used_them() -> None:
    options = ["the tall man", "the child"]
    assert extract("Option 2", options).letter is None
    assert extract("Option 2", options, digits=1).letter == "B"
    assert extract("1", options, digits=0).letter == "B"
    assert extract("Option 2: the tall man", options, digits=1).letter is None
    assert extract("The answer is 3.", options, digits=1).rule == "out of range"


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("(C) 2", None),
        ("Best option: (C) 2.", None),
        ("Best option: (B) 2", "B"),
        ("B\n\n1. First the man walks.", "B"),
        ("It looks like 3 at first. The answer is 2.", "B"),
        ("2", "B"),
        ("2.5", None),
    ],
)
def test_options_of_a_counting_question(reply: str, letter: str | None) -> None:
    assert extract(reply, ["3", "2", "5", "1"]).letter == letter


@pytest.mark.parametrize("value", ["9" * 5000, '{"n":' * 1500, "[" * 5000])
def test_an_object_that_python_cannot_parse_is_text(value: str) -> None:
    assert extract('{"answer": ' + value, ["a dog", "a cat"]).letter is None
    assert extract('{"n": ' + value + "}\nThe answer is B.", ["a dog", "a cat"]).letter == "B"


def test_options_that_are_letters_themselves() -> None:
    assert extract("A", ["A", "B"]).letter == "A"
    assert extract("A", ["B", "A"]).ambiguous
    with pytest.raises(ValueError, match="0 options"):
        extract("A", [])


WRAPPINGS = """{}
({})
{}.
{})
[{}]
<{}>
**{}**
`{}`
'{}'
${}$
\\boxed{{{}}}
<answer>{}</answer>
<answer> ({}) </answer>
{}</s>
{}<|im_end|>
Answer: {}
ANSWER: ({})
**Answer:** {}
Answer: **{}**
The answer is {}.
the correct answer is ({}).
Best option: ({}
Final answer: {}
Option {}
My answer is option {}.
I choose {}.
So the answer is \\boxed{{{}}}.
<think>It may be A or B.</think>{}
{}, because of the light.
{}: the man says so.
It's not clear at first, but the answer is {}.
{} is correct.
Option ({}) is the best answer.""".splitlines()
JSONS = [
    '{{"answer": "{}"}}',
    '```json\n{{"choice": "{}"}}\n```',
    '{{"reason": "x", "answer": "({})"}}',
]


@given(
    st.integers(2, 10).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))),
    st.sampled_from(WRAPPINGS + JSONS),
    st.booleans(),
)
def test_a_wrapped_letter_is_read(question: tuple[int, int], wrapping: str, spaced: bool) -> None:
    count, index = question
    options = [f"it is number {i} of the things" for i in range(count)]
    reply = wrapping.format(LETTERS[index])
    reply = f"\n  {reply}\n" if spaced else reply
    assert extract(reply, options).letter == LETTERS[index]


PLAIN = st.lists(
    st.sampled_from(
        re.split(
            " ",
            "the man a woman walks I see in video an answers question they choose dog because no "
            "A C talking about best day it is so we think option house correct light, and. or then",
        )
    ),
    max_size=25,
).map(" ".join)
LETTER_ALONE = re.compile(r"(?<![A-Za-z])[A-Z](?![A-Za-z])")


@given(st.text(max_size=80))
@settings(max_examples=300)
def test_any_text_is_read_without_error_and_gives_a_letter_of_the_question(reply: str) -> None:
    got = extract(reply, ["zebra crossing", "quantum field"])
    assert got.letter in (None, "A", "B")
    assert got == extract(reply, ["zebra crossing", "quantum field"])


@given(PLAIN)
def test_prose_without_a_label_gives_no_letter(reply: str) -> None:
    prose = LETTER_ALONE.sub("a", reply)
    got = extract(prose.replace(" a ", " one ") + " today", ["zebra crossing", "quantum field"])
    assert got.letter is None


@given(st.permutations(VIDEO), st.sampled_from(VIDEO))
def test_option_text_gives_the_letter_of_its_place(options: list[str], text: str) -> None:
    for reply in (text, f"It is a {text.lower()} video.", f"The answer is {text}."):
        assert extract(reply, options).letter == LETTERS[options.index(text)]


def _tempcompass(model: str, task: str) -> Counter[str]:
    """Compare `extract` on raw replies with the published automatic judgement."""
    folder = "model_outputs/llyx97+TempCompass/auto_eval_results"
    counts: Counter[str] = Counter()
    label = re.compile(r"(?:\w+ )?([A-Z]|\d)[.:]\s*(.*)")
    for video in json.loads(material(f"{folder}/{model}/{task}.json").read_text()).values():
        for item in (q for dimension in video.values() for q in dimension):
            lines = [m for m in map(label.fullmatch, item["question"].split("\n")[1:]) if m]
            counts["n"] += 1
            if item["video-llm-prediction"] is None:
                counts["failed"] += 1
                counts["agree"] += item["rating"] == 0
                continue
            got = extract(
                item["video-llm-prediction"],
                [m[2] for m in lines],
                digits=1 if lines[0][1].isdigit() else None,
            )
            counts["unparsed"] += got.letter is None
            right = [i for i, m in enumerate(lines) if m[0].strip() == item["gt-answer"].strip()]
            correct = got.letter is not None and LETTERS.index(got.letter) in right
            counts["agree"] += int(correct) == item["rating"]
    return counts


@pytest.mark.parametrize(
    ("model", "task", "n", "unparsed", "disagree"),
    [
        ("gemini", "multi-choice", 1580, 3, 1),
        ("gemini", "caption_matching", 1503, 5, 0),
        ("video-llava", "multi-choice", 1580, 0, 0),
        ("video-llava", "caption_matching", 1503, 3, 1),
    ],
)
def test_real_replies_agree_with_the_published_judgement(
    model: str, task: str, n: int, unparsed: int, disagree: int
) -> None:
    counts = _tempcompass(model, task)
    assert counts["n"] == n
    assert counts["unparsed"] <= unparsed
    assert n - counts["agree"] <= disagree
