"""Every prompt as a job asks it: on small videos by hand, the rules answering, and with the form
that reads the reply. What a model of its own makes of them can so be tried one by one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from actors.caption.transformers import sentence
from actors.judge import simpleqa
from actors.judge.llm import word
from actors.llm.offline import OfflineLlm
from mustsee.calls.llm import Asker, Reply, Request, VideoClip
from mustsee.enrich.groups import GroupSettings, siblings
from mustsee.enrich.traces import Traces, add_trace
from mustsee.enrich.twins import twin
from mustsee.errors import Unparsed
from mustsee.evaluate import rubric
from mustsee.judge.prompt import PROMPT
from mustsee.prompts import Prompts
from mustsee.questions import numbered
from mustsee.recipes.cinepile import ask as cinepile
from mustsee.recipes.cinepile.choosing import choose
from mustsee.recipes.cinepile.fits import fits
from mustsee.recipes.cinepile.induction import replace_names
from mustsee.recipes.cinepile.question_lists import ListedQuestion
from mustsee.recipes.cinepile.templates import CATEGORIES, Template, templates_form
from mustsee.recipes.egoschema import ask as egoschema
from mustsee.recipes.egoschema.no_question import NoQuestionSettings as Unseen
from mustsee.recipes.egoschema.no_question import no_question
from mustsee.recipes.mlvu.absent import AbsenceLook, search_background
from mustsee.recipes.mlvu.ask import NeedleSettings, ask_needle
from mustsee.recipes.neptune.ask import NeptuneSettings, neptune
from mustsee.recipes.neptune.people import perceive_people
from mustsee.recipes.neptune.settings import WholeSettings
from mustsee.recipes.neptune.whole import whole
from mustsee.records import Caption, Keyframe, Line, Question, SceneText, Segment, Span, Video
from mustsee.replies.extract import extract
from mustsee.replies.forms import Form, free
from mustsee.synth.plan import InsertionPlan
from mustsee.verify.blind import BlindGuess
from mustsee.verify.conditions.seen import Condition
from mustsee.verify.repair import RepairRule
from mustsee.verify.sight import Sight
from mustsee.verify.vetting import VettingContext, ignore_count, vet
from tests.support import verifier
from tests.support.neptune_video import SAID, sample_video

DOING = (
    "C picks up a knife from the drawer", "C cuts the onion on the board",
    "C puts the onion into the pan", "C stirs the pan with a spoon", "C washes the knife",
    "C opens the fridge", "C takes out the milk", "C pours the milk into the pan",
)  # fmt: skip
OPTIONS = ("Eggs", "Flour", "Milk", "Honey", "Salt")
CHOICE = "What is broken into the bowl first?"
SCENE = "\n".join(f"<subtitle> {10.0 * n} {10.0 * n + 5} {text}" for n, text in enumerate(SAID))


@dataclass(frozen=True)
class Call:
    """A prompt, what it was rendered from, and how the reply is read."""

    name: str
    form: Form[Any]
    given: Mapping[str, Any]

    def text(self) -> str:
        """What is asked, what was said before included."""
        asker = {"images", "clips", "history", "seed"}
        slots = {name: value for name, value in self.given.items() if name not in asker}
        before = [message.text for message in self.given.get("history", ())]
        return "\n".join([*before, Prompts().render(self.name, **slots).user])


@dataclass(frozen=True, kw_only=True)
class Heard(Asker):
    """An asker that keeps the first call of each prompt."""

    calls: dict[str, Call] = field(default_factory=dict[str, Call])

    async def ask(self, name: str, form: Form[Any], **given: Any) -> Any:
        self.calls.setdefault(name, Call(name, form, given))
        return await super().ask(name, form, **given)


@dataclass(frozen=True)
class Rules:
    """The offline rules, but for what a prompt is to be answered with instead."""

    others: Mapping[str, str] = field(default_factory=dict[str, str])
    identity: str = "rules"

    async def complete(self, request: Request) -> Reply:
        if request.prompt in self.others:
            return Reply(text=self.others[request.prompt], model="rules")
        return await OfflineLlm("rules").complete(request)


def calls() -> dict[str, Call]:
    """The first call of every prompt that is asked anywhere."""
    heard = Heard(llm=Rules(), prompts=Prompts())
    asyncio.run(_all(heard))
    return heard.calls


async def _all(heard: Heard) -> None:
    await _neptune(heard)
    await _filters(heard)
    await _cinepile(heard)
    await _egoschema(heard)
    needle = Segment(start=0, end=8, topic="needle", dense_caption="two dogs run in a park")
    video = Video(video_id="v", uri="v.mp4", segments=(needle,))
    await ask_needle(video, heard, NeedleSettings())
    plan = InsertionPlan(background="video.mp4", end=60.0)
    await search_background(video, plan, verifier.Stills(verifier.row()), heard, AbsenceLook())
    _judged(heard)
    for kind in ("subPlot", "summary"):
        what = replace(_question(), question_type=kind, answer=" ".join(SAID))
        await rubric.grade(what, " ".join(SAID[:4]), heard)


async def _neptune(heard: Heard) -> None:
    long = sample_video(repeat=2)
    again = (Caption(8.0, "A bowl stands beside the stove."),)
    long = replace(long, captions=tuple(sorted((*(long.captions or ()), *again),
                                               key=lambda c: c.time)))  # fmt: skip
    near = "\n".join(
        f"QUESTION {n}: (other) What is done with egg {n}?\nCORRECT ANSWER: It is broken {n}\n"
        "EVIDENCE: 20.0-30.0" for n in (1, 2, 3, 4)
    )  # fmt: skip
    others = {"neptune/questions": near, "neptune/further": "NONE"}
    some = replace(heard, llm=Rules(others))
    await neptune(long, some, NeptuneSettings(questions=4, support_words=60))
    await whole(long, heard, WholeSettings(see=Condition()))
    shown = tuple(Keyframe(time=float(n), shot=n, jpeg=b"1") for n in range(3))
    await perceive_people(replace(long, keyframes=shown), heard, pictures=2)


async def _filters(heard: Heard) -> None:
    wrong = "* EVIDENCE: 40.0-50.0\n* ANSWER: C"  # another option than the question's
    said = "* SEEN: it is red\n* EVIDENCE: 40.0-50.0\n* ANSWER: red"
    others = {"filters/sight": wrong, "filters/sight_open": said, "filters/repair": "NONE"}
    some = replace(heard, llm=Rules(others))
    open_ended = verifier.question(question_id="o", options=(), answer_index=None)
    video = verifier.row(verifier.question(), open_ended)
    askers = dict.fromkeys(("guesser", "verifier", "repairer"), some)
    guesses = (
        BlindGuess(name="blind", prompt="filters/blind"),
        BlindGuess(name="asr", prompt="filters/asr", transcript=True),
        BlindGuess(name="pick", prompt="filters/pick", ranks=False, drops=False),
    )

    async def same(question: str, candidate: str, references: tuple[str, ...]) -> bool:
        return candidate in references

    vetting = VettingContext(askers=askers, video_frames=verifier.Stills(video), judge=same)
    await vet(video, (*guesses, Sight()), vetting, "mma", RepairRule(rounds=1))
    known = verifier.question(question="What is said right after “Here it goes”?")
    await twin(known, video, heard, same, count=ignore_count)
    await siblings(
        known, video, heard, GroupSettings(most=3), vetting.video_frames, count=ignore_count
    )
    steps = "STEP 1: 40-50: It is red.\nCONCLUSION: So it is red."
    looked = "* SEEN: it\n* EVIDENCE: 40-50\n* LOOK: NONE\n* ANSWER: A"
    given = replace(heard, llm=Rules({"enrich/trace": steps, "filters/sight": looked}))
    seen = replace(vetting, askers={"verifier": replace(given, calls={})})
    await add_trace(known, video, given, given, Traces(most=4, runs=1, min_right=1), seen)


async def _cinepile(heard: Heard) -> None:
    lines = sample_video().lines or ()
    scene = SceneText(
        lines=lines, visual=(0.0, 1.0) * 4, start=0, end=80, rate=1, score=1, head=1, tail=1
    )
    kinds = [Template(name=f"Kind {n}", prototype=f"Kind {n} of [event]?", category=CATEGORIES[1])
             for n in range(30)]  # fmt: skip
    video = Video(video_id="clip", uri="clip.mp4", scene=scene, duration=80.0)
    listed = "\n".join(f"- {letter}) {o}" for letter, o in zip("ABCDE", OPTIONS, strict=True))
    made = (
        f"Template: Kind 1\nQuestion: {CHOICE}\n{listed}\nCorrect Answer: A\nRationale: it is said."
    )
    some = replace(heard, llm=Rules({"cinepile/questions": made}))
    askers = {"reasoning": some, "perceptual": some}
    await cinepile.ask(video, askers, cinepile.CinePileSettings(templates=tuple(kinds)))
    await choose(heard, CHOICE, OPTIONS, context=SCENE, about="What is said:")
    await fits(verifier.question(question=CHOICE, options=OPTIONS), heard, SCENE)
    questions = ["Why does he open the door?", "Where does she go after the call?"]
    asked = [ListedQuestion(text=q, neutral=q, source="list", title="") for q in questions]
    await replace_names(asked, heard, lambda step: contextlib.nullcontext())
    heard.calls["cinepile/templates"] = Call(
        "cinepile/templates", templates_form(4),
        {"questions": questions, "count": 4, "categories": CATEGORIES},
    )  # fmt: skip


async def _egoschema(heard: Heard) -> None:
    lines = tuple(Line(start=3.0 * n, end=3.0 * n + 3, text=t) for n, t in enumerate(DOING * 3))
    video = Video(video_id="ego", uri="ego.mp4", lines=lines, duration=90.0)
    for seed in range(12):  # the wording that asks for the answers is drawn
        done = await egoschema.ask(
            video, heard, egoschema.EgoSchemaSettings(chains=("set_a",), seed=seed)
        )
    for chain in ("set_b", "one_shot", "three_call"):
        await egoschema.ask(video, heard, egoschema.EgoSchemaSettings(chains=(chain,)))
    await no_question(done, heard, Unseen())


def _judged(heard: Heard) -> None:
    """Those that are not read by an asker: the evaluation's, the judge's, the captioner's."""

    def chosen(text: str) -> str:
        letter = extract(text, OPTIONS).letter
        if letter is None:
            raise Unparsed("no option can be read in it")
        return letter

    def verdict(text: str) -> float:
        reading = word(Reply(text=text, model="it"))
        if reading.error:
            raise Unparsed(reading.error)
        return reading.logit_diff

    def graded(text: str) -> bool:
        right = simpleqa.parse_grade(text)
        if right is None:
            raise Unparsed("it names none of the three grades")
        return right

    seen = {
        "question": CHOICE,
        "transcript": sample_video().lines,
        "frames": 0,
        "stretches": 0,
        "videos": 0,
    }
    for own in ("choice", "neptune", "cinepile", "egoschema", "mlvu"):
        name = f"evaluate/{own}"
        heard.calls[name] = Call(name, free(chosen), {**seen, "options": OPTIONS})
    heard.calls["evaluate/open"] = Call("evaluate/open", free(_said), {**seen, "words": 50})
    heard.calls["evaluate/mlvu_open"] = Call("evaluate/mlvu_open", free(_said), seen)
    pair = {"question": CHOICE, "candidate": "three eggs", "reference": "Eggs"}
    heard.calls[PROMPT] = Call(PROMPT, free(verdict), pair)
    heard.calls[simpleqa.PROMPT] = Call(simpleqa.PROMPT, free(graded), pair)
    shown = {"times": [5.0, 15.0], "title": "Pancakes", "before": None, "after": None,
             "first": (), "images": (b"1", b"2")}  # fmt: skip
    heard.calls["caption/typed"] = Call("caption/typed", free(sentence), {"images": (b"1",)})
    heard.calls["caption/frames"] = Call("caption/frames", numbered.sentences(2), shown)
    spans = (Span(0.0, 10.0), Span(10.0, 20.0))
    videos = tuple(VideoClip(span=span, digest=str(n), mp4=b"1") for n, span in enumerate(spans))
    watched = {"watched": spans, "title": "Pancakes", "clips": videos}
    heard.calls["caption/clips"] = Call("caption/clips", numbered.sentences(2), watched)


def _said(text: str) -> str:
    if not text.strip():
        raise Unparsed("it is empty")
    return text


def _question() -> Question:
    return Question(
        question_id="q", video_id="video", recipe="mlvu", question="What happens in the video?",
        question_type="summary", answer=SAID[0],
    )  # fmt: skip
