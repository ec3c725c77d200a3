"""What the writer of questions and wrong answers is told, part by part of the paper's prompts
(C.2.3, C.2.4). Each part is a statement of the rendered text, found by its key words.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from tests.recipes.neptune.test_parts import SETTINGS, named, run
from tests.support.neptune_video import Replies, sample_video

QUESTIONS = {  # part of C.2.3 -> the words of its statement
    "challenge": r"takes understanding",
    "relationships, motives": r"order, reasons, aims",
    "not told without the video": r"needs what is seen",
    "self-contained, one thing": r"stands alone and asks one thing",
    "short answer from the evidence": r"short, exact answer that (is shown|the video bears out)",
    "no outside knowledge": r"(general|outside) knowledge.* nothing is asked",
    "no leak by order": r"in order are listed out of order",
    "no leak by words": r"no word of the answer in the question",
    "content, not timestamps": r"speaks of no transcript, .*timestamp",
    "one right answer": r"has one right answer",
    "no disputed counts": r"no counts on which two viewers could differ",
    "bad: common sense": r"violin have.* needs no video",
    "bad: trivial": r"word .*spoken.* is trivial",
    "bad: subjective order": r"topics .*in order.* answered in many ways",
    "summary, compressed": r"in one sentence, without reciting it",
    "counting of what differs": r"counting.*not what is in every frame",
}
PAPER_QUESTIONS = {  # with tweaks=true alone
    "most important segments": r"stretches of the video matter most",
    "unspoken message, common sense": r"message that a viewer takes .*common sense",
    "mood and what makes it": r"mood of the video .*which visible things make it",
    "visual support": r"why and how something is shown",
    "brief question, answer in detail": r"question is brief, and the answer describes .*in detail",
    "common sense may be needed": r"common sense may be needed to infer",
}
DECOYS = {  # part of C.2.4
    "wrong for certain": r"wrong for certain",
    "could be true": r"could be true|equally likely",
    "tied to the video": r"(occurs|shown elsewhere) in (the|this same) video",
    "length": r"(about its length|about the same number of words)",
    "style": r"style and tone|one phrase and tone",
    "no letters": r"no letters",
}
PAPER_DECOYS = {
    "subtle tweak": r"change one small detail of the right answer, as a time, a place or a name",
    "confusing similarity": r"take from elsewhere in the video what seems to belong here",
    "misdirection": r"what is true of the video's subject and yet does not answer the question",
    "order": r"put its things in another order",
    "feeling": r"being pleasant or unpleasant",
    "good example": r"good, .*right: .*well, a bridge and a doctor.* wrong: .*in the video",
    "bad: form": r"bad, .*green. beside .*wears a red coat.*another form",
    "bad: feeling": r"bad, .*glad of it. beside .*all unpleasant",
}


def texts(*, tweaks: bool) -> dict[str, tuple[str, str]]:
    """What the writer is told before and after WRONG ANSWERS, by prompt."""
    llm = Replies()
    run(sample_video(), llm, replace(SETTINGS, tweaks=tweaks))
    told: dict[str, tuple[str, str]] = {}
    for name in ("questions", "decoys"):
        text = named(llm, name)[0].messages[0].text
        questions, wrong = text.split("\nWRONG ANSWERS\n")
        told[name] = (_statements(questions), _statements(wrong))
    return told


def _statements(text: str) -> str:
    """Items of lists and paragraphs on a line each, in small letters."""
    items = re.split(r"\n\s*\n|\n- ", text)
    return "\n".join(" ".join(item.split()).lower() for item in items)


@pytest.mark.parametrize("tweaks", [False, True])
@pytest.mark.parametrize(
    ("place", "part", "only_tweaks"),
    [
        *((0, part, False) for part in QUESTIONS.items()),
        *((0, part, True) for part in PAPER_QUESTIONS.items()),
        *((1, part, False) for part in DECOYS.items()),
        *((1, part, True) for part in PAPER_DECOYS.items()),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_the_writer_is_told_each_part(
    place: int, part: tuple[str, str], only_tweaks: bool, tweaks: bool
) -> None:
    told = texts(tweaks=tweaks)["decoys" if place else "questions"][place]
    found = re.search(part[1], told) is not None
    assert found == (tweaks or not only_tweaks), told


def test_a_prompt_cache_serves_all_requests_of_a_writer() -> None:
    for tweaks in (False, True):
        llm = Replies()
        run(sample_video(), llm, replace(SETTINGS, tweaks=tweaks))
        names = ("topics", "questions", "decoys")
        assert len({named(llm, name)[0].messages[0].text for name in names}) == 1


@pytest.mark.parametrize("tweaks", [False, True])
def test_wrong_answers_are_asked_for_in_a_call_of_their_own_four_without_letters(
    tweaks: bool,
) -> None:
    llm = Replies()
    video = run(sample_video(), llm, replace(SETTINGS, tweaks=tweaks))
    (asked, *_), decoys = named(llm, "questions"), named(llm, "decoys")
    assert llm.asked.index(asked) < llm.asked.index(decoys[0])
    assert "WRONG ANSWER" not in asked.messages[-1].text + asked.messages[-1].lines
    assert "wrong" not in json.dumps(asked.form)
    for request in decoys:
        text, lines = request.messages[-1].text, request.messages[-1].lines
        assert "Write 4 wrong answers for each question" in text
        assert re.findall(r"^WRONG ANSWER (\S+): ", lines, re.MULTILINE) == ["1", "2", "3", "4"]
        fields = (request.form or {})["properties"]["questions"]["items"]["required"]
        assert [f for f in fields if f.startswith("wrong")] == [f"wrong_answer_{n}" for n in "1234"]
        for draft in request.variables["drafts"]:
            assert draft.question in text
            assert f"CORRECT ANSWER: {draft.answer}\n" in text
    options = [option for q in video.questions or () for option in q.options]
    assert options
    assert not [option for option in options if re.match(r"\W?[A-E]\W\s", option)]
