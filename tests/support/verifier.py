"""A verifier that knows at which seconds each option shows and answers by the times of its frames,
and a question on its video.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mustsee.calls.llm import Reply, Request
from mustsee.records import Line, Question, Span, Video
from mustsee.verify.conditions.seen import Condition
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.look_replies import OPEN, RIGHT, WRONG, OptionVerdict, say

OPTIONS = ("red", "green", "blue", "yellow", "purple")
SECONDS = 300.0
SCENE, ELSEWHERE = Span(40.0, 50.0), Span(200.0, 212.0)
PROSE = "It depends."
SEVERAL_FIT = say([OptionVerdict(RIGHT)] * 5, "all")
CANNOT_TELL = say([OptionVerdict(OPEN)] * 5, "nothing")
World = Mapping[str, Sequence[Span]]


class Stills(VideoFrames):
    """A video whose frame at a time is that time as bytes."""

    async def jpegs(self, times: Sequence[float], see: Condition) -> tuple[bytes, ...]:
        return tuple(f"{time}".encode() for time in times)


@dataclass
class ScriptedVerifier:
    """Answers by the options that show at the frames' times; `spoil`: replies by request number."""

    world: World
    spoil: Mapping[int, str] = field(default_factory=dict)
    repair: Callable[[Request], str] = lambda _: "NONE"
    guess: Callable[[Request], str] = lambda _: "* ANSWER: A > B > C > D > E"
    asked: list[Request] = field(default_factory=list)
    looks: list[Request] = field(default_factory=list)
    identity: str = "verifier"

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        if request.prompt == "filters/repair":
            return Reply(text=self.repair(request), model="writer")
        if not request.prompt.startswith("filters/sight"):
            return Reply(text=self.guess(request), model="guesser")
        self.looks.append(request)
        return Reply(text=self.spoil.get(len(self.looks), self.look(request)), model="verifier")

    def look(self, request: Request) -> str:
        options = list(request.variables["options"])
        times = sorted((*request.variables["earlier_frames"], *request.variables["frames"]))
        sightings = {
            option: [(t, span) for t in times for span in self.world.get(option, ())
                     if span.start <= t < span.end]
            for option in options
        }  # fmt: skip
        fits = [option for option in options if sightings[option]]
        return say(
            [
                OptionVerdict(RIGHT, tuple(
                    Span(min(inside), max(inside))
                    for span in sorted({s for _, s in sightings[option]}, key=lambda s: s.start)
                    if (inside := [t for t in times if span.start <= t < span.end])
                ))
                if option in fits
                else OptionVerdict(WRONG if fits else OPEN)
                for option in options
            ],
            f"{' and '.join(fits) or 'nothing'} shows.",
        )  # fmt: skip


def question(**changes: object) -> Question:
    base = Question(
        question_id="q",
        video_id="video",
        recipe="neptune",
        question="Which colour is the kite?",
        question_type="Other",
        options=OPTIONS,
        answer_index=0,
        answer="red",
        evidence=(SCENE,),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def row(*questions: Question) -> Video:
    line = Line(start=41.0, end=45.0, text="Here it goes.")
    return Video(
        video_id="video", uri="video.mp4", duration=SECONDS, lines=(line,), questions=questions
    )
