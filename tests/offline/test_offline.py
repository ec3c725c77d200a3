"""The rules instead of a model: their texts are from the video, and their guessers guess."""

import asyncio
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from mustsee.calls.llm import Message, Request
from mustsee.offline import filters, sight, sight_open
from mustsee.prompts import ROOT
from mustsee.questions.checks import normal
from mustsee.recipes.neptune.ask import NeptuneSettings, Scene, ScriptPart
from mustsee.recipes.neptune.ask import neptune as recipe
from mustsee.recipes.neptune.offline import rules as neptune
from mustsee.recipes.neptune.offline.composed import MAX_OF_FACT, make_questions, truth_table
from mustsee.recipes.neptune.script import units
from mustsee.records import Caption, Line, Question, ScreenText, Span, Video, Word
from mustsee.verify import worth
from mustsee.verify.blind import BlindGuess, ranking
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.guess_set import rankings
from mustsee.verify.vetting import VettingContext, vet
from tests.support.neptune_video import READ, SAID, Rules, asker, sample_video

FILTERS = (
    BlindGuess(name="blind", prompt="filters/blind"),
    BlindGuess(name="asr", prompt="filters/asr", transcript=True),
)


def asked(video: Video, number: int = 40, seed: int = 0) -> tuple[Question, ...]:
    chosen = NeptuneSettings(questions=number, seed=seed)
    return asyncio.run(recipe(video, asker(Rules()), chosen)).questions or ()


def vetted(video: Video, number: int = 40, seed: int = 0) -> tuple[Question, ...]:
    asked_video = replace(video, questions=asked(video, number, seed))
    vetting = VettingContext(
        askers={"guesser": asker(Rules())}, video_frames=VideoFrames(video), seed=seed
    )
    return asyncio.run(vet(asked_video, FILTERS, vetting)).questions or ()


def part(video: Video) -> ScriptPart:
    return ScriptPart(scenes=(Scene(topic="All", units=units(video, 30.0)),))


def test_every_prompt_of_a_filter_has_a_rule() -> None:
    prompts = {f"filters/{path.stem}" for path in Path(ROOT, "filters").glob("[!_]*.j2")}
    prompts -= {worth.PROMPT, worth.CONDITIONS_PROMPT}  # of a rater, which is no filter
    assert set(filters.RULES | sight.RULES | sight_open.RULES) == prompts


def test_questions_guessed_together_are_guessed_as_alone() -> None:
    """By a dry run's rules: what a paid model would be asked is counted with their replies."""
    made = [q for q in asked(sample_video()) if q.options][:5]
    transcript = "\n".join(f"[{n}.0-{n}.5] {text}" for n, text in enumerate(SAID))
    for heard in (transcript, None):
        given = [{"question": q.question, "options": q.options} for q in made]
        variables = {"asked": given, "transcript": heard, "recognised": False}
        request = Request(prompt="filters/guess_set", digest="", messages=(), variables=variables)
        form = rankings([len(q.options) for q in made])
        together = form.read(filters.RULES["filters/guess_set"](request))
        for one, (rank, _) in zip(given, together, strict=True):
            single = replace(request, variables={**one, "transcript": heard or ""})
            assert ranking(len(rank)).read(filters.RULES["filters/asr"](single)) == rank


def test_options_come_from_the_video() -> None:
    """Texts of the options occur in the video."""
    content = normal(" ".join((*SAID, *READ)))
    quoted = [t for q in asked(sample_video()) for o in q.options for t in QUOTED.findall(o)]
    assert quoted
    assert all(normal(text) in content for text in quoted)


QUOTED = re.compile("“([^”]+)”")


def test_evidence_shows_the_answer() -> None:
    video = sample_video()
    for question in asked(video):
        inside = [
            text.text
            for span in question.evidence
            for text in (*(video.lines or ()), *(video.texts or ()))
            if (text.start < span.end and text.end > span.start if isinstance(text, Line)
                else span.start - 0.5 <= text.time <= span.end + 0.5)
        ]  # fmt: skip
        for text in QUOTED.findall(f"{question.question} {question.answer}"):
            assert normal(text) in normal(" ".join(inside)), question


def test_orders_are_those_of_the_video() -> None:
    """Things in an answer are in the order of the video."""
    at = {normal(line.text): line.start for line in sample_video().lines or ()}
    at |= {normal(text.text): text.time for text in sample_video().texts or ()}
    orders_seen = 0
    for question in asked(sample_video()):
        if question.question_type == "Temporal Ordering" and ";" in question.answer:
            times = [
                min(
                    (t for text, t in at.items() if normal("".join(QUOTED.findall(i))) in text),
                    default=None,
                )
                for i in question.answer.split(";")
            ]
            known_times = [t for t in times if t is not None]
            assert known_times == sorted(known_times), question
            orders_seen += len(known_times) == 4
    assert orders_seen


def test_a_lasting_text_is_no_wrong_answer_while_it_is_visible() -> None:
    video = sample_video()
    lasting = ScreenText(time=25.0, end=38.0, text="EGGS FROM THE FARM", score=0.99)
    texts = (*(video.texts or ()), lasting, ScreenText(time=65.0, text="A NEW CARD", score=0.99))
    table = truth_table(part(replace(video, texts=texts)))
    (eggs,) = [fact for fact in table.of_kind("text") if "EGGS" in fact.phrase]
    for number, moment in enumerate(table.moments):
        assert table.holds(eggs, number) is (moment.start < 38.0 and moment.end > 24.5)
    for seed in range(4):
        for question in make_questions(part(replace(video, texts=texts)), seed):
            if SAID[3][:20] in question.question:
                assert not any("EGGS FROM THE FARM" in decoy for decoy in question.decoys)


def test_a_text_like_another_is_not_known_to_be_absent() -> None:
    video = sample_video()
    like = ScreenText(time=65.0, text="200 GRANS", score=0.7)
    table = truth_table(part(replace(video, texts=(*(video.texts or ()), like))))
    (grams,) = [fact for fact in table.facts if "GRAMS" in fact.phrase]
    at = [n for n, m in enumerate(table.moments) if m.start <= 65.0 < m.end]
    assert [table.holds(grams, n) for n in at] == [None]
    assert table.doubts(grams) == tuple(at)


def test_titles_goodbyes_and_seasons_are_not_asked_for() -> None:
    video = sample_video()
    seasons = [ScreenText(time=10.0 * n + 7, text=x, score=0.99)
               for n, x in ((2, "SPRING"), (4, "SUMMER"), (5, "AUTUMN"))]  # fmt: skip
    known = ("HOME COOKING", "GOODBYE", "SPRING", "SUMMER", "AUTUMN", "Enjoy your breakfast")
    for seed in range(4):
        row = replace(video, texts=(*(video.texts or ()), *seasons))
        for question in make_questions(part(row), seed):
            written = " / ".join((question.question, question.answer, *question.decoys))
            assert not any(text in written for text in known), question


def test_no_question_asks_for_a_count() -> None:
    """No answer is a number of detected things."""
    for seed in range(4):
        for question in make_questions(part(sample_video()), seed):
            assert question.tag != "counting"
            assert not re.search(r"how (?:many|often)|faces?\b", question.question, re.IGNORECASE)


def test_uncertain_lines_are_not_used() -> None:
    video = sample_video()
    doubtful = tuple(
        replace(x, words=tuple(Word(x.start, x.end, w, 0.4) for w in x.text.split()))
        for x in video.lines or ()
    )
    certain = tuple(
        replace(x, words=tuple(Word(x.start, x.end, w, 0.97) for w in x.text.split()))
        for x in video.lines or ()
    )
    doubtful_texts = texts(replace(video, lines=doubtful))
    assert doubtful_texts
    assert not any(normal(line)[:20] in text for line in SAID for text in doubtful_texts)
    assert texts(replace(video, lines=certain)) == texts(video)


def test_uncertain_on_screen_texts_are_not_used() -> None:
    video = sample_video()
    read = tuple(
        replace(t, score=0.8) if t.text == "TURN IT ONCE" else t for t in video.texts or ()
    )
    assert any("turn it once" in text for text in texts(video))
    assert not any("turn it once" in text for text in texts(replace(video, texts=read)))


@pytest.mark.parametrize("text", ["www.farm.com", "EGGS FROM TH...", "a@b.org", "x1 4 22 l", "ZAP"])
def test_addresses_and_fragments_are_not_quoted(text: str) -> None:
    video = sample_video()
    more = (*(video.texts or ()), ScreenText(time=45.0, text=text, score=0.99))
    assert not any(normal(text) in other for other in texts(replace(video, texts=more)))


def test_a_page_full_of_words_is_not_quoted() -> None:
    video = sample_video()
    read = [f"{a} {b}" for a in SAID[0].split() for b in READ if b]
    more = [ScreenText(time=45.0, text=text, score=0.99) for text in read]
    assert truth_table(part(replace(video, texts=tuple(more)))).of_kind("text") == ()


def texts(video: Video) -> list[str]:
    """Return all questions, answers and decoys on a video in normal form."""
    return [
        normal(" / ".join((m.question, m.answer, *m.decoys)))
        for seed in range(3)
        for m in make_questions(part(video), seed)
    ]


def test_the_filters_drop_some_and_keep_some() -> None:
    questions = [q for seed in range(3) for q in vetted(sample_video(), 14, seed)]
    dropped = [q.drop.split(":")[0] for q in questions if q.drop]
    blind = [v.correct for q in questions for v in q.verdicts if v.filter == "blind"]
    assert 0.04 < sum(map(bool, blind)) / len(blind) < 0.4
    assert 0 < len(dropped) / len(questions) < 0.7
    assert sum(q.drop is None for q in questions) / len(questions) > 0.2


def test_the_blind_guesser_is_at_chance_without_hints() -> None:
    """It is right by chance (1 in 5) if options resemble neither the question nor each other."""
    names = ("alpha", "bravo", "delta", "gamma", "omega")
    firsts = []
    for n, order in enumerate(permutations(names)):
        request = ask("filters/blind", seed=n, question="What is it called?", options=order)
        firsts.append(order[ord(filters.blind(request)[10]) - 65])
    assert all(10 <= firsts.count(name) <= 42 for name in names)  # 24 expected of 120


def test_the_blind_guesser_uses_hints() -> None:
    options = ("A dog", "The long red scarf of the sailor", "A cat", "A cup", "A hat")
    question = "What does the sailor with the red scarf wear?"
    for seed in range(5):
        reply = filters.blind(ask("filters/blind", seed=seed, question=question, options=options))
        assert reply.startswith("* ANSWER: B")


def test_the_guesser_of_the_options_alone_uses_hints_of_the_options() -> None:
    longest = ("A dog", "A cat", "The long red scarf of the old sailor", "A cup", "A hat")
    twins = ("A red cup of tea", "A red cup of milk", "The moon", "Nobody", "Seven")
    for seed in range(10):
        reply = filters.options_alone(ask("filters/options_alone", seed=seed, options=longest))
        assert reply.startswith("* ANSWER: C")
        reply = filters.options_alone(ask("filters/options_alone", seed=seed, options=twins))
        assert reply.startswith(("* ANSWER: A", "* ANSWER: B"))


def ask(prompt: str, seed: int = 0, **variables: object) -> Request:
    return Request(
        prompt=prompt, digest="", messages=(Message("user", ""),), variables=variables, seed=seed
    )


def test_captions_of_a_real_model_give_questions() -> None:
    """Captions are prose on people and things without measured colours."""
    video = sample_video()
    captions = tuple(
        Caption(c.time, f"A woman with an apron holds item number {n} over a wooden table.")
        for n, c in enumerate(video.captions or ())
    )
    questions = asked(replace(video, captions=captions))
    assert len(questions) >= 4
    assert all(q.drop is None for q in questions)


@pytest.mark.parametrize("seed", range(3))
def test_questions_of_another_author_get_decoys_from_the_video(seed: int) -> None:
    from mustsee.questions.drafts import Draft
    from mustsee.questions.replies import decoys

    drafts = (Draft(question="Who gave Anna the recipe?", answer="Her mother", tag="other"),)
    reply = neptune.decoys(
        ask(
            "neptune/decoys",
            seed=seed,
            part=part(sample_video()),
            drafts=drafts,
            expected=[()],
            count=4,
        )
    )
    (complete,) = decoys(drafts, 4).read(reply)
    content = normal(" / ".join((*SAID, *READ)))
    assert all(normal(decoy) in content for decoy in complete.decoys)


ODD = re.split(
    " ",
    "the a and because so that two 12 is are has become turns first then more than next week We I "
    "how to eggs, milk; “quoted” -> option A? 10:24 ... bowl cat dog \x00 ] ( > QUESTION CORRECT "
    "ANSWER: SHOT 3: EVIDENCE: B) caption ** - 1. none ' \" _ # <|im_end|> 雪 é",
)


@pytest.mark.parametrize("seed", range(16))
def test_odd_texts_give_sound_questions_or_none(seed: int) -> None:
    """No rule fails on odd words, and all questions pass the checks and the parsers."""
    rng = random.Random(seed)

    def odd() -> str:
        return " ".join(rng.choice(ODD) for _ in range(rng.randint(0, 14)))

    count = rng.randint(1, 14)
    video = Video(
        video_id="odd",
        uri="odd",
        duration=10.0 * count,
        shots=tuple(Span(10.0 * n, 10.0 * n + 10) for n in range(count)),
        captions=tuple(Caption(10.0 * n + 5, odd()) for n in range(count)),
        texts=tuple(ScreenText(time=10.0 * n + 5, text=odd(), score=0.9) for n in range(count)),
        lines=tuple(Line(start=10.0 * n, end=10.0 * n + 9, text=odd()) for n in range(count)),
    )
    for question in vetted(video, 20, seed):
        assert not (question.drop or "").startswith("check"), question


def test_reversed_questions_count_once_and_facts_have_few_questions() -> None:
    for seed in range(4):
        questions = make_questions(part(sample_video()), seed)
        about = [
            frozenset(map(normal, QUOTED.findall(f"{m.question} {m.answer}"))) for m in questions
        ]
        assert len(set(about)) == len(about)
        used = Counter(text for texts_of_one in about for text in texts_of_one)
        assert max(used.values()) <= MAX_OF_FACT


@pytest.mark.parametrize(
    ("text", "asked"), [("this", False), ("dynamic", False), ("of the", False), ("DISCORD", True)]
)
def test_a_fragment_of_a_sentence_is_not_quoted(text: str, asked: bool) -> None:
    more = ScreenText(time=45.0, text=text, score=0.99, top=0.9)
    video = sample_video()
    table = truth_table(part(replace(video, texts=(*(video.texts or ()), more))))
    assert (f"the words “{text}”" in [f.phrase for f in table.of_kind("text")]) is asked


def test_a_title_is_read_or_repeated_or_a_number() -> None:
    def title(lines: Sequence[str], read: Sequence[str] = ()) -> str:
        spoken = tuple(Line(start=3.0 * n, end=3.0 * n + 2, text=x) for n, x in enumerate(lines))
        texts_shown = tuple(
            ScreenText(time=1.0, end=2.0 + n, text=x, score=0.99) for n, x in enumerate(read)
        )
        video = Video(video_id="v", uri="v.mp4", duration=20.0, shots=(Span(0, 20),), lines=spoken,
                      texts=texts_shown)  # fmt: skip
        request = Request(prompt="neptune/topics", digest="", messages=(),
                          variables={"units": units(video, 30.0)})  # fmt: skip
        return neptune.topics(request).rpartition(": ")[2]

    talk = ["We smash a window.", "Look at the tiger."]
    assert title(talk) == "Part 1"
    assert title([*talk, "I fear the tiger."]) == "Tiger"
    assert title([*talk, "I fear the tiger."], ["OUTER SPACE", "this"]) == "OUTER SPACE"
    assert title(talk, ["OUTER SPACE", "A LONGER CARD"]) == "A LONGER CARD"


def test_a_text_that_outlasts_many_units_counts_once_for_a_title() -> None:
    def title(*shown: ScreenText) -> str:
        """The title of 26 s with a cut every 2 s."""
        shots = tuple(Span(2.0 * n, 2.0 * n + 2) for n in range(13))
        lines = tuple(Line(start=shot.start, end=shot.end, text="Yes.") for shot in shots)
        video = Video(video_id="v", uri="v.mp4", duration=26.0, shots=shots, texts=shown,
                      lines=lines)  # fmt: skip
        request = Request(prompt="neptune/topics", digest="", messages=(),
                          variables={"units": units(video, 30.0)})  # fmt: skip
        return neptune.topics(request).rpartition(": ")[2]

    through = ScreenText(time=0.5, end=25.5, text="OUTER SPACE", score=0.99)
    assert title(through) == "OUTER SPACE"
    brief = replace(through, time=1.5, end=4.5, text="THREE UNITS")
    assert title(brief, replace(through, time=6.1, end=9.7, text="TWO UNITS")) == "TWO UNITS"
