"""The rule: how many right replies a row needs, and whom it believes."""

import random

import pytest

from mustsee.clean.columns import TrainingRow
from mustsee.clean.rule import (
    FAILED,
    RIGHT,
    WRONG,
    BlindRule,
    LearnedGuesser,
    ReaderScores,
    decide,
    grade_by_rules,
)
from mustsee.errors import UserError


def row(kind: str = "choice", answer: str = "x", **more: object) -> TrainingRow:
    given = {"question_id": "q", "video": "v", "source": "s", "question_type": "t", **more}
    return TrainingRow(kind=kind, answer=answer, **given)  # type: ignore[arg-type]


def test_two_options_need_more_right_replies_than_four() -> None:
    rule = BlindRule()
    assert [rule.right_needed(chance) for chance in (0.0, 0.2, 0.25, 1 / 3, 0.5)] == [2, 2, 2, 3, 3]
    assert BlindRule(right=1, of=1).right_needed(0.5) is None
    assert BlindRule(right=1, of=1, luck=0.5).right_needed(0.5) == 1


def test_failed_calls_leave_a_row_open_only_where_they_could_decide() -> None:
    rule = BlindRule()
    assert rule.knows([RIGHT, RIGHT, FAILED], 0.25) is True
    assert rule.knows([RIGHT, WRONG, FAILED], 0.25) is None
    assert rule.knows([WRONG, WRONG, FAILED], 0.25) is False
    assert rule.knows([RIGHT, RIGHT, WRONG], 0.5) is False
    assert BlindRule(right=1, of=1).knows([RIGHT], 0.5) is None


def test_a_reader_at_chance_is_not_believed() -> None:
    rule, everywhere = BlindRule(), {"m": frozenset({""})}
    assert decide(row(), rule, {"m": True}, {"m": frozenset()}).decided == "not known"
    assert decide(row(), rule, {"m": True}, everywhere).known_by == ("m",)
    assert decide(row(), rule, {"m": True}, {"m": frozenset({"t"})}).decided == "known"
    assert decide(row(), rule, {"m": True}, {"m": frozenset({"u"})}).decided == "not known"
    assert decide(row(), rule, {"m": None}, everywhere).decided == "not decided"
    assert decide(row(left="a box"), rule, {}, {}).reason == "a box"
    both = BlindRule(readers=2)
    beating = {"m": frozenset({""}), "n": frozenset({""})}
    assert decide(row(), both, {"m": True, "n": False}, beating).decided == "not known"
    assert decide(row(), both, {"m": True, "n": True}, beating).decided == "known"


def test_scores_find_who_beats_chance_and_where() -> None:
    rng, guessing, knowing = random.Random(0), ReaderScores(), ReaderScores()
    for n in range(2000):
        each = row(video=f"v{n % 300}", question_type="known" if n % 4 == 0 else "other")
        guessing.add(each, float(rng.random() < 0.25), 0.25)
        chance = 0.6 if each.question_type == "known" else 0.25
        knowing.add(each, float(rng.random() < chance), 0.25)
    assert guessing.beats_chance() == frozenset()
    assert knowing.beats_chance() == {"", "known"}
    shares = knowing.share("known")
    assert shares is not None
    assert shares[0] == pytest.approx(0.6, abs=0.06)


@pytest.mark.parametrize(
    "keys",
    [{"right": 4}, {"right": 0}, {"readers": 0}, {"luck": 0.0}, {"then": "burn"}, {"weight": 2.0}],
)
def test_impossible_rules_are_refused(keys: dict[str, object]) -> None:
    with pytest.raises(UserError, match=f"rule.{next(iter(keys))}="):
        BlindRule(**keys)  # type: ignore[arg-type]


def test_the_learned_guess_must_be_sure() -> None:
    guesser = LearnedGuesser()
    assert not guesser.knows(0.45, 5)
    assert guesser.knows(0.55, 5)
    assert not guesser.knows(0.6, 2)
    assert guesser.knows(0.8, 2)


@pytest.mark.parametrize(
    ("kind", "answer", "reply", "right"),
    [
        ("yes/no", "Yes", "Yes, it is.", True),
        ("yes/no", "No", "True", False),
        ("yes/no", "Yes", "yes or no", False),
        ("number", "12", "There are twelve.", True),
        ("number", "1,200", "about 1200 m", True),
        ("number", "3", "3 or 4", False),
        ("number", "3", "I cannot tell", False),
        ("text", "EXIT 12", "The sign says 'Exit 12'.", True),
        ("text", "EXIT 12", "exit 125", False),
        ("open", "a red car", "The red car.", True),
        ("open", "a red car", "a blue bus", None),
        ("open", "a red car", " ", False),
    ],
)
def test_replies_are_graded_by_their_kind(
    kind: str, answer: str, reply: str, right: bool | None
) -> None:
    assert grade_by_rules(row(kind, answer), reply) is right
