"""Answerers on rows: the frames they are shown, their replies, and failures."""

import asyncio
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.answer.llm import NONE_OPTION, AnswerLlm
from actors.answer.no_model import TextGuesser
from actors.judge.baselines import Lexical
from actors.llm.offline import Offline, rules
from actors.part import LlmConfig, RunContext
from actors.stages.grade import GradeReplies
from mustsee.calls.llm import Llm, Reply, Request, Sampling
from mustsee.errors import BadRow, Transient, UserError
from mustsee.evaluate.answers import answers, verdict_on_reply, with_answers
from mustsee.evaluate.score import score
from mustsee.files.store import Store, identity
from mustsee.judge.judge import JudgeConfig
from mustsee.records import WHEN, Caption, Line, Question, Span, Video
from mustsee.text import LETTERS
from mustsee.verify.conditions.seen import Condition, order, plan
from tests.support.material import material

EXAMPLE = Path(__file__).parents[3] / "examples" / "videos" / "pancakes.mp4"
OPTIONS = ("the man paints a wall", "the dog eats", "a woman cuts bread", "rain falls", "they sing")


def question(name: str = "q", recipe: str = "neptune", **fields: object) -> Question:
    base = Question(question_id=name, video_id="v", recipe=recipe, question="What happens?",
                    question_type="Counting", options=OPTIONS, answer_index=2,
                    answer=OPTIONS[2])  # fmt: skip
    return replace(base, **fields)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Scripted:
    """A model that answers by a function of the request."""

    answer: Callable[[Request], str]
    identity: str = "scripted"

    def open(self) -> Llm:
        return self

    async def complete(self, request: Request) -> Reply:
        return Reply(text=self.answer(request), model="scripted")


def context(tmp_path: Path) -> RunContext:
    def connect(config: LlmConfig) -> Llm:
        return config.open()

    return RunContext(store=Store(str(tmp_path)), llm=connect, count=lambda name, n: None)


def work(part: object, video: Video, tmp_path: Path) -> Video:
    result = part.open(context(tmp_path))(video)  # type: ignore[attr-defined]
    return asyncio.run(_wait(result)) if not isinstance(result, Video) else result


async def _wait(done: object) -> Video:
    return await done  # type: ignore[misc]


@given(st.integers(1, 8))
def test_every_option_is_in_each_place_once_over_all_rotations(count: int) -> None:
    turns = [order(count, r) for r in range(count)]
    for place in range(count):
        assert sorted(turn[place] for turn in turns) == list(range(count))


@pytest.mark.parametrize("recipe", ["neptune", "cinepile", "egoschema", "mlvu", "own"])
def test_each_benchmark_prompt_shows_the_options_and_its_reply_is_parsed(
    recipe: str, tmp_path: Path
) -> None:
    requests: list[Request] = []

    def reply(request: Request) -> str:
        requests.append(request)
        return rules()[request.prompt](request)

    lines = (Line(start=1, end=2, text="a woman cuts the bread and then cuts more bread"),)
    video = Video(video_id="v", uri="", questions=(question(recipe=recipe),), lines=lines)
    part = AnswerLlm(llm=Scripted(reply), see=Condition(transcript=True))
    (answered,) = work(part, video, tmp_path).questions or ()
    (answer,) = answers(answered)
    assert answer.letter == "C"
    assert answer.correct is True
    text = requests[0].messages[-1].text
    assert all(option in text for option in OPTIONS)
    assert "cuts the bread" in text
    assert requests[0].messages[-1].images == ()


def test_only_questions_of_listed_recipes_come_with_the_transcript(tmp_path: Path) -> None:
    asked: dict[str, str] = {}

    def reply(request: Request) -> str:
        asked[request.prompt] = request.messages[-1].text
        return "C"

    see = Condition(transcript=True)
    part = AnswerLlm(llm=Scripted(reply), see=see, transcript_of=("neptune", "cinepile"))
    lines = (Line(start=1, end=2, text="a woman cuts the bread"),)
    recipes = ("neptune", "cinepile", "egoschema", "mlvu")
    for recipe in recipes:
        work(
            part,
            Video(video_id="v", uri="", questions=(question(recipe=recipe),), lines=lines),
            tmp_path,
        )
    spoken = {r: "cuts the bread" in asked[f"evaluate/{r}"] for r in recipes}
    assert spoken == {"neptune": True, "cinepile": True, "egoschema": False, "mlvu": False}
    assert part.name.endswith("transcript (neptune, cinepile)")
    unheard = Video(video_id="v", uri="", questions=(question(recipe="mlvu"),))
    assert answers((work(part, unheard, tmp_path).questions or ())[0])  # needs no lines
    with pytest.raises(BadRow, match="no transcript"):
        work(part, replace(unheard, questions=(question(recipe="neptune"),)), tmp_path)


def test_letters_of_rotated_options_are_mapped_to_the_original_order(tmp_path: Path) -> None:
    def reply(request: Request) -> str:
        return LETTERS[list(request.variables["options"]).index(OPTIONS[2])]

    video = Video(video_id="v", uri="", questions=(question(),))
    part = AnswerLlm(llm=Scripted(reply), rotations=5)
    (answered,) = work(part, video, tmp_path).questions or ()
    answer_list = answers(answered)
    assert [a.letter for a in answer_list] == ["C"] * 5
    assert {a.reply for a in answer_list} == set("ABCDE")
    assert [a.rotation for a in answer_list] == list(range(5))


def test_a_failed_call_is_kept_as_failed_and_a_transient_failure_is_not_kept(
    tmp_path: Path,
) -> None:
    def broken(request: Request) -> str:
        raise BadRow("refused by the filter of the endpoint")

    def busy(request: Request) -> str:
        raise Transient("try later")

    video = Video(video_id="v", uri="", questions=(question(),))
    (answered,) = work(AnswerLlm(llm=Scripted(broken)), video, tmp_path).questions or ()
    (answer,) = answers(answered)
    assert answer.correct is None
    assert answer.failed == "refused by the filter of the endpoint"
    with pytest.raises(Transient):
        work(AnswerLlm(llm=Scripted(busy)), video, tmp_path)


def test_an_unparseable_reply_is_kept_without_a_retry(tmp_path: Path) -> None:
    calls: list[str] = []

    def reply(request: Request) -> str:
        calls.append(request.prompt)
        return "It could be A or B."

    video = Video(video_id="v", uri="", questions=(question(),))
    (answered,) = work(AnswerLlm(llm=Scripted(reply)), video, tmp_path).questions or ()
    (answer,) = answers(answered)
    assert (answer.letter, answer.correct, answer.reply) == (None, None, "It could be A or B.")
    assert len(calls) == 1


class LogprobModel:
    """A model whose reply names one option and whose first token's logprobs favour another."""

    identity = "logs"

    def open(self) -> Llm:
        return self

    async def complete(self, request: Request) -> Reply:
        place = LETTERS[list(request.variables["options"]).index(OPTIONS[2])]
        first = {f" {place}": -0.7, place: -2.0, "Z": -0.9, "(A": -5.0, "the": -0.1}
        return Reply(text="Answer: A", model="logs", logprobs=(first,))


def test_option_probabilities_are_a_second_column(tmp_path: Path) -> None:
    video = Video(video_id="v", uri="", questions=(question(),))
    (answered,) = work(AnswerLlm(llm=LogprobModel(), rotations=5), video, tmp_path).questions or ()
    assert [a.choice for a in answers(answered)] == ["C"] * 5
    assert sorted(a.letter or "" for a in answers(answered)) == list("ABCDE")
    (scored,) = score([answered])
    assert scored.choice is not None
    assert scored.choice.value == 1
    assert scored.weighted is not None
    assert scored.weighted.value == pytest.approx(1 / 5)


def test_frames_are_decoded_for_all_questions_and_sent_in_order(tmp_path: Path) -> None:
    video = material("video/Zulko+moviepy/media/chaplin.mp4")
    sent: list[tuple[bytes, ...]] = []

    def reply(request: Request) -> str:
        sent.append(request.messages[-1].images)
        return "[A]: so"

    video = Video(video_id="v", uri=str(video), duration=9.6,
                  questions=(question("a"), question("b")))  # fmt: skip
    part = AnswerLlm(llm=Scripted(reply), see=Condition(frames=4, longest=160))
    done = work(part, video, tmp_path)
    first, second = (answers(q)[0].sent for q in done.questions or ())
    assert first["frames"] == second["frames"]
    assert first["frames"]["times"] == [1.2, 3.6, 6.0, 8.4]
    assert len({*first["frames"]["hashes"]}) == 4
    assert first["text"] == second["text"]  # both ask the same
    assert len(sent) == 2
    assert sent[0] == sent[1]
    assert len(sent[0]) == len(set(sent[0])) == 4
    assert all(image[:2] == b"\xff\xd8" for image in sent[0])


def test_an_answerer_with_frames_refuses_a_row_without_a_video(tmp_path: Path) -> None:
    video = Video(video_id="v", uri="", questions=(question(),))
    with pytest.raises(BadRow, match="no video"):
        work(AnswerLlm(llm=Offline(), see=Condition(frames=4)), video, tmp_path)


def test_an_answerer_with_a_transcript_refuses_a_row_without_one(tmp_path: Path) -> None:
    part = AnswerLlm(llm=Offline(), see=Condition(transcript=True))
    video = Video(video_id="v", uri="", questions=(question(),))
    with pytest.raises(BadRow, match="no transcript"):
        work(part, video, tmp_path)
    silent = work(part, replace(video, lines=()), tmp_path)  # transcribed, without any speech
    assert len(answers((silent.questions or (question(),))[0])) == 1


def test_captions_spread_over_the_video_are_shown_in_place_of_frames(tmp_path: Path) -> None:
    shown: list[str] = []

    def reply(request: Request) -> str:
        shown.append(request.messages[-1].text)
        return "A"

    captions = tuple(Caption(float(n), f"scene {n} is seen") for n in range(40))
    video = Video(video_id="v", uri="", duration=40.0, questions=(question(),), captions=captions)
    answerer = AnswerLlm(llm=Scripted(reply), see=Condition(captions=4))
    work(answerer, video, tmp_path)
    assert [n for n in range(40) if f"{n}: scene {n} is seen" in shown[0]] == [5, 15, 25, 35]
    assert answerer.name.endswith("4 captions")
    with pytest.raises(BadRow, match="no captions of 'v'"):
        work(answerer, replace(video, captions=None), tmp_path)


def test_a_prefilled_reply_is_continued(tmp_path: Path) -> None:
    roles: list[list[str]] = []

    def reply(request: Request) -> str:
        roles.append([m.role for m in request.messages])
        return "C)"

    answerer = AnswerLlm(llm=Scripted(reply), prefill="Best option: (")
    video = Video(video_id="v", uri="", questions=(question(recipe="mlvu"),))
    (answered,) = work(answerer, video, tmp_path).questions or ()
    assert roles[0][-1] == "assistant"
    (answer,) = answers(answered)
    assert (answer.reply, answer.letter) == ("Best option: (C)", "C")


class Sure:
    """Returns the probability of "Yes" that a function gives each proposed answer."""

    identity = "sure"

    def __init__(self, yes: Callable[[str], float | None]) -> None:
        self.yes, self.asked = yes, 0

    def open(self) -> Llm:
        return self

    async def complete(self, request: Request) -> Reply:
        self.asked += 1
        sure = self.yes(request.variables["option"])
        tokens = {"No": -0.1} if sure is None else {" Yes": math.log(sure), "No": -0.1}
        return Reply(text="No", model="sure", logprobs=({"\n": -0.01}, tokens))


def test_the_option_with_the_surest_yes_is_taken(tmp_path: Path) -> None:
    sure = Sure(lambda option: {OPTIONS[1]: 0.4, OPTIONS[2]: 0.6}.get(option))
    sampling = Sampling(top_logprobs=20)
    answerer = AnswerLlm(llm=sure, by_option=True, rotations=5, sampling=sampling)
    video = Video(video_id="v", uri="", questions=(question(),))
    (answered,) = work(answerer, video, tmp_path).questions or ()
    (answer,) = answers(answered)
    assert (answer.letter, answer.correct, sure.asked) == ("C", True, 5)
    assert json.loads(answered.verdicts[0].detail)["yes"] == [0, 0.4, 0.6, 0, 0]
    nobody = AnswerLlm(llm=Sure(lambda _: None), by_option=True, sampling=sampling)
    taken = {
        answers((work(replace(nobody, seed=seed), video, tmp_path).questions or ())[0])[0].letter
        for seed in range(40)
    }
    assert taken == set("ABCDE")
    with pytest.raises(UserError, match="top_logprobs"):
        AnswerLlm(llm=sure, by_option=True)
    silent = AnswerLlm(llm=Scripted(lambda _: "Yes"), by_option=True, sampling=sampling)
    (failed,) = answers((work(silent, video, tmp_path).questions or ())[0])
    assert failed.failed is not None
    assert "no log-probabilities" in failed.failed


def test_the_right_option_can_be_replaced_by_none_of_the_others(tmp_path: Path) -> None:
    shown: list[tuple[str, ...]] = []

    def reply(request: Request) -> str:
        options = tuple(request.variables["options"])
        shown.append(options)
        return LETTERS[options.index(NONE_OPTION)]

    answerer = AnswerLlm(llm=Scripted(reply), none_option=True, rotations=2)
    video = Video(video_id="v", uri="", questions=(question(),))
    (answered,) = work(answerer, video, tmp_path).questions or ()
    assert [a.correct for a in answers(answered)] == [True, True]
    assert answered.options == OPTIONS
    assert all(OPTIONS[2] not in options for options in shown)
    assert answerer.name == "scripted blind, right option removed"
    assert [a.options for a in answers(answered)] == shown


def test_the_options_are_shown_without_the_question(tmp_path: Path) -> None:
    texts: list[str] = []

    def reply(request: Request) -> str:
        texts.append(" ".join(m.text for m in request.messages))
        return "A"

    answerer = AnswerLlm(llm=Scripted(reply), prompt="evaluate/options_alone")
    work(answerer, Video(video_id="v", uri="", questions=(question(),)), tmp_path)
    assert "What happens?" not in texts[0]
    assert all(option in texts[0] for option in OPTIONS)
    assert answerer.name.endswith("without the question")


def test_an_audit_asks_with_none_of_the_others_blind_and_in_full(tmp_path: Path) -> None:
    from actors.answer.battery import Battery, puts

    base = AnswerLlm(llm=Scripted(lambda _: "A"), see=Condition(frames=4))
    plain = puts(base, [base.llm], few=2, looks=False, listens=True)
    more = puts(base, [base.llm], few=2, looks=False, listens=True, none_option=True)
    names = [put.condition for put in more]
    assert names == [*(put.condition for put in plain), "blind_none", "transcript_none"]
    without = puts(base, [base.llm], few=2, looks=True, listens=True, open_ended=True)
    assert [put.condition for put in without if put.part.open_ended] == ["blind_open", "whole_open"]
    assert len({put.part.name for put in more}) == len(more)
    video = Video(video_id="v", uri="", questions=(question(),), lines=())
    done = asyncio.run(_wait(Battery(puts=more).open(context(tmp_path))(video)))
    assert len(answers((done.questions or ())[0])) == 2  # without lines no transcript is asked of


def test_withheld_options_are_not_rotated(tmp_path: Path) -> None:
    video = Video(video_id="v", uri="", questions=(question(),))
    part = AnswerLlm(llm=Offline(), open_ended=True, rotations=5)
    answered = work(part, video, tmp_path)
    assert len(answers((answered.questions or (question(),))[0])) == 1


def test_frames_are_shown_under_the_conditions_that_have_frames() -> None:
    def times(see: Condition, start: float, end: float) -> tuple[float, ...]:
        frame_plan = plan(see, Span(start, end), ())
        assert frame_plan is not None
        return frame_plan.times

    assert times(Condition(frames=4), 10, 18) == (11, 13, 15, 17)
    assert len(times(Condition(fps=2.0, most=7), 0, 60)) == 7
    assert times(Condition(fps=2.0), 0, 2) == (0.25, 0.75, 1.25, 1.75)
    with pytest.raises(UserError, match="set one"):
        Condition(frames=4, fps=1.0)
    with pytest.raises(UserError, match="most=0"):
        Condition(frames=4, most=0)


@pytest.mark.parametrize("by", ["random", "longest", "similar"])
def test_guessers_are_deterministic_and_skip_dropped_questions(by: str, tmp_path: Path) -> None:
    questions = [question(f"q{i}") for i in range(40)]
    video = Video(video_id="v", uri="", questions=(*questions, question("d", drop="blind")))
    part = TextGuesser(by=by, seed=3)  # type: ignore[arg-type]
    answered = work(part, video, tmp_path)
    assert answered == work(part, video, tmp_path)
    letters = [a.letter for q in answered.questions or () for a in answers(q)]
    assert len(letters) == 40
    assert None not in letters
    assert len(set(letters)) == (1 if by == "longest" else 5)  # no two options are equal
    if by == "longest":
        assert letters[0] == "A"


def test_the_similar_guesser_takes_the_option_nearest_to_the_others() -> None:
    near = ("cats", "red dogs run far", "red dogs run home", "blue dogs run home", "rain")
    assert TextGuesser(by="similar").pick(question(options=near)) == 2


def test_condition_and_prompt_are_part_of_the_key() -> None:
    base = AnswerLlm(llm=Offline())
    others = [
        replace(base, rotations=2), replace(base, see=Condition(frames=8)), replace(base, seed=1),
        replace(base, open_ended=True), replace(base, prompt="evaluate/choice"),
    ]  # fmt: skip
    assert len({json.dumps(identity(p), sort_keys=True) for p in [base, *others]}) == 6


def test_written_answers_are_graded_by_the_judge_and_by_rubrics(tmp_path: Path) -> None:
    scene = question("s", "mlvu", question_type="subPlot", options=(), answer_index=None,
                     answer="a woman cuts bread",
                     scoring_points=("a woman", "cuts bread"))  # fmt: skip
    lines = (Line(start=0, end=1, text="a woman cuts bread"),)
    video = Video(video_id="v", uri="", questions=(scene, question("o")), lines=lines)
    part = AnswerLlm(llm=Offline(), see=Condition(transcript=True), open_ended=True)
    judge = JudgeConfig(engine=Lexical(), uncalibrated=True)
    answered = work(GradeReplies(judge=judge, llm=Offline()), work(part, video, tmp_path), tmp_path)
    graded = {
        q.question_id: [v for v in q.verdicts if v.filter == "grade"]
        for q in answered.questions or ()
    }
    (rubric,), (verdict,) = graded["s"], graded["o"]
    assert json.loads(rubric.detail)["first"] == 5
    assert verdict.correct is True
    written = with_answers(
        question("n"), [verdict_on_reply(question("n", options=()), "x", model="NaN-7B")]
    )
    video_row = Video(video_id="v", uri="", questions=(written,))
    (named,) = work(GradeReplies(judge=judge, llm=Offline()), video_row, tmp_path).questions or ()
    detail = json.loads(named.verdicts[-1].detail)
    assert (detail["of"], detail["judge"]) == ("NaN-7B", [None, None, 0, 0])


def test_a_question_that_asks_when_is_told_the_seconds_of_the_frames(tmp_path: Path) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> str:
        asked.append(request)
        return "2 to 4 s"

    when = question(options=(), answer_index=None, form=WHEN, evidence=(Span(2.0, 6.0),),
                    answer="2.0 to 6.0 s")  # fmt: skip
    see = Condition(condition="frames", frames=4)
    video = Video(video_id="v", uri=str(EXAMPLE), duration=20.0, questions=(when,))
    done = work(AnswerLlm(llm=Scripted(answer), see=see), video, tmp_path)
    (request,) = asked
    assert request.prompt == "evaluate/when"
    text = request.messages[-1].text
    times = plan(see, Span(0.0, 20.0), ())
    assert times is not None
    assert ", ".join(f"{t:.1f}" for t in times.times) in text
    assert "The video is 20.0 s long." in text
    (result,) = score(done.questions or ())
    assert result.when is not None
    assert result.when.mean_iou is not None
    assert result.when.mean_iou.value == 0.5


def test_an_answer_with_evidence_is_asked_for_and_read(tmp_path: Path) -> None:
    llm = Scripted(lambda _: "(C)\nEVIDENCE: 2 to 4 s")
    asked = question(evidence=(Span(2.0, 4.0),))
    video = Video(video_id="v", uri="v.mp4", questions=(asked,))
    done = work(AnswerLlm(llm=llm, evidence=True), video, tmp_path)
    (result,) = score(done.questions or ())
    assert result.weighted is not None
    assert result.weighted.value == 1
    assert result.with_evidence is not None
    assert result.with_evidence.with_evidence.value == 1
    with pytest.raises(UserError, match="by a prompt of its own"):
        AnswerLlm(llm=llm, evidence=True, prompt="evaluate/choice")


def test_no_judge_reads_when_something_is_seen(tmp_path: Path) -> None:
    when = question(options=(), answer_index=None, form=WHEN, evidence=(Span(2.0, 6.0),),
                    answer="2.0 to 6.0 s")  # fmt: skip
    given = with_answers(when, [verdict_on_reply(when, "2 to 6 s", model="m")])
    video = Video(video_id="v", uri="v.mp4", questions=(given,))
    judge = JudgeConfig(engine=Lexical(), uncalibrated=True)
    done = work(GradeReplies(judge=judge, llm=Offline()), video, tmp_path)
    assert done.questions == (given,)
