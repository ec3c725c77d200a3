"""Sight: each verdict that a question can get, and how looks decide."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.calls.llm import Asker, Request
from mustsee.errors import UserError
from mustsee.prompts import Prompts
from mustsee.records import Caption, Line, Question, Span, Verdict, Video, Word
from mustsee.verify.conditions.seen import Condition, FramePlan
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.filters import Judges, VettingContext, ignore_count
from mustsee.verify.look_replies import (
    CANNOT,
    HOLDS,
    NO_OPTION,
    OPEN,
    PREMISE,
    RIGHT,
    SEVERAL,
    WRONG,
    Choice,
    OptionVerdict,
    look_form,
    say,
)
from mustsee.verify.looks import LookReply, VerifierSession
from mustsee.verify.sight import Sight
from tests.support.verifier import (
    CANNOT_TELL,
    ELSEWHERE,
    OPTIONS,
    PROSE,
    SCENE,
    SECONDS,
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


def details(done: Question) -> list[dict[str, Any]]:
    return [json.loads(v.detail) for v in done.verdicts]


def conditions(done: Question) -> list[str]:
    return [detail["condition"] for detail in details(done)]


Say = Callable[[Request], str]


@dataclass
class Says(ScriptedVerifier):
    """A verifier whose looks of some numbers, from 1, are answered otherwise."""

    says: Mapping[int, Say] = field(default_factory=dict[int, Say])

    def look(self, request: Request) -> str:
        usual = super().look
        return self.says.get(len(self.looks), usual)(request)


def chooses(*fits: str) -> Say:
    """Return a reply by which these options are right, and all others wrong."""

    def reply(request: Request) -> str:
        right, other = OptionVerdict(RIGHT, (SCENE,)), OptionVerdict(WRONG)
        return say([right if o in fits else other for o in request.variables["options"]], "so")

    return reply


def denies(premise: str) -> Say:
    """Return a reply by which red is right, but the premise is not so."""
    return lambda request: chooses("red")(request).replace(HOLDS, premise)


def always(reply: Say) -> dict[int, Say]:
    return dict.fromkeys(range(1, 20), reply)


def test_a_question_with_needed_and_sufficient_evidence_is_kept_after_two_looks() -> None:
    verifier = ScriptedVerifier({"red": [SCENE]})
    done = run_sight(verifier)
    assert done.drop is None
    assert done.evidence == (SCENE,)
    assert done.metrics["sight_passed"] == done.metrics["sight_right"] == 1
    assert done.metrics["sight_needed"] == 1
    assert conditions(done) == ["without_evidence", "evidence"]
    assert len(verifier.asked) == 2
    frames = [t for detail in details(done) for t in detail["frames"]]
    assert done.metrics["sight_frames"] == len(frames) <= 80
    assert len(run_sight(verifier, Sight(needed=False)).verdicts) == 1


FALLS: list[tuple[World, str]] = [
    ({"red": [SCENE], "blue": [SCENE]}, "more than one option fits"),
    ({"red": [ELSEWHERE], "blue": [ELSEWHERE]}, "more than one option fits"),
    ({"red": [SCENE], "blue": [ELSEWHERE]}, "more than one option fits"),
    ({"blue": [SCENE]}, "answer disputed: 'blue'"),
    ({"blue": [ELSEWHERE]}, "answer disputed: 'blue'"),
    ({"blue": [Span(44.0, 45.0)]}, "answer disputed: 'blue'"),  # too short to be seen from afar
    ({}, "cannot be told"),
]
SAID: list[tuple[Say, str]] = [
    (chooses("red", "blue"), "more than one option fits"),
    (chooses("blue"), "answer disputed: 'blue' is chosen"),
    (chooses(), "answer disputed: every option is wrong"),
    (denies("there are four kites"), "the premise does not hold: there are four kites"),
    (lambda _: CANNOT_TELL, "cannot be told: right in 0 of 2 looks"),
]


@pytest.mark.parametrize(("reply", "reason"), SAID)
def test_each_contrary_verdict_drops_the_question(reply: Say, reason: str) -> None:
    done = run_sight(Says({}, says=always(reply)))
    assert (done.drop or "").startswith(f"sight: {reason}")
    assert (done.metrics["sight_passed"], done.metrics["sight_right"]) == (0, 0)
    assert done.metrics.get("sight_unverified") is None


@pytest.mark.parametrize(("reply", "reason"), SAID[:-1])
def test_a_contrary_look_is_confirmed_by_most_of_the_looks(reply: Say, reason: str) -> None:
    """The look at the evidence is contrary: two others, which are right, outvote it; with one more
    that agrees with it, the question is dropped.
    """
    alone = run_sight(Says({"red": [SCENE]}, says={2: reply}))
    assert (alone.drop, alone.metrics["sight_right"]) == (None, pytest.approx(2 / 3))
    chats = [detail.get("earlier frames", 0) > 0 for detail in details(alone)]
    assert chats == [False, True, False, False]
    two = run_sight(Says({"red": [SCENE]}, says={2: reply, 4: reply}))
    assert (two.drop or "").startswith(f"sight: {reason.partition(':')[0]}")
    at_once = run_sight(Says({"red": [SCENE]}, says={2: reply}), Sight(runs=1))
    assert (at_once.drop or "").startswith(f"sight: {reason.partition(':')[0]}")


@pytest.mark.parametrize(
    "reply", [chooses("blue"), chooses("red", "blue"), chooses(), denies("no")]
)
def test_a_contrary_look_of_an_earlier_turn_makes_the_last_one_doubted(reply: Say) -> None:
    kept = run_sight(Says({"red": [SCENE]}, says={1: reply}))
    assert kept.drop is None
    assert kept.metrics["sight_needed"] == 1
    assert conditions(kept) == ["without_evidence", "evidence", "whole"]
    outvoted = run_sight(Says({"red": [SCENE]}, says={1: reply, 3: reply, 4: reply}))
    assert (outvoted.drop or "").startswith("sight: ")
    assert len(outvoted.verdicts) == 4
    open_ = run_sight(Says({"red": [SCENE]}, says={1: lambda _: CANNOT_TELL}))
    assert len(open_.verdicts) == 2  # a look that leaves it open is no contrary one


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


def leaves_open(start: float, end: float) -> Say:
    """Return a reply by which all is open, and this stretch is to be looked at."""
    options = [OptionVerdict(OPEN, (Span(start, end),))] * 5
    return lambda request: say(options, "not sharp enough")


def test_what_a_look_leaves_open_is_shown_densely() -> None:
    verifier = Says({"red": [SCENE]}, says={2: leaves_open(100.0, 102.0)})
    done = run_sight(verifier)
    assert done.drop is None
    assert conditions(done)[:3] == ["without_evidence", "evidence", "evidence"]
    close = verifier.looks[2]
    near = sorted(close.variables["frames"])
    assert near[0] < 100
    assert near[-1] > 102
    assert max(b - a for a, b in pairwise(near)) <= 0.55
    assert "Of 99.0-103.0 s you have one every 0.5 s" in close.messages[-1].text


@pytest.mark.parametrize(("end", "shown"), [(102.0, True), (130.0, False)])
def test_short_stretches_left_open_without_the_evidence_are_shown_beside_it(
    end: float, shown: bool
) -> None:
    """Most is open then, and the evidence may decide it: long stretches wait."""
    verifier = Says({"red": [SCENE]}, says={1: leaves_open(100.0, end)})
    assert run_sight(verifier).drop is None
    assert len(verifier.looks) == 2
    assert any(100 < t < 102 for t in verifier.looks[1].variables["frames"]) == shown


def test_looks_at_what_stays_open_end() -> None:
    always_open = [lambda _: CANNOT_TELL, leaves_open(100.0, 104.0), leaves_open(0.0, 300.0)]
    for reply in always_open:
        done = run_sight(Says({}, says=always(reply)))
        assert (done.drop or "").startswith("sight: cannot be told")
        assert len(done.verdicts) <= 8


def test_missing_evidence_is_found() -> None:
    done = run_sight(ScriptedVerifier({"red": [ELSEWHERE]}), evidence=())
    (found,) = done.evidence
    assert done.drop is None
    assert max(abs(found.start - ELSEWHERE.start), abs(found.end - ELSEWHERE.end)) <= 1
    assert done.metrics["sight_needed"] == 1


@pytest.mark.parametrize("also", [None, Span(250.0, 262.0)])
def test_replaced_evidence_is_shown_to_be_needed_by_a_look_without_it(also: Span | None) -> None:
    """The answer shows in one place, or also in another that the verifier does not name."""

    class NamesOne(ScriptedVerifier):
        def look(self, request: Request) -> str:
            reply = super().look(request)
            *first, second = reply.split("; ")
            return f"{first[0]}\n{second.partition(chr(10))[2]}" if first else reply

    verifier = NamesOne({"red": [ELSEWHERE, *([also] if also else [])]})
    done = run_sight(verifier)
    assert done.drop is None
    assert abs(done.evidence[0].start - ELSEWHERE.start) <= 1
    moved = verifier.looks[-1]
    (cut,) = moved.variables["cuts"]
    assert (cut.start, cut.end) == (done.evidence[0].start - 2, done.evidence[0].end + 2)
    assert moved.variables["earlier_frames"] == ()
    assert done.metrics["sight_needed"] == (also is None)


def test_an_answer_visible_everywhere_needs_no_evidence() -> None:
    verifier = ScriptedVerifier({"red": [Span(0.0, SECONDS)]})
    assert run_sight(verifier).drop is None
    assert run_sight(verifier).metrics["sight_needed"] == 0
    fallen = run_sight(verifier, Sight(drop_unneeded=True))
    assert fallen.drop == "sight: the evidence is not needed"


@pytest.mark.parametrize(
    ("spoil", "looks"),
    [
        ({}, 1),
        ({1: PROSE}, 2),  # no vote: another look takes its place
        ({1: PROSE, 2: PROSE}, 4),  # two looks from all frames at once have to agree
        ({1: CANNOT_TELL}, 2),  # frames at the times between
        ({1: CANNOT_TELL, 2: PROSE}, 3),
    ],
)
def test_single_faulty_looks_do_not_decide(spoil: Mapping[int, str], looks: int) -> None:
    done = run_sight(ScriptedVerifier({"red": [SCENE]}, spoil), Sight(needed=False))
    assert done.drop is None
    assert len(done.verdicts) == looks


def test_without_parseable_replies_a_question_is_unverified() -> None:
    for needed, looks in ((True, 2), (False, 6)):
        verifier = ScriptedVerifier({}, dict.fromkeys(range(1, 20), PROSE))
        done = run_sight(verifier, Sight(needed=needed))
        assert done.drop is None
        assert done.metrics["sight_unverified"] == 1
        assert "sight_passed" not in done.metrics
        assert len(done.verdicts) == looks
        assert all(v.correct is None for v in done.verdicts)


@pytest.mark.parametrize("evidence", [SCENE, ELSEWHERE, Span(0.0, 60.0)])
@pytest.mark.parametrize("world", [{"red": [SCENE]}, *(world for world, _ in FALLS)])
def test_no_frame_is_sent_twice_in_a_chat(world: World, evidence: Span) -> None:
    """Only a confirming look shows all frames at once, in a request of its own."""
    verifier, line = ScriptedVerifier(world), Line(start=100.0, end=104.0, text="Here it goes.")
    done = run_sight(verifier, video=replace(row(), lines=(line,)), evidence=(evidence,))
    shown: set[float] = set()
    for request, detail in zip(verifier.looks, details(done), strict=True):
        sent = [float(jpeg) for message in request.messages for jpeg in message.images]
        assert len({*sent}) == len(sent)
        assert sent == [*request.variables["earlier_frames"], *request.variables["frames"]]
        assert sum("Here it goes" in message.text for message in request.messages) == 1
        in_chat = bool(request.variables["earlier_frames"])
        assert in_chat == ("More of the same video" in request.messages[-1].text)
        assert detail.get("earlier frames", 0) == len(request.variables["earlier_frames"])
        if detail["condition"] == "whole" and not in_chat:
            assert shown <= {*sent}
        if not request.variables["cuts"]:
            shown |= {*sent}
            assert any(evidence.start <= t <= evidence.end for t in sent)
            assert max(b - a for a, b in pairwise(sorted(sent))) < 15


def test_the_evidence_is_shown_together_with_the_rest() -> None:
    """The first look has nothing of the evidence, and every other one has all of both."""
    verifier = ScriptedVerifier({"blue": [SCENE]})
    run_sight(verifier)
    first, *others = verifier.looks
    assert not any(38 <= t <= 52 for t in first.variables["frames"])
    assert len(others) == 2
    for request in others:
        sent = {*request.variables["earlier_frames"], *request.variables["frames"]}
        assert {*first.variables["frames"]} < sent
        assert sum(40 <= t <= 50 for t in sent) >= 10
    alone = ScriptedVerifier({"red": [SCENE]})
    run_sight(alone, Sight(needed=False))
    (only,) = alone.looks
    assert sum(40 <= t <= 50 for t in only.variables["frames"]) >= 10
    assert max(b - a for a, b in pairwise(only.variables["frames"])) < 10


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
            times = (*request.variables["earlier_frames"], *request.variables["frames"])
            both = all(any(s.start <= t < s.end for t in times) for s in (SCENE, ELSEWHERE))
            return chooses("red")(request) if both else CANNOT_TELL

    done = run_sight(Both({}), Sight(fewest=True), evidence=(SCENE, ELSEWHERE))
    assert done.drop is None
    assert done.metrics["min_seconds"] > 150
    assert done.metrics["min_frames"] > 1


def test_a_question_answered_blind_needs_no_frames() -> None:
    @dataclass
    class Knows(ScriptedVerifier):
        def look(self, request: Request) -> str:
            return chooses("red")(request)

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


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(UserError, match=r"sight\.runs"):
        Sight(runs=0)
    with pytest.raises(UserError, match="fewest"):
        Sight(drop_below_seconds=10.0)


EVERY: list[Choice | None] = [None, 0, 1, 2, CANNOT, SEVERAL, NO_OPTION, PREMISE]


class Drawn(VerifierSession):
    """A session whose looks choose what is given."""

    def __init__(self, choices: Sequence[Choice | None], runs: int) -> None:
        self.choices, self.runs, self.answer, self.made = choices, runs, 0, 0

    async def look(self, *given: object, **_: object) -> LookReply:
        self.made += 1
        return reply_of(self.choices[self.made])


def reply_of(choice: Choice | None) -> LookReply:
    return LookReply(choice=choice, verdict=Verdict(filter="", model=""))


@given(st.data(), st.integers(1, 5), st.booleans())
def test_looks_end_and_most_of_them_decide(data: st.DataObject, runs: int, doubted: bool) -> None:
    drawn = data.draw(st.lists(st.sampled_from(EVERY), min_size=11, max_size=11))
    session = Drawn(drawn, runs)
    settled = session.settle(FramePlan(spans=()), Condition(), reply_of(drawn[0]), doubted=doubted)
    votes = asyncio.run(settled)
    chosen = [x.choice for x in votes.looks]
    assert chosen == drawn[: len(chosen)]
    assert len(chosen) <= 2 * runs
    if drawn[0] == 0 and not doubted:
        assert (votes.right, len(chosen)) == (True, 1)
    elif votes.chosen is not None:
        assert 2 * chosen.count(votes.chosen) > min(runs, votes.read)
    assert (
        votes.chosen is not None
        or 2 * max(map(chosen.count, EVERY[1:])) <= runs
        or (votes.read < runs)
    )
    assert votes.share == pytest.approx(chosen.count(0) / max(1, votes.read))


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


def test_words_spoken_in_a_cut_are_left_out_and_the_prompt_says_so() -> None:
    """A line that begins in a cut and ends after it would reveal the cut content."""
    verifier = ScriptedVerifier({"red": [SCENE]})
    words = tuple(
        Word(49.0 + n, 49.9 + n, word, 1.0)
        for n, word in enumerate(["See", "the", "red", "kite", "go"])
    )
    line = Line(start=49.0, end=53.9, text="See the red kite go", words=words)
    done = run_sight(verifier, video=replace(row(), lines=(line,)))
    assert done.drop is None
    first, second = verifier.looks
    assert [x.text for x in first.variables["lines"]] == ["kite go"]
    assert "cut out, with pictures and speech: 38.0-52.0 s" in first.messages[-1].text
    assert [x.text for x in second.variables["lines"]] == ["See the red kite go"]


def test_the_prompt_says_how_densely_each_stretch_is_shown() -> None:
    verifier = ScriptedVerifier({"red": [SCENE]})
    run_sight(verifier)
    first, second = (r.messages[-1].text for r in verifier.looks)
    gap = (SECONDS - 14) / len(verifier.looks[0].variables["frames"])
    assert f"You have one picture every {gap:.1f} s of it; what is shorter may lie" in first
    assert "With the earlier pictures you have one picture every" in second
    close = [t for t in (*verifier.looks[1].variables["earlier_frames"],
                         *verifier.looks[1].variables["frames"]) if 40 <= t <= 50]  # fmt: skip
    assert f"Of 40.0-50.0 s you have one every {10 / len(close):.1f} s." in second


CAPTION = Caption(time=150.0, text="A red kite rises over a hill.")


@pytest.mark.parametrize(
    ("asked", "dense"),
    [("How many times does a red kite rise?", True), ("Which colour is the kite?", False)],
)
def test_a_wide_question_is_looked_at_where_captions_name_it(asked: str, dense: bool) -> None:
    verifier = ScriptedVerifier({"red": [SCENE]})
    video = replace(row(), captions=(CAPTION, Caption(time=90.0, text="A grey street.")))
    done = run_sight(verifier, video=video, question=asked)
    assert done.drop is None
    near = [t for t in verifier.looks[1].variables["frames"] if 148.5 <= t <= 151.5]
    assert (len(near) >= 5) == dense
    assert not [t for t in verifier.looks[1].variables["frames"] if 88 <= t <= 92]
    none = ScriptedVerifier({"red": [SCENE]})
    run_sight(none, Sight(candidates=0), video=video, question=asked)
    assert not [t for t in none.looks[1].variables["frames"] if 148.5 <= t <= 151.5]


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
        parsed = look_form(5).read(super().look(replace(request, variables=options)))
        answer = {CANNOT: "CANNOT BE TOLD", SEVERAL: "SEVERAL"}.get(str(parsed.choice), "")
        if isinstance(parsed.choice, int):
            answer = OPTIONS[parsed.choice].replace("red", "scarlet")
        named = "; ".join(f"{s.start}-{s.end}" for s in parsed.evidence) or "NONE"
        return (
            f"* SEEN: so\n* PREMISE: {HOLDS}\n* EVIDENCE: {named}\n* LOOK: NONE\n* ANSWER: {answer}"
        )


async def alike(question: str, candidate: str, references: tuple[str, ...]) -> bool | None:
    known = {"scarlet": "red" in references, "yellow": None}
    return known.get(candidate, candidate in references)


IN_WORDS: dict[str, Any] = {"options": (), "answer_index": None}


@pytest.mark.parametrize(("world", "reason"), FALLS)
def test_drops_without_options_have_the_same_reasons(world: World, reason: str) -> None:
    done = run_sight(InWords(world), judge=alike, **IN_WORDS)
    assert (done.drop or "").startswith(f"sight: {reason}")


@pytest.mark.parametrize("true", [SCENE, ELSEWHERE])
def test_without_options_the_judge_grades_answers(true: Span) -> None:
    done = run_sight(InWords({"red": [true]}), judge=alike, **IN_WORDS)
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
    done = run_sight(InWords({"red": [SCENE]}), **{**IN_WORDS, **changes})
    assert done.drop is None
    assert [json.loads(v.detail) for v in done.verdicts] == [
        {"unread": "no judge can compare answers with this one"}
    ]
    assert done.metrics["sight_unverified"] == 1


def test_an_answer_that_the_judge_cannot_grade_is_not_a_vote() -> None:
    done = run_sight(InWords({"yellow": [SCENE]}), judge=alike, **IN_WORDS)
    assert (done.drop, done.metrics["sight_unverified"]) == (None, 1)


def test_the_search_for_the_fewest_frames_begins_blind() -> None:
    """The first look of the search shows nothing of the video, not even a line."""
    verifier = ScriptedVerifier({"red": [SCENE]})
    done = run_sight(verifier, Sight(needed=False, fewest=True))
    asked = [json.loads(v.detail)["condition"] for v in done.verdicts]
    first = verifier.looks[asked.index("blind")]
    assert (first.variables["frames"], first.variables["lines"]) == ((), ())
    assert "You are shown nothing of it" in first.messages[-1].text
    assert asked.index("blind") == 1  # behind the look at the evidence


def test_a_variant_counts_as_the_answer() -> None:
    async def exactly(question: str, candidate: str, references: tuple[str, ...]) -> bool:
        return candidate in references

    given = InWords({"red": [SCENE]})
    assert "disputed" in (run_sight(given, judge=exactly, **IN_WORDS).drop or "")
    assert run_sight(given, judge=exactly, variants=("scarlet",), **IN_WORDS).drop is None
