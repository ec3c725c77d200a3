"""An audit of twelve questions, compared with figures computed by hand."""

import json
import random
from dataclasses import replace
from math import comb
from pathlib import Path

import pytest

from mustsee import stats
from mustsee.audit import guessers, show
from mustsee.audit.audit import Audit, RepeatReport, audit
from mustsee.audit.battery import ConditionRun, Replies, compare_with_chance, place
from mustsee.evaluate.answers import verdict_on_failure, verdict_on_reply
from mustsee.records import Question, Span, Verdict
from mustsee.text import LETTERS
from mustsee.verify.conditions.seen import order

OPTIONS = ("one", "two", "three", "four")
# R: right in both turns; 1, 2, 3: as many options further, in both; T: right, then one further;
# F: both calls failed; a blank: not asked.
REPLIES = {
    #                   q0 ........ q11
    "blind":            "RR11TT111T1T",
    "transcript":       "RTRTTTTTTT2T",
    "one_frame":        "RRTR2T11TT3T",
    "frames":           "RRRRRRTTRTTT",
    "shuffled":         "RRRRR12TTTRT",
    "evidence":         "       RRRR1",
    "control":          "       RRTTT",
    "without_evidence": "       1TTT1",
    "whole":            "RRRRRRRRRF11",
}  # fmt: skip
FRAMES = {"blind": 0, "one_frame": 1, "frames": 8, "shuffled": 8}
ASKED = [
    ConditionRun(name=f"m {c}", answerer="m", condition=c, frames=FRAMES.get(c)) for c in REPLIES
]


def named(question: Question, option: int, rotation: int, name: str) -> Verdict:
    letter = LETTERS[order(4, rotation).index(option)]
    return verdict_on_reply(question, letter, model=name, rotation=rotation)


def replied(question: Question, sign: str, name: str) -> list[Verdict]:
    if sign == " ":
        return []
    if sign == "F":
        return [verdict_on_failure("down", model=name, rotation=r) for r in (0, 1)]
    right = question.answer_index or 0
    first = right if sign in "RT" else (right + int(sign)) % 4
    second = (right + 1) % 4 if sign == "T" else first
    return [named(question, first, 0, name), named(question, second, 1, name)]


def questions() -> list[Question]:
    made: list[Question] = []
    for n in range(12):
        one = Question(
            question_id=f"q{n}", video_id=f"v{n // 3}", recipe="hand", question=f"What is {n}?",
            question_type="a" if n < 6 else "b", options=OPTIONS, answer_index=n % 4,
            answer=OPTIONS[n % 4], evidence=(Span(0.0, 1.0),) if n > 6 else (),
        )  # fmt: skip
        verdicts = [v for c, signs in REPLIES.items() for v in replied(one, signs[n], f"m {c}")]
        made.append(replace(one, verdicts=tuple(verdicts)))
    return made


@pytest.fixture(scope="module")
def found() -> Audit:
    return audit(questions(), [], ASKED, RepeatReport())


def test_the_shortcut_ratio_matches_a_hand_count(found: Audit) -> None:
    """q0 to q4 have one; wrong options are named on q5 (one of four), q6 (two), q7 and q8 (one);
    nothing on q9 and q11; of q10 all four are named, which says nothing. (5 - 1/3 - 1 - 2/3) / 11.
    """
    (one,) = found.figures
    ratio = one.shortcuts.ratio
    assert ratio is not None
    assert (ratio.n, one.shortcuts.untold, one.shortcuts.raw) == (11, 1, pytest.approx(5 / 11))
    assert ratio.value == pytest.approx(3 / 11)
    # by video: 3, 5/3, -5/3 and 0 of two; t(3) = 3.1824
    assert ratio.se == pytest.approx((13016 / 1089 * 4 / 3) ** 0.5 / 11)
    assert ratio.low == pytest.approx(3 / 11 - 3.182446 * ratio.se, abs=1e-5)


def test_the_battery_matches_hand_counts(found: Audit) -> None:
    tried = {t.name: t for t in found.battery}
    blind, whole = tried["blind"], tried["whole"]
    assert (blind.right.value, blind.chance) == (pytest.approx(4 / 12), 0.25)  # 2 R, 4 T
    assert blind.known.value == pytest.approx((4 / 12 - 0.25) / 0.75)
    assert (whole.right.n, whole.failed) == (11, 1)
    assert whole.right.value == pytest.approx(9 / 11)
    assert tried["evidence"].right.n == 5
    assert tried["place A"].right.value == 0.25
    assert sum(t.kind == "guesser" for t in found.battery) == 9 + 4


def test_differences_between_conditions_match_hand_counts(found: Audit) -> None:
    (one,) = found.figures
    assert one.blind_gap is not None
    assert one.visual_gain is not None
    assert one.temporal_gain is not None
    assert one.needed is not None
    assert one.recovery is not None
    assert one.blind_gap.value == pytest.approx((9 - 3.5) / 11)  # without q9, whose call failed
    assert one.visual_gain.value == pytest.approx((9 - (2 + 8 / 2)) / 11)
    assert one.temporal_gain.value == pytest.approx((9.5 - 8) / 12)
    assert one.needed.value == pytest.approx((3.5 - 1.5) / 5)
    assert one.recovery.value == pytest.approx(2 / 3)  # whole 2 of q7, q8, q10, q11; evidence 3


def test_the_fewest_frames_match_hand_counts(found: Audit) -> None:
    fewest = found.figures[0].fewest
    assert fewest is not None
    assert fewest.counts == {0: 2, 1: 1, 8: 4}
    assert (fewest.never, fewest.median) == (5, 8.0)


def test_shortcuts_and_reasons_of_each_question(found: Audit) -> None:
    items = {i.question_id: i for i in found.items}
    assert items["q0"].score == 1
    assert items["q3"].shortcuts == ("one_frame", "shuffled")
    assert items["q3"].score == 0.5
    assert items["q6"].fails == ()
    (doubt,) = found.suspects  # the evidence and the whole video name the same other option
    assert (doubt.question, doubt.key, doubt.named) == ("q11", "four", "one")
    assert items["q11"].fails == ("error",)
    assert found.clean == 12 - 1  # q11: of so few the shortcuts do not differ from lucky guesses
    assert found.lucky == 6  # five shortcuts, q10 (shuffled frames)


def test_groups_have_their_own_ratio(found: Audit) -> None:
    one, two = found.types
    assert one.shortcuts.ratio is not None
    assert two.shortcuts.ratio is not None
    assert one.shortcuts.ratio.value == pytest.approx((5 - 1 / 3) / 6)
    assert two.shortcuts.ratio.value == pytest.approx((-1 - 2 / 3) / 5)


def test_written_audits_can_be_read_back(found: Audit, tmp_path: Path) -> None:
    show.write(tmp_path, found, {"dataset": "d"})
    record = json.loads((tmp_path / "audit.json").read_text())
    assert record["any"]["ratio"]["value"] == pytest.approx(3 / 11)
    assert record["fails"]["error"] == 1
    assert {w["question_id"] for w in record["worst"]} >= {"q0", "q11"}


def test_a_favoured_position_is_reported_and_is_not_a_shortcut() -> None:
    """Who always names the first place is right in one turn of a question at most."""
    every = ConditionRun(name="m blind", answerer="m", condition="blind", frames=0)
    made: list[Question] = []
    for n in range(40):
        one = Question(
            question_id=f"q{n}", video_id=f"v{n}", recipe="hand", question=f"What is {n}?",
            question_type="", options=OPTIONS, answer_index=n % 4,
        )  # fmt: skip
        drawn = random.Random(n).sample(range(4), 2)
        turns = [verdict_on_reply(one, "A", model="m blind", rotation=r) for r in drawn]
        made.append(replace(one, verdicts=tuple(turns)))
    replies = Replies(made)
    bias = place(made, replies, every)
    assert bias is not None
    assert (bias.letter, bias.share, bias.turned) == ("A", 1.0, 1.0)
    assert bias.over.p_holm is not None
    assert bias.over.p_holm < 1e-3
    found = audit(made, [], [every], RepeatReport())
    assert found.any.ratio is not None
    assert found.any.ratio.value == 0
    assert not found.alarms


def test_always_right_answers_have_an_exact_p_value() -> None:
    """Thirteen videos, all right by place where one in four would be: 2 / 4^13."""
    made = [
        Question(
            question_id=f"q{n}", video_id=f"v{n % 13}", recipe="hand", question=f"What is {n}?",
            question_type="", options=OPTIONS, answer_index=2,
        )
        for n in range(14)
    ]  # fmt: skip
    tried = {t.name: t for t in audit(made, [], [], RepeatReport()).battery}
    assert tried["place C"].over.p == pytest.approx(2 / 4**13)
    assert tried["place C"].alarm
    assert tried["place A"].over.p == pytest.approx(2 * 0.75**13)
    assert not tried["place A"].alarm


def test_steady_guesses_in_every_condition_are_corrected_to_zero() -> None:
    """Four conditions with one guess each, steady and never informed, on 800 questions."""
    dice = random.Random(3)
    conditions = ("blind", "transcript", "one_frame", "shuffled")
    asked = [ConditionRun(name=f"m {c}", answerer="m", condition=c) for c in conditions]
    made: list[Question] = []
    for n in range(800):
        one = Question(
            question_id=f"q{n}", video_id=f"v{n // 4}", recipe="hand", question=f"What is {n}?",
            question_type="", options=OPTIONS, answer_index=dice.randrange(4),
        )  # fmt: skip
        known = n % 5 == 0  # one in five is known, by the last condition alone
        verdicts: list[Verdict] = []
        for number, each in enumerate(asked):
            option = dice.randrange(4) if number in (0, 2) or dice.random() < 0.3 else None
            option = one.answer_index if known and number == 3 else option
            for rotation in (0, 1) if option is not None else ():
                verdicts.append(named(one, option or 0, rotation, each.name))
        made.append(replace(one, verdicts=tuple(verdicts)))
    ratio = audit(made, [], asked, RepeatReport()).any
    assert ratio.ratio is not None
    assert ratio.raw > 0.45
    assert ratio.ratio.low is not None
    assert ratio.ratio.high is not None
    assert ratio.ratio.low < 0.2 < ratio.ratio.high


def test_each_guesser_finds_its_planted_shortcut() -> None:
    dice = random.Random(1)
    values = [f"w{n}" for n in range(400)]

    def ask(n: int, options: list[str], right: int, text: str = "What?") -> Question:
        return Question(
            question_id=f"q{n}", video_id=f"v{n}", recipe="hand", question=text, question_type="",
            options=tuple(options), answer_index=right, answer=options[right],
        )  # fmt: skip

    def plain(n: int) -> list[str]:
        return [f"a {w}" for w in dice.sample(values, 4)]

    def hits(made: list[Question]) -> dict[str, float]:
        return {name: sum(right) / len(made) for name, right in guessers.hits(made).items()}

    longest = [ask(n, [o + " indeed" * (k == n % 4) for k, o in enumerate(plain(n))], n % 4)
               for n in range(40)]  # fmt: skip
    prior = [ask(n, [*plain(n)[:3], "all of them"], 3) for n in range(40)]
    common = ["red", "blue", "green", "black"]
    novel = [ask(n, [f"z{n}" if k == n % 4 else c for k, c in enumerate(common)], n % 4)
             for n in range(40)]  # fmt: skip
    wording = [ask(n, [f"{o} {'carefully' if k == n % 4 else 'quickly'}"
                       for k, o in enumerate(plain(n))], n % 4) for n in range(40)]  # fmt: skip
    fair = [ask(n, plain(n), n % 4) for n in range(40)]
    of_prior, of_fair = hits(prior), hits(fair)
    for name, made in (("longest", hits(longest)), ("prior", of_prior), ("novel", hits(novel)),
                       ("wording", hits(wording)), ("place D", of_prior)):  # fmt: skip
        assert made[name] > 0.9, name
        assert of_fair[name] < 0.5, name
    assert not audit(fair, [], [], RepeatReport()).alarms
    assert {t.name for t in audit(longest, [], [], RepeatReport()).alarms} >= {"longest", "wording"}


def test_the_comparison_with_chance_is_exact_for_one_question_per_video() -> None:
    right = [1.0] * 9 + [0.0] * 5
    alone = compare_with_chance("g", "guesser", "", right, [0.2] * 14, range(14))
    tail = sum(comb(14, k) * 0.2**k * 0.8 ** (14 - k) for k in range(9, 15))
    assert alone.over.p == pytest.approx(2 * tail)
    pairs = compare_with_chance("g", "guesser", "", right, [0.2] * 14, [n // 2 for n in range(14)])
    assert pairs.over.p == stats.paired_difference(right, [0.2] * 14, [n // 2 for n in range(14)]).p
    every = compare_with_chance("g", "guesser", "", [1.0] * 6, [0.2] * 6, [0, 0, 1, 1, 2, 2])
    assert every.over.p == pytest.approx(2 * 0.2**3)  # three videos, however many questions


def test_replies_without_options_count_by_their_grades_and_are_not_tested_against_chance() -> None:
    name, every = "m blind, options withheld", []
    for n, question in enumerate(questions()):
        verdicts = [verdict_on_reply(replace(question, options=()), f"reply {n}", model=name)]
        if n < 10:  # of two the judge failed
            detail = json.dumps({"of": name, "rotation": 0, "score": 0.9})
            verdicts.append(Verdict(filter="grade", model="j", correct=n < 4, detail=detail))
        every.append(replace(question, verdicts=(*question.verdicts, *verdicts)))
    run = ConditionRun(name=name, answerer="m", condition="blind_open", frames=0)
    plain = audit(every, (), ASKED, RepeatReport())
    more = audit(every, (), [*ASKED, run], RepeatReport())
    (result,) = [r for r in more.battery if r.name == "blind_open"]
    assert (result.right.value, result.right.n, result.failed) == (0.4, 10, 2)
    assert (result.chance, result.known.value, result.unparsed, result.place) == (0, 0.4, 0, None)
    assert not result.alarm
    assert result.over.p_holm is None
    assert [r for r in more.battery if r.name != "blind_open"] == list(plain.battery)
    assert [i.fails for i in more.items] == [i.fails for i in plain.items]
    assert more.figures == plain.figures
