"""Open-ended twins: accepted and refused wordings, and drops by the judge."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from mustsee.calls.llm import Asker, Reply, Request
from mustsee.enrich import twins
from mustsee.enrich.twins import Wording, twin, twin_form
from mustsee.errors import Unparsed
from mustsee.offline.enrich import RULES
from mustsee.prompts import Prompts
from mustsee.records import Question, ScreenText, Video
from tests.support.verifier import question, row

WRONG = ("green", "blue", "yellow", "purple")
SAID = "QUESTION: What colour has the kite?\nANSWER: red\nALSO RIGHT: scarlet\nALSO RIGHT: Red."
FORM = twin_form(WRONG)


@dataclass
class Writer:
    """A model with prepared replies."""

    reply: str | Callable[[Request], str]
    asked: list[Request] = field(default_factory=list)
    identity: str = "writer"

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        text = self.reply if isinstance(self.reply, str) else self.reply(request)
        return Reply(text=text, model="writer")


async def alike(asked: str, candidate: str, references: tuple[str, ...]) -> bool:
    return candidate in references or (candidate == "scarlet" and "red" in references)


def make_twin(
    reply: str | Callable[[Request], str],
    source: Question | None = None,
    video: Video | None = None,
) -> tuple[Question | None, Counter[str]]:
    counted = Counter[str]()
    asker = Asker(llm=Writer(reply), prompts=Prompts(), tries=2)
    found = twin(source or question(), video or row(), asker, alike,
                 count=lambda name, n: counted.update({name: n}))  # fmt: skip
    return asyncio.run(found), counted


def test_a_twin_is_a_new_question_that_names_its_sibling() -> None:
    source = question(subsets=("mma", "train"), metrics={"reach_seconds": 3.0, "sight_right": 1.0})
    found, counted = make_twin(SAID, source)
    assert found is not None
    assert (found.options, found.answer_index, found.drop) == ((), None, None)
    assert (found.sibling_of, found.relation) == ("q", "open")
    assert (found.question, found.references) == ("What colour has the kite?", ("red", "scarlet"))
    assert found.question_id != source.question_id
    assert (found.evidence, found.question_type) == (source.evidence, source.question_type)
    assert (found.subsets, dict(found.metrics), found.verdicts) == (
        ("train",),
        {"reach_seconds": 3},
        (),
    )
    assert not counted


def test_variants_and_twins_that_the_judge_cannot_grade_are_left_out() -> None:
    found, counted = make_twin(SAID + "\nALSO RIGHT: crimson")
    assert found is not None
    assert found.variants == ("scarlet",)
    assert counted == {twins.UNLIKE: 1}
    likely = question(options=("red", "scarlet", "blue"), answer_index=0)
    assert make_twin(SAID, likely)[0] is None  # one of the wrong answers: sent back, no other came
    taken, _ = make_twin(SAID.replace("ALSO RIGHT: scarlet\n", ""), likely)
    assert taken is not None
    assert taken.drop == "judge: 'scarlet' is taken for the answer"


def test_a_question_without_a_twin_is_counted() -> None:
    for reply in (
        "NONE",
        "I cannot help with that.",
        '{"question": "NONE", "answer": "", "also_right": []}',
    ):
        found, counted = make_twin(reply)
        assert found is None
        assert counted == {twins.WITHOUT: 1}


def test_text_and_json_replies_parse_to_the_same() -> None:
    meant = Wording(question="What colour has the kite?", answer="red", variants=("scarlet",))
    said = {"question": meant.question, "answer": "red", "also_right": ["scarlet", "Red."]}
    bold = "Sure!\r\n" + SAID.replace("\n", "\r\n").replace("QUESTION:", "**QUESTION:**")
    assert FORM.read(SAID) == FORM.read(json.dumps(said)) == FORM.read(bold) == meant
    assert FORM.read(
        "QUESTION: What colour has the kite?\nANSWER: red\nALSO RIGHT: none"
    ) == replace(meant, variants=())


@pytest.mark.parametrize(
    ("question_", "answer", "reason"),
    [
        ("Which of these colours has the kite?", "red", "leans on options: 'Which of these'"),
        ("Which of the following does the kite have?", "red", "leans"),
        ("What is the kite's colour, of those listed below?", "red", "leans"),
        ("What colour is the red kite?", "red", "gives away"),
        ("In what order come a rope, a hook and a kite?", "A kite; a hook; a rope", "all words of"),
        ("What colour has the kite?", "green", "'green' is one of the wrong answers"),
        ("What colour has the kite at 1:05?", "red", "timestamp"),
        ("What colour has the kite?", "", "no line of the form 'ANSWER"),
        ("What happens?", "red " * 61, "more than 60 words"),
    ],
)
def test_a_faulty_wording_is_sent_back(question_: str, answer: str, reason: str) -> None:
    with pytest.raises(Unparsed, match=reason):
        FORM.read(f"QUESTION: {question_}\nANSWER: {answer}")


def test_a_variant_may_not_be_a_wrong_answer() -> None:
    with pytest.raises(Unparsed, match="'Blue' is one of the wrong answers"):
        FORM.read(SAID + "\nALSO RIGHT: Blue")


def mcq(text: str, answer: str, *wrong: str) -> Question:
    return question(question=text, options=(answer, *wrong), answer=answer, answer_index=0)


CARDS = tuple(
    ScreenText(time=t, text=text, score=0.95)
    for t, text in ((1.0, "PANCAKES"), (8.0, "MILK"), (8.2, "MlLK"), (9.0, "EGGS"), (30.0, "HEAT"))
)


@pytest.mark.parametrize(
    ("source", "twin_"),
    [
        (mcq("What is said right after “Here it goes”?", "There it went", "No"), None),
        (mcq("Which colour fills a large part of the picture at the end of the video, but not at "
               "the beginning?", "Green", "Blue"), None),
        (mcq("Which word is missing in these words on the screen: “EGGS … THE FARM”?", "From",
               "Over"), None),
        (mcq("Which of these words are on the screen together with “MILK”?", "EGGS", "HEAT"),
         "Which words are on the screen together with “MILK”?"),
        (mcq("Which of these words come up on the screen soonest after “EGGS”?", "HEAT", "MILK"),
         "Which words come up on the screen next after “EGGS”?"),
        (mcq("Which of these words come up on the screen soonest after “PANCAKES”?", "MILK",
               "HEAT"), ""),  # eggs come up a second later: too near to separate
        (mcq("Which of these words come up on the screen soonest after “PANCAKES”?", "HEAT",
               "TIMER"), ""),  # the soonest of those named, not of all
        (mcq("Which of these words come up on the screen first?", "PANCAKES", "MILK"), ""),
        (mcq("When can the words “MILK” be read on the screen?", "Only in the first half", "All "
               "through"), ""),
        (mcq("In what order do these words come up on the screen: “B”; “A”; “C”?",
               "“A”; “B”; “C”", "“C”; “B”; “A”"), ""),
        (mcq("What does the cook do to the eggs?", "Break them", "Boil them"), ""),
    ],
)  # fmt: skip
def test_rules_make_a_twin_only_if_it_is_certain(source: Question, twin_: str | None) -> None:
    """`expected`: None for the question's own wording, empty for no twin."""
    video = replace(row(), texts=CARDS)
    request = Request(prompt="enrich/twin", digest="", messages=(),
                      variables={"question": source, "video": video})  # fmt: skip
    reply = RULES["enrich/twin"](request)
    if twin_ == "":
        assert reply == "NONE"
    else:
        assert reply == f"QUESTION: {twin_ or source.question}\nANSWER: {source.answer}"
        wrong = [o for o in source.options if o != source.answer]
        assert twin_form(wrong).read(reply) is not None


def test_questions_about_bars_are_reworded_in_twins() -> None:
    source = mcq("Where does the picture have black bars all through the video?", "Above and "
                   "below", "Only below")  # fmt: skip
    request = Request(prompt="enrich/twin", digest="", messages=(),
                      variables={"question": source, "video": row()})  # fmt: skip
    reply = RULES["enrich/twin"](request)
    assert reply.endswith("ALSO RIGHT: At the top and at the bottom")
