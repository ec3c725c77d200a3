"""Every prompt as a job asks it, on small videos, with the form that parses the reply. The offline
rules reply, and the scripted model where there are none. The prompts of a paper are asked by
`tests/recipes/NAME/every_prompt.py`, all others here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from actors.judge.llm import word
from actors.llm.offline import OfflineLlm, has_rules
from actors.llm.scripted import fill_reply
from actors.stages.caption_local import sentence
from mustsee.calls.llm import Asker, Message, Reply, Request, VideoClip
from mustsee.errors import Unparsed
from mustsee.evaluate import open_scores
from mustsee.facts.choices import write_choices
from mustsee.facts.claims import list_claims
from mustsee.facts.edit import rank_open, write_questions
from mustsee.facts.extract import Window, make_fact
from mustsee.facts.extract import extract as extract_facts
from mustsee.facts.look import look
from mustsee.facts.mix import Skill
from mustsee.facts.parts import look_at_parts
from mustsee.facts.point_exam import answer_blind, answer_seen
from mustsee.facts.point_grades import grade_answers
from mustsee.facts.points import Statement, compose_open, make_statements
from mustsee.facts.select import Chosen
from mustsee.facts.settings import MODEL_KINDS, ChoiceRules, ClaimRules, PointRules
from mustsee.facts.stem import Stem
from mustsee.facts.table import TruthTable
from mustsee.facts.weigh import weigh_group
from mustsee.facts.wording import read_back, word_questions
from mustsee.facts.work import Roles, VideoWork
from mustsee.judge.points import counted_points, grade_statements
from mustsee.judge.prompt import PROMPT
from mustsee.papers import Paper, papers
from mustsee.prompts import Prompts, RenderedPrompt
from mustsee.questions.rows import numbered_texts
from mustsee.records import Line, Point, Provenance, Question, ScreenText, Span, Video
from mustsee.replies.extract import extract
from mustsee.replies.forms import Form, free
from mustsee.server_probe.steps import ProbeSettings, planned_steps
from mustsee.verify.filters import VettingContext
from mustsee.verify.guess.ask import match, rank
from mustsee.verify.guess.filters import BlindGuess, Glimpse
from mustsee.verify.look_replies import RIGHT, WRONG, OptionVerdict, say
from mustsee.verify.repair import RepairRule
from mustsee.verify.sight import Sight
from mustsee.verify.traces import Traces, add_trace
from mustsee.verify.vetting import vet
from mustsee.verify.worth import WorthRules, check_conditions, rate_words
from tests.support import verifier
from tests.support.lines import as_lines
from tests.support.neptune_video import SAID, sample_video

OPTIONS = ("Eggs", "Flour", "Milk", "Honey", "Salt")
CHOICE = "What is broken into the bowl first?"
WINDOW = Window(
    span=Span(10.0, 70.0),
    moments=(Span(10.0, 16.0), Span(16.0, 22.0)),
    lines=(Line(start=12.0, end=14.0, text="Give me the cup.", speaker="Anna"),),
    texts=(ScreenText(time=20.0, end=25.0, text="PARTS LIST", score=0.99),),
    names=("the man in the red cap",),
)
KINDS = (*MODEL_KINDS, "sound")
PHRASES = ("a man in a red cap pours water", "a dog jumps over a fence", "a white van stops")
FACTS = tuple(make_fact("event", phrase, [Span(11.0, 13.0)], "m") for phrase in PHRASES)
FACT_REPLIES = {
    "facts/extract": f"FACT 1: event | {PHRASES[0]} | 11.0-13.0; 40.0-44.0\n"
    f"FACT 2: place | a narrow street at night | 50.0-69.5\n"
    f"FACT 3: cause | the jug is empty | 10.0-12.5 | {PHRASES[0]}",
    "facts/look": "1: SEEN\n2: NOT SEEN | a cat jumps\n3: UNSURE | it is dark",
    "facts/rank": "QUESTION 1: C > A > B | it fits\nQUESTION 2: B > C > A | so",
    "facts/claims": "CLAIM 1: goal | F1, F2 | A man pours water so that the dog comes.\n"
    "ALTERED 1: purpose | A man pours water so that the van stops.\n"
    "CLAIM 2: link | F2, F3 | The dog jumps before the van comes.",
    "facts/weigh": "STATEMENT 1: HOLDS | 11.0-13.0; 40.0-44.0 | he pours\n"
    "STATEMENT 2: DOES NOT HOLD | NONE | the dog is first\n"
    "STATEMENT 3: CANNOT BE TOLD | NONE | it is dark",
    "facts/parts": "PART 1: a man pours | SHOWN | 11.0: he pours\n"
    "PART 1: into a jug | NOT SHOWN | 12.0: dark\n"
    "PART 2: a dog | SHOWN | 41.0: it barks\nPART 2: jumps | WRONG | 42.0: it sits\n"
    "PART 3: the box | SHOWN | 43.0: a box\nPART 3: is opened | SHOWN | 44.0: by her",
    "facts/questions": "QUESTION 1: cause | How does it come about that the dog jumps?\n"
    "POINT 1: 3 | C1\nPOINT 1: 1 | F1\nPOINT 1: 2 | F2\nPOINT 1: 1 | F3\n"
    "ANSWER 1: He pours, and it jumps.\nQUESTION 2: cause | What becomes of the water?\n"
    "POINT 2: 3 | C1\nPOINT 2: 1 | F1\nPOINT 2: 2 | F2\nPOINT 2: 1 | F3\nANSWER 2: It is gone.",
    "facts/edit": "QUESTION 1: one scene | the end tells it\nQUESTION 2: none |",
    "facts/best": "BEST 1: 2, 1",
    "facts/answer_blind": "ANSWER 1: A man calls it.\nANSWER 2: It is opened.",
    "facts/answer_seen": "ANSWER 1: NONE | A man pours water.\nANSWER 2: there is no box | None.",
    "facts/word": "QUESTION 1: What do we see after the man pours water?\n"
    "PHRASE 1: the dog jumps over the fence\nPHRASE 2: a man in a red cap pours water\n"
    "PHRASE 3: the white van stops",
    "facts/read_back": "QUESTION 1: B | A, C",
    "facts/grade": "POINT 1: ENTAILED | he opens it\nPOINT 2: CONTRADICTED | the dog\n"
    "POINT 3: ABSENT | \nSTATEMENT 1: NO | nothing\nSTATEMENT 2: YES | she opens it",
    "facts/choices": "QUESTION 1: C1 | C2, C3, C4 | Why does the dog jump?",
    "facts/grade_answers": "POINT 1: A, C | NONE |\nPOINT 2: NONE | B | the dog opens it\n"
    "POINT 3: B | NONE | \nSTATEMENT 1: NONE\nSTATEMENT 2: A",
    "filters/worth": "QUESTION 1: 4 | 5 | 3 | it turns on the box\nQUESTION 2: 2 | 1 | 1 | trivia",
    "filters/conditions": "QUESTION 1: YES | YES | NO | YES | YES | the lid fits, too\n"
    "QUESTION 2: NO | YES | YES | NO | YES |",
    "filters/match": "QUESTION 1: C | it fits\nQUESTION 2: B | so\nQUESTION 3: A | left over",
}

BY = Provenance(llm="m", prompts="p")
DEEP = Question(
    question_id="d", video_id="v", recipe="facts", question="What becomes of the box?",
    question_type="Other", points=tuple(Point(text=phrase) for phrase in PHRASES),
    contradictions=("a woman opens the box", "the box stays shut"),
)  # fmt: skip


@dataclass(frozen=True)
class Call:
    """A prompt, its variables, and the form that parses the reply."""

    name: str
    form: Form[Any]
    given: Mapping[str, Any]

    def variables(self) -> dict[str, Any]:
        """The prompt's variables."""
        asker = {"images", "clips", "history", "seed"}
        return {name: value for name, value in self.given.items() if name not in asker}

    def rendered(self) -> RenderedPrompt:
        """The rendered prompt."""
        return Prompts().render(self.name, **self.variables())

    def request(self) -> Request:
        """The request that `Asker.ask` makes."""
        made = self.rendered()
        images, clips = (tuple(self.given.get(name, ())) for name in ("images", "clips"))
        question = Message("user", made.user, images, clips, made.lines)
        return Request(
            prompt=self.name,
            digest=made.digest,
            messages=(*self.given.get("history", ()), question),
            variables=self.variables(),
            seed=self.given.get("seed", 0),
            form=self.form.schema,
        )

    def text(self) -> str:
        """The rendered prompt after the history of the chat."""
        before = [message.text for message in self.given.get("history", ())]
        return "\n".join([*before, self.rendered().user])


@dataclass(frozen=True, kw_only=True)
class RecordingAsker(Asker):
    """An asker that keeps the first call of each prompt."""

    calls: dict[str, Call] = field(default_factory=dict[str, Call])

    async def ask(self, name: str, form: Form[Any], **given: Any) -> Any:
        self.calls.setdefault(name, Call(name, form, given))
        return await super().ask(name, form, **given)


@dataclass(frozen=True)
class Rules:
    """The offline rules, or the scripted model in lines, with other replies for some prompts."""

    others: Mapping[str, str] = field(default_factory=dict[str, str])
    identity: str = "rules"

    def open(self) -> Rules:
        return self

    async def complete(self, request: Request) -> Reply:
        if request.prompt in self.others:
            return Reply(text=self.others[request.prompt], model="rules")
        if not has_rules(request.prompt):
            return Reply(text=as_lines(fill_reply(request)), model="scripted")
        return await OfflineLlm("rules").complete(request)


def calls() -> dict[str, Call]:
    """Return the first call of every prompt."""
    asker = RecordingAsker(llm=Rules(), prompts=Prompts())
    asyncio.run(_all(asker))
    return asker.calls


async def _all(asker: RecordingAsker) -> None:
    await _filters(asker)
    await _facts(replace(asker, llm=Rules(FACT_REPLIES)))
    for name in papers():
        await import_module(f"tests.recipes.{name}.every_prompt").ask_all(asker)
    _judged(asker)
    _probe(asker)
    for kind in ("subPlot", "summary"):
        what = replace(_question(), question_type=kind, answer=" ".join(SAID))
        await open_scores.grade(what, " ".join(SAID[:4]), asker)


def _probe(asker: RecordingAsker) -> None:
    for step, _ in planned_steps(ProbeSettings(), seed=0):
        asker.calls.setdefault(
            f"server_probe/{step.prompt}",
            Call(f"server_probe/{step.prompt}", step.form, {"mark": "x-0001", **step.variables}),
        )


async def _facts(asker: RecordingAsker) -> None:
    times = (12.0, 16.0, 20.0)
    await extract_facts(
        WINDOW, asker, images=(b"1", b"2", b"3"), times=times, kinds=KINDS, most=9, seed=0,
    )  # fmt: skip
    asked = [(fact, Span(10.0, 16.0)) for fact in FACTS]
    await look(asked, (b"1", b"2", b"3"), times, asker, seed=0)
    questions = tuple(f"Which of these is seen next after {phrase}?" for phrase in PHRASES)
    await rank([(q, OPTIONS[:3]) for q in questions[:2]], asker, seed=0)
    await _deep(asker)
    await grade_statements(
        DEEP.question, "A man opens the box before the dog comes.", counted_points(DEEP),
        DEEP.contradictions, asker,
    )  # fmt: skip
    await match(questions, OPTIONS[:3], asker, seed=0, transcript="[1.0-2.0] Hello.")


async def _deep(asker: RecordingAsker) -> None:
    video = Video(video_id="v", uri="v.mp4", duration=60.0, lines=WINDOW.lines)
    facts = tuple(
        make_fact("event", phrase, [Span(10.0 * n, 10.0 * n + 3.0)], "m")
        for n, phrase in enumerate(PHRASES, 1)
    )
    moments = tuple(Span(6.0 * n, 6.0 * n + 6.0) for n in range(10))
    table = TruthTable(facts=facts, moments=moments, scenes=(0,) * 10)
    frames: Any = verifier.Stills(video)
    rules, points = ClaimRules(), PointRules()
    roles = Roles(writer=asker, verifier=asker, guesser=asker)
    work = VideoWork(video=video, frames=frames, roles=roles, by=BY)
    claims = await list_claims(work, table, rules)
    weighed = (claims[0], replace(claims[1], altered=()))
    await weigh_group(work, table, weighed, rules, 1)
    shown = [replace(c, claim_id=str(n), shown=(Span(11.0, 13.0),)) for n, c in enumerate(weighed)]
    shown.append(replace(shown[0], claim_id="2"))
    assert rules.parts is not None
    await look_at_parts(work, shown, rules, rules.parts)
    skills = (Skill(name="cause", share=1.0), Skill(name="tools", share=1.0, definition="a tool"))
    statements = make_statements(table, claims[:1], points, skills)
    wanted = {"cause": 1, "tools": 2}
    draft, *_ = await write_questions(work, statements, wanted)
    asked = [replace(DEEP, evidence=(Span(1.0, 3.0),)), compose_open(draft, work)]
    others = [replace(DEEP, question_id="o", question=CHOICE, options=OPTIONS)]
    await answer_blind(asked, others, asker, seed=0)
    await answer_seen(work, asked, points)
    said = {"alone": "He opens it.", "in_view": "A dog does.", "seeing": "She opens it."}
    await grade_answers(DEEP.question, said, DEEP.points, DEEP.contradictions, asker, seed=0)
    await rank_open(work, asked, 1)
    rated = [asked[0], *others]
    await rate_words(rated, asker, seed=0)
    await check_conditions(rated, video, asker, frames, WorthRules(), seed=0)
    free = [
        Statement(text=f"The {what} falls.", facts=(what,), spans=(Span(1.0, 3.0),))
        for what in ("jug", "box", "cup", "van")
    ]
    await write_choices(work, free, ChoiceRules(), 1)
    stem = Stem(
        form="after", question=f"Which of these happens next after {PHRASES[0]}?",
        question_type="Other", answer=PHRASES[1], evidence=(Span(10.0, 23.0),),
        about=frozenset(fact.fact_id for fact in facts[:2]),
    )  # fmt: skip
    one = Chosen(stem=stem, options=PHRASES, rank=1)
    wordings = await word_questions(work, [one])
    await read_back(work, [one], wordings, table)


async def _filters(asker: RecordingAsker) -> None:
    other = OptionVerdict(RIGHT, (Span(40.0, 50.0),))  # than the answer key
    wrong = say([*[OptionVerdict(WRONG)] * 2, other, *[OptionVerdict(WRONG)] * 2], "it is blue")
    open_reply = (
        "* SEEN: it is red\n* PREMISE: HOLDS\n* EVIDENCE: 40.0-50.0\n* LOOK: NONE\n* ANSWER: red"
    )
    others = {"filters/sight": wrong, "filters/sight_open": open_reply, "filters/repair": "NONE"}
    scripted = replace(asker, llm=Rules(others))
    open_ended = verifier.question(question_id="o", options=(), answer_index=None)
    video = verifier.row(verifier.question(), open_ended)
    askers = dict.fromkeys(("guesser", "verifier", "repairer"), scripted)
    guesses = (
        BlindGuess(name="blind", prompt="filters/blind"),
        BlindGuess(name="asr", prompt="filters/asr", transcript=True),
        BlindGuess(name="options", prompt="filters/options_alone", question=False, drops=False),
        BlindGuess(name="pick", prompt="filters/pick", ranks=False, drops=False),
    )

    async def same(question: str, candidate: str, references: tuple[str, ...]) -> bool:
        return candidate in references

    vetting = VettingContext(askers=askers, video_frames=verifier.Stills(video), judge=same)
    await vet(video, (*guesses, Sight()), vetting, "mma", RepairRule(rounds=1))
    together = BlindGuess(
        name="together", prompt="filters/blind", runs=1, min_failures=1, together=2
    )
    two = [verifier.question(), verifier.question(question_id="two", question="Who flies it?")]
    await together.try_all(two, video, vetting)
    await Glimpse(name="one_frame").try_all(two, video, vetting)
    question = verifier.question(question="What is said while “Here it goes” can be read?")
    steps = "STEP 1: 40-50: It is red.\nCONCLUSION: So it is red."
    look_reply = say([other, OptionVerdict(WRONG)], "it")
    trace_asker = replace(asker, llm=Rules({"enrich/trace": steps, "filters/sight": look_reply}))
    trace_vetting = replace(vetting, askers={"verifier": replace(trace_asker, calls={})})
    await add_trace(
        question,
        video,
        trace_asker,
        trace_asker,
        Traces(most=4, runs=1),
        trace_vetting,
    )


def _judged(asker: RecordingAsker) -> None:
    """Add the prompts without an asker: the evaluation's, the judge's, the captioner's."""

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

    seen = {
        "question": CHOICE,
        "transcript": sample_video().lines,
        "frames": 0,
        "stretches": 0,
        "videos": 0,
        "captions": (),
    }
    for name in {Paper().choice_prompt, *(paper.choice_prompt for paper in papers().values())}:
        asker.calls[name] = Call(name, free(chosen), {**seen, "options": OPTIONS})
    alone = "evaluate/options_alone"
    asker.calls[alone] = Call(alone, free(chosen), {**seen, "options": OPTIONS})
    asker.calls["evaluate/yes"] = Call(
        "evaluate/yes", free(_as_it_is), {**seen, "option": OPTIONS[0]}
    )
    timed = {**seen, "times": (3.0, 9.0), "watched": (), "seconds": 12.0}
    asker.calls["evaluate/when"] = Call("evaluate/when", free(_as_it_is), timed)
    with_evidence = "evaluate/choice_evidence"
    asker.calls[with_evidence] = Call(with_evidence, free(chosen), {**timed, "options": OPTIONS})
    asker.calls["evaluate/open"] = Call("evaluate/open", free(_as_it_is), {**seen, "words": 50})
    asker.calls["evaluate/mlvu_open"] = Call("evaluate/mlvu_open", free(_as_it_is), seen)
    pair = {"question": CHOICE, "candidate": "three eggs", "reference": "Eggs"}
    asker.calls[PROMPT] = Call(PROMPT, free(verdict), pair)
    shown = {"times": [5.0, 15.0], "title": "Pancakes", "before": None, "after": None,
             "first": (), "images": (b"1", b"2")}  # fmt: skip
    asker.calls["caption/typed"] = Call("caption/typed", free(sentence), {"images": (b"1",)})
    for name in ("caption/frames", "caption/wearer"):
        asker.calls[name] = Call(name, numbered_texts(2), shown)
    spans = (Span(0.0, 10.0), Span(10.0, 20.0))
    videos = tuple(VideoClip(span=span, digest=str(n), mp4=b"1") for n, span in enumerate(spans))
    watched = {"watched": spans, "title": "Pancakes", "clips": videos}
    for name in ("caption/clips", "caption/wearer_clips"):
        asker.calls[name] = Call(name, numbered_texts(2), watched)


def _as_it_is(text: str) -> str:
    if not text.strip():
        raise Unparsed("it is empty")
    return text


def _question() -> Question:
    return Question(
        question_id="q", video_id="video", recipe="mlvu", question="What happens in the video?",
        question_type="summary", answer=SAID[0],
    )  # fmt: skip
