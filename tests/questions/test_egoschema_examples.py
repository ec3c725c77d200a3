"""EgoSchema's own example questions (supplement, 6.1 and 6.2), read from the paper where it lies
beside the checkout: the text rules must pass them, and what the blind filter takes of them is a
false drop.
"""

import asyncio
import re
from dataclasses import replace

import pytest

from actors.llm.offline import Offline
from mustsee.calls.llm import Asker
from mustsee.prompts import Prompts
from mustsee.questions.checks import fault
from mustsee.records import Question, Video
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.filters import VettingContext
from mustsee.verify.guess.filters import BlindGuess
from mustsee.verify.vetting import vet
from tests.support.egoschema import keywords
from tests.support.material import material

PAPER = "004_dcf703ff1076e9b2_egoschema_supplement.txt"
_LABEL = re.compile(r"(question|correct answer|wrong answer)\s*[\w,]*\s*:\s*(.*)", re.IGNORECASE)


def examples() -> list[Question]:
    """The six questions that the supplement shows with an answer and four wrong answers."""
    lines = material(PAPER, root="papers").read_text().splitlines()
    parts: list[list[str]] = []
    for line in (re.sub(r"^\d{3,4}\s?", "", line).strip() for line in lines):
        label = _LABEL.match(line)
        if label:
            parts.append([label[1].lower(), label[2]])
        elif parts and line and not re.match(r"\*\*|#|\d+(?:\.\d+)* [A-Z]", line):
            parts[-1][1] += f" {line}"
        elif parts and line:
            parts.append(["end", ""])
    questions: dict[str, Question] = {}
    for n in range(len(parts) - 5):
        kinds = [kind for kind, _ in parts[n : n + 6]]
        if kinds != ["question", "correct answer", *["wrong answer"] * 4]:
            continue
        text, *options = (" ".join(part.split()) for _, part in parts[n : n + 6])
        if any("disregarded" in o for o in options):
            continue
        questions[text] = Question(
            question_id=f"e{len(questions)}", video_id="v", recipe="egoschema", question=text,
            question_type="paper", options=tuple(options), answer_index=0, answer=options[0],
        )  # fmt: skip
    return list(questions.values())


def test_the_papers_examples_pass_the_text_rules() -> None:
    questions = examples()
    assert len(questions) == 6
    row = Video(video_id="v", uri="", questions=tuple(questions))
    judged = keywords()(row).questions or ()
    assert [q.drop for q in judged] == [None] * 6
    faults = [fault(q.question, q.answer, q.options[1:]) for q in questions]
    assert faults == [None] * 6


@pytest.mark.parametrize(("prompt", "ranks"), [("filters/pick", False), ("filters/blind", True)])
def test_false_drops_of_the_blind_filter_are_measured(prompt: str, ranks: bool) -> None:
    """Of thirty cases (all places of the answer) the rules drop one; chance would drop six."""
    rule = BlindGuess(
        name="blind", prompt=prompt, ranks=ranks, runs=1, min_failures=1, shuffle=False
    )
    asker = Asker(llm=Offline().open(), prompts=Prompts())
    turned = [
        replace(
            q, question_id=f"{q.question_id}{by}", answer_index=by,
            options=(*q.options[5 - by :], *q.options[: 5 - by]),
        )
        for q in examples()
        for by in range(5)
    ]  # fmt: skip
    row = Video(video_id="v", uri="", questions=tuple(turned))
    vetting = VettingContext(askers={"guesser": asker}, video_frames=VideoFrames(row))
    vetted = asyncio.run(vet(row, (rule,), vetting)).questions or ()
    assert len(vetted) == 30
    assert sum(q.drop is not None for q in vetted) == 1
