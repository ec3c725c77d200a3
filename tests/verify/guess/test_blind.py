"""Filters by guesses: rankings in common forms, verdicts, thresholds, the sweep."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.calls.llm import Asker, Request
from mustsee.errors import Unparsed, UserError
from mustsee.files import schemas
from mustsee.prompts import Prompts
from mustsee.records import Line, Question, Verdict, Video
from mustsee.run.tables import Tables
from mustsee.text import LETTERS
from mustsee.verify.conditions.seen import excerpt
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.filters import VettingContext
from mustsee.verify.guess.ask import Guess, ranking
from mustsee.verify.guess.counts import sweep
from mustsee.verify.guess.filters import BlindGuess, agreement
from mustsee.verify.vetting import vet
from ray_jobs.cli.launch import build, compose
from tests.support.neptune_video import Replies, asker, sample_video
from tests.support.verifier import SCENE, ScriptedVerifier, Stills
from tests.support.verifier import question as kite
from tests.support.verifier import row as looked_at

BLIND = BlindGuess(name="blind", prompt="filters/blind")
ASR = BlindGuess(name="asr", prompt="filters/asr", transcript=True)
GUESSERS = ("blind", "asr")


def question(number: int = 0, **changes: object) -> Question:
    base = Question(
        question_id=f"q{number}",
        video_id="video",
        recipe="neptune",
        question=f"What is in bowl {number}?",
        question_type="Other",
        options=("Eggs", "Flour", "Milk", "Honey", "Salt"),
        answer_index=3,
        answer="Honey",
        subsets=("full",),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def row(*questions: Question) -> Video:
    return replace(sample_video(), questions=questions)


def ranked(pick: Callable[[Request], str]) -> Callable[[Request], str]:
    """A model whose first choice is the option with the text that `pick` gives."""

    def reply(request: Request) -> str:
        options = list(request.variables["options"])
        first = options.index(pick(request))
        rest = [i for i in range(len(options)) if i != first]
        return "* ANSWER: " + " > ".join(LETTERS[i] for i in (first, *rest))

    return reply


def run_filters(
    video: Video, llm: Replies, *filters: BlindGuess, seed: int = 0
) -> tuple[Question, ...]:
    vetting = VettingContext(
        askers={"guesser": asker(llm)}, video_frames=VideoFrames(video), seed=seed
    )
    return asyncio.run(vet(video, filters, vetting, "mma")).questions or ()


@pytest.mark.parametrize(
    "reply",
    [
        "* ANSWER: B > A > C > D > E\n* EXPLANATION: B is likely, A > C.",
        "**ANSWER:** (B) > (A) > (C) > (D) > (E)",
        "Answer: Option B > Option A > Option C > Option D > Option E",
        "I think A is tempting.\n\nRanking: B, A, C, D, E",
        "B>A>C>D>E",
        "* ANSWER: **B** > **A** > **C** > **D** > **E**.",
        "ANSWER - B > A > C > D > E",
        "First A > B > C > D > E, but on reflection\n* ANSWER: B > A > C > D > E",
    ],
)
def test_rankings_in_common_forms_are_parsed(reply: str) -> None:
    assert ranking(5).read(reply) == (1, 0, 2, 3, 4)


@pytest.mark.parametrize(
    "reply",
    ["", "B", "ANSWER: B", "B > A > C > D", "A > A > B > C > D", "A > B > C > D > F", "I can't."],
)
def test_incomplete_rankings_are_refused(reply: str) -> None:
    with pytest.raises(Unparsed, match="A > B > C > D > E"):
        ranking(5).read(reply)


@given(st.permutations(range(5)), st.sampled_from([" > ", ">", " >> ", ", "]))
def test_any_written_ranking_is_parsed_back(order: list[int], mark: str) -> None:
    reply = f"Let me see.\n* ANSWER: {mark.join(LETTERS[i] for i in order)}\n* EXPLANATION: so."
    assert ranking(5).read(reply) == tuple(order)


PICK = BlindGuess(name="blind", prompt="filters/pick", ranks=False, runs=1, min_failures=1)


@pytest.mark.parametrize(
    ("reply", "right", "drop"),
    [
        ("D", True, "blind: right in 1 of 1 runs"), ("(D)", True, "blind: right in 1 of 1 runs"),
        ("Honey.", True, "blind: right in 1 of 1 runs"), ("B", False, None),
        ("The answer is A.", False, None),
    ],
)  # fmt: skip
def test_egoschemas_form_is_one_letter(reply: str, right: bool, drop: str | None) -> None:
    llm = Replies({"filters/pick": lambda r: reply})
    (found,) = run_filters(row(question()), llm, replace(PICK, shuffle=False))
    assert ([v.correct for v in found.verdicts], found.drop) == ([right], drop)
    text = llm.asked[0].messages[-1].text
    assert "just one of A, B, C, D, E" in text
    assert "EXPLANATION" not in text


def test_a_reply_without_a_letter_is_not_a_vote_and_the_camera_wearer_c_is_not_a_letter() -> None:
    unread = ("It depends.", "A or B", "C and the man talk, I think, but who knows")
    for reply in unread:
        llm = Replies({"filters/pick": lambda r, said=reply: said})
        (found,) = run_filters(row(question()), llm, PICK)
        assert (found.drop, found.unverified_by) == (None, ("blind",))


def test_questions_that_are_guessed_without_the_video_are_dropped() -> None:
    llm = Replies({"filters/blind": ranked(lambda r: "Honey")})
    (found,) = run_filters(row(question()), llm, replace(BLIND, all_runs=True))
    assert found.drop == "blind: right in 3 of 3 runs"
    assert found.subsets == ("full",)
    assert [v.correct for v in found.verdicts] == [True] * 3
    assert [v.seed for v in found.verdicts] == [0, 1, 2]
    assert len({v.detail for v in found.verdicts}) > 1  # options in several orders
    assert all(v.reply.startswith("* ANSWER") and v.prompt and v.model for v in found.verdicts)


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(
            st.lists(st.sampled_from([True, False, None]), min_size=n, max_size=n),
            st.integers(0, n),
        )
    )
)
def test_runs_end_when_the_vote_is_decided_without_changing_it(
    drawn: tuple[list[bool | None], int],
) -> None:
    """Whatever the runs' results, skipped runs would not have changed the vote."""
    said, least = drawn
    texts = {True: ranked(lambda r: "Honey"), False: ranked(lambda r: "Eggs")}

    def reply(request: Request) -> str:
        run = said[request.seed]
        return "I would rather not." if run is None else texts[run](request)

    whole = replace(BLIND, runs=len(said), min_failures=least, all_runs=True)
    (every,) = run_filters(row(question()), Replies({"filters/blind": reply}), whole)
    (some,) = run_filters(
        row(question()), Replies({"filters/blind": reply}), replace(whole, all_runs=False)
    )
    assert (some.drop is None, some.subsets) == (every.drop is None, every.subsets)
    assert some.verdicts == every.verdicts[: len(some.verdicts)]
    failures = said.count(False)
    if failures == len(said) and least:
        assert len(some.verdicts) == least


@pytest.mark.parametrize(("wrong", "least", "kept"), [
    (0, 0, True), (0, 1, False), (1, 1, True), (1, 2, False), (2, 2, True), (2, 3, False),
    (3, 3, True),
])  # fmt: skip
def test_min_failures_decides_what_is_kept(wrong: int, least: int, kept: bool) -> None:
    llm = Replies({"filters/blind": ranked(lambda r: "Eggs" if r.seed < wrong else "Honey")})
    (found,) = run_filters(row(question()), llm, replace(BLIND, min_failures=least))
    assert (found.drop is None) == kept
    assert ("mma" in found.subsets) == kept
    assert found.metrics["blind_failures"] == min(wrong, least)
    assert found.metrics["blind_guessed"] == sum(v.correct is True for v in found.verdicts)


def test_a_filter_that_only_marks_keeps_questions_out_of_the_subset() -> None:
    llm = Replies({"filters/blind": ranked(lambda r: "Honey")})
    (found,) = run_filters(row(question()), llm, replace(BLIND, drops=False))
    assert (found.drop, found.subsets) == (None, ("full",))


def test_later_filters_do_not_run_on_dropped_questions() -> None:
    answers = {name: ranked(lambda r: "Honey") for name in ("filters/blind", "filters/asr")}
    llm = Replies(answers)
    (found,) = run_filters(row(question()), llm, BLIND, ASR)
    assert found.drop is not None
    assert found.drop.startswith("blind:")
    assert [v.filter for v in found.verdicts] == ["blind"] * 2
    assert {request.prompt for request in llm.asked} == {"filters/blind"}


def test_dropped_questions_and_those_without_an_answer_are_not_asked() -> None:
    llm = Replies()
    given_ = (question(1, drop="check: x"), question(2, answer_index=None), question(3, options=()))
    assert run_filters(row(*given_), llm, BLIND) == given_
    assert llm.asked == []


@pytest.mark.parametrize("together", [1, 10])
def test_a_video_without_a_transcript_is_not_guessed_a_second_time(together: int) -> None:
    llm = Replies({"filters/blind": ranked(lambda r: "Eggs")})
    filters = [replace(guess, together=together) for guess in (BLIND, ASR)]
    for lines in ((), None):
        (q,) = run_filters(replace(row(question()), lines=lines), llm, *filters)
        assert {v.filter for v in q.verdicts} == {"blind"}
        assert "mma" in q.subsets


def test_only_the_asr_filter_gets_the_transcript_and_no_filter_the_answer() -> None:
    llm = Replies({n: ranked(lambda r: "Eggs") for n in ("filters/blind", "filters/asr")})
    run_filters(row(question()), llm, BLIND, ASR)
    for request in llm.asked:
        text = "\n".join(m.text for m in request.messages)
        assert ("golden brown" in text) == (request.prompt == "filters/asr")
        assert text.count("Honey") == 1


def test_an_unparseable_run_is_not_a_vote() -> None:
    """Unparseable replies are neither right nor wrong, and the video is kept."""

    def moody(request: Request) -> str:
        return "I would rather not." if request.seed == 0 else ranked(lambda r: "Eggs")(request)

    whole = replace(BLIND, all_runs=True)
    (found,) = run_filters(row(question()), Replies({"filters/blind": moody}), whole)
    assert [v.correct for v in found.verdicts] == [None, False, False]
    assert found.drop is None
    (found,) = run_filters(
        row(question()), Replies({"filters/blind": moody}), replace(BLIND, min_failures=3)
    )
    assert (found.drop, found.unverified_by) == (None, ("blind",))
    assert "blind_passed" not in found.metrics
    assert "mma" not in found.subsets


def test_seeds_decide_the_order_of_options() -> None:
    def order_by(seed: int) -> list[str]:
        llm = Replies({"filters/blind": ranked(lambda r: "Eggs")})
        return [
            v.detail
            for q in run_filters(row(question()), llm, BLIND, seed=seed)
            for v in q.verdicts
        ]

    assert order_by(0) == order_by(0)
    assert order_by(0) != order_by(5)


@given(st.lists(st.integers(0, 4), min_size=2, max_size=6))
def test_agreement_is_the_share_of_equal_pairs(firsts: list[int]) -> None:
    pairs = [(i, j) for i in range(len(firsts)) for j in range(i)]
    equal = sum(firsts[i] == firsts[j] for i, j in pairs)
    assert agreement(firsts) == pytest.approx(equal / len(pairs))
    assert agreement(firsts[:1]) is None


def test_runs_agree_if_they_name_the_same_option_whatever_its_letter() -> None:
    """Options are shown in another order in each run."""
    filter_ = replace(BLIND, all_runs=True, drops=False)

    def agreement_of(pick: Callable[[Request], str]) -> float | None:
        llm = Replies({"filters/blind": pick})
        (found,) = run_filters(row(question()), llm, filter_)
        return found.metrics.get("blind_agreement")

    assert agreement_of(ranked(lambda r: "Milk")) == 1
    assert agreement_of(ranked(lambda r: ("Eggs", "Salt", "Milk")[r.seed])) == 0
    assert agreement_of(ranked(lambda r: "Eggs" if r.seed else "Salt")) == pytest.approx(1 / 3)
    assert agreement_of(lambda r: "Hm." if r.seed else ranked(lambda _: "Eggs")(r)) is None
    letters = {
        agreement
        for n in range(9)
        for q in run_filters(row(question(n)),
                             Replies({"filters/blind": lambda r: "* ANSWER: A > B > C > D > E"}),
                             filter_)
        if (agreement := q.metrics["blind_agreement"]) < 1
    }  # fmt: skip
    assert letters  # the same letter is another option


ALONE = BlindGuess(
    name="options", prompt="filters/options_alone", question=False, runs=1, min_failures=1,
    drops=False,
)  # fmt: skip


def test_the_options_alone_are_guessed_without_the_question() -> None:
    llm = Replies({"filters/options_alone": ranked(lambda r: "Honey")})
    (found,) = run_filters(row(question()), llm, ALONE)
    assert (found.metrics["options_passed"], found.drop, found.subsets) == (0, None, ("full",))
    (request,) = llm.asked
    text = "\n".join(m.text for m in request.messages)
    assert "bowl" not in text
    assert "golden brown" not in text  # of the transcript
    assert all(option in text for option in question().options)
    assert set(request.variables) == {"options"}
    (found,) = run_filters(
        row(question()), Replies({"filters/options_alone": ranked(lambda r: "Eggs")}), ALONE
    )
    assert found.subsets == ("full", "mma")


def test_an_open_question_has_no_options_to_guess_from() -> None:
    async def judge(question: str, candidate: str, references: tuple[str, ...]) -> bool:
        return True

    llm = Replies()
    vetting = VettingContext(
        askers={"guesser": asker(llm)}, video_frames=VideoFrames(row()), judge=judge
    )
    asked = question(options=(), answer_index=None)
    assert asyncio.run(ALONE(asked, row(asked), vetting)) == asked
    assert llm.asked == []


def test_a_second_guesser_is_another_model() -> None:
    models = {role: Replies({"filters/blind": ranked(lambda r, first=first: first)})
              for role, first in (("guesser", "Eggs"), ("guesser_2", "Honey"))}  # fmt: skip
    one = replace(BLIND, runs=1, min_failures=1, drops=False)
    second = replace(one, name="blind_2", guesser="guesser_2")
    vetting = VettingContext(
        askers={role: asker(llm) for role, llm in models.items()},
        video_frames=VideoFrames(row()),
    )
    video = asyncio.run(vet(row(question()), (one, second), vetting, "mma"))
    (found,) = video.questions or ()
    assert (found.metrics["blind_passed"], found.metrics["blind_2_passed"]) == (1, 0)
    assert found.subsets == ("full",)
    assert [len(llm.asked) for llm in models.values()] == [1, 1]


def test_guessing_right_by_chance_passes_as_often_as_it_should() -> None:
    """A guesser that always takes the first option shown: P(at least 2 of 3 wrong) = 0.896."""
    llm = Replies({"filters/blind": lambda r: "* ANSWER: A > B > C > D > E"})
    found = run_filters(row(*(question(n) for n in range(600))), llm, BLIND)
    assert 0.85 <= sum(q.drop is None for q in found) / 600 <= 0.94


def lines(count: int) -> list[Line]:
    said = ["the cat sleeps", "rain falls on the roof", "three eggs break", "nothing happens now"]
    return [Line(start=i, end=i + 1, text=said[i % 4]) for i in range(count)]


def test_a_short_transcript_is_shown_whole_and_a_long_one_by_similarity() -> None:
    whole = excerpt(lines(8), "How many eggs?", 1000)
    assert whole.count("\n") == 7
    assert whole.startswith("[0.0-1.0] the cat sleeps")
    part = excerpt(lines(400), "How many eggs break?", 60).splitlines()
    assert 0 < len(" ".join(part).split()) <= 60
    assert all("eggs" in line for line in part)
    assert part == sorted(part, key=lambda x: float(x[1:].split("-")[0]))
    assert excerpt([], "Eggs?", 10) == "(nothing is said)"


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(UserError, match="min_failures=4"):
        replace(BLIND, min_failures=4)
    with pytest.raises(UserError, match="runs=0"):
        replace(BLIND, runs=0)


def with_guesses(number: int, **runs: tuple[bool, ...]) -> Question:
    verdicts = [
        Verdict(filter=name, model="m", seed=i, correct=right)
        for name, found in runs.items()
        for i, right in enumerate(found)
    ]
    return question(number, verdicts=tuple(verdicts))


def test_the_sweep_counts_what_each_threshold_leaves() -> None:
    right, wrong = True, False
    found = sweep(
        [
            with_guesses(0, blind=(right, right, right), asr=(right, right, right)),
            with_guesses(1, blind=(wrong, right, right), asr=(right, right, right)),
            with_guesses(2, blind=(wrong, wrong, right), asr=(right, wrong, right)),
            with_guesses(3, blind=(wrong, wrong, wrong), asr=(wrong, wrong, wrong)),
            question(4, drop="check: x"),
        ],
        GUESSERS,
    )
    sizes = {(r["filters"], r["min_failures"]): r["questions"] for r in found}
    assert [sizes["blind", n] for n in range(4)] == [4, 3, 2, 1]
    assert [sizes["blind+asr", n] for n in range(4)] == [4, 2, 1, 1]
    at_two = next(r for r in found if (r["filters"], r["min_failures"]) == ("blind", 2))
    assert at_two["share"] == 0.5
    assert at_two["accuracy"] == {"blind": 1 / 6, "asr": 2 / 6}


def test_a_sweep_without_questions_is_empty() -> None:
    assert sweep([], GUESSERS) == []
    assert sweep([question()], GUESSERS) == []


def test_a_sweep_without_all_runs_is_empty() -> None:
    asked = with_guesses(0, blind=(False, False), asr=(True, True, True))
    assert sweep([asked], GUESSERS) == []
    by_blind = replace(
        with_guesses(1, blind=(True, True, True)), drop="blind: right in 3 of 3 runs"
    )
    assert sweep([by_blind], GUESSERS) == []


def test_the_sweep_counts_questions_that_all_default_filters_saw(
    tmp_path: Path,
) -> None:
    """One question is kept, one is repaired, one is dropped by sight."""
    job = build(compose("neptune", [
        "videos=x", "out=y", "vet.repair.rounds=1", "vet.filters.options=null",
        *(f"vet.filters.{name}.{rule}" for name in GUESSERS
          for rule in ("runs=3", "min_failures=2", "all_runs=true")),
    ]))  # fmt: skip
    assert [f.name for f in job.vet.chosen_filters] == ["giveaways", *GUESSERS, "sight"]
    options = ("blue", "red", "green", "yellow", "purple")
    lines = "\n".join(f"WRONG ANSWER {n}: {o}" for n, o in enumerate(options[1:], 1))
    repaired = f"QUESTION 1: (kind) Which colour is the kite?\nCORRECT ANSWER: blue\n{lines}"
    found: list[Question] = []
    for world, reply in (
        ({"red": [SCENE]}, "NONE"),
        ({"blue": [SCENE]}, f"{repaired}\nEVIDENCE: 40.0-50.0"),
        ({}, "NONE"),
    ):
        asker = Asker(
            llm=ScriptedVerifier(world, repair=lambda _, m=reply: m), prompts=Prompts(), tries=1
        )
        video = looked_at(replace(kite(), question_id=f"q{len(found)}"))
        askers = dict.fromkeys(("verifier", "guesser", "repairer"), asker)
        vetting = VettingContext(askers=askers, video_frames=Stills(video))
        done = asyncio.run(vet(video, job.vet.chosen_filters, vetting, "mma", job.vet.repair))
        found += done.questions or ()
    assert [bool(q.repairs) for q in found] == [False, True, False]
    assert [q.drop is None for q in found] == [True, True, False]
    pq.write_table(schemas.table(found, Question), tmp_path / "questions.parquet")
    pq.write_table(schemas.table([looked_at()], Video), tmp_path / "videos.parquet")
    table = job._analysis(Tables(tmp_path))["sweep"]
    assert [(r["filters"], r["min_failures"]) for r in table] == [
        (filters, n) for filters in ("blind", "blind+asr") for n in range(4)
    ]
    assert table[0]["questions"] == 2
    assert table[0]["share"] == 1
    assert set(table[0]["accuracy"]) == set(GUESSERS)


runs = st.tuples(*[st.booleans()] * 3)


@given(st.lists(st.tuples(runs, runs), min_size=1, max_size=20))
def test_sweeps_fall_and_agree_with_the_filter(
    raw: list[tuple[tuple[bool, ...], tuple[bool, ...]]],
) -> None:
    questions = [with_guesses(i, blind=b, asr=a) for i, (b, a) in enumerate(raw)]
    table = sweep(questions, GUESSERS)
    sizes = [r["questions"] for r in table if r["filters"] == "blind"]
    assert sizes == sorted(sizes, reverse=True)  # type: ignore[type-var]
    for least in range(4):
        filter_ = replace(BLIND, min_failures=least)
        passed = [
            filter_.apply_guesses(question(), list(map(Guess, q.verdicts[:3]))).drop is None
            for q in questions
        ]
        assert sum(passed) == sizes[least]


def test_the_answer_is_found_in_every_order_of_the_options() -> None:
    for order in list(permutations(range(5)))[::17]:
        options = tuple(("Eggs", "Flour", "Milk", "Honey", "Salt")[i] for i in order)
        asked = question(options=options, answer_index=options.index("Honey"))
        llm = Replies({"filters/blind": ranked(lambda r: "Honey")})
        (found,) = run_filters(row(asked), llm, BLIND)
        assert all(v.correct for v in found.verdicts)


def test_the_prompt_contains_no_ranking_to_copy() -> None:
    said = Prompts().render("filters/blind", question="Why?", options=tuple("abcde")).lines
    form = said.partition("* ANSWER")[2]
    with pytest.raises(Unparsed):
        ranking(5).read(f"* ANSWER{form}")
    assert form.partition("\n")[0].count("_") == 5


@pytest.mark.parametrize(
    ("transcribed_by", "recognised"),
    [("subtitles (file)", False), (None, False), ("whisper (tiny)", True), ("parakeet", True)],
)
def test_only_machine_transcripts_are_called_recognised(
    transcribed_by: str | None, recognised: bool
) -> None:
    asked: list[str] = []

    def reply(request: Request) -> str:
        asked.append(request.messages[-1].text)
        return "* ANSWER: A > B > C > D > E"

    run_filters(
        replace(row(question()), transcribed_by=transcribed_by),
        Replies({"filters/asr": reply}),
        ASR,
    )
    assert asked
    assert all(("recognised by a machine" in text) == recognised for text in asked)


def test_the_prompts_of_one_video_begin_alike() -> None:
    """The transcript comes first, so that an endpoint caches it for all questions of a video."""
    asked: list[str] = []

    def reply(request: Request) -> str:
        asked.append(request.messages[-1].text)
        return "* ANSWER: A > B > C > D > E"

    run_filters(row(*(question(n) for n in range(4))), Replies({"filters/asr": reply}), ASR)
    openings = {text.partition("A question on this video")[0] for text in asked}
    assert len(asked) >= 8
    assert len(openings) == 1
    assert "golden brown" in openings.pop()


@pytest.mark.parametrize(
    ("right", "passed"),
    [((True, True, True), 0.0), ((True, False, False), 1.0), ((None, None, None), None)],
)
def test_questions_without_options_are_guessed_in_words(
    right: Sequence[bool | None], passed: float | None
) -> None:
    """The judge grades a guess; without a judge no guess is made."""

    def guess(request: Request) -> str:
        assert request.prompt == "filters/guess_open"
        said = {True: "wild honey", False: "milk", None: ""}[right[request.seed]]
        return f"* ANSWER: {said}\n* EXPLANATION: so"

    async def judge(asked: str, candidate: str, references: tuple[str, ...]) -> bool:
        return candidate in references

    open_ended = question(options=(), answer_index=None, variants=("wild honey",))
    video, llm = row(open_ended), Replies({"filters/guess_open": guess})
    vetting = VettingContext(
        askers={"guesser": asker(llm)}, video_frames=VideoFrames(video), judge=judge
    )
    found = asyncio.run(replace(BLIND, all_runs=True)(open_ended, video, vetting))
    assert found.metrics.get("blind_passed") == passed
    assert [v.correct for v in found.verdicts] == list(right)
    assert (found.drop is not None) == (passed == 0.0)
    assert found.unverified_by == (() if passed is not None else ("blind",))
    alone = asyncio.run(BLIND(open_ended, video, replace(vetting, judge=None)))
    assert alone == open_ended


def test_a_guess_in_words_gets_the_transcript() -> None:
    asked: list[Request] = []

    def guess(request: Request) -> str:
        asked.append(request)
        return "* ANSWER: milk\n* EXPLANATION: so"

    async def judge(asked: str, candidate: str, references: tuple[str, ...]) -> bool:
        return False

    open_ended = question(options=(), answer_index=None)
    video = row(open_ended)
    llm = Replies({"filters/guess_open": guess})
    vetting = VettingContext(
        askers={"guesser": asker(llm)}, video_frames=VideoFrames(video), judge=judge
    )
    for filter_, heard in ((BLIND, False), (ASR, True)):
        asyncio.run(filter_(open_ended, video, vetting))
        assert ("What is said" in asked[-1].messages[-1].text) == heard
