"""Sight: each verdict that a question can get, and how votes end."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.calls.llm import Asker, Request
from mustsee.errors import Unparsed, UserError
from mustsee.prompts import Prompts
from mustsee.records import Line, Question, Span, Verdict, Video
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.look_replies import CANNOT, SEVERAL, Choice, look_form
from mustsee.verify.looks import LookReply, VoteRule
from mustsee.verify.sight import Sight
from mustsee.verify.vetting import Judges, VettingContext, ignore_count
from tests.support.verifier import (
    CANNOT_TELL,
    ELSEWHERE,
    LETTERS,
    OPTIONS,
    PROSE,
    SCENE,
    SECONDS,
    WRONG,
    ScriptedVerifier,
    Stills,
    World,
    question,
    row,
)  # fmt: skip


def run_sight(
    verifier: ScriptedVerifier,
    sight: Sight | None = None,
    *,
    video: Video | None = None,
    judge: Judges | None = None,
    count: Callable[[str, int], None] = ignore_count,
    **changes: object,
) -> Question:
    video = video or row()
    asker = Asker(llm=verifier, prompts=Prompts(), tries=1)
    vetting = VettingContext(
        askers={"verifier": asker}, video_frames=Stills(video), judge=judge, count=count
    )
    return asyncio.run((sight or Sight())(question(**changes), video, vetting))


def conditions(done: Question) -> list[str]:
    return [json.loads(v.detail)["condition"] for v in done.verdicts]


def test_a_question_with_needed_and_sufficient_evidence_is_kept() -> None:
    done = run_sight(ScriptedVerifier({"red": [SCENE]}))
    assert done.drop is None
    assert done.evidence == (SCENE,)
    assert done.metrics["sight_passed"] == done.metrics["sight_right"] == 1
    assert done.metrics["sight_needed"] == 1
    assert conditions(done) == ["evidence", "evidence", *2 * ["without_evidence"], "control"]
    assert json.loads(done.verdicts[0].detail)["frames"][0] == pytest.approx(41.0)


FALLS: list[tuple[World, str]] = [
    ({"red": [SCENE], "blue": [SCENE]}, "more than one option fits"),
    ({"red": [ELSEWHERE], "blue": [ELSEWHERE]}, "more than one option fits"),
    ({"red": [SCENE], "blue": [ELSEWHERE]}, "more than one option fits"),
    ({"blue": [SCENE]}, "answer disputed: 'blue'"),
    ({"blue": [ELSEWHERE]}, "answer disputed: 'blue'"),
    ({"blue": [Span(44.0, 45.0)]}, "answer disputed: 'blue'"),  # too short to be seen from afar
    ({}, "cannot be told"),
]


@pytest.mark.parametrize(("world", "reason"), FALLS)
def test_each_drop_has_its_reason(world: World, reason: str) -> None:
    done = run_sight(ScriptedVerifier(world))
    assert (done.drop or "").startswith(f"sight: {reason}")
    assert done.metrics["sight_passed"] == 0
    assert done.verdicts


@pytest.mark.parametrize("true", [ELSEWHERE, Span(7.0, 31.0), Span(289.0, 300.0)])
def test_wrong_evidence_is_replaced(true: Span) -> None:
    done = run_sight(ScriptedVerifier({"red": [true]}))
    assert done.drop is None
    (found,) = done.evidence
    assert abs(found.start - true.start) <= 1
    assert abs(found.end - true.end) <= 1
    (repair,) = done.repairs
    assert repair.kind == "evidence"
    assert json.loads(repair.before) == [[SCENE.start, SCENE.end]]


def test_an_event_between_the_frames_is_found() -> None:
    """The event is between frames of the whole video, which have gaps of 4.7 s."""
    moment = Span(201.0, 202.0)
    done = run_sight(ScriptedVerifier({"red": [moment]}))
    assert done.drop is None
    (found,) = done.evidence
    assert max(abs(found.start - moment.start), abs(found.end - moment.end)) <= 1


def test_missing_evidence_is_found() -> None:
    done = run_sight(ScriptedVerifier({"red": [ELSEWHERE]}), evidence=())
    (found,) = done.evidence
    assert done.drop is None
    assert max(abs(found.start - ELSEWHERE.start), abs(found.end - ELSEWHERE.end)) <= 1
    assert done.metrics["sight_needed"] == 1


def test_an_answer_visible_everywhere_needs_no_evidence() -> None:
    verifier = ScriptedVerifier({"red": [Span(0.0, SECONDS)]})
    assert run_sight(verifier).drop is None
    assert run_sight(verifier).metrics["sight_needed"] == 0
    fallen = run_sight(verifier, Sight(drop_unneeded=True))
    assert fallen.drop == "sight: the evidence is not needed"


@pytest.mark.parametrize(
    ("spoil", "looks"),
    [
        ({}, 2),
        ({1: WRONG}, 3),
        ({1: PROSE}, 3),  # no vote: another look takes its place
        ({1: PROSE, 2: PROSE, 3: WRONG}, 5),
        ({1: WRONG, 2: CANNOT_TELL}, 6),  # open after three: twice as many decide
    ],
)
def test_single_wrong_looks_do_not_decide(spoil: Mapping[int, str], looks: int) -> None:
    done = run_sight(ScriptedVerifier({"red": [SCENE]}, spoil), Sight(needed=False))
    assert done.drop is None
    assert len(done.verdicts) == looks


def test_without_parseable_replies_a_question_is_unverified() -> None:
    done = run_sight(ScriptedVerifier({}, dict.fromkeys(range(1, 20), PROSE)))
    assert done.drop is None
    assert done.metrics["sight_unverified"] == 1
    assert "sight_passed" not in done.metrics
    assert len(done.verdicts) == 6
    assert all(v.correct is None for v in done.verdicts)


@pytest.mark.parametrize("evidence", [SCENE, ELSEWHERE, Span(0.0, SECONDS)])
@pytest.mark.parametrize("world", [{"red": [SCENE]}, *(world for world, _ in FALLS)])
def test_equal_frames_are_asked_about_only_in_different_orders(
    world: World, evidence: Span
) -> None:
    verifier = ScriptedVerifier(world)
    run_sight(verifier, evidence=(evidence,))
    asked = [(r.messages[-1].images, r.variables["options"]) for r in verifier.looks]
    assert len(set(asked)) == len(asked)


@pytest.mark.parametrize(
    ("true", "evidence"),
    [
        (Span(140.0, 160.0), Span(140.0, 160.0)),
        (SCENE, SCENE),
        (Span(44.0, 46.0), SCENE),  # a moment: it takes some frames to hit, and one to see
    ],
)
def test_one_event_needs_one_frame(true: Span, evidence: Span) -> None:
    verifier = ScriptedVerifier({"red": [true]})
    done = run_sight(verifier, Sight(fewest=True), evidence=(evidence,))
    assert done.drop is None
    assert 1 <= done.metrics["min_frames"] <= 64
    assert done.metrics["min_seconds"] == 0
    dropped = run_sight(verifier, Sight(fewest=True, drop_below_seconds=5.0), evidence=(evidence,))
    assert dropped.drop == "sight: 0.0 s of video are enough"


def test_an_event_that_no_frame_hits_has_no_fewest_frames() -> None:
    done = run_sight(ScriptedVerifier({"red": [Span(45.0, 46.0)]}), Sight(fewest=True))
    assert "min_frames" not in done.metrics
    assert done.metrics["min_seconds"] == 0


def test_two_places_need_the_video_between_them() -> None:
    """A verifier that must see both places is right with one frame of each."""

    @dataclass
    class Both(ScriptedVerifier):
        def look(self, request: Request) -> str:
            times = request.variables["frames"]
            both = all(any(s.start <= t < s.end for t in times) for s in (SCENE, ELSEWHERE))
            place = list(request.variables["options"]).index("red") if both else 5
            return f"* EVIDENCE: NONE\n* LOOK: NONE\n* ANSWER: {LETTERS[place]}"

    done = run_sight(Both({}), Sight(fewest=True), evidence=(SCENE, ELSEWHERE))
    assert done.drop is None
    assert done.metrics["min_seconds"] > 150
    assert done.metrics["min_frames"] > 1


def test_a_question_answered_blind_needs_no_frames() -> None:
    @dataclass
    class Knows(ScriptedVerifier):
        def look(self, request: Request) -> str:
            place = list(request.variables["options"]).index("red")
            return f"* EVIDENCE: NONE\n* LOOK: NONE\n* ANSWER: {LETTERS[place]}"

    done = run_sight(Knows({}), Sight(fewest=True))
    assert done.metrics["min_frames"] == done.metrics["min_seconds"] == 0


def test_a_missing_video_leaves_a_question_unverified() -> None:
    gone = replace(row(), uri="narrations:video")
    vetting = VettingContext(
        askers={"verifier": Asker(llm=ScriptedVerifier({"red": [SCENE]}), prompts=Prompts())},
        video_frames=VideoFrames(gone),
    )
    for lost in (gone, replace(gone, duration=None)):  # of unknown length, too
        done = asyncio.run(Sight()(question(), lost, vetting))
        assert done.drop is None
        (why,) = done.verdicts
        assert "unread" in why.detail
        assert why.correct is None
        assert done.metrics == {"sight_unverified": 1.0}


def test_impossible_votes_are_refused() -> None:
    with pytest.raises(UserError, match="min_right"):
        Sight(runs=2, min_right=3)
    with pytest.raises(UserError, match="fewest"):
        Sight(drop_below_seconds=10.0)


@given(
    st.integers(0, 6),
    st.sampled_from(["* ANSWER: {}", "**ANSWER:** ({})", "Answer: Option {}.", "> answer = {}"]),
    st.text("abc xyz.,\n", max_size=60).map(str.strip),
)
def test_looks_in_common_forms_are_parsed(place: int, form: str, said: str) -> None:
    reply = (
        f"* SEEN: {said}\n* EVIDENCE: 3.0-4.5; 1:00 to 1:02\n* LOOK: 9-12 s\n"
        f"{form.format(LETTERS[place])}"
    )
    look = look_form(5).read(reply)
    assert look.choice == (0, 1, 2, 3, 4, CANNOT, SEVERAL)[place]
    assert look.evidence == (Span(3.0, 4.5), Span(60.0, 62.0))
    assert look.where == (Span(9.0, 12.0),)


@given(
    st.sampled_from(["It is red.", "cannot be told", "**CANNOT BE TOLD**", "SEVERAL", "Several."])
)
def test_an_answer_in_words_is_parsed(words: str) -> None:
    look = look_form(0).read(f"* EVIDENCE: 1-2\n* LOOK: NONE\n* ANSWER: {words}")
    said = {"i": 0, "c": CANNOT, "s": SEVERAL}[words.strip("*").lower()[0]]
    assert (look.choice, look.words) == (said, words.strip("*"))


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        look = look_form(3).read(text)
    except Unparsed:
        return
    assert look.choice in (0, 1, 2, CANNOT, SEVERAL)


@pytest.mark.parametrize(
    "reply",
    [
        "* EVIDENCE: NONE\n* ANSWER: H",
        "* EVIDENCE: NONE\n* ANSWER: A\n* ANSWER: B",
        "A",
        "",
        "* ANSWER: A",  # it does not say what that rests on
        "* EVIDENCE: all along\n* ANSWER: A",
        "* EVIDENCE: NONE\n* ANSWER: F",  # nor where one would have to look
    ],
)
def test_invalid_looks_are_refused(reply: str) -> None:
    with pytest.raises(Unparsed):
        look_form(5).read(reply)


EVERY: list[Choice | None] = [None, 0, 1, 2, CANNOT, SEVERAL]
CHOICES = st.sampled_from(EVERY)


@given(st.data(), st.integers(1, 5))
def test_a_vote_ends_and_is_one_sided(data: st.DataObject, runs: int) -> None:
    poll = VoteRule(runs=runs, min_right=data.draw(st.integers(1, runs)))
    looks: list[LookReply] = []
    while wave := poll.wave(looks, 0):
        drawn: list[Choice | None] = data.draw(st.lists(CHOICES, min_size=wave, max_size=wave))
        looks += [
            LookReply(choice=c, spans=(), verdict=Verdict(filter="", model="")) for c in drawn
        ]
    assert len(looks) <= 2 * runs
    chosen, read = poll.choose(looks, 0), [x.choice for x in looks if x.choice is not None]
    if chosen == 0:
        assert read.count(0) >= poll.min_right
    elif chosen is not None:
        assert 2 * read.count(chosen) > len(read)


def test_the_whole_shot_of_a_slide_is_cut() -> None:
    """The answer stays visible after the named evidence, so its whole shot is cut."""
    shots = (Span(0.0, 30.0), Span(30.0, 75.0), Span(75.0, SECONDS))
    verifier = ScriptedVerifier({"red": [Span(30.0, 75.0)]})
    assert run_sight(verifier).metrics["sight_needed"] == 0
    cut = run_sight(verifier, video=replace(row(), shots=shots))
    assert cut.metrics["sight_needed"] == 1
    kept = [json.loads(v.detail) for v in cut.verdicts]
    without = next(d["frames"] for d in kept if d["condition"] == "without_evidence")
    assert not any(29 < t < 76 for t in without)


def test_lines_that_overlap_a_cut_are_left_out_and_the_prompt_says_so() -> None:
    """A line that begins in a cut and ends after it would reveal the cut content."""
    verifier = ScriptedVerifier({"red": [SCENE]})
    line = Line(start=49.0, end=53.0, text="Such a red kite.")
    done = run_sight(verifier, video=replace(row(), lines=(line,)))
    assert done.drop is None
    without = next(
        r for r in verifier.looks if r.variables["cuts"] and r.variables["frames"][0] < 9
    )
    assert without.variables["lines"] == ()
    assert "cut out, pictures and speech alike: 39.0-51.0 s" in without.messages[-1].text


def test_each_frame_follows_its_time_in_the_prompt() -> None:
    verifier = ScriptedVerifier({"red": [SCENE]})
    run_sight(verifier)
    parts = verifier.looks[0].messages[-1].parts
    times = verifier.looks[0].variables["frames"]
    places = [i for i, part in enumerate(parts) if isinstance(part, bytes)]
    assert [parts[i] for i in places] == [f"{t}".encode() for t in times]
    assert all(f"{t:.1f} s" in str(parts[i - 1]) for i, t in zip(places, times, strict=True))


def test_unparseable_looks_are_counted_and_recorded() -> None:
    counted: list[str] = []
    verifier = ScriptedVerifier({"red": [SCENE]}, {1: PROSE})
    done = run_sight(verifier, Sight(needed=False), count=lambda name, n: counted.append(name))
    assert counted == ["looks that could not be read"]
    assert json.loads(done.verdicts[0].detail)["replies"] == [PROSE]


@dataclass
class InWords(ScriptedVerifier):
    """Answers in words with what is visible, in synonyms of red."""

    def look(self, request: Request) -> str:
        options = {**request.variables, "options": OPTIONS}
        reply = super().look(replace(request, variables=options))
        letter = reply.rpartition(" ")[2]
        words = [*OPTIONS, "CANNOT BE TOLD", "SEVERAL"][LETTERS.index(letter)]
        return reply.replace(f"ANSWER: {letter}", f"ANSWER: {words.replace('red', 'scarlet')}")


async def alike(question: str, candidate: str, references: tuple[str, ...]) -> bool | None:
    known = {"scarlet": "red" in references, "yellow": None}
    return known.get(candidate, candidate in references)


OPEN: dict[str, Any] = {"options": (), "answer_index": None}


@pytest.mark.parametrize(("world", "reason"), FALLS)
def test_drops_without_options_have_the_same_reasons(world: World, reason: str) -> None:
    done = run_sight(InWords(world), judge=alike, **OPEN)
    assert (done.drop or "").startswith(f"sight: {reason}")


@pytest.mark.parametrize("true", [SCENE, ELSEWHERE])
def test_without_options_the_judge_grades_answers(true: Span) -> None:
    done = run_sight(InWords({"red": [true]}), judge=alike, **OPEN)
    assert done.drop is None
    assert done.metrics["sight_passed"] == 1
    assert done.metrics["sight_needed"] == 1
    assert max(abs(a.start - b.start) for a, b in zip(done.evidence, [true], strict=True)) <= 1
    assert len(done.repairs) == (true is ELSEWHERE)
    assert {json.loads(v.detail)["chose"] for v in done.verdicts} <= {"right", CANNOT}
    assert all(v.reply for v in done.verdicts)


@pytest.mark.parametrize(
    "changes",
    [
        {},  # without a judge
        {"judge": alike, "scoring_points": ("It is red.",)},
        {"judge": alike, "answer": "red " * 99},
    ],
)
def test_questions_that_no_judge_can_grade_are_not_looked_at(changes: Mapping[str, Any]) -> None:
    done = run_sight(InWords({"red": [SCENE]}), **{**OPEN, **changes})
    assert done.drop is None
    assert [json.loads(v.detail) for v in done.verdicts] == [
        {"unread": "no judge can compare answers with this one"}
    ]
    assert done.metrics["sight_unverified"] == 1


def test_an_answer_that_the_judge_cannot_grade_is_not_a_vote() -> None:
    done = run_sight(InWords({"yellow": [SCENE]}), judge=alike, **OPEN)
    assert (done.drop, done.metrics["sight_unverified"]) == (None, 1)


def test_the_search_for_the_fewest_frames_begins_blind() -> None:
    """The first look of the search shows nothing of the video, not even a line."""
    verifier = ScriptedVerifier({"red": [SCENE]})
    done = run_sight(verifier, Sight(needed=False, fewest=True))
    asked = [json.loads(v.detail)["condition"] for v in done.verdicts]
    first = verifier.looks[asked.index("blind")]
    assert (first.variables["frames"], first.variables["lines"]) == ((), ())
    assert "Nothing of it is before you" in first.messages[-1].text
    assert asked.index("blind") == 2  # behind the two looks at the evidence


def test_a_variant_counts_as_the_answer() -> None:
    async def exactly(question: str, candidate: str, references: tuple[str, ...]) -> bool:
        return candidate in references

    given = InWords({"red": [SCENE]})
    assert "disputed" in (run_sight(given, judge=exactly, **OPEN).drop or "")
    assert run_sight(given, judge=exactly, variants=("scarlet",), **OPEN).drop is None
