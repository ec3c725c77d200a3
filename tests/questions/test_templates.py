"""A template reads what it wrote, and nothing else."""

import pytest

from mustsee.questions.templates import QuestionTemplate

SIDES = QuestionTemplate(
    "What {verb} {side} {clause}?", {"verb": ("is", "are"), "side": ("after", "before")}
)


@pytest.mark.parametrize("clause", ["a dog barks", "“Is it after 3?” is said", "a (red) hat. One"])
def test_the_parts_of_a_question_are_read_back(clause: str) -> None:
    parts = {"verb": "is", "side": "before", "clause": clause}
    assert SIDES.read(SIDES.fill(**parts)) == parts


@pytest.mark.parametrize(
    "question",
    ["What is while a dog barks?", "What is after ?", "What is after a dog", "Oh? What is"],
)
def test_another_question_is_not_read(question: str) -> None:
    assert SIDES.read(question) is None


def test_a_template_without_parts_reads_its_own_words_only() -> None:
    whole = QuestionTemplate("Which is longest (in all)?")
    assert whole.read("Which is longest (in all)?") == {}
    assert whole.read("Which is longest?") is None
