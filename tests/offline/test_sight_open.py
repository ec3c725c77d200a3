"""The verifier without a model on questions without options: one answer, several, or none."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

from mustsee.calls.llm import Message, Request
from mustsee.errors import BadRow
from mustsee.offline import sight
from mustsee.records import Line
from tests.offline.test_sight import AFTER, BLUE, LINES, RED, SAID, card, colours, plain, shown


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
                 "frames": tuple(times or [3.0 * t for t in range(len(images))])}  # fmt: skip
    message = Message("user", "", tuple(shown(images)))
    request = Request(prompt="filters/sight_open", digest="", messages=(message,),
                      variables=variables)  # fmt: skip
    text = sight.RULES["filters/sight_open"](request)
    parsed = re.search(r"\* EVIDENCE: (.*)\n\* LOOK: .*\n\* ANSWER: (.*)$", text)
    assert parsed, text
    return parsed[2], parsed[1]


def test_every_state_counts() -> None:
    half = plain("blue")
    half[:, :160] = plain("green")[:, :160]
    assert write_answer(AFTER, colours("red", "blue"))[0] == BLUE
    assert write_answer(AFTER, [plain("red"), half])[0] == "SEVERAL"
    assert write_answer(AFTER, colours("red", "grey"))[0] == "CANNOT BE TOLD"
    assert write_answer(AFTER, [])[0] == "CANNOT BE TOLD"


def test_answers_from_the_transcript() -> None:
    question = f"What is said when {RED}?"
    images, times = colours("grey", "red", "grey"), [0.5, 2.5, 4.5]
    answer, evidence = write_answer(question, images, times=times, lines=LINES)
    assert answer == SAID[1]
    assert evidence == "1.0-3.5"
    assert write_answer(question, images, times=times) == ("CANNOT BE TOLD", "NONE")


def test_answers_from_on_screen_texts() -> None:
    pytest.importorskip("rapidocr")
    question = f"Which words are seen while this is said: {SAID[1]}?"
    eggs, times = card("EGGS FROM THE FARM"), [0.0, 2.5]

    def read(*images: np.ndarray) -> str:
        return write_answer(question, images, times=times, lines=LINES)[0]

    assert read(card("MEDIUM HEAT"), eggs) == "the words “EGGS FROM THE FARM”"
    assert read(eggs, card("BREAD", "BUTTER")) == "SEVERAL"
    assert read(eggs, plain("grey")) == "CANNOT BE TOLD"


@pytest.mark.parametrize("question", ["Who opens the door?", f"Who is seen next after {RED}?"])
def test_questions_of_other_forms_get_no_verdict(question: str) -> None:
    with pytest.raises(BadRow, match="in words"):
        write_answer(question, [plain("grey")])
