"""Partial replies: the recipe keeps the parsed items and requests the missing ones. Recurring
people have one name, and questions join distant spans.
"""

import asyncio
import json
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile

import pytest

from mustsee.calls.llm import Request
from mustsee.errors import Unparsed
from mustsee.recipes.neptune.ask import NeptuneSettings, neptune
from mustsee.recipes.neptune.examine import MAX_TOGETHER
from mustsee.recipes.neptune.replies import Run, close_gaps, holes, topics
from mustsee.recipes.neptune.script import units
from mustsee.records import Caption, ScreenText, Span, Video, Word
from tests.support.neptune_video import Replies, asker, sample_video

SETTINGS = NeptuneSettings(spare=1.0)
Answer = Callable[[Request], str]


def run(video: Video, llm: Replies, settings: NeptuneSettings = SETTINGS) -> Video:
    return asyncio.run(neptune(video, asker(llm), settings))


def named(llm: Replies, name: str) -> list[Request]:
    return [r for r in llm.asked if r.prompt == f"neptune/{name}"]


def framed(video: Video, shots: int) -> Video:
    """The video with a second frame in each of its first shots."""
    more = tuple(Caption(10.0 * n + 8, f"Frame two of {n}.") for n in range(shots))
    captions = sorted((*(video.captions or ()), *more), key=lambda c: c.time)
    return replace(video, captions=tuple(captions))


def test_only_shots_with_several_frames_are_requested() -> None:
    llm = Replies({"neptune/shots": lambda r: "SHOT 1: one sentence\nSHOT 2: another"})
    run(framed(sample_video(), 2), llm)
    assert [len(r.variables["units"]) for r in named(llm, "shots")] == [2]
    script = named(llm, "topics")[0].messages[-1].text
    assert "SHOT 1 [0.0-10.0]: one sentence" in script
    assert "SHOT 3 [20.0-30.0]: The picture is mostly red" in script
    llm = Replies()
    run(sample_video(), llm)
    assert not named(llm, "shots")


def test_a_missing_sentence_is_requested_alone() -> None:
    def forgetful(request: Request) -> str:
        return "SHOT 1: the first" if len(request.variables["units"]) > 1 else "SHOT 1: the second"

    llm = Replies({"neptune/shots": forgetful})
    run(framed(sample_video(), 2), llm)
    assert [len(r.variables["units"]) for r in named(llm, "shots")] == [2, 1]
    script = named(llm, "topics")[0].messages[-1].text
    assert ": the first" in script
    assert ": the second" in script


def test_the_first_caption_replaces_a_sentence_that_stays_missing() -> None:
    def stubborn(request: Request) -> str:
        return "SHOT 1: the first" if len(request.variables["units"]) > 1 else "No."

    llm = Replies({"neptune/shots": stubborn})
    assert run(framed(sample_video(), 2), llm).questions
    assert ": The picture is bright, mostly orange" in named(llm, "topics")[0].messages[-1].text


def test_missing_topics_are_requested_alone() -> None:
    def forgetful(request: Request) -> str:
        if request.variables["whole"]:
            return "SEGMENT 1: 1-2: eggs\nSEGMENT 2: 7-8: bread\nSEGMENT x: what?"
        return "CAST 1: Anna | a red apron | 2\nSEGMENT 1: 1-4: the pan"

    llm = Replies({"neptune/topics": forgetful})
    segments = run(sample_video(), llm).segments or ()
    assert [(s.start, s.end, s.topic) for s in segments] == [
        (0, 20, "eggs"),
        (20, 60, "the pan"),
        (60, 80, "bread"),
    ]
    assert [len(r.variables["units"]) for r in named(llm, "topics")] == [8, 4]
    assert "- Anna: a red apron; shot 4\n" in named(llm, "questions")[0].messages[-1].text


def test_units_without_a_topic_join_the_topic_before() -> None:
    def half(request: Request) -> str:
        return "SEGMENT 1: 1-4: eggs" if request.variables["whole"] else "No."

    segments = run(sample_video(), Replies({"neptune/topics": half})).segments or ()
    assert [(s.start, s.end) for s in segments] == [(0, 80)]


@pytest.mark.parametrize(
    ("runs", "open_", "shut"),
    [
        ([(0, 3, "a")], [], [(0, 3)]),
        ([(1, 2, "a")], [(0, 1), (2, 3)], [(0, 3)]),
        ([(2, 3, "b"), (0, 1, "a")], [(1, 2)], [(0, 2), (2, 3)]),
    ],
)
def test_holes_are_the_gaps_between_runs(
    runs: list[Run], open_: list[tuple[int, int]], shut: list[tuple[int, int]]
) -> None:
    assert list(holes(runs, 3)) == open_
    assert [(a, b) for a, b, _ in close_gaps(runs, 3)] == shut


def test_an_unparseable_cast_line_is_left_out() -> None:
    reply = (
        "**CAST 1:** Anna | red apron | 1-2, 9\nCAST 2: nobody\nCAST 3: the pan | black\n"
        "CAST 4: | looks | 1\nSEGMENT 1: 1-3: eggs"
    )
    cast = [(m.name, m.looks, sorted(places)) for m, places in topics(3).read(reply)[1]]
    assert cast == [("Anna", "red apron", [0, 1]), ("the pan", "black", [])]


def test_a_recurring_person_has_one_name_in_all_prompts() -> None:
    def cast(request: Request) -> str:
        count = len(request.variables["units"])
        return f"CAST 1: Anna | a woman in a red apron | 1\nSEGMENT 1: 1-{count}: eggs {count}"

    llm = Replies({"neptune/topics": cast})
    run(sample_video(repeat=3), llm, replace(SETTINGS, max_words=500))
    first, second, *_ = named(llm, "topics")
    assert "Anna" not in first.messages[-1].text
    assert "Anna: a woman in a red apron" in second.messages[-1].text
    for name in ("dense", "questions", "decoys"):
        for request in named(llm, name):
            assert "- Anna: a woman in a red apron" in request.messages[-1].text


def test_the_prompt_for_decoys_begins_with_the_same_script() -> None:
    """So that an endpoint's prompt cache serves it: system text, opening and script are one
    prefix.
    """
    llm = Replies()
    run(sample_video(repeat=4), llm)
    one, two = (
        "\n".join(m.text for m in named(llm, name)[0].messages) for name in ("questions", "decoys")
    )
    pairs = zip(one.encode(), two.encode(), strict=False)
    shared = bytes(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)).decode()
    assert len(shared) >= one.index(">>>") + 3
    assert len(shared) > 0.7 * len(one)


def test_a_question_is_quoted_with_its_evidence() -> None:
    """The quote has the times of the evidence, with captions, texts and lines of these alone."""
    others: dict[str, Answer] = {"neptune/questions": lambda r: asked(FAR), "neptune/decoys": wrong}
    llm = Replies(others)
    run(sample_video(repeat=2), llm, replace(SETTINGS, questions=1))
    text = named(llm, "decoys")[0].messages[-1].text.split("Questions on it")[1].split(">>>")[0]
    assert "EVIDENCE: [12.0-18.0]; [140.0-144.0]" in text
    assert "My mother gave me this recipe" in text
    assert "on screen: ANNA Oslo\n" in text
    assert "on screen: TURN" not in text
    assert "white lumps" not in text
    part = named(llm, "decoys")[0].variables["part"]
    assert [u.start for u in part.units_in([Span(5, 15), Span(95, 95)])] == [0, 10, 90]
    assert part.units_in([Span(0, 90)]) == ()


def test_uncertain_words_are_marked() -> None:
    video = sample_video()
    bad = replace((video.texts or ())[0], text="HOUT EN SuCm", score=0.68)
    sure, unsure, unscored, *rest = video.lines or ()
    unsure = replace(unsure, words=(Word(11, 12, "mother", 0.3), Word(12, 13, "gave", 0.6)))
    unscored = replace(unscored, words=(Word(21, 22, "eggs", 0.0),))
    lines = (sure, unsure, unscored, *rest)
    llm = Replies()
    run(replace(video, texts=(bad, *(video.texts or ())[1:]), lines=lines), llm)
    for name in ("topics", "questions"):
        text = named(llm, name)[0].messages[-1].text
        assert "HOUT EN SuCm (?)" in text
        assert "ANNA\n" in text
        assert "twenty years ago. (?)\n" in text
        assert "a large bowl. (?)\n" in text
        assert "the whole family.\n" in text


def test_lasting_on_screen_texts_are_listed_once() -> None:
    video = sample_video()
    logo = [ScreenText(time=5.0, end=75.0, text="KITCHEN TV", score=0.97)]
    texts = tuple(sorted((*(video.texts or ()), *logo), key=lambda t: t.time))
    llm = Replies()
    run(replace(video, texts=texts), llm)
    script = named(llm, "topics")[0].messages[-1].text
    assert script.count("KITCHEN TV") == 1
    assert "KITCHEN TV [5.0-75.0]" in script
    assert script.count("ANNA") == 2  # once in the caption


def test_on_screen_texts_are_listed_at_their_first_appearance() -> None:
    shots = (Span(0.0, 10.0), Span(10.0, 20.0), Span(20.0, 30.0))
    texts = (
        ScreenText(time=12.0, end=24.0, text="Turn it once", score=0.99),
        ScreenText(time=13.0, text="BUNKY", score=0.7),
    )
    captions = tuple(Caption(time=t, text="A pan.") for t in (5.0, 15.0, 25.0))
    row = Video(video_id="v", uri="v", duration=30.0, shots=shots, texts=texts, captions=captions)
    first, second, third = units(row, 60.0)
    assert (first.read, third.read) == ((), ())
    assert second.read == (("Turn it once", Span(12.0, 24.0), False), ("BUNKY", None, True))
    assert [t.text for t in third.texts] == ["Turn it once"]  # it can still be read there


def order_of(number: int, answer: str) -> str:
    return (
        f"QUESTION {number}: (temporal ordering) In which order are these seen in part {number}: "
        f"a lid, a bowl, an egg, a pan?\nCORRECT ANSWER: {answer}\nEVIDENCE: 12.0-31.5\n"
    )


def test_code_makes_the_wrong_orders() -> None:
    """No decoys are requested for an order, and it has as many options as balance it."""
    reply = asked(NEAR) + "\n" + order_of(2, "An egg; a bowl; a pan; a lid")
    llm = Replies({"neptune/questions": lambda r: reply, "neptune/decoys": wrong})
    other, ordered = run(sample_video(), llm).questions or ()
    (request,) = named(llm, "decoys")
    assert [d.question for d in request.variables["drafts"]] == [other.question]
    assert (len(other.options), len(ordered.options)) == (5, 4)
    assert ordered.drop is None
    assert ordered.answer == "An egg; a bowl; a pan; a lid"
    assert "A lid; a pan; a bowl; an egg" in ordered.options
    orders = order_of(1, "An egg; a bowl; a pan") + order_of(2, "An egg; a bowl; a pan; a lid")
    llm = Replies({"neptune/questions": lambda r: orders})
    assert [len(q.options) for q in run(sample_video(), llm).questions or ()] == [6, 4]
    assert not named(llm, "decoys")


def test_decoys_of_two_parts_become_all_combinations() -> None:
    def pairs(request: Request) -> str:
        values = ("red; green", "grey; blue", "grey; green", "pink; black")
        listed = "\n".join(f"WRONG ANSWER {n}: {v}" for n, v in enumerate(values, 1))
        return f"QUESTION 1: {request.variables['drafts'][0].question}\n{listed}"

    reply = (
        "QUESTION 1: (state changes) Which colours has the bowl?\nCORRECT ANSWER: red; blue\n"
        "EVIDENCE: 12.0-31.5"
    )
    llm = Replies({"neptune/questions": lambda r: reply, "neptune/decoys": pairs})
    (question,) = run(sample_video(), llm).questions or ()
    assert question.drop is None
    firsts, seconds = zip(*(option.split("; ") for option in question.options), strict=True)
    assert {firsts.count(x) for x in firsts} == {3}
    assert {seconds.count(x) for x in seconds} == {2}


def test_members_of_the_cast_keep_long_names() -> None:
    name = "the older man in a grey suit and round glasses"
    reply = f"CAST 1: {name} | a stick | 1-2\nSEGMENT 1: 1-8: eggs"
    llm = Replies({"neptune/topics": lambda r: reply})
    run(sample_video(), llm)
    assert f"- {name}: a stick; shots 1-2\n" in named(llm, "questions")[0].messages[-1].text


def test_members_seen_by_an_earlier_reply_stay_in_shots_that_are_requested_again() -> None:
    def twice(request: Request) -> str:
        if request.variables["whole"]:
            return "CAST 1: Anna | an apron | 1-4\nSEGMENT 1: 1-2: eggs\nSEGMENT 2: 7-8: bread"
        return "CAST 1: the pan | black | 2\nSEGMENT 1: 1-4: the pan"

    llm = Replies({"neptune/topics": twice})
    run(sample_video(), llm)
    text = named(llm, "questions")[0].messages[-1].text
    assert "- Anna: an apron; shots 1-4\n" in text
    assert "- the pan: black; shot 4\n" in text


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("", "story"),
        ("KIND: story\n", "story"),
        ("**Kind:** Compilation.\n", "compilation"),
        ("KIND: trailer\n", "trailer"),
    ],
)
def test_the_kind_of_a_video_is_parsed(line: str, kind: str) -> None:
    for reply in (f"{line}SEGMENT 1: 1-3: eggs\n", f"SEGMENT 1: 1-3: eggs\n{line}"):
        assert topics(3).read(reply) == (((0, 3, "eggs"),), (), kind)


def test_another_kind_is_refused() -> None:
    for lines in ("KIND: film", "KIND: story\nKIND: trailer", "KIND: story or trailer"):
        with pytest.raises(Unparsed, match=r"(?i)kind"):
            topics(3).read(f"SEGMENT 1: 1-3: eggs\n{lines}")


def test_a_reply_in_json_may_lack_the_kind() -> None:
    reply = {"cast": [], "segments": [{"first": 1, "last": 3, "topic": "eggs"}]}
    assert topics(3).read(json.dumps(reply)).kind == "story"
    assert topics(3).read(json.dumps({**reply, "kind": "trailer"})).kind == "trailer"


@pytest.mark.parametrize("kind", ["story", "compilation", "trailer"])
def test_only_a_story_must_join_its_moments(kind: str) -> None:
    """A compilation and a trailer are named as such in the prompts, and need no joined moments."""

    def topics_of(request: Request) -> str:
        count = len(request.variables["units"])
        return f"SEGMENT 1: 1-4: eggs\nSEGMENT 2: 5-{count}: bread\nKIND: {kind}"

    replies: dict[str, Answer] = {
        "neptune/topics": topics_of, "neptune/questions": lambda r: asked(NEAR),
        "neptune/decoys": wrong,
    }  # fmt: skip
    llm = Replies(replies)
    run(sample_video(repeat=2), llm)
    assert bool(named(llm, "further")) == (kind == "story")
    for name in ("questions", "decoys"):
        text = named(llm, name)[0].messages[-1].text
        assert (f"The video is a {kind}" in text) == (kind != "story")
    assert ("join moments" in named(llm, "questions")[0].messages[-1].text) == (kind == "story")


def test_a_compilation_gets_no_overview() -> None:
    for kind in ("story", "compilation"):
        llm = Replies({"neptune/topics": lambda r, k=kind: f"SEGMENT 1: 1-9: eggs\nKIND: {k}"})
        run(sample_video(repeat=9), llm, replace(SETTINGS, max_words=500, questions=1))
        overviews = [r.variables["part"].overview for r in named(llm, "questions")]
        assert any(overviews) == (kind == "story")


def test_further_questions_are_requested_with_the_reasons() -> None:
    two = {"neptune/topics": lambda r: "SEGMENT 1: 1-2: eggs\nSEGMENT 2: 3-16: the pan"}
    first = ("12.0-101.0", "12.0-18.0; 30.0-35.0", "30.0-35.0; 140.0-144.0", FAR)
    replies: dict[str, Answer] = {
        **two,
        "neptune/questions": lambda r: asked(*first),
        "neptune/further": lambda r: "NONE",
        "neptune/decoys": wrong,
    }
    llm = Replies(replies)
    settings = replace(SETTINGS, questions=4, apart_seconds=30.0)
    run(sample_video(repeat=2), llm, settings)
    (further,) = named(llm, "further")
    text = further.messages[-1].text
    questions = [f"- What is done with thing {n}4? (" for n in (1, 2, 3, 4)]
    assert f"{questions[0]}its evidence is one stretch)" in text
    assert f"{questions[1]}the first and the last moment of its evidence lie 12 s apart)" in text
    assert f"{questions[2]}all of its evidence is in one scene)" in text
    assert questions[3] not in text


def test_a_dense_caption_ends_with_a_sentence_and_counts_the_words_cut() -> None:
    story = "Anna breaks three eggs. " * 30
    llm = Replies({"neptune/dense": lambda r: story})
    first, *_ = run(sample_video(repeat=2), llm, replace(SETTINGS, dense_words=50)).segments or ()
    assert "The limit is 50 words" in named(llm, "dense")[0].messages[-1].text
    assert len(first.dense_caption.split()) == 48
    assert first.dense_caption.endswith("eggs.")
    assert first.words_cut == 72
    assert not any(s.words_cut for s in run(sample_video(), Replies()).segments or ())
    llm = Replies({"neptune/dense": lambda r: "eggs and " * 26})
    first, *_ = run(sample_video(), llm, replace(SETTINGS, dense_words=50)).segments or ()
    assert first.words_cut == 2


def test_a_dense_caption_is_shorter_than_its_scene() -> None:
    llm = Replies({"neptune/topics": lambda r: f"SEGMENT 1: 1-{len(r.variables['units'])}: eggs"})
    run(sample_video(), llm, replace(SETTINGS, dense_words=300))
    (request,) = named(llm, "dense")
    assert 80 < request.variables["most"] <= 0.5 * request.variables["scene"].words + 1 < 300


def test_without_a_limit_of_words_a_dense_caption_has_half_of_its_script() -> None:
    llm = Replies({"neptune/topics": lambda r: f"SEGMENT 1: 1-{len(r.variables['units'])}: eggs"})
    run(sample_video(repeat=20), llm, replace(SETTINGS, dense_words=None, support_words=200))
    (request,) = named(llm, "dense")
    assert request.variables["most"] == math.ceil(0.5 * request.variables["scene"].words) > 300
    assert len(named(llm, "support")) == 1


def test_prompts_have_plain_text() -> None:
    """A topic with an apostrophe, a dash and an umlaut is not escaped."""
    topic = "Anna's “Brötchen” – part one"
    llm = Replies({"neptune/topics": lambda r: f"SEGMENT 1: 1-8: {topic}"})
    run(sample_video(), llm, replace(SETTINGS, dense_words=300))
    for name in ("dense", "questions", "decoys"):
        assert topic in named(llm, name)[0].messages[-1].text


def asked(*evidence: str) -> str:
    return "\n".join(
        f"QUESTION {n}: (other) What is done with thing {n}{len(evidence)}?\n"
        f"CORRECT ANSWER: It burns {n}\nEVIDENCE: {e}"
        for n, e in enumerate(evidence, 1)
    )


def wrong(request: Request) -> str:
    return "\n".join(
        f"QUESTION {n}: {d.question}\n"
        + "\n".join(f"WRONG ANSWER {i}: {w}" for i, w in enumerate(("a", "b", "c", "d"), 1))
        for n, d in enumerate(request.variables["drafts"], 1)
    )


NEAR, FAR = "12.0-31.5", "12.0-18; 140.0-144.0"


@pytest.mark.parametrize(
    ("first", "then", "reaching", "total"),
    [
        ((NEAR, FAR, FAR, NEAR), None, 2, 4),
        ((NEAR, NEAR, NEAR, FAR), asked(FAR), 2, 4),
        ((NEAR, NEAR, NEAR, NEAR), asked(FAR, FAR), 2, 4),
        ((NEAR, NEAR, NEAR), asked(FAR, NEAR), 1, 4),
        ((NEAR, NEAR, NEAR, NEAR), "NONE", 0, 4),
        ((NEAR, NEAR, NEAR, NEAR), "What?", 0, 4),
    ],
)
def test_too_few_distant_spans_lead_to_further_questions(
    first: tuple[str, ...], then: str | None, reaching: int, total: int
) -> None:
    others: dict[str, Answer] = {
        "neptune/questions": lambda r: asked(*first),
        "neptune/further": lambda r: then or "",
        "neptune/decoys": wrong,
    }
    llm = Replies(others)
    questions = run(sample_video(repeat=2), llm, replace(SETTINGS, questions=4)).questions or ()
    assert [q.drop for q in questions] == [None] * total
    assert sum(q.metrics["apart_seconds"] >= 60 for q in questions) == reaching
    further = named(llm, "further")
    assert bool(further) == (then is not None)
    if further:
        assert [m.role for m in further[0].messages] == ["system", "user", "assistant", "user"]
        assert further[0].messages[1] == named(llm, "questions")[0].messages[1]
        assert "QUESTION 1" in further[0].messages[1].lines
        assert further[0].messages[2].text == asked(*first)


def test_the_distance_of_spans_depends_on_the_length_of_the_video() -> None:
    """A quarter of 80 s is 20 s; that of 30 s is too little for two spans."""
    reply = asked("12.0-18.0; 40.0-44.0")
    two = {"neptune/topics": lambda r: "SEGMENT 1: 1-2: eggs\nSEGMENT 2: 3-9: the pan"}
    replies = {**two, "neptune/questions": lambda r: reply, "neptune/decoys": wrong}
    for video, gap in ((sample_video(), 20), (sample_video(shots=3), None)):
        llm = Replies(replies)
        assert run(video, llm).questions
        assert not named(llm, "further")
        text = named(llm, "questions")[0].messages[-1].text
        assert ("join moments" in text) == (f"{gap} seconds or more apart" in text) == bool(gap)
    llm = Replies(
        {
            **replies,
            "neptune/questions": lambda r: asked("12-18; 30-44"),
            "neptune/further": lambda r: asked("12-18; 40-44", "12-18"),
        }
    )
    questions = run(sample_video(), llm).questions or ()
    assert len(named(llm, "further")) == 1
    assert [q.metrics["apart_seconds"] for q in questions] == [12, 22]


def test_a_question_without_decoys_is_dropped_alone() -> None:
    def forgetful(request: Request) -> str:
        first, *_ = request.variables["drafts"]
        return wrong(replace(request, variables={"drafts": [first]}))

    llm = Replies({"neptune/questions": lambda r: asked(*[NEAR] * 3), "neptune/decoys": forgetful})
    questions = run(sample_video(), llm).questions or ()
    assert [len(r.variables["drafts"]) for r in named(llm, "decoys")] == [3, 2]
    assert [q.drop for q in questions] == [None, None, "check: 0 wrong answers, not 4"]


def test_a_long_part_gets_more_questions() -> None:
    llm = Replies()
    run(sample_video(repeat=20), llm, replace(SETTINGS, questions=3, words_each=200))
    target = named(llm, "questions")[0].variables["target"]
    assert target > 10
    assert max(len(r.variables["drafts"]) for r in named(llm, "decoys")) <= MAX_TOGETHER
