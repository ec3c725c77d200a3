"""Claims, open questions and wordings, on a made-up story with a scripted model."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from mustsee.calls.llm import Asker, Reply, Request
from mustsee.calls.usage import RequestTally
from mustsee.errors import BadRow, Transient, UserError
from mustsee.facts.claims import CLAIM_LISTS, LOOSE_CLAIMS, list_claims
from mustsee.facts.deep import (
    ask_deep,
    limit_texts,
    set_apart,
    settings_for_composed,
)
from mustsee.facts.extract import make_fact
from mustsee.facts.forms.after import AfterForm
from mustsee.facts.forms.whole import QuarterForm
from mustsee.facts.mix import Skill, allot, read_mix
from mustsee.facts.select import Chosen, ChosenGroup
from mustsee.facts.settings import ChoiceRules, ClaimRules, DeepRules, FactSettings, PointRules
from mustsee.facts.stem import Stem
from mustsee.facts.table import TruthTable
from mustsee.facts.weigh import CLAIM_LOOKS, weigh_claims
from mustsee.facts.wording import NOT_WORDED, WORDINGS, word_groups
from mustsee.facts.work import VideoWork
from mustsee.prompts import Prompts
from mustsee.records import (
    COUNTED,
    GIVEN,
    UNREACHED,
    AlteredClaim,
    Claim,
    Fact,
    Provenance,
    Question,
    Span,
    Video,
)
from tests.facts.tables import work_on

STORY = Path(__file__).parents[2] / "examples" / "story.json"
VIDEO = Video(video_id="v", uri="v.mp4", duration=240.0)
MOMENTS = tuple(Span(6.0 * n, 6.0 * n + 6) for n in range(40))
FACTS = tuple(
    make_fact("event", f"a man moves the thing number {n}", [Span(6.0 * n, 6.0 * n + 5)], "m")
    for n in range(40)
)
TABLE = TruthTable(facts=FACTS, moments=MOMENTS, scenes=(0,) * 40)
BY = Provenance(llm="m", prompts="p")


class Frames:
    async def jpegs(self, times: Sequence[float], see: Any) -> tuple[bytes, ...]:
        return tuple(b"jpeg" for _ in times)


FRAMES: Any = Frames()


@dataclass
class Model:
    """Replies by a function for each prompt; remembers the requests."""

    replies: Mapping[str, Callable[[Request], str]]
    requests: list[Request] = field(default_factory=list[Request])
    identity: str = "model"

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        replies = {"facts/parts": parts_reply(), **self.replies}
        return Reply(text=replies[request.prompt](request), model="model")

    def asker(self) -> Asker:
        return Asker(llm=self, prompts=Prompts(), tries=1)

    def of(self, prompt: str) -> list[Request]:
        return [request for request in self.requests if request.prompt == prompt]


def counter(asker: Asker) -> tuple[Counter[str], VideoWork]:
    """Return counts, and the work that adds to them; of requests, the unread ones are counted."""
    counts = Counter[str]()

    class Tally(RequestTally):
        def add_unread(self, what: str, error: Exception, number: int = 1) -> None:
            super().add_unread(what, error, number)
            counts[what] += number

    def add(name: str, number: int) -> None:
        counts[name] += number

    return counts, work_on(VIDEO, FRAMES, asker, by=BY, requests=Tally(), count=add)


def claim(number: int, facts: Sequence[Fact], *, wrong: bool = False, kind: str = "cause") -> Claim:
    """A claim whose text says whether it is right, for the scripted verifier."""
    mark = "wrongly" if wrong else "rightly"
    altered = tuple(
        AlteredClaim(change=change, text=f"The thing {number} goes wrongly because of {change}.")
        for change in ("role", "order")
    )
    return Claim(
        claim_id=f"c{number}", kind=kind, text=f"The thing {number} goes {mark}.",
        facts=tuple(fact.fact_id for fact in facts), altered=altered, source="m",
    )  # fmt: skip


def weigh_reply(
    noise: float = 0.0,
    kind: str = "",
    is_right: Callable[[str], bool] = lambda text: "rightly" in text,
) -> Callable[[Request], str]:
    """A verifier who knows what is right, but for a share of its verdicts."""

    def reply(request: Request) -> str:
        rng = random.Random(f"{request.seed}/{request.variables['statements'][0]}")
        lines: list[str] = []
        for n, text in enumerate(request.variables["statements"], 1):
            verdict = "HOLDS" if is_right(text) else "DOES NOT HOLD"
            if rng.random() < noise:
                others = {"HOLDS", "DOES NOT HOLD", "CANNOT BE TOLD"} - {verdict}
                verdict = kind or rng.choice(sorted(others))
            span = request.variables["spans"][0]
            where = f"{span.start:.1f}-{span.end:.1f}" if verdict == "HOLDS" else "NONE"
            lines.append(f"STATEMENT {n}: {verdict} | {where} | so")
        return "\n".join(lines)

    return reply


def parts_reply(noise: float = 0.0) -> Callable[[Request], str]:
    """A verifier who finds all parts, but one of four of a share of the claims."""

    def reply(request: Request) -> str:
        rng = random.Random(f"{request.seed}/{request.variables['statements'][0]}/parts")
        lines: list[str] = []
        for n, text in enumerate(request.variables["statements"], 1):
            verdicts = ["SHOWN"] * 4
            if rng.random() < noise:
                verdicts[rng.randrange(4)] = rng.choice(("WRONG", "NOT SHOWN"))
            parts = zip((text, "boat", "harbour", "night"), verdicts, strict=True)
            lines += [f"PART {n}: {part} | {verdict} | 3.0: so" for part, verdict in parts]
        return "\n".join(lines)

    return reply


def rank_reply(request: Request) -> str:
    """A guesser who takes the option that the alphabet puts first."""
    lines: list[str] = []
    for n, one in enumerate(request.variables["asked"], 1):
        order = sorted(range(len(one["options"])), key=lambda k: one["options"][k])
        lines.append(f"QUESTION {n}: {' > '.join('ABCDE'[k] for k in order)} | so")
    return "\n".join(lines)


def weigh(
    claims: Sequence[Claim], model: Model, rules: ClaimRules | None = None
) -> tuple[tuple[Claim, ...], Counter[str]]:
    counts, work = counter(model.asker())
    done = asyncio.run(weigh_claims(work, TABLE, claims, rules or ClaimRules()))
    return done, counts


def pair(number: int) -> tuple[Fact, Fact]:
    return FACTS[number % 40], FACTS[(number + 17) % 40]


def test_planted_wrong_claims_are_found_and_right_ones_kept_by_a_noisy_verifier() -> None:
    """Of ten verdicts one is spoilt. At least 95 % of wrong claims fall; at most 5 % of the right
    ones are lost.
    """
    claims = [claim(n, pair(n), wrong=n % 3 == 0) for n in range(600)]
    model = Model(
        {"facts/weigh": weigh_reply(0.1), "facts/parts": parts_reply(0.1), "facts/rank": rank_reply}
    )
    done, counts = weigh(claims, model)
    wrong = [c for c in done if "wrongly" in c.text]
    right = [c for c in done if "rightly" in c.text]
    assert sum(c.drop is None for c in wrong) <= 0.05 * len(wrong)
    assert sum(c.drop is not None for c in right) <= 0.05 * len(right)
    assert counts["claims that hold"] == sum(c.drop is None for c in done)
    looks = [request.seed for request in model.of("facts/weigh")]
    assert looks.count(1) == looks.count(2) == 600 / ClaimRules().together
    assert 0 < looks.count(3) < looks.count(1) + 1


@pytest.mark.parametrize("change", ["role", "order", "cause", "object", "outcome", "purpose"])
def test_wrong_claims_of_the_drawn_story_are_found(change: str) -> None:
    """Its 46 claims, each with its wrong version, and those of one kind the other way round: the
    wrong version is claimed, and the right one an altered version. Over ten draws of the noise.
    """
    told = json.loads(STORY.read_text(encoding="utf-8"))["claims"]
    right = {one["claim"] for one in told}
    claims: list[Claim] = []
    for draw in range(10):
        for n, one in enumerate(told):
            texts = one["claim"], one["wrong"]["claim"]
            if one["wrong"]["changed"] == change:
                texts = texts[::-1]
            altered = AlteredClaim(change=change, text=f"{texts[1]} ({draw})")
            facts = tuple(fact.fact_id for fact in pair(n))
            claims.append(Claim(claim_id=f"c{draw}/{n}", kind="cause", text=f"{texts[0]} ({draw})",
                                facts=facts, altered=(altered,), source="m"))  # fmt: skip

    def is_right(text: str) -> bool:
        return text.rpartition(" (")[0] in right

    model = Model(
        {"facts/weigh": weigh_reply(0.1, is_right=is_right), "facts/parts": parts_reply(0.1),
         "facts/rank": rank_reply}
    )  # fmt: skip
    done, _ = weigh(claims, model)
    planted = [c for c in done if not is_right(c.text)]
    others = [c for c in done if is_right(c.text)]
    assert len(planted) >= 10 * 4
    assert sum(c.drop is not None for c in planted) >= 0.95 * len(planted)
    assert sum(c.drop is None for c in others) >= 0.95 * len(others)


def test_versions_are_shown_in_one_list_and_in_another_order_in_each_of_two_looks() -> None:
    model = Model({"facts/weigh": weigh_reply(), "facts/rank": rank_reply})
    done, _ = weigh([claim(n, pair(n)) for n in range(4)], model)
    first, second = model.of("facts/weigh")
    assert len(first.variables["statements"]) == 4 * 3
    assert first.variables["statements"] != second.variables["statements"]
    assert sorted(first.variables["statements"]) == sorted(second.variables["statements"])
    for one in pair(0):
        (span,) = one.spans
        assert any(s.start <= span.start and span.end <= s.end for s in first.variables["spans"])
    assert {c.drop for c in done} == {None}
    assert {a.holds for c in done for a in c.altered} == {False}
    assert all(c.shown for c in done)


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [("CANNOT BE TOLD", "cannot tell"), ("DOES NOT HOLD", "does not hold")],
)
def test_what_is_only_plausible_falls(verdict: str, reason: str) -> None:
    def reply(request: Request) -> str:
        texts = request.variables["statements"]
        return "\n".join(f"STATEMENT {n}: {verdict} | NONE | so" for n, _ in enumerate(texts, 1))

    (done,), _ = weigh([claim(1, pair(1))], Model({"facts/weigh": reply, "facts/rank": rank_reply}))
    assert done.drop is not None
    assert reason in done.drop


def test_a_claim_beside_which_an_altered_version_holds_falls() -> None:
    both = replace(
        claim(1, pair(1)), altered=(AlteredClaim(change="order", text="It comes rightly first."),)
    )
    model = Model({"facts/weigh": weigh_reply(), "facts/rank": rank_reply})
    (done,), _ = weigh([both], model)
    assert done.drop == "an altered version (order) holds, too"


def test_each_look_at_a_claim_sees_frames_between_those_of_the_others() -> None:
    model = Model({"facts/weigh": weigh_reply(), "facts/rank": rank_reply})
    weigh([claim(1, pair(1)), claim(2, pair(2), kind="never")], model)
    times = [set(request.variables["frames"]) for request in model.of("facts/weigh")]
    assert len(times) == 4
    assert all(times)
    assert not times[0] & times[2]
    assert not times[1] & times[3]


def test_that_something_never_happens_is_weighed_on_the_whole_video() -> None:
    model = Model({"facts/weigh": weigh_reply(), "facts/rank": rank_reply})
    weigh([claim(1, pair(1)), claim(2, pair(2), kind="never")], model)
    spans = {request.variables["spans"] for request in model.of("facts/weigh")}
    assert (Span(0.0, 240.0),) in spans
    assert len(spans) == 2


def test_a_reader_without_the_video_says_which_claims_plausibility_tells() -> None:
    likely = replace(claim(1, pair(1)), text="A thing goes rightly.")
    model = Model({"facts/weigh": weigh_reply(), "facts/rank": rank_reply})
    done, counts = weigh([likely, claim(2, pair(2))], model)
    assert [c.plausible for c in done] == [True, True]
    assert [c.drop for c in done] == [None, None], "it is reported, and drops nothing"
    assert counts["claims that hold and are told by plausibility"] == 2


def test_looks_that_cannot_be_read_are_counted_and_all_of_them_are_a_problem() -> None:
    def some(request: Request) -> str:
        lost = request.seed == 1 and "The thing 0 goes rightly." in request.variables["statements"]
        return "I cannot see that." if lost else weigh_reply()(request)

    claims = [claim(n, pair(n)) for n in range(4)]
    rules = ClaimRules(together=2)
    done, counts = weigh(claims, Model({"facts/weigh": some, "facts/rank": rank_reply}), rules)
    assert counts[CLAIM_LOOKS] == 1
    assert {c.drop for c in done} == {None}, "a third look decides"
    with pytest.raises(BadRow, match="facts/weigh"):
        weigh(claims, Model({"facts/weigh": lambda r: "No.", "facts/rank": rank_reply}), rules)


def test_a_lost_connection_is_not_an_unread_reply() -> None:
    def lost(request: Request) -> str:
        raise Transient("lost")

    with pytest.raises(Transient):
        weigh([claim(1, pair(1))], Model({"facts/weigh": lost, "facts/rank": rank_reply}))


CLAIMS = """
CLAIM 1: cause | F1, F9 | The thing goes rightly since the man came.
ALTERED 1: cause | The thing goes wrongly since the dog came.
CLAIM 2: goal | F3 | The man wants it.
ALTERED 2: purpose | The man hates it.
CLAIM 3: link | F4, F5 | The man means the box.
"""


def list_all(model: Model, video: Video = VIDEO) -> tuple[tuple[Claim, ...], Counter[str]]:
    counts, work = counter(model.asker())
    rules = ClaimRules(part_seconds=300.0)
    done = list_claims(replace(work, video=video), TABLE, rules)
    return asyncio.run(done), counts


def test_a_claim_rests_on_two_facts_of_two_moments_and_has_altered_versions() -> None:
    model = Model({"facts/claims": lambda r: CLAIMS})
    claims, counts = list_all(model)
    drops = {c.kind: c.drop for c in claims}
    assert drops["cause"] is None
    assert drops["goal"] == "it rests on one fact"
    assert "no altered version" in (drops["link"] or "")
    assert counts[LOOSE_CLAIMS] == 2
    cause = next(c for c in claims if c.kind == "cause")
    assert cause.facts == (FACTS[0].fact_id, FACTS[8].fact_id)
    (request,) = model.requests
    assert len(request.messages[-1].images) == 64


def test_a_long_video_is_listed_part_by_part_and_as_a_whole() -> None:
    def reply(request: Request) -> str:
        return "No." if request.variables["span"] == Span(0.0, 300.0) else CLAIMS

    model = Model({"facts/claims": reply})
    claims, counts = list_all(model, replace(VIDEO, duration=600.0))
    spans = [request.variables["span"] for request in model.requests]
    assert spans == [Span(0.0, 300.0), Span(0.0, 600.0)], "the other half has no facts"
    assert len(claims) == 3
    assert counts[CLAIM_LISTS] == 1
    with pytest.raises(BadRow, match="facts/claims"):
        list_all(Model({"facts/claims": lambda r: "No."}))


@dataclass
class Story:
    """A scripted model of a whole run: it lists twelve claims, and asks two questions of six each.

    `blind`, `seen`: numbers of the claims that a reader without and with the video says.
    """

    blind: frozenset[int] = frozenset()
    seen: frozenset[int] = frozenset(range(100))
    wrong: str = ""
    fault: str = "NONE"

    def claims(self, request: Request) -> str:
        lines: list[str] = []
        for n in range(1, 13):
            ids = f"F{n}, F{n + 14}, F{n + 27}"
            lines += [f"CLAIM {n}: thread | {ids} | The thing {n} goes rightly.",
                      f"ALTERED {n}: outcome | The thing {n} goes wrongly."]  # fmt: skip
        return "\n".join(lines)

    def questions(self, request: Request) -> str:
        texts = [claim.text for claim in request.variables["claims"]]
        lines = ["QUESTION 1: cause | What becomes of the first half?",
                 "QUESTION 2: goal | What becomes of the second half?"]  # fmt: skip
        for place, text in enumerate(texts, 1):
            (number,) = map(int, re.findall(r"\d+", text))
            lines.append(f"POINT {1 if number <= 6 else 2}: {1 + number % 3} | C{place}")
        return "\n".join(lines)

    def answer(self, request: Request) -> str:
        seen = "frames" in request.variables
        said = self.seen if seen else self.blind
        text = " ".join(f"<{n}>" for n in sorted(said))
        fault = f"{self.fault} | " if seen else ""
        asked = range(1, len(request.variables["asked"]) + 1)
        return "\n".join(f"ANSWER {n}: {fault}It is said {text}" for n in asked)

    def grade(self, request: Request) -> str:
        lines: list[str] = []
        answers = dict(zip("ABCD", request.variables["answers"], strict=False))
        for n, text in enumerate(request.variables["points"], 1):
            (number,) = re.findall(r"\d+", text)
            said = [x for x, answer in answers.items() if f"<{number}>" in answer]
            against = [x for x in answers if self.wrong and x not in said and number == "3"]
            verdicts = (", ".join(some) or "NONE" for some in (said, against))
            lines.append(f"POINT {n}: {' | '.join(verdicts)} | {self.wrong if against else ''}")
        for n, _ in enumerate(request.variables["statements"], 1):
            lines.append(f"STATEMENT {n}: NONE")
        return "\n".join(lines)

    def model(self) -> Model:
        return Model(
            {"facts/claims": self.claims, "facts/weigh": weigh_reply(), "facts/rank": rank_reply,
             "facts/questions": self.questions, "facts/edit": edit_reply(),
             "facts/best": order_reply, "facts/answer_blind": self.answer,
             "facts/answer_seen": self.answer, "facts/grade_answers": self.grade}
        )  # fmt: skip


def order_reply(request: Request) -> str:
    numbers = range(1, len(request.variables["asked"]) + 1)
    return f"BEST 1: {', '.join(map(str, numbers))}"


def edit_reply(*remarks: str) -> Reply:
    """A script of an editor who makes these remarks in turn, one a question, and then none."""
    left = list(remarks)

    def reply(request: Request) -> str:
        asked = range(1, len(request.variables["drafts"]) + 1)
        return "\n".join(f"QUESTION {n}: {left.pop(0) if left else 'none |'}" for n in asked)

    return reply


SETTINGS = FactSettings(
    forms={}, mix={"cause": 1, "goal": 1},
    deep=DeepRules(
        questions=2, least_questions=2,
        points=PointRules(spare=1.0, of_claim=2, least=4, left=3, most=8),
    ),
)  # fmt: skip
COMPOSED = Question(
    question_id="q", video_id="v", recipe="facts", question="What is next?", options=("a", "b"),
    question_type="Other", answer_index=0, answer="a",
)  # fmt: skip


def run_story(
    story: Story, settings: FactSettings = SETTINGS, model: Model | None = None
) -> tuple[tuple[Question, ...], Counter[str]]:
    counts, work = counter((model or story.model()).asker())
    deep = ask_deep(work, TABLE, settings)
    done = asyncio.run(deep)
    for each in done.missing:
        counts[f"missing {each.what}: {each.why}"] += each.number
    return done.questions, counts


def test_points_that_are_said_without_the_video_or_not_said_with_it_do_not_count() -> None:
    story = Story(blind=frozenset((1, 8)), seen=frozenset(range(100)) - {2, 8})
    first, second = run_story(story)[0]
    states = [point.state for q in (first, second) for point in q.points]
    texts = [point.text for q in (first, second) for point in q.points]
    by_text = dict(zip(texts, states, strict=True))
    assert by_text.pop("The thing 1 goes rightly.") == GIVEN
    assert by_text.pop("The thing 8 goes rightly.") == GIVEN
    assert by_text.pop("The thing 2 goes rightly.") == UNREACHED
    assert set(by_text.values()) == {COUNTED}
    assert (first.drop, second.drop) == (None, None)
    assert (first.skill, second.skill, first.form) == ("cause", "goal", "points")
    assert "The thing 1 goes" in first.answer, "it is guessed, but right"
    assert "The thing 2 goes" not in first.answer, "no viewer says it"
    assert first.depth == 4 * (1 + 3), "four claims, three facts each"
    assert all("wrongly" in text for text in first.contradictions)
    assert first.metrics["reach_seconds"] >= 30
    assert first.metrics["points_seen"] < 1
    own = [f for p in first.points if p.state == COUNTED for f in p.facts]
    assert len(own) == first.depth


def test_a_question_with_too_few_points_left_is_not_asked() -> None:
    questions, counts = run_story(Story(blind=frozenset((1, 2, 3, 4))))
    assert (questions[0].drop or "").startswith("exam: 2 of 6 points are left (4 said without")
    assert questions[1].drop is None
    assert counts["missing open questions of the skill cause: too few passed the exams"] == 1
    assert counts["points that a reader without the video said"] == 4


@pytest.mark.parametrize("said", [range(1, 7), range(1, 6), range(2, 6)])
def test_the_writer_s_answer_is_the_reference_with_what_counts_and_it_does_not_state(
    said: Sequence[int],
) -> None:
    story = Story()
    written = f"In my words {' '.join(f'<{n}>' for n in said)}"

    def answered(request: Request) -> str:
        return f"{story.questions(request)}\nANSWER 1: {written}"

    first, second = run_story(
        story, model=Model({**story.model().replies, "facts/questions": answered})
    )[0]
    unsaid = [point.text for n, point in enumerate(first.points, 1) if n not in said]
    assert first.answer == " ".join((written, *unsaid))
    assert "goes rightly." in second.answer, "without an answer by the writer, its points"


def test_a_point_that_a_viewer_contradicts_counts_in_no_question() -> None:
    """Both questions have the third claim as a point; the viewer of the first says otherwise."""
    story = Story()

    def both(request: Request) -> str:
        lines = story.questions(request).splitlines()
        place = next(line for line in lines if line.startswith("POINT 1: 1"))
        return "\n".join([*lines, place.replace("POINT 1", "POINT 2")])

    def grade(request: Request) -> str:
        lines = story.grade(request).splitlines()
        for n, text in enumerate(request.variables["points"]):
            if "first" in request.variables["question"] and " 3 " in text:
                seeing = next(x for x, a in zip("ABC", request.variables["answers"], strict=True)
                              if "<3>" in a)  # fmt: skip
                lines[n] = f"POINT {n + 1}: NONE | {seeing} | It goes otherwise."
        return "\n".join(lines)

    replies = {**story.model().replies, "facts/questions": both, "facts/grade_answers": grade}
    questions, _ = run_story(story, model=Model(replies))
    states = [p.state for q in questions for p in q.points if " 3 " in p.text]
    assert states == [UNREACHED, UNREACHED]


def test_an_answer_with_a_point_that_a_viewer_contradicts_is_not_published() -> None:
    """The writer's answer states all points that count, and a contradicted one, too."""
    story = Story()
    written = f"In my words {' '.join(f'<{n}>' for n in range(1, 7))}"

    def answered(request: Request) -> str:
        return f"{story.questions(request)}\nANSWER 1: {written}"

    def grade(request: Request) -> str:
        lines = story.grade(request).splitlines()
        answers = dict(zip("ABCD", request.variables["answers"], strict=False))
        own = next((x for x, text in answers.items() if text == written), "NONE")
        seeing = [x for x, text in answers.items() if "<3>" in text and x != own]
        for n, text in enumerate(request.variables["points"]):
            if " 3 " in text:
                lines[n] = f"POINT {n + 1}: {own} | {', '.join(seeing) or 'NONE'} | It is not so."
        return "\n".join(lines)

    replies = {**story.model().replies, "facts/questions": answered, "facts/grade_answers": grade}
    first, _ = run_story(story, model=Model(replies))[0]
    assert [p.state for p in first.points if " 3 " in p.text] == [UNREACHED]
    assert "<3>" not in first.answer
    assert "The thing 3" not in first.answer
    assert "The thing 2" in first.answer


def test_a_question_that_takes_for_granted_what_is_not_so_is_not_asked() -> None:
    questions, _ = run_story(Story(fault="there are no halves"))
    assert {q.drop for q in questions} == {
        "exam: it takes for granted what is not so (there are no halves)"
    }


def test_what_a_guesser_says_against_a_point_costs_others_too() -> None:
    questions, _ = run_story(Story(wrong="The third thing stays where it is."))
    assert "The third thing stays where it is." in questions[0].contradictions
    assert "The third thing stays where it is." not in questions[1].contradictions


def test_a_reader_answers_each_question_alone_and_then_with_all_in_view() -> None:
    model = Story().model()
    run_story(Story(), model=model)
    alone, in_view = [], []
    for request in model.of("facts/answer_blind"):
        (alone if len(request.variables["asked"]) == 1 else in_view).append(request)
    assert [request.variables["others"] for request in alone] == [(), ()]
    (view,) = in_view
    assert (len(view.variables["asked"]), view.variables["others"]) == (2, ())
    assert all(not request.messages[-1].images for request in (*alone, view))
    (seen,) = model.of("facts/answer_seen")
    assert seen.messages[-1].images
    grades = model.of("facts/grade_answers")
    assert [len(request.variables["answers"]) for request in grades] == [3, 3]


def test_open_questions_and_those_with_options_are_released_apart() -> None:
    """Of a video that has both; options name what open questions ask for."""
    questions, _ = run_story(Story())
    apart = set_apart(questions, [COMPOSED])
    assert {q.subsets[-1] for q in apart if q.points} == {"open"}
    assert apart[-1].subsets == (*COMPOSED.subsets, "choices")
    lost = [replace(q, drop="spare") for q in questions]
    assert set_apart(lost, [COMPOSED]) == [*lost, COMPOSED]


def test_an_answer_that_cannot_be_read_leaves_its_question_out() -> None:
    story = Story()
    model = story.model()

    def some(request: Request) -> str:
        lost = request.variables["asked"] == ("What becomes of the first half?",)
        return "?" if lost else story.answer(request)

    questions, counts = run_story(story, model=Model({**model.replies, "facts/answer_blind": some}))
    assert questions[0].drop == "exam: an answer or a grade could not be read"
    assert questions[1].drop is None
    assert counts["answers without the video"] == 1


def test_claims_that_others_have_and_few_claims_give_fewer_questions() -> None:
    story = Story()

    def thrice(request: Request) -> str:
        text = story.questions(request)
        other = text[text.index("QUESTION 2") :]
        again = (other.replace(" 2:", f" {n}:").replace("becomes", f"{n} becomes") for n in (3, 4))
        return "\n".join([text, *again])

    model = Model({**story.model().replies, "facts/questions": thrice})
    questions, counts = run_story(story, model=model)
    assert len(questions) == 3
    assert counts["open questions left out because others have their claims as points"] == 1

    def few(request: Request) -> str:
        return "\n".join(story.claims(request).splitlines()[:6])

    model = Model(
        {**story.model().replies, "facts/claims": few, "facts/questions": lambda r: "NONE"}
    )
    assert run_story(story, model=model)[0] == ()
    wanted = model.of("facts/questions")[0].variables["wanted"]
    assert sum(skill.count for skill in wanted) == 3 * 2 // 3


def test_a_mix_names_skills_with_shares_and_words_of_your_own() -> None:
    mix = {"cause": 20, "who knows what": 10, "tools": {"share": 10, "definition": "a tool's use"}}
    skills = read_mix(mix)
    assert [(s.name, s.definition) for s in skills] == [
        ("cause", ""), ("who knows what", "who knows what"), ("tools", "a tool's use")
    ]  # fmt: skip
    assert allot(8, skills) == {"cause": 4, "who knows what": 2, "tools": 2}
    assert sum(allot(7, read_mix(None)).values()) == 7
    assert allot(2, (Skill(name="a", share=1), Skill(name="b", share=1))) == {"a": 1, "b": 1}


@pytest.mark.parametrize(
    "mix",
    [{"cause": "many"}, {"cause": -1}, {}, {"cause": 0}, {"cause": True}, {"": 1},
     {"cause": {"definition": "x"}}, {"cause": {"share": 1, "words": "x"}}],
)  # fmt: skip
def test_a_mix_of_another_form_is_refused(mix: Mapping[str, Any]) -> None:
    with pytest.raises(UserError, match=r"ask\.settings\.mix"):
        FactSettings(forms={}, mix=mix)


def test_composed_questions_are_fewer_beside_open_ones_and_of_other_forms() -> None:
    forms = {"after": AfterForm(), "quarter_first": QuarterForm()}
    settings = FactSettings(forms=forms)
    rules = DeepRules(open_share=2 / 3)
    composed = settings_for_composed(settings, rules, 240.0)
    assert list(composed.forms) == ["after"]
    assert rules.question_limit(240.0) == 24
    assert composed.select.question_limit(240.0) == 24 - 16
    alone = settings_for_composed(settings, DeepRules(), 240.0)
    assert alone.select.question_limit(240.0) == 0


def group(question: str, options: Sequence[str], answer: int = 0) -> ChosenGroup:
    stem = Stem(
        form="after", question=question, question_type="Other", answer=options[answer],
        evidence=(Span(0.0, 5.0),), about=frozenset((FACTS[0].fact_id,)),
    )  # fmt: skip
    return ChosenGroup(members=(Chosen(stem=stem, options=tuple(options), rank=1),))


def test_few_questions_are_about_words_on_the_screen() -> None:
    words = [group(f"Which is next after {n}?", ("the words “A”", "the words “B”")) for n in "ab"]
    other = group("Which is next?", ("a cat", "a dog"))
    assert limit_texts([*words, other], 1) == [words[0], other]
    assert limit_texts([*words, other], 0) == [other]


PHRASES = [fact.phrase for fact in FACTS[1:4]]
GROUPS = [
    group("Which of these happens next after “Go!”?", PHRASES),
    group("Which of these happens last before “Go!”?", [*PHRASES, "3"], 1),
]


def word(reply: Callable[[Request], str], reading: Callable[[Request], str]) -> Any:
    model = Model({"facts/word": reply, "facts/read_back": reading})
    counts, work = counter(model.asker())
    words = word_groups(work, GROUPS, TABLE, together=12)
    return asyncio.run(words), counts, model


def wordings(request: Request) -> str:
    lines = [f"QUESTION {n}: And “Go!” {n}, what then?" for n, _ in
             enumerate(request.variables["asked"], 1)]  # fmt: skip
    lines += [f"PHRASE {n}: the {phrase[2:]}" for n, phrase in
              enumerate(request.variables["phrases"], 1)]  # fmt: skip
    return "\n".join(lines)


def readings(*fits: str) -> Callable[[Request], str]:
    def reply(request: Request) -> str:
        lines: list[str] = []
        for n, one in enumerate(request.variables["asked"], 1):
            letters = fits[int(one["question"].split()[2].strip(",")) - 1].split()
            others = [x for x in "ABCD"[: len(one["options"])] if x not in letters]
            lines.append(f"QUESTION {n}: {', '.join(letters) or 'NONE'} | {', '.join(others)}")
        return "\n".join(lines)

    return reply


def test_a_wording_that_is_read_back_alike_takes_the_place_of_a_form_s_words() -> None:
    groups, counts, model = word(wordings, readings("A", "B"))
    first, second = (g.members[0] for g in groups)
    assert first.stem.question == "And “Go!” 1, what then?"
    assert first.stem.answer == first.options[0] == f"the {PHRASES[0][2:]}"
    assert second.stem.answer == second.options[1]
    assert second.options[3] == "3"
    assert counts[NOT_WORDED] == 0
    (request,) = model.of("facts/read_back")
    shown = {fact.phrase for fact in request.variables["facts"]}
    assert shown == {*PHRASES, FACTS[0].phrase}
    assert "right" not in request.messages[-1].text.split("Say of every option")[0].split()[:3]


@pytest.mark.parametrize("fits", ["B", "A B", ""])
def test_a_wording_that_is_read_otherwise_is_tried_once_more_and_then_left_out(fits: str) -> None:
    groups, counts, model = word(wordings, readings(fits, "B"))
    assert [g.members[0].stem.question for g in groups] == ["And “Go!” 2, what then?"]
    assert counts[NOT_WORDED] == 1
    assert len(model.of("facts/word")) == 2
    assert model.of("facts/word")[1].variables["asked"] == (GROUPS[0].members[0].stem.question,)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace("“Go!”", "that"),
        lambda text: text.replace("what then?", "tell me."),
        lambda text: re.sub(r"(PHRASE \d): .*", r"\1: the same thing", text),
        lambda text: text.replace("PHRASE 2", "PHRASE 9"),
    ],
)
def test_wordings_that_lose_something_are_refused(spoil: Callable[[str], str]) -> None:
    with pytest.raises(BadRow, match="facts/word"):
        word(lambda request: spoil(wordings(request)), readings("A", "B"))


def test_wordings_of_a_part_that_cannot_be_read_are_counted_and_left_out() -> None:
    def some(request: Request) -> str:
        return "?" if "next after" in request.variables["asked"][0] else wordings(request)

    model = Model({"facts/word": some, "facts/read_back": readings("B", "B")})
    counts, work = counter(model.asker())
    words = word_groups(work, GROUPS, TABLE, together=1)
    (left,) = asyncio.run(words)
    assert left.members[0].stem.form == "after"
    assert (counts[WORDINGS], counts[NOT_WORDED]) == (2, 1)


def test_claims_as_options_are_no_points_of_open_questions_or_are_said_to_be_missing() -> None:
    """All twelve claims are points of the two open questions; of a dropped one they are free."""
    assert SETTINGS.deep is not None
    deep = replace(SETTINGS.deep, questions=10, least_questions=10, choices=ChoiceRules(options=3))
    settings = replace(SETTINGS, deep=deep)
    _, counts = run_story(Story(), settings)
    said = "missing questions whose options are claims: too few claims hold that are no point"
    assert sum(n for name, n in counts.items() if name.startswith(said)) == 1

    story = Story(blind=frozenset(range(1, 7)))  # the first question goes
    listed = "QUESTION 1: C1 | C2, C3 | What does the man at the door want?"

    def read(request: Request) -> str:
        (right,) = request.variables["right"]
        others = [x for n, x in enumerate("ABC") if n != right]
        return f"QUESTION 1: {'ABC'[right]} | {', '.join(others)}"

    def guess(request: Request) -> str:
        if len(request.variables["asked"]) > 1:
            return rank_reply(request)
        options = request.variables["asked"][0]["options"]
        order = sorted(options, key=lambda text: "thing 1 " in text)  # the right one comes last
        letters = " > ".join("ABC"[options.index(text)] for text in order)
        return f"QUESTION 1: {letters} | so"

    replies = {**story.model().replies, "facts/choices": lambda r: listed,
               "facts/read_back": read, "facts/rank": guess}  # fmt: skip
    questions, _ = run_story(story, settings, Model(replies))
    (choice,) = [q for q in questions if q.options]
    points = {p.text for q in questions if q.drop is None for p in q.points}
    assert points
    assert points.isdisjoint(choice.options)
