"""The report's page: its content, its escaping, and browsing it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from mustsee.files import schemas
from mustsee.files.store import Store
from mustsee.questions.fact_funnel import FactFunnel, RunFunnel
from mustsee.records import (
    GIVEN,
    UNREACHED,
    Keyframe,
    Line,
    MissingQuestions,
    Point,
    Provenance,
    Question,
    Repair,
    Span,
    Verdict,
    Video,
    passed_metric,
    unverified_metric,
)
from mustsee.run import browse
from mustsee.run.browse import place_span
from mustsee.run.report import RULES_NOTE, write_report
from tests.support.chromium import Person, browser, needs_browser

TAKE = "document.title = 'taken'"
EVIL = f'</script><script>{TAKE}</script><img src=x onerror="{TAKE}">'
RECORD: dict[str, Any] = {
    "recipe": "neptune", "config": {"seed": 0, "evil": EVIL}, "git": "", "versions": {"m": "1"},
    "funnel": [{"stage": s, "in": 3, "out": 3, "dropped": {}, "problems": 0}
               for s in ("read", "look")],
    "questions": {"made": 5, "kept": 3, "dropped": {"blind": 1, "sight": 1}, "subsets": {"mma": 2},
                  "types": {"Counting": 2, "Order": 1}, "first_types": {"Counting": 1, "Story": 2},
                  "guesses": {"said": ["a guesser at chance lets 0.512 through & more"]}},
    "computed": {"look": 2}, "reused": {}, "seconds": {"look": 3.0, "total": 9.0},
    "pace": {"stages": {"look": {"per_hour": 21.9, "ceiling": None, "busy": None, "usd": None,
                                 "why": "waits for videos", "usd_per_kept_question": None}}},
    "llm": {"calls": 3, "usd_per_kept_question": 0.01, "by_prompt": {
        "neptune/ask": {"calls": 3, "cached": 0, "asked_again": 0, "tokens_in": 7, "tokens_out": 8,
                        "usd": 0.03}}},
}  # fmt: skip


def question(name: str, video: str, **fields: Any) -> Question:
    base: dict[str, Any] = {
        "recipe": "neptune", "question": f"What of {name}?", "question_type": "Counting",
        "options": ("one", f"two {name}", "three"), "answer_index": 1, "answer": f"two {name}",
        "evidence": (Span(10.0, 20.0),), "subsets": ("full",),
        "verdicts": (
            Verdict(filter="sight", model="m", reply=f"ANSWER: B, {name}", correct=True,
                    detail=json.dumps({"condition": "evidence", "chose": "B"})),
            Verdict(filter="blind", model="m", reply="C", correct=False, detail="shown as ABC"),
        ),
        "metrics": {"sight_needed": 1.0, "sight_passed": 1.0, "blind_passed": 1.0},
    }  # fmt: skip
    return Question(question_id=name, video_id=video, **{**base, **fields})


def noise(size: tuple[int, int]) -> bytes:
    buffer = io.BytesIO()
    Image.effect_noise(size, 12).convert("RGB").save(buffer, "JPEG", quality=72)
    return buffer.getvalue()


def run_of(
    folder: Path, questions: list[Question], videos: list[Video], size: tuple[int, int] = (64, 36)
) -> Path:
    """Write the tables and the page of a run, with a frame every five seconds of each video."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(schemas.questions_table(questions), folder / "questions.parquet")
    pq.write_table(schemas.table(videos, Video), folder / "videos.parquet")
    store = Store(str(folder / "store"))
    frames = tuple(Keyframe(time=float(t), shot=t, jpeg=noise(size)) for t in range(0, 100, 5))
    table = pa.table({"keyframes": schemas.column("keyframes", [frames])})
    for video in videos:
        store.put_table("look", video.lineage["look"], table)
    return write_report(folder, RECORD, store)


def small(folder: Path) -> Path:
    shots = (Span(0.0, 50.0), Span(50.0, 130.0))  # the last one ends after the video
    lines = (Line(start=1.0, end=4.0, text=EVIL),)
    videos = [
        Video(video_id=n, uri=f"{n}.mp4", title=f"Video {n}", duration=100.0, shots=shots,
              lines=lines, lineage={"look": n})
        for n in ("a", "b")
    ]  # fmt: skip
    was = {"question": "Was?", "options": ["x", "y"], "evidence": [], "verdicts": 1}
    repair = Repair(kind="wording", reason="blind: guessed", by="m", before=json.dumps(was))
    questions = [
        question("plain", "a", subsets=("full", "mma")),
        question("evil", "a", question=EVIL, options=(EVIL, "no", "yes"), question_type="Order",
                 verdicts=(Verdict(filter="sight", model=EVIL, reply=EVIL, correct=True),)),
        question("guessed", "b", drop="blind: right in 2 of 2 runs"),
        question("repaired", "b", repairs=(repair,),
                 metrics={"rewrites": 2.0, "version_kept": 2.0}),
        question("open", "b", options=(), answer_index=None, drop="sight: two fit"),
    ]  # fmt: skip
    return run_of(folder, questions, videos)


def unpacked(page: str, name: str) -> Any:
    match = re.search(rf'id="{name}">([^<]*)</script>', page)
    assert match is not None
    return json.loads(gzip.decompress(base64.b64decode(match[1])))


def test_the_page_is_one_file_whose_only_script_is_its_own(tmp_path: Path) -> None:
    page = small(tmp_path).read_text()
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "default-src 'none'" in page
    assert not re.search(r"""(?:src|href|url)\s*[=(]\s*["']?https?:""", page)
    assert "taken'</script>" not in page


ROW = Video(video_id="v", uri="v.mp4", duration=100.0, lineage={"look": "v"})


def test_the_page_shows_how_much_video_kept_questions_need(tmp_path: Path) -> None:
    seconds = {"a": 4.0, "b": 30.0, "c": 59.9, "d": 500.0}
    questions = [question(n, "v", metrics={"reach_seconds": s}) for n, s in seconds.items()]
    questions.append(question("e", "v", metrics={"reach_seconds": 70.0}, drop="sight: two fit"))
    page = run_of(tmp_path, questions, [ROW]).read_text()
    card = page[page.index("Video that one must see, in sum") :].partition("</div></div>")[0]
    bars = re.findall(r"<span>([^<]*)</span><i[^>]*></i><span>(\d+)</span>", card)
    assert dict(bars)["30 to 60 s"] == "2"
    assert (dict(bars)["under 5 s"], dict(bars)["60 to 120 s"]) == ("1", "0")
    assert dict(bars)["120 s or more"] == "1"
    without = run_of(tmp_path / "old", [question("a", "v")], [ROW]).read_text()
    assert "Video that one must see" not in without


def test_the_page_says_what_was_listed_what_is_missing_and_what_a_rater_says(
    tmp_path: Path,
) -> None:
    total = FactFunnel(seconds=7200.0, listed_seconds=1800.0, listed=9, chosen=2)
    missing = MissingQuestions(what="open questions of the skill cause", why="few claims", number=3)
    funnel = RunFunnel(total=total, missing=[missing])
    run_of(tmp_path, [question("a", "v")], [ROW])
    questions = {**RECORD["questions"], "worth": {"said": "worth: english 4.0 of 5"}}
    record = {**RECORD, "fact_funnel": funnel.plain(), "questions": questions}
    page = write_report(tmp_path, record, None).read_text()
    assert "Facts were listed of 25% of 2 h of video" in page
    assert "open questions of the skill cause: 3 missing, few claims" in page
    assert "Worth: english 4.0 of 5." in page


def test_a_page_without_questions_points_at_the_videos(tmp_path: Path) -> None:
    run_of(tmp_path, [], [])
    none = {"made": 0, "kept": 0, "dropped": {}, "subsets": {}, "types": {}}
    record = {**RECORD, "questions": {**none, "guesses": {"said": []}}}
    page = write_report(tmp_path, record, Store(str(tmp_path / "store"))).read_text()
    assert "made 0 questions" in page
    assert "Open a question" not in page
    assert 'The <a href="#videos">list of videos</a> says why' in page
    assert 'id="videos"' in page


def test_why_a_video_gave_no_question_stands_above_the_questions(tmp_path: Path) -> None:
    small(tmp_path)
    reasons = {f"v{n}": f"reason <{n}>" for n in range(7)}
    store = Store(str(tmp_path / "store"))
    page = write_report(tmp_path, {**RECORD, "without_questions": reasons}, store).read_text()
    top = page.partition("<h2>Questions</h2>")[0]
    assert "<b>v4</b>: reason &lt;4&gt;" in top
    assert "v5" not in top
    assert "and 2 more" in top
    without_any = write_report(tmp_path, RECORD, store).read_text()
    assert "Videos without a question" not in without_any


def test_packed_text_is_escaped(tmp_path: Path) -> None:
    page = small(tmp_path).read_text()
    rendered = unpacked(page, "questions-0")
    assert len(rendered) == 5
    for text in (*rendered, *unpacked(page, "videos-0")):
        assert "<script" not in text
        assert "onerror=&#34;" in text or "onerror" not in text
    (evil,) = [text for text in rendered if "no</li>" in text and "yes</li>" in text]
    assert evil.count("&lt;script&gt;") >= 3  # the options, the model, the reply
    index = unpacked(page, "index")
    assert index["rows"][0][0] == "plain"  # the best one
    assert index["fates"] == ["", "blind", "sight"]


def test_a_question_shows_its_drop_reason_its_repairs_and_its_verdicts(
    tmp_path: Path,
) -> None:
    page = small(tmp_path).read_text()
    order = [row[0] for row in unpacked(page, "index")["rows"]]
    rendered = dict(zip(order, unpacked(page, "questions-0"), strict=True))
    assert "dropped by blind: right in 2 of 2 runs" in rendered["guessed"]
    assert "because blind: guessed. It was: Was? (x; y)" in rendered["repaired"]
    assert "of earlier wordings" in rendered["repaired"]
    assert "kept: version 2 of 3, the one that did best" in rendered["repaired"]
    assert "kept: version" not in rendered["plain"]
    assert "ANSWER: B, plain" in rendered["plain"]
    assert "right in 1 of 1 runs (evidence)" in rendered["plain"]
    assert '<li class="right">two plain</li>' in rendered["plain"]
    assert rendered["plain"].count("<figure>") == 3  # at 10, 15 and 20 s
    assert "left:10.00%;width:10.00%" in rendered["plain"]


def test_a_question_shows_its_points_and_which_do_not_count(tmp_path: Path) -> None:
    points = (
        Point(text=f"The first <b>{EVIL}</b>", weight=3),
        Point(text="The second one", state=GIVEN),
        Point(text="The third one", state=UNREACHED),
    )
    deep = question("deep", "a", options=(), answer_index=None, points=points, skill="goal",
                    contradictions=("It goes wrong",), answer="In <i>words</i>")  # fmt: skip
    video = Video(video_id="a", uri="a.mp4", duration=100.0, lineage={"look": "a"})
    page = run_of(tmp_path / "run", [deep], [video]).read_text()
    (html,) = unpacked(page, "questions-0")
    assert "In &lt;i&gt;words&lt;/i&gt;" in html
    assert "The first &lt;b&gt;" in html
    assert re.search("The second one.*said without the video", html)
    assert re.search("The third one.*not said by a viewer", html)
    assert "wrong: It goes wrong" in html
    assert "· goal" in html


def test_a_question_says_which_filters_it_did_not_pass_and_why(tmp_path: Path) -> None:
    """Also where they only mark, and drop nothing."""
    guess = Verdict(filter="blind", model="m", correct=True, reply=f"* EXPLANATION: {EVIL}")
    form = Verdict(filter="giveaways", model="rules", passed=False, reply="the longest option")
    detail = json.dumps({"unread": "no frames"})
    marked = question(
        "marked", "a", verdicts=(guess, form, Verdict(filter="sight", model="m", detail=detail)),
        metrics={passed_metric("blind"): 0.0, passed_metric("giveaways"): 0.0,
                 passed_metric("options"): 1.0, unverified_metric("sight"): 1.0},
    )  # fmt: skip
    video = Video(video_id="a", uri="a.mp4", duration=100.0, lineage={"look": "a"})
    page = run_of(tmp_path / "run", [marked], [video]).read_text()
    (html,) = unpacked(page, "questions-0")
    assert "did not pass blind: answered right without the video, in 1 of 1 runs: " in html
    assert "did not pass giveaways: the longest option</p>" in html
    assert "sight could not decide: no frames</p>" in html
    assert "pass options" not in html
    assert "<script" not in html


@pytest.mark.parametrize("by", ["offline 1", "model"])
def test_a_page_of_rules_says_what_they_do_not_ask(tmp_path: Path, by: str) -> None:
    made = Provenance(llm=by, prompts="p")
    video = Video(video_id="a", uri="a.mp4", duration=100.0, lineage={"look": "a"})
    questions = [question("q", "a", form="after", provenance=made), question("other", "a")]
    page = run_of(tmp_path / "run", questions, [video]).read_text()
    assert (RULES_NOTE in page) is (by != "model")


def test_the_page_of_an_evaluation_shows_its_scores(tmp_path: Path) -> None:
    small(tmp_path)
    steps = [*RECORD["funnel"], {**RECORD["funnel"][0], "stage": "answer"}]
    scores = {"lines": ["score: m <1>: 20.0 %"], "head": ["", "n"], "rows": [["all", "5"]]}
    record: dict[str, Any] = {**RECORD, "recipe": "evaluate", "funnel": steps, "scores": scores}
    page = write_report(tmp_path, record, None).read_text()
    assert "Scores of 3 questions on 3 videos" in page
    assert "<b>score: m &lt;1&gt;: 20.0 %</b>" in page
    assert '<td class="">all</td><td class="n">5</td>' in page
    assert "questions made" not in page
    assert "Where the questions went" not in page


def test_the_page_compares_guesses_with_chance_and_types_before_and_after_repair(
    tmp_path: Path,
) -> None:
    page = small(tmp_path).read_text()
    assert "<p>A guesser at chance lets 0.512 through &amp; more.</p>" in page
    rows = re.findall(
        r'<tr><td>([^<]*)</td><td class="n">(\d)</td><td class="n">(\d)</td></tr>', page
    )
    assert set(rows) >= {("Counting", "1", "2"), ("Story", "2", "0"), ("Order", "0", "1")}


@pytest.mark.parametrize(
    ("span", "place"),
    [
        (Span(50.0, 130.0), (50.0, 50.0)),
        (Span(-5.0, 10.0), (0.0, 10.0)),
        (Span(120.0, 130.0), (100.0, 0.0)),
    ],
)
def test_a_span_is_drawn_within_the_video(span: Span, place: tuple[float, float]) -> None:
    assert place_span(span, 0.0, 100.0) == place


def many(folder: Path, count: int, video_count: int) -> Path:
    videos = [
        Video(video_id=f"v{n}", uri=f"v{n}.mp4", duration=100.0, shots=(Span(0.0, 100.0),),
              lineage={"look": "shared"})
        for n in range(video_count)
    ]  # fmt: skip
    chance = random.Random(0)

    def reply() -> str:
        words = " ".join(f"{chance.choice(('the', 'a', 'one'))}{chance.randrange(999)}"
                        for _ in range(40))  # fmt: skip
        return f"* ANSWER: B\n* SEEN: {words}"

    questions = [
        question(f"q{n:05d}", f"v{n % video_count}",
                 verdicts=tuple(Verdict(filter=f, model="model", seed=s, reply=reply(),
                                        correct=s % 2 == 0)
                                for f in ("sight", "blind", "asr") for s in range(3)))
        for n in range(count)
    ]  # fmt: skip
    return run_of(folder, questions, videos, (256, 144))


def test_frames_are_sampled_where_there_are_many_videos(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browse, "MAX_FRAMES", 40)
    monkeypatch.setattr(browse, "MAX_QUESTIONS", 25)
    page = many(tmp_path, 30, 10).read_text()
    assert page.count('id="frames-') == 5  # with eight frames each
    index = unpacked(page, "index")
    assert len(index["rows"]) == 25
    assert sum(row[-1] is not None for row in index["rows"]) == 15  # three of each video


OPEN = "document.querySelectorAll('#rows > [open]')"
LOADED = "document.querySelector('#rows > [open] .options')"


def browsed(page: Person, url: str) -> None:
    page.until(LOADED)
    assert page.run(f"{OPEN}.length") == 1
    assert page.run(f"{OPEN}[0].dataset.id") == "plain"
    assert page.run(f"{OPEN}[0].querySelectorAll('.strip img[src^=data]').length") == 3
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert page.run(wide)

    count = "document.querySelectorAll('#rows > details').length"
    for name, value, left in (
        ("fate", "kept", 3), ("fate", "by blind", 1), ("fate", "repaired", 1), ("video", "1", 3),
        ("type", "1", 1), ("subset", "1", 1), ("search", "two PLAIN", 1), ("search", "video b", 3),
        ("search", "no such thing", 0),
    ):  # fmt: skip
        say = f"document.getElementById('{name}')"
        event = f"{say}.dispatchEvent(new Event('input'))"
        page.run(f"{say}.value = {value!r}; {event}")
        assert page.run(count) == left, (name, value)
        page.run(f"{say}.value = ''; {event}")
    assert page.run(count) == 5

    page.run("location.hash = 'evil'")
    page.until("document.querySelector('#rows > [data-id=evil][open] .options')")
    page.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.until("document.querySelectorAll('[data-panel] svg').length === 2")
    assert page.run("document.title") == "3 questions on 3 videos (neptune)"
    assert page.run("document.querySelectorAll('img[onerror]').length") == 0
    assert page.run("document.body.textContent.includes('document.title = ')")
    over = "+rect.getAttribute('x') + +rect.getAttribute('width') > 1000.5"
    assert not page.run(f"[...document.querySelectorAll('rect')].some((rect) => {over})")
    assert page.run(wide)

    page.page.goto(url + "#guessed")
    page.page.reload()
    page.until("document.querySelector('#rows > [data-id=guessed][open] .options')")
    assert page.said == []


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_in_a_browser(tmp_path: Path, width: int) -> None:
    needs_browser()
    url = small(tmp_path / "run").as_uri()
    with browser() as driver:
        browsed(Person(driver, url, width), url)


@pytest.mark.browser
@pytest.mark.slow
def test_the_summary_needs_no_script(tmp_path: Path) -> None:
    needs_browser()
    url = small(tmp_path / "run").as_uri()
    with browser() as driver:
        page = Person(driver, url, 1280, scripts=False)
        text = page.run("document.body.innerText")
        for text_part in ("What of plain?", "two plain", "Where the videos went", "21.9", "0.0300",
                         "waits for videos", "dropped: blind", "Video a"):  # fmt: skip
            assert text_part in text
        rendered = "document.querySelectorAll('.strip img[src^=data]').length"
        assert page.run(rendered) >= 3
        assert page.run("document.getElementById('browse').hidden")


@pytest.mark.browser
@pytest.mark.slow
def test_ten_thousand_questions_open_quickly(tmp_path: Path) -> None:
    """Sizes and times are printed with -s; the limits leave much room."""
    needs_browser()
    page_file = many(tmp_path / "run", 10_000, 1_000)
    with browser() as driver:
        page = Person(driver, page_file.as_uri(), 1280)
        page.until(LOADED)
        loaded = "performance.getEntriesByType('navigation')[0].loadEventEnd"
        times = {"loaded, ms": page.run(loaded)}
        ready = "performance.getEntriesByName('ready')[0].startTime"
        times["first question open, ms"] = page.run(ready)
        took = (
            "(() => { const began = performance.now(); const s = $('search'); s.value = '%s';"
            " s.dispatchEvent(new Event('input')); return performance.now() - began })()"
        )
        times["first search, ms"] = page.run(took % "q09999")
        times["next search, ms"] = page.run(took % "what 0777")
        assert page.run("document.querySelectorAll('#rows > details').length") > 0
        page.run("document.getElementById('search').value = ''")
        page.run("location.hash = 'q09998'")
        page.until("document.querySelector('#rows > [data-id=q09998][open] .options')")
        assert page.said == []
    size = page_file.stat().st_size / 1e6
    frames = page_file.read_text().count(f'": "{base64.b64encode(noise((64, 36)))[:12].decode()}')
    print({"MB": round(size, 1), "frames": frames, **{k: round(v) for k, v in times.items()}})
    assert size < 40
    assert times["next search, ms"] < 1000
