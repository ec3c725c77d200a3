"""Verdicts of rules carry a note everywhere, and a video without a question has a reason."""

from __future__ import annotations

import asyncio
import io
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from rich.console import Console

from actors.llm.offline import Offline
from actors.part import RunContext
from actors.stages.ask import Ask
from mustsee.calls.llm import Llm, Reply, Request
from mustsee.calls.usage import UsageTotals
from mustsee.files import schemas
from mustsee.files.store import Store
from mustsee.layouts import hugging_face
from mustsee.records import (
    UNTESTED,
    Keyframe,
    Line,
    Question,
    Repair,
    ScreenText,
    Span,
    Verdict,
    Video,
    is_rules,
    untested_note,
)
from mustsee.run.picture import draw_question
from mustsee.run.record import RunRecord
from mustsee.run.report import write_report
from mustsee.run.tables import Tables, question_counts
from mustsee.verify.guess.counts import GuessRule
from mustsee.verify.repair import wording_fields
from ray_jobs.runtime import outcome
from tests.run.test_report import RECORD

RULE = GuessRule(subset="mma")
RULES, MODEL = Offline().identity, "openai gpt at http://host/v1"


@pytest.mark.parametrize(
    ("identity", "rules"),
    [(RULES, True), (MODEL, False), (f"{RULES} + {MODEL}", False), ("offline-gpt", False)],
)
def test_rules_are_recognised_by_their_identity(identity: str, rules: bool) -> None:
    assert is_rules(identity) is rules


def test_the_note_names_the_filters_that_only_rules_answered() -> None:
    assert untested_note({"blind": [MODEL], "asr": [MODEL, RULES], "giveaways": ["rules"]}) == ""
    assert untested_note({}) == ""
    note = untested_note({"blind": [RULES], "sight": [MODEL], "asr": [RULES, RULES]})
    assert note == f"{UNTESTED} Rules were asked in its place: blind, asr."


def question(name: str, video: str, model: str, **fields: Any) -> Question:
    return Question(
        question_id=name, video_id=video, recipe="neptune", question=f"{name}?", question_type="",
        options=("a", "b"), answer_index=0, answer="a", evidence=(Span(0.0, 1.0),),
        verdicts=tuple(Verdict(filter=f, model=model, correct=False) for f in ("blind", "asr")),
        **fields,
    )  # fmt: skip


def run_of(folder: Path, model: str) -> Tables:
    questions = [
        question("kept", "v", model, subsets=("mma",), metrics={"blind_passed": 1.0}),
        question("guessed", "v", model, metrics={"blind_passed": 0.0}),
        question("dropped", "w", model, drop="sight: not there"),
        question("dropped too", "w", model, drop="sight: not there"),
    ]
    videos = [
        Video(video_id="short", uri="s", drop="too short: 1 s"),
        Video(video_id="silent", uri="s", unasked="the rules need speech: found none"),
        Video(video_id="v", uri="v", duration=9.0, lineage={"look": "key"}),
        Video(video_id="w", uri="w"),
    ]
    pq.write_table(schemas.questions_table(questions), folder / "questions.parquet")
    pq.write_table(schemas.table(videos, Video), folder / "videos.parquet")
    return Tables(folder)


@pytest.mark.parametrize("model", [RULES, MODEL])
def test_the_terminal_the_record_the_page_and_the_card_have_the_note(
    model: str, tmp_path: Path
) -> None:
    tables = run_of(tmp_path, model)
    counts, terminal = question_counts(tables, RULE), io.StringIO()
    for line in outcome.outcome_lines(counts, "mma", makes=True):
        Console(file=terminal, width=160).print(line)
    page = write_report(tmp_path, RECORD, None).read_text()
    folder = tmp_path / "set"
    hugging_face.write(list(tables.questions()), folder)
    card = (folder / "README.md").read_text()
    for place in (terminal.getvalue(), counts.untested_note, page, card):
        assert (UNTESTED in place) is (model is RULES)
    assert list(outcome.outcome_lines(counts, "mma", makes=False)) == []


def test_the_summary_says_what_was_made_what_passed_and_what_is_left_out_by_which_filter(
    tmp_path: Path,
) -> None:
    terminal, counts = io.StringIO(), question_counts(run_of(tmp_path, MODEL), RULE)
    for line in outcome.outcome_lines(counts, "mma", makes=True):
        Console(file=terminal, width=160).print(line)
    rows = [" ".join(row.split()) for row in terminal.getvalue().splitlines()]
    start = rows.index("made 4")
    assert rows[start + 1 : start + 5] == [
        "passed every filter: subset mma (answered only with the video) 1",
        "left out 3",
        "dropped by sight (a look at the video finds another answer, or none) 2",
        "by blind (answered right without the video) 1",
    ]
    assert "(no type) 2" in rows
    assert (counts.made, counts.kept, counts.passed) == (4, 2, 1)
    assert question_counts(run_of(tmp_path, MODEL)).passed == 2  # Without a subset.


def test_the_summary_and_the_record_compare_guesses_with_chance(tmp_path: Path) -> None:
    rule = GuessRule(filters={"blind": (1, 1), "options": (1, 1)}, rewrites=1, subset="mma")
    counts = question_counts(run_of(tmp_path, MODEL), rule)
    terminal = io.StringIO()
    for line in outcome.outcome_lines(counts, "mma", makes=True):
        Console(file=terminal, width=160).print(line)
    for text in (
        "guessed right without the video before any rewrite: 0 of 4 (0%, by chance 50%; 95% 0% to "
        "66%)",
        "if every guess were luck alone, 25% of the questions would pass the filters by guesses at "
        "once, 44% after 1 rewrite",
    ):
        assert text in terminal.getvalue()
    assert question_counts(run_of(tmp_path, MODEL)).guesses is None
    assert question_counts(run_of(tmp_path, MODEL), GuessRule()).guesses is None


@pytest.mark.parametrize(
    ("right", "note"),
    [
        (20, "sight looked at a sample: 20 of 20 right (100%, 95% 84% to 100%)"),
        (18, "sight looked at a sample: 18 of 20 right (90%, 95% 70% to 97%); below 95%: look at "
             "all (vet.filters.sight.sample=1)"),
    ],
)  # fmt: skip
def test_the_sample_of_sight_says_how_many_are_right(right: int, note: str, tmp_path: Path) -> None:
    sampled = [
        question(
            f"q{n}",
            f"v{n}",
            MODEL,
            metrics={"sight_sampled": 1.0, "sight_passed": float(n < right)},
            drop=None if n < right else "sight: disputed",
        )
        for n in range(20)
    ]
    rest = [question("rest", "v0", MODEL),
            question("open", "v0", MODEL, metrics={"sight_sampled": 1.0}),
            question("all", "v0", MODEL, metrics={"sight_passed": 0.0})]  # fmt: skip
    pq.write_table(schemas.questions_table([*sampled, *rest]), tmp_path / "questions.parquet")
    pq.write_table(schemas.table([], Video), tmp_path / "videos.parquet")
    counts = question_counts(Tables(tmp_path))
    assert counts.sample_note == note
    assert note in [str(line) for line in outcome.outcome_lines(counts, "mma", makes=True)]
    record = RunRecord(
        recipe="facts", config={}, git="", versions={}, prompts={}, funnel=(), questions=counts,
        transcribed_by={}, stages={}, llm=UsageTotals(), counts={},
    )  # fmt: skip
    plain = record.plain()["questions"]["sampled"]
    assert (plain["said"], plain["n"]) == (note, 20)


def test_kept_questions_are_counted_by_the_type_before_and_after_repair(tmp_path: Path) -> None:
    before = question("guessed", "v", MODEL)
    repair = Repair(
        kind="wording", reason="blind: guessed", by="m", before=json.dumps(wording_fields(before))
    )
    repaired = replace(before, question_type="Side", repairs=(repair, repair))
    evidence = replace(repair, kind="evidence", before="[]")
    others = [question("whole", "v", MODEL, repairs=(evidence,)),
              question("dropped", "v", MODEL, drop="sight: no")]  # fmt: skip
    run_of(tmp_path, MODEL)
    pq.write_table(schemas.questions_table([repaired, *others]), tmp_path / "questions.parquet")
    counts = question_counts(Tables(tmp_path))
    assert counts.types == {"Side": 1, before.question_type: 1}
    assert counts.first_types == {before.question_type: 2}


def test_a_drawn_question_has_the_note(tmp_path: Path) -> None:
    shade = io.BytesIO()
    Image.new("RGB", (64, 36)).save(shade, "JPEG")
    frames = (Keyframe(time=0.5, shot=0, jpeg=shade.getvalue()),)
    heights: dict[str, int] = {}
    for model in (RULES, MODEL):
        run_of(tmp_path, model)
        store = Store(str(tmp_path / "store"))
        store.put_table(
            "look", "key", pa.table({"keyframes": schemas.column("keyframes", [frames])})
        )
        drawn = draw_question(tmp_path, store, tmp_path / "q.png", "kept")
        with Image.open(drawn) as image:
            heights[model] = image.height
    assert heights[RULES] > heights[MODEL]  # by the line of the note


def test_a_video_without_a_question_has_a_reason(tmp_path: Path) -> None:
    counts = question_counts(run_of(tmp_path, MODEL), RULE)
    assert counts.without == {
        "silent": "the rules need speech: found none",
        "w": "2 made, none passed every filter: 2 by sight (a look at the video finds another "
        "answer, or none)",
    }
    other = question_counts(run_of(tmp_path, MODEL), replace(RULE, subset="other")).without
    assert other["v"] == (
        "2 made, none passed every filter: 1 by a later decision, 1 by blind (answered right "
        "without the video)"
    )
    record = {**RECORD, "without_questions": counts.without}
    page = write_report(tmp_path, record, None).read_text()
    assert "no question: the rules need speech: found none" in page


@dataclass(frozen=True)
class Silent:
    """A model that answers NONE."""

    identity: str

    def open(self) -> Llm:
        return self

    async def complete(self, request: Request) -> Reply:
        return Reply(text="NONE", model="m")


@dataclass(frozen=True)
class Settings:
    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("lines", "texts")
    area: ClassVar[str] = "mlvu"
    found: tuple[Question, ...] = field(default=())


async def recipe(video: Video, asker: Any, settings: Settings) -> Video:
    return replace(video, questions=settings.found)


SPOKEN = Video(
    video_id="v", uri="v", lines=(Line(start=0.0, end=1.0, text="hi"),),
    texts=(ScreenText(time=0.0, text="EXIT", score=1.0),),
)  # fmt: skip


@pytest.mark.parametrize(
    ("video", "model", "reason"),
    [
        (Video(video_id="v", uri="v", lines=(), unheard="no speech: music"), RULES,
         "need captions of the inserted clips: found too little to ask about (lines of speech"
         ": 0, texts on the screen: 0); no speech: music"),
        (SPOKEN, RULES, "too little to ask about (lines of speech: 1, texts on the screen: 1)"),
        (SPOKEN, MODEL, f"no usable question: {MODEL}, which was given lines of"),
    ],
)  # fmt: skip
def test_the_ask_stage_gives_the_reason_for_no_questions(
    video: Video, model: str, reason: str, tmp_path: Path
) -> None:
    def context(llm: Any) -> RunContext:
        return RunContext(store=Store(str(tmp_path)), llm=lambda _: llm, count=lambda *_: None)

    def ask_about(*found: Question) -> Video:
        ask = Ask(recipe=recipe, settings=Settings(found), llm=Silent(model))
        done: Any = ask.open(context(Silent(model)))(video)
        return asyncio.run(done)

    assert reason in (ask_about().unasked or "")
    assert ask_about(question("q", "v", model)).unasked is None
