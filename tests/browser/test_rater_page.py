"""Rating in a browser, from the links to the written table: at two widths, by keyboard, with a
reload and a server that dies.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mustsee.files import schemas
from mustsee.raters.ballots import Ballots
from mustsee.records import Line, Question, Span, Video
from ray_jobs.cli.launch import build, compose
from tests.support import sample_videos
from tests.support.chromium import Person, browser, needs_browser
from tests.support.served import Served

pytestmark = [pytest.mark.browser, pytest.mark.slow]
BOXES = ["clear", "right", "video", "long"]
FPS = 12


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    needs_browser()
    with browser() as made:
        yield made


@pytest.fixture(scope="module")
def videos_of(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("videos")
    for name in ("a.mp4", "b.mkv"):
        sample_videos.write(folder / name, sample_videos.cuts([36, 36]), fps=FPS, tone=6.0)
    return folder


@pytest.fixture
def run(tmp_path: Path, videos_of: Path) -> Path:
    """Write three questions on a video that browsers play, and one on a video that they do not."""
    lines = (Line(start=0.5, end=2.0, text="Here it is red."), Line(start=3, end=5, text="Blue."))
    videos = [
        Video(video_id=v, uri=str(videos_of / name), duration=6.0, fps=FPS, lines=lines,
              shots=(Span(0, 3), Span(3, 6)))
        for v, name in (("a", "a.mp4"), ("b", "b.mkv"))
    ]  # fmt: skip
    questions = [
        Question(
            question_id=f"q{n}", video_id="b" if n == 4 else "a", recipe="r", question=f"Why {n}?",
            question_type="Other", options=("red", "blue", "green"), answer_index=1, answer="blue",
            evidence=(Span(1, 2), Span(4, 5)), drop="blind: known" if n == 4 else None,
        )
        for n in range(1, 5)
    ]  # fmt: skip
    pq.write_table(schemas.table(questions, Question), tmp_path / "questions.parquet")
    pq.write_table(schemas.table(videos, Video), tmp_path / "videos.parquet")
    (tmp_path / "run.json").write_text("{}")
    return tmp_path


@pytest.fixture
def serve(run: Path) -> Iterator[Any]:
    started: list[Served] = []

    def start(*overrides: str) -> Served:
        started.append(Served(run, *overrides))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def judged(person: Person, boxes: str, needs: str) -> None:
    """Answer by keyboard: the ticks of the first line, then the rest of the form."""
    person.keys(*boxes, "ArrowDown", needs)


def question(person: Person) -> str:
    return person.page.locator("h2.question").inner_text()


@pytest.mark.parametrize("width", [1280, 390])
def test_three_raters_and_a_senior(chromium: Any, run: Path, serve: Any, width: int) -> None:
    served = serve("form=neptune", "names=[ana,ben,eve]")
    # what each needs: 3 both, 1 audio; "Why 3?" lacks a box by two of three
    needs = {"Why 1?": "333", "Why 2?": "331", "Why 3?": "111"}
    for place, name in enumerate(("ana", "ben", "eve")):
        rater = Person(chromium, served.links[name], width)
        assert rater.serious() == []
        for number in range(3):
            asked = question(rater)
            boxes = "123" if asked == "Why 3?" and name != "ana" else "1234"
            judged(rater, boxes, needs[asked][place])
            if name == "ana" and asked == "Why 1?":
                rater.keys("ArrowDown")  # the marked line is a text now, and takes the keys
                rater.keys("Control+a")
                rater.page.keyboard.type("Why, 1 of 3?")
            if name == "ben" and number == 1:
                rater.page.get_by_text("Draft saved").wait_for()
                rater.page.reload()
            if name == "eve" and number == 1:
                rater.page.get_by_text("Draft saved").wait_for()
                served.kill()
                rater.keys(*["ArrowDown", "Escape"] * 3, "ArrowDown")  # to the remark
                rater.page.keyboard.type("kept without a server")
                rater.page.get_by_text("No connection").wait_for()
                rater.keys("Control+Enter")
                rater.page.get_by_text("not sent").wait_for()
                served.start()
                rater.page.reload()
                assert all("net::ERR_" in text for text in rater.said)
                rater.said.clear()
            rater.sends()
        assert "Thank you" in rater.page.inner_text("main")
        assert rater.said == []
        rater.leaves()
    votes = Ballots(where=run / "rating-neptune" / "votes.sqlite").votes()
    assert len(votes) == 9
    assert len({(v.question_id, v.rater) for v in votes}) == 9
    comments = [v.answers.get("comment") for v in votes if v.rater == "eve"]
    assert sorted(filter(None, comments)) == ["kept without a server"]
    assert [v.answers.get("question") for v in votes if v.rater == "ana"].count("Why, 1 of 3?") == 1

    senior = Person(chromium, served.links["senior_1"], width)
    for _ in range(2):  # the third question has fallen
        assert senior.serious() == []
        judged(senior, "1234", "3")
        if question(senior) == "Why 1?":
            senior.page.get_by_role("button", name="Use this").click()
        senior.sends()
    assert "Thank you" in senior.page.inner_text("main")
    assert senior.said == []
    written_back(run)


def written_back(run: Path) -> None:
    overrides = [f"questions={run}", "form=neptune", "names=[ana,ben,eve]", "do=write"]
    assert build(compose("rate", overrides))() == 0
    rows = pq.read_table(run / "questions.parquet").to_pylist()
    found = {q.question_id: q for q in (schemas.load(Question, row) for row in rows)}
    assert found["q1"].question == "Why, 1 of 3?"
    before = json.loads(found["q1"].repairs[0].before)
    assert (before["question"], before["parts"]) == ("Why 1?", {"question": "Why 1?"})
    assert [found[f"q{n}"].drop for n in (1, 2, 3)] == [None, None, "people_neptune: not long"]
    assert [found[f"q{n}"].subsets for n in (1, 2, 3)] == [("mmh",), ("mmh",), ()]
    assert [len(found[f"q{n}"].verdicts) for n in (1, 2, 3, 4)] == [4, 4, 3, 0]
    assert (run / "questions.1.parquet").exists()
    ((entry),) = json.loads((run / "run.json").read_text())["checked"]
    # bbb bba aaa: 5 b, 4 a; observed disagreement 2/9, expected 2*5*4/(9*8) = 5/9; alpha 1 - 2/5
    assert entry["agreement"]["raters.needs"]["alpha"]["value"] == pytest.approx(0.6)
    assert entry["agreement"]["raters.needs"]["same"]["value"] == pytest.approx(7 / 9)


@pytest.mark.parametrize("width", [1280, 390])
def test_spans_are_marked_and_nudged_beside_the_video(
    chromium: Any, run: Path, serve: Any, width: int
) -> None:
    rows = pq.read_table(run / "questions.parquet").to_pylist()
    kept = [schemas.load(Question, {**row, "drop": None}) for row in rows if row["video_id"] == "b"]
    pq.write_table(schemas.table(kept, Question), run / "questions.parquet")
    served = serve("form=certificate", "raters=1", "names=[ana]")
    ana = Person(chromium, served.links["ana"], width)
    ana.page.wait_for_function("() => document.getElementById('video').readyState >= 2")
    ana.keys("i", *["."] * FPS, "o")
    ana.page.get_by_text("1.0 s in total").wait_for()
    ana.keys("d", "s")  # the end a frame back, the beginning one on
    ana.page.get_by_text("0.8 s in total").wait_for()
    ana.keys("ArrowRight", ",", "i", ".", "o")
    assert ana.page.locator(".parts ol li").count() == 2
    ana.page.get_by_text("count as one: 1 in total").wait_for()
    assert ana.serious() == []
    ana.keys("n", "n", "Delete", "Enter")
    ana.page.get_by_text("is not answered").wait_for()  # whether one is sure
    ana.keys("1")
    ana.page.get_by_text("Draft saved").wait_for()
    ana.page.reload()
    assert ana.page.locator(".parts ol li").count() == 1
    ana.sends()
    (vote,) = Ballots(where=run / "rating-certificate" / "votes.sqlite").votes()
    assert vote.answers["parts"] == [
        [pytest.approx(1 / FPS, abs=2e-3), pytest.approx(11 / FPS, abs=2e-3)]
    ]
    assert [text for text in ana.said if "422" not in text] == []


def test_an_item_lent_for_a_minute_is_withdrawn_after_it(
    chromium: Any, run: Path, serve: Any
) -> None:
    served = serve("form=human_benchmark", "names=[ana,ben,dan,eve,zoe]", "sample=1")
    box = Ballots(where=run / "rating-human_benchmark" / "votes.sqlite")
    name = next(i.rater for i in box.open() if i.round == "one_minute") or ""
    ana = Person(chromium, served.links[name], 390)
    ana.page.clock.install()
    ana.page.reload()
    assert ana.serious() == []
    ana.page.locator("video").wait_for()
    ana.page.locator("#clock", has_text="left").wait_for()
    ana.page.clock.fast_forward(61_000)
    ana.page.get_by_text("Time is over").wait_for()
    assert ana.page.locator("video").count() == 0
    ana.keys("1")
    ana.sends()
    (vote,) = box.votes()
    assert set(vote.answers) == {"answer"}
    assert ana.said == []


def test_without_scripts_the_page_is_an_ordinary_form(chromium: Any, run: Path, serve: Any) -> None:
    served = serve("form=verify", "raters=1", "names=[ana]", "sample=1")
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(served.links["ana"])
    for field in ("answer_right", "only_answer", "needs_video"):
        page.locator(f"[name={field}][value=yes]").check()
    page.get_by_role("button", name="Send").click()
    assert "Thank you" in page.inner_text("main")
    context.close()
    assert len(Ballots(where=run / "rating-verify" / "votes.sqlite").votes()) == 1
