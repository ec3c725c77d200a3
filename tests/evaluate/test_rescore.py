"""Which replies are read, in which order of options, and why two scorers differ on one."""

from collections import Counter
from dataclasses import replace

import pytest

from mustsee.errors import UserError
from mustsee.evaluate.answers import verdict_on_reply
from mustsee.evaluate.rescore import choose_scorers, rescore
from tests.evaluate.test_scorer_results import answered, compare


@pytest.mark.parametrize(
    ("reply", "benchmark", "scorers", "cause"),
    [
        ("b", "videomme", ("ours", "vlmevalkit"), "case"),
        ("E", "videomme", ("ours", "lmms_eval"), "letters"),
        ("no idea", "egoschema", ("ours", "lmms_eval"), "random"),
        ("Answer: B because", "cinepile", ("ours", "official"), "counting"),
        (None, "mvbench", ("ours", "vlmevalkit"), "failed call"),
        ("to hide", "videomme", ("ours", "official"), "left out"),
        ("to hide", "mlvu", ("ours", "official"), "unreadable"),
        ("The answer is clearly B", "neptune", ("ours", "lmms_eval"), "extraction"),
    ],
)
def test_the_cause_of_a_difference(
    reply: str | None, benchmark: str, scorers: tuple[str, str], cause: str
) -> None:
    questions = answered(["B", reply])
    if reply == "E":
        questions = [replace(q, answer_index=4, verdicts=()) for q in questions]
        questions = [
            replace(q, verdicts=(verdict_on_reply(q, "E", model="m"),)) for q in questions[1:]
        ]
    (difference,) = compare(questions, scorers, benchmark)[1]
    (group,) = difference.groups
    assert group.cause == cause
    assert group.replies == len(group.examples) == 1


def test_rotated_options_are_read_as_they_were_shown() -> None:
    (question,) = answered(["B"])
    turned = verdict_on_reply(question, "C", model="m", rotation=1)
    results, _, replies = compare([replace(question, verdicts=(turned,))], ["ours", "lmms_eval"])
    assert [one.score for one in results] == [1, 1]
    assert replies[0].row["right_letter"] == "C"


def test_what_is_not_scored_is_counted_by_reason() -> None:
    choice, open_ended, unknown, dropped = answered(["B", "B", "B", "B"])
    written = replace(open_ended, options=(), answer_index=None)
    verdict = verdict_on_reply(written, "They hide.", model="m")
    questions = [choice, replace(written, verdicts=(verdict,)),
                 replace(unknown, answer_index=None), replace(dropped, drop="x: y")]  # fmt: skip
    skipped = Counter[str]()
    assert len(list(rescore(questions, ["ours"], None, skipped))) == 1
    assert skipped == {"written answer": 1, "no public answer": 1, "question dropped": 1}


@pytest.mark.parametrize(
    ("scorers", "benchmark", "says"),
    [
        (["ours", "mine"], None, "lmms_eval"), (["ours", "ours"], None, "once"), ([], None, "ours"),
        (["ours"], "mmmu", "videomme"),
    ],
)  # fmt: skip
def test_unknown_names_are_refused(scorers: list[str], benchmark: str | None, says: str) -> None:
    with pytest.raises(UserError, match=says):
        choose_scorers(scorers, benchmark)
