"""CinePile's recipe on a scene, with the scripted model and with a failing endpoint."""

import asyncio
from pathlib import Path

import pytest

from actors.llm.scripted import ScriptedLlm
from mustsee.calls.llm import Asker, Reply, Request
from mustsee.errors import BadRow, Unparsed
from mustsee.media.subtitles import read
from mustsee.prompts import Prompts
from mustsee.recipes.cinepile.ask import CinePileSettings, ask, format_lines, scene_lines
from mustsee.recipes.cinepile.mcq import kind_of, mcqs
from mustsee.recipes.cinepile.templates import CATEGORIES, Template, read_templates
from mustsee.records import Line, Question, SceneText, Video
from tests.support.material import material


def scene() -> SceneText:
    folder = material("subtitles_ad/videojs+video.js/docs/examples/elephantsdream")
    dialogue = [(x, 0.0) for x in read(str(folder / "captions.en.vtt")).lines if x.start < 300]
    descriptions = [
        (x, 1.0) for x in read(str(folder / "descriptions.en.vtt")).lines if x.start < 300
    ]
    both = sorted([*dialogue, *descriptions], key=lambda pair: pair[0].start)
    return SceneText(
        lines=tuple(x for x, _ in both), visual=tuple(p for _, p in both),
        start=0, end=300, rate=1, score=1, head=1, tail=1,
    )  # fmt: skip


def scripted() -> Asker:
    return Asker(llm=ScriptedLlm(), prompts=Prompts())


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
    askers = {role: scripted() for role in ("shortlister", "reasoning", "perceptual")}
    clip = asyncio.run(ask(video, askers, CinePileSettings(templates=own())))
    questions = clip.questions or ()
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
    assert asyncio.run(ask(video, askers, CinePileSettings(templates=own()))) == clip
    other = asyncio.run(ask(video, askers, CinePileSettings(templates=own(), seed=1)))
    assert other.questions != clip.questions


def test_a_scene_that_shows_too_little_has_no_perceptual_questions() -> None:
    class Blind:
        identity = "blind"

        async def complete(self, request: Request) -> Reply:
            return Reply(text="**NONE.**", model="blind")

    askers = dict.fromkeys(
        ("shortlister", "reasoning", "perceptual"), Asker(llm=Blind(), prompts=Prompts())
    )
    lines = (Line(start=1.0, end=2.0, text="Go."),)
    dialogue_scene = SceneText(
        lines=lines, visual=(0.0,), start=0.0, end=3.0, rate=1.0, score=1.0, head=1.0, tail=1.0
    )
    video = Video(video_id="clip", uri="clip.mp4", scene=dialogue_scene, duration=3.0)
    kinds = {kind: tuple(t for t in own() if t.kind == kind) for kind in ("perceptual", "temporal")}
    perceptual_only = CinePileSettings(templates=kinds["perceptual"])
    assert asyncio.run(ask(video, askers, perceptual_only)).questions == ()
    with pytest.raises(BadRow, match="cinepile/questions"):
        asyncio.run(ask(video, askers, CinePileSettings(templates=kinds["temporal"])))


def test_each_role_has_its_model() -> None:
    prompts_of: dict[str, set[str]] = {
        "shortlister": set(),
        "reasoning": set(),
        "perceptual": set(),
    }

    class Named:
        def __init__(self, role: str) -> None:
            self.identity, self.role = role, role

        async def complete(self, request: Request) -> Reply:
            prompts_of[self.role].add(request.variables.get("kind", request.prompt))
            return await ScriptedLlm().complete(request)

    askers = {role: Asker(llm=Named(role), prompts=Prompts()) for role in prompts_of}
    video = Video(video_id="clip", uri="clip.mp4", scene=scene(), duration=300.0)
    asyncio.run(ask(video, askers, CinePileSettings(templates=own())))
    assert prompts_of == {
        "shortlister": {"cinepile/shortlist"},
        "reasoning": {"reasoning", "temporal"},
        "perceptual": {"perceptual"},
    }


def test_the_scene_text_is_tagged_and_timed() -> None:
    lines = (Line(start=1, end=2, text="Run!"), Line(start=2, end=4.25, text="He\nruns."))
    text = SceneText(
        lines=lines, visual=(0.1, 0.9), start=0, end=9, rate=1, score=1, head=1, tail=1
    )
    assert (
        format_lines(scene_lines(text))
        == "<subtitle> 1.0 2.0 Run!\n<visual descriptions> 2.0 4.2 He runs."
    )


def test_the_filters_work_with_a_faulty_endpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replies in lines, recorded and served over HTTP with a tenth of the calls failing at first,
    give the same questions with the same measures.
    """
    from actors.llm.openai import OpenAI
    from actors.llm.replay import Replay
    from actors.stages.cinepile import AskScene
    from actors.stages.vet import Vet
    from loopback.endpoint import Faults, Loopback
    from loopback.replies import recorded_replies
    from mustsee.recipes.cinepile.filters import Degenerate, Hardness, Refine, Vision
    from mustsee.verify.repair import RepairRule
    from tests.support.bench import Bench
    from tests.support.every_prompt import Rules

    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    path = str(tmp_path / "replies.jsonl")

    def run(llm: object, name: str) -> tuple[Question, ...]:
        bench = Bench(tmp_path / name)  # its retries wait for nothing
        roles = ("guesser", "guesser_2", "guesser_3", "reader", "repairer")
        part = AskScene(
            llms=dict.fromkeys(("shortlister", "reasoning", "perceptual"), llm),
            settings=CinePileSettings(each=1),
        )  # type: ignore[dict-item]
        filters = (Refine(), Degenerate(), Vision(), Hardness())
        repair = RepairRule(rounds=2, see=None, near=None)
        vet = Vet(filters={f.name: f for f in filters}, repair=repair, **dict.fromkeys(roles, llm))  # type: ignore[arg-type]

        video = Video(video_id="clip", uri="clip.mp4", scene=scene(), duration=300.0)
        (vetted,) = bench.run(vet, *bench.run(part, video))
        return vetted.questions or ()

    first = run(Replay(path=path, record=Rules()), "recorded")
    faults = Faults(share=0.1, kinds=("500", "429", "empty"), most=1)
    served: dict[str, tuple[Question, ...]] = {}
    for schemas in ("ignored", "honoured"):
        with Loopback(reply=recorded_replies(path), faults=faults, schemas=schemas) as server:  # type: ignore[arg-type]
            model = OpenAI(model="m", base_url=server.url, prices={"m": [1.0, 2.0]})
            served[schemas] = run(model, schemas)
    assert len(first) >= 8
    for second in served.values():
        assert [(q.question, q.options, q.metrics, q.drop) for q in first] == [
            (q.question, q.options, q.metrics, q.drop) for q in second
        ]


def test_of_equal_questions_a_sound_one_is_kept() -> None:
    """A model writes a question twice, once with an option twice."""
    reply = "\n".join(
        f"Question: What falls?\n- A) a lamp\n- B) {b}\n- C) a cup\n- D) a hat\n- E) a coin\n"
        "Correct Answer: A\n"
        for b in ("a book", "the lamp that hangs", *(f"a lamp and {n} books" for n in range(8)))
    )

    class Repeats:
        identity = "repeats"

        async def complete(self, request: Request) -> Reply:
            kind = request.variables["templates"][0]["name"]
            return Reply(text=f"Template: {kind}\n{reply}", model="repeats")

    askers = dict.fromkeys(
        ("shortlister", "reasoning", "perceptual"), Asker(llm=Repeats(), prompts=Prompts())
    )
    video = Video(video_id="clip", uri="clip.mp4", scene=scene(), duration=300.0)
    perceptual = tuple(t for t in own() if t.kind == "perceptual")
    (one,) = asyncio.run(ask(video, askers, CinePileSettings(templates=perceptual))).questions or ()
    assert one.drop is None


def test_the_default_templates_are_shortlisted_too() -> None:
    """There are more templates than the shortlist holds, and a model may choose fewer."""
    requests: list[Request] = []

    class Few:
        identity = "few"

        async def complete(self, request: Request) -> Reply:
            requests.append(request)
            if request.prompt == "cinepile/shortlist":
                return Reply(text="TEMPLATES: 2, 3, 5, 7, 11", model="few")
            return await ScriptedLlm().complete(request)

    folder = Path(Prompts().root) / "cinepile"
    reasoning = tuple(read_templates(folder / "reasoning.md"))
    assert len(reasoning) > CinePileSettings().shortlist
    assert len({t.category for t in reasoning}) == 4
    askers = dict.fromkeys(
        ("shortlister", "reasoning", "perceptual"), Asker(llm=Few(), prompts=Prompts())
    )
    video = Video(video_id="clip", uri="clip.mp4", scene=scene(), duration=300.0)
    asyncio.run(ask(video, askers, CinePileSettings(templates=reasoning)))
    asyncio.run(ask(video, askers, CinePileSettings(templates=reasoning[:12])))
    lists = [r for r in requests if r.prompt == "cinepile/shortlist"]
    assert [r.variables["count"] for r in lists] == [20, 12]
    drawn = [{t["name"] for t in r.variables["templates"]}
             for r in requests if r.variables.get("kind") == "reasoning"]  # fmt: skip
    assert drawn == [{reasoning[n - 1].name for n in (2, 3, 5, 7, 11)}] * 2


def test_a_reply_with_a_question_without_its_kind_is_unparseable() -> None:
    """Such a question once got the category of the first kind."""
    kinds = ("Thing in hand", "Face")
    block = "Question: What falls?\n- A) a\n- B) b\n- C) c\n- D) d\n- E) e\nCorrect Answer: A\n"
    for head in ("", "Template: Weather\n"):
        with pytest.raises(
            Unparsed, match=r"'Template: \.\.\.' with one of the kinds Thing in hand"
        ):
            mcqs(kinds=kinds).read(f"{head}{block}")
    (parsed,) = mcqs(kinds=kinds).read(f"Template: 2. Face (close)\n{block}")
    assert kind_of(parsed.template, kinds) == 1
    (alone,) = mcqs(kinds=kinds[:1]).read(block)
    assert kind_of(alone.template, kinds[:1]) == 0
    assert kind_of("Face", ("Face in the crowd", "Face")) == 1
