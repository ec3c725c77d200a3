"""The verifier without a model on questions without options: one answer, several, or none."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

from mustsee.calls.llm import Message, Request
from mustsee.errors import BadRow
from mustsee.offline import sight_open
from mustsee.records import Line
from tests.offline.test_sight import AT_END, card, plain, shown

LINES = tuple(
    Line(start=10.0 * n, end=10.0 * n + 4, text=text)
    for n, text in enumerate(
        ("Now we break the eggs.", "Stir them well, because lumps are no good.", "Add some milk.")
    )
)


def write_answer(
    question: str,
    images: Sequence[np.ndarray],
    *,
    times: Sequence[float] | None = None,
    lines: Sequence[Line] = (),
) -> tuple[str, str]:
    """Return the answer and the named evidence."""
    variables = {"question": question, "options": (), "lines": tuple(lines),
                 "earlier_frames": (), "earlier_lines": (),
                 "frames": tuple(times or [float(t) for t in range(len(images))])}  # fmt: skip
    message = Message("user", "", tuple(shown(images)))
    request = Request(prompt="filters/sight_open", digest="", messages=(message,),
                      variables=variables)  # fmt: skip
    text = sight_open.RULES["filters/sight_open"](request)
    parsed = re.search(r"\* EVIDENCE: (.*)\n\* LOOK: .*\n\* ANSWER: (.*)$", text)
    assert parsed, text
    return parsed[2], parsed[1]


def test_every_colour_counts_beyond_those_of_options() -> None:
    half = plain("blue")
    half[:, :160] = plain("green")[:, :160]
    dark = [plain("black")] * 3
    times = [0.0, 1, 2, 8, 9, 10]
    assert write_answer(AT_END, dark + [plain("blue")] * 3, times=times)[0] == "Blue"
    assert write_answer(AT_END, dark + [half] * 3, times=times)[0] == "SEVERAL"
    assert write_answer(AT_END, [plain("blue")] * 6, times=times)[0] == "CANNOT BE TOLD"
    assert write_answer(AT_END, [])[0] == "CANNOT BE TOLD"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is said right after “Now we break the eggs”?",
         "Stir them well, because lumps are no good"),
        ("What is said right before “Add some milk”?", "Stir them well, because lumps are no good"),
        ("What is said right after “Add some milk”?", "CANNOT BE TOLD"),
        ("What is said right after “Wash the bowl”?", "CANNOT BE TOLD"),
        ("What is the reason given for this: “Stir them well”?", "Lumps are no good"),
        ("What is the reason given for this: “Add some milk”?", "CANNOT BE TOLD"),
    ],
)  # fmt: skip
def test_answers_from_the_transcript(question: str, answer: str) -> None:
    assert write_answer(question, [plain("grey")], lines=LINES)[0] == answer


def test_a_repeated_line_has_two_neighbours() -> None:
    again = (*LINES, Line(start=40, end=44, text="Now we break the eggs."),
             Line(start=50, end=54, text="That is all."))  # fmt: skip
    question = "What is said right after “Now we break the eggs”?"
    assert write_answer(question, [plain("grey")], lines=again)[0] == "SEVERAL"


def test_answers_from_on_screen_texts() -> None:
    one, two = card("MEDIUM HEAT", "KITCHEN TIMER"), card("EGGS FROM THE FARM")
    together = "Which words are on the screen together with “MEDIUM HEAT”?"
    assert write_answer(together, [one, two])[0] == "KITCHEN TIMER"
    assert write_answer(together, [card("MEDIUM HEAT", "KITCHEN TIMER", "BREAD")])[0] == "SEVERAL"
    assert write_answer(together, [two])[0] == "CANNOT BE TOLD"
    later = "Which words come up on the screen next after “KITCHEN TIMER”?"
    assert write_answer(later, [one, two], times=[1, 9])[0] == "EGGS FROM THE FARM"
    assert write_answer(later, [one, one], times=[1, 9])[0] == "CANNOT BE TOLD"
    missing = "Which word is missing in these words on the screen: “EGGS … THE FARM”?"
    assert write_answer(missing, [one, two])[0] == "From"
    assert write_answer(missing, [one])[0] == "CANNOT BE TOLD"
    at = "Which words come up on the screen at about the time of “Now we break the eggs”?"
    assert write_answer(at, [two, one], times=[2, 60], lines=LINES)[0] == "EGGS FROM THE FARM"
    assert write_answer(at, [one, two], times=[2, 60], lines=LINES)[0] == "SEVERAL"
    assert write_answer(at, [two], times=[2])[0] == "CANNOT BE TOLD"


def test_what_was_measured_is_named_as_evidence() -> None:
    images, question = [plain("grey")] * 2, "What is said right before “Add some milk”?"
    assert write_answer(question, images, lines=LINES)[1] == "9.0-11.0; 19.0-21.0"
    assert write_answer(question, images)[1] == "NONE"


def test_answers_on_bars() -> None:
    image = plain("green")
    image[:30], image[-30:] = 0, 0
    question = "Where does the picture have black bars all through the video?"
    assert write_answer(question, [image] * 2)[0] == "Above and below"
    assert write_answer(question, [image, plain("green")])[0] == "CANNOT BE TOLD"


def test_questions_of_other_forms_get_no_verdict() -> None:
    with pytest.raises(BadRow, match="in words"):
        write_answer("Who opens the door?", [plain("grey")])
