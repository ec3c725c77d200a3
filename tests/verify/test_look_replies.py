"""Replies of the verifier: strict, and the same in lines and in JSON, as of all forms."""

from collections.abc import Sequence
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import Unparsed
from mustsee.records import Span
from mustsee.text import LETTERS
from mustsee.verify.look_replies import (
    CANNOT,
    HOLDS,
    NO_OPTION,
    OPEN,
    PREMISE,
    RIGHT,
    SEVERAL,
    WRONG,
    OptionVerdict,
    decide,
    look_form,
    named_in,
    say,
)

VERDICTS = st.lists(st.sampled_from((RIGHT, WRONG, OPEN)), min_size=2, max_size=8)


def options_of(verdicts: Sequence[str]) -> list[OptionVerdict]:
    """Return the verdicts with a stretch of its own for each that is not WRONG."""
    return [
        OptionVerdict(verdict, () if verdict == WRONG else (Span(10.0 * n, 10.0 * n + 2),))
        for n, verdict in zip(count(1), verdicts, strict=False)
    ]


@given(VERDICTS, st.sampled_from((HOLDS, OPEN, "holds.", "There are four birds")))
def test_verdicts_come_to_one_choice(verdicts: Sequence[str], premise: str) -> None:
    options = options_of(verdicts)
    look = decide(options, premise)
    right = [n for n, verdict in enumerate(verdicts) if verdict == RIGHT]
    if premise.startswith("There"):
        assert (look.choice, look.words) == (PREMISE, premise)
    elif len(right) > 1:
        assert look.choice == SEVERAL
    elif right:
        assert look.choice == right[0]
    else:
        assert look.choice == (CANNOT if OPEN in verdicts else NO_OPTION)
    assert look.evidence == tuple(s for n in right for s in options[n].spans)
    assert look.where == tuple(s for o in options if o.verdict == OPEN for s in o.spans)
    assert look_form(len(options)).read(say(options, "so", premise)) == look
    assert named_in(say(options, "so", premise)) == tuple(s for o in options for s in o.spans)


@given(
    VERDICTS,
    st.sampled_from(["* OPTION {}: {} {}", "**OPTION {}:** {} ({})", "Option {}: {}, {}",
                     "> option {} = {}: {} s", "- ({}): {} [{}]", "{}: {} {}"]),
    st.sampled_from(["* PREMISE: HOLDS", "**PREMISE:** **OPEN**", "Premise: Holds."]),
    st.booleans(),
)  # fmt: skip
def test_looks_in_common_forms_are_parsed(
    verdicts: Sequence[str], line: str, premise: str, lower: bool
) -> None:
    options = options_of(verdicts)
    lines = [
        line.format(
            letter,
            option.verdict.lower() if lower else option.verdict,
            "; ".join(f"{s.start}-{s.end}" for s in option.spans),
        )
        for letter, option in zip(LETTERS, options, strict=False)
    ]
    reply = "\n".join(("Sure!", "* SEEN: it is red.", premise, *lines, "", "Let me know!"))
    assert look_form(len(options)).read(reply) == decide(options, HOLDS)


HEAD = "* SEEN: so\n* PREMISE: HOLDS\n"
THREE = "* OPTION A: RIGHT 1-2\n* OPTION B: WRONG\n* OPTION C: OPEN"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (f"{HEAD}* OPTION A: RIGHT 1-2\n* OPTION C: WRONG", "no line .* OPTION B"),
        (f"{HEAD}{THREE}\n* OPTION A: WRONG", "different lines .* OPTION A"),
        (f"{HEAD}{THREE}\n* OPTION D: WRONG", "D is no option"),
        (f"{HEAD}* OPTION A: RIGHT\n* OPTION B: WRONG\n* OPTION C: OPEN", "names no stretch"),
        (f"{HEAD}* OPTION A: perhaps\n* OPTION B: WRONG\n* OPTION C: OPEN", "has none of"),
        (f"{HEAD}* OPTION A: NOT RIGHT\n* OPTION B: WRONG\n* OPTION C: OPEN", "has none of"),
        (f"{HEAD}* OPTION A: RIGHTLY 1-2\n* OPTION B: WRONG\n* OPTION C: OPEN", "has none of"),
        (f"* SEEN: so\n{THREE}", "no line .* PREMISE"),
        (f"* SEEN: so\n* PREMISE:\n{THREE}", "PREMISE|premise"),
        (f"{HEAD}* OPTION A:\n* OPTION B: RIGHT 1-2\n* OPTION C: WRONG", "OPTION A"),
        (f"{HEAD}* PREMISE: there are four\n{THREE}", "lines .* PREMISE"),
        ("* ANSWER: A\n* EVIDENCE: 1-2", "no line .* OPTION A"),
        ("A", "no line"),
        ("", "no line"),
    ],
)
def test_invalid_looks_are_refused(reply: str, reason: str) -> None:
    with pytest.raises(Unparsed, match=reason):
        look_form(3).read(reply)


def test_equal_lines_of_an_option_count_once() -> None:
    assert look_form(3).read(f"{HEAD}{THREE}\n\n{HEAD}{THREE}").choice == 0


@given(
    st.sampled_from(["It is red.", "cannot be told", "**CANNOT BE TOLD**", "SEVERAL", "Several."])
)
def test_an_answer_in_words_is_parsed(words: str) -> None:
    look = look_form(0).read(f"{HEAD}* EVIDENCE: 1-2\n* LOOK: NONE\n* ANSWER: {words}")
    said = {"i": 0, "c": CANNOT, "s": SEVERAL}[words.strip("*").lower()[0]]
    assert (look.choice, look.words) == (said, words.strip("*"))
    reply = f"* PREMISE: four\n* EVIDENCE: 1-2\n* LOOK: NONE\n* ANSWER: {words}"
    assert (look_form(0).read(reply).choice, look_form(0).read(reply).words) == (PREMISE, "four")


@pytest.mark.parametrize(
    "reply",
    [
        f"{HEAD}* EVIDENCE: 1-2\n* LOOK: NONE",
        f"{HEAD}* EVIDENCE: 1-2\n* LOOK: NONE\n* ANSWER: red\n* ANSWER: blue",
        f"{HEAD}* LOOK: NONE\n* ANSWER: red",  # it does not say what that rests on
        f"{HEAD}* EVIDENCE:\n* LOOK: 1-2\n* ANSWER: red",
        f"{HEAD}* EVIDENCE: all along\n* LOOK: NONE\n* ANSWER: red",
        f"{HEAD}* EVIDENCE: NONE\n* ANSWER: CANNOT BE TOLD",  # nor where one would have to look
        "* EVIDENCE: 1-2\n* LOOK: NONE\n* ANSWER: red",
    ],
)
def test_invalid_answers_in_words_are_refused(reply: str) -> None:
    with pytest.raises(Unparsed):
        look_form(0).read(reply)


@given(st.integers(0, 3), st.text())
def test_any_text_is_parsed_or_refused(options: int, text: str) -> None:
    try:
        look = look_form(options).read(text)
    except Unparsed:
        return
    assert look.choice in (0, 1, 2, CANNOT, SEVERAL, NO_OPTION, PREMISE)
