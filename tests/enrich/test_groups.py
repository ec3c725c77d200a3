"""Consistency groups: accepted and refused siblings, and those that rules write."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from mustsee.calls.llm import Asker, Request
from mustsee.enrich import groups
from mustsee.enrich.groups import GroupSettings, related_form, siblings
from mustsee.errors import Unparsed, UserError
from mustsee.offline import sight
from mustsee.offline.enrich import RULES
from mustsee.offline.paraphrases import PAIRS, canonical, forwards, paraphrase, reversed_order
from mustsee.prompts import Prompts
from mustsee.questions.checks import fault
from mustsee.records import Line, Question, Span, Video
from mustsee.verify.vetting import ignore_count
from tests.enrich.test_twins import Writer, mcq
from tests.support.verifier import OPTIONS, SCENE, Stills, question, row

WRONG = OPTIONS[1:]
HERE = f"{SCENE.start}-{SCENE.end}"


def draft(kind: str, text: str, answer: str, wrong: Sequence[str], evidence: str = HERE) -> str:
    lines = [f"WRONG ANSWER {n}: {w}" for n, w in enumerate(wrong, 1)]
    return "\n".join((f"QUESTION 1: ({kind}) {text}", f"CORRECT ANSWER: {answer}", *lines,
                      f"EVIDENCE: {evidence}"))  # fmt: skip


PARAPHRASE = draft("paraphrase", "Of what colour is what flies?", "red", WRONG)
OPPOSITE = draft("Opposite", "Which colour does the kite lack, of all its tail's?", "green",
                ("red", "blue", "yellow", "purple"))  # fmt: skip
LATER = draft("consequence", "What colour has the kite's shadow in the end?", "blue",
             ("red", "green", "yellow", "purple"), f"{HERE}; 200.0-212.0")  # fmt: skip
ALL = "\n\n".join((PARAPHRASE, OPPOSITE, LATER))


def make_siblings(reply: str, most: int = 3) -> tuple[list[Question], Counter[str], Writer]:
    counted, writer, video = Counter[str](), Writer(reply), row()
    asker = Asker(llm=writer, prompts=Prompts(), tries=2)
    found = siblings(
        question(subsets=("mma", "test")), video, asker, GroupSettings(most=most), Stills(video),
        count=lambda name, n: counted.update({name: n}),
    )  # fmt: skip
    return asyncio.run(found), counted, writer


def test_siblings_belong_to_the_questions_group() -> None:
    found, counted, writer = make_siblings(ALL)
    assert [q.relation for q in found] == list(groups.RELATIONS)
    assert {q.group for q in found} == {q.sibling_of for q in found} == {"q"}
    assert {q.subsets for q in found} == {("test",)}
    assert [q.answer for q in found] == ["red", "green", "blue"]
    assert all(q.options[q.answer_index or 0] == q.answer and q.drop is None for q in found)
    assert found[2].evidence == (SCENE, Span(200.0, 212.0))
    assert len({q.question_id for q in found}) == 3
    assert not counted
    (request,) = writer.asked
    assert len(request.messages[-1].images) > 12  # of the video, and of the evidence
    assert len(make_siblings(ALL, most=2)[0]) == 2


def test_a_video_of_unknown_length_does_not_fail_the_row() -> None:
    video = replace(row(), duration=None)
    asker = Asker(llm=Writer(ALL), prompts=Prompts())
    made_ = siblings(
        question(), video, asker, GroupSettings(most=3), Stills(video), count=ignore_count
    )
    assert asyncio.run(made_) == []


def test_a_question_without_siblings_is_counted() -> None:
    for reply in ("NONE", "I'd rather not.", '{"questions": []}'):
        found, counted, _ = make_siblings(reply)
        assert (found, counted) == ([], {groups.WITHOUT: 1})


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (draft("other", "Is it red?", "red", WRONG), "one of paraphrase, opposite, consequence"),
        (f"{PARAPHRASE}\n\n{PARAPHRASE}", "two questions of one kind"),
        (draft("paraphrase", "Which colour is the kite?", "red", WRONG), "worded as the question"),
        (draft("paraphrase", "Of what hue is the kite?", "green", ("red", *WRONG[1:])), "its ans"),
        (draft("paraphrase", "Of what hue is the kite?", "red", (*WRONG[1:], "pink")), "answers"),
        (draft("opposite", "What does it lack?", "green", ("red", "blue", "pink")), "3 wrong"),
        (draft("opposite", "What does it lack?", "green", ("red", "blue", "pink", "tan"),
              "200-212"), "nothing of the question's"),
        (draft("consequence", "What falls?", "rain", ("snow", "hail", "fog", "dew")), "go on"),
        (draft("consequence", "What falls at 1:05?", "rain", ("snow", "hail", "fog", "dew")),
         "timestamp"),
    ],
)  # fmt: skip
def test_faulty_siblings_are_sent_back(reply: str, reason: str) -> None:
    with pytest.raises(Unparsed, match=reason):
        related_form(question(), WRONG, 3).read(reply)


def test_text_and_json_replies_parse_to_the_same() -> None:
    wrong = {f"wrong_answer_{n}": w for n, w in enumerate(WRONG, 1)}
    said = {"questions": [{"kind": "paraphrase", "question": "Of what colour is what flies?",
                           "correct_answer": "red", **wrong,
                           "evidence": [{"start": SCENE.start, "end": SCENE.end}]}]}  # fmt: skip
    form = related_form(question(), WRONG, 3)
    assert form.read(json.dumps(said)) == form.read(PARAPHRASE)


def test_more_than_three_are_refused() -> None:
    with pytest.raises(UserError, match=r"enrich\.groups\.most=4"):
        GroupSettings(most=4)


def ruled(source: Question, lines: Sequence[Line] = (), most: int = 3) -> list[Question]:
    """Return the siblings that rules write, parsed as a model's reply."""
    wrong = tuple(o for o in source.options if o != source.answer)
    video = Video(video_id="v", uri="v.mp4", duration=300.0, lines=tuple(lines))
    request = Request(prompt="enrich/group", digest="", messages=(), variables={
        "question": source, "video": video, "wrong": wrong, "most": most})  # fmt: skip
    reply = RULES["enrich/group"](request)
    drafts = related_form(source, wrong, most).read(reply)
    return [question(question=d.question, answer=d.answer, options=(d.answer, *d.decoys),
                     relation=d.tag) for d in drafts]  # fmt: skip


ORDER = mcq(
    "In what order do these words come up on the screen: “Y”; “Z”; “X”?", "“X”; “Y”; “Z”",
    "“Y”; “X”; “Z”", "“Z”; “X”; “Y”",
)  # fmt: skip


def test_the_opposite_of_an_order_question_reverses_the_order() -> None:
    paraphrase, opposite = ruled(ORDER)
    assert paraphrase.question != ORDER.question
    assert paraphrase.options == ORDER.options
    assert opposite.question == (
        "In what order do these words come up on the screen, from the last to the first: “Y”; “Z”; "
        "“X”?"
    )
    assert opposite.answer == "“Z”; “Y”; “X”"
    assert set(opposite.options) == {"“Z”; “Y”; “X”", "“Z”; “X”; “Y”", "“Y”; “X”; “Z”"}
    listed = mcq("In what order are these things said: z; y; x?", "x; y; z", "y; z; x", "z; x; y")
    assert ruled(listed)[1].question.endswith("first: y; x; z?")  # not in the order of the answer


LINES = tuple(
    Line(start=10.0 * n, end=10.0 * n + 4, text=text)
    for n, text in enumerate(
        ("Break the eggs.", "Stir them well.", "Add the milk.", "Heat the pan.", "Wait a while.")
    )
)


def test_rules_ask_for_a_neighbour_only_if_it_is_certain() -> None:
    source = mcq("What is said right after “Stir them well”?", "Add the milk", "Wait a while")
    _, opposite = ruled(source, LINES)
    assert opposite.question == "What is said right before “Add the milk”?"
    assert opposite.answer == "Stir them well"
    twice = (*LINES, Line(start=90, end=94, text="Add the milk."))
    assert [q.relation for q in ruled(source, twice)] == ["paraphrase"]
    far = mcq("What is said right after “Stir them well”?", "Heat the pan", "Wait a while")
    assert [q.relation for q in ruled(far, LINES)] == ["paraphrase"]


def test_rules_make_no_siblings_of_other_questions() -> None:
    source = mcq("What does the cook do with the eggs?", "Breaks them", "Boils them")
    assert ruled(source) == []


@pytest.mark.parametrize("pair", PAIRS, ids=[plain for plain, _ in PAIRS])
def test_the_offline_verifier_knows_every_paraphrase(
    pair: tuple[str, str],
) -> None:
    filled = tuple(text.replace("{}", "A…B; C; D") for text in pair)
    assert paraphrase(filled[0]) == filled[1]
    assert canonical(filled[1]) == filled[0]
    assert canonical(filled[0]) == filled[0]
    assert any(pattern.search(filled[0]) for pattern, _ in sight.FORMS)
    assert fault(filled[1], "amber", ("boat", "cliff"), count=2) is None


def test_the_offline_verifier_reads_orders_in_both_directions() -> None:
    back = reversed_order(ORDER.question)
    assert back is not None
    assert forwards(back) == (ORDER.question, True)
    assert forwards(ORDER.question) == (ORDER.question, False)
    lines = LINES[:3]
    for text, answer in (
        ("In what order are these things said: Add the milk; Break the eggs; Stir them well?", "A"),
        ("In what order are these things said, from the last to the first: Add the milk; Break the "
         "eggs; Stir them well?", "B"),
    ):  # fmt: skip
        options = ("Break the eggs; Stir them well; Add the milk",
                   "Add the milk; Stir them well; Break the eggs")  # fmt: skip
        shown = sight.Evidence(frames=(), lines=lines)
        (place,) = sight._answer(text, options, shown).fits  # pyright: ignore[reportPrivateUsage]
        assert "AB"[place] == answer
