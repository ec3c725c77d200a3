"""A small video by hand: eight shots with narration, on-screen text, one face; and a model
that answers every prompt of the recipe in the way that a test wants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from actors.llm.scripted import fill_reply
from mustsee.calls.llm import Asker, Reply, Request
from mustsee.offline import filters as offline_filters
from mustsee.prompts import Prompts
from mustsee.records import Caption, Line, ScreenText, Span, Video
from tests.support.lines import as_lines

SAID = (
    "Today we will make pancakes for the whole family.",
    "My mother gave me this recipe twenty years ago.",
    "First there are three eggs and we break them into a large bowl.",
    "The second step is to add the flour and some sugar.",
    "Now we mix everything until the white lumps have disappeared.",
    "The first pancake is black because the pan was too hot.",
    "The pale side of the next one has become golden brown.",
    "Enjoy your breakfast, and next week we bake bread together.",
)
COLOURS = (
    "purple",
    "orange",
    "red and brown",
    "grey",
    "white and pink",
    "black",
    "yellow",
    "green",
)
LIGHTS = ("dark, ", "bright, ", "", "bright, ", "", "dim, ", "bright, ", "dark, ")
READ = (
    "HOME COOKING",
    "ANNA",
    "EGGS FROM THE FARM",
    "200 GRAMS",
    "",
    "TOO HOT!",
    "TURN IT ONCE",
    "GOODBYE",
)
TOWNS = ("Oslo", "Rome", "Lima", "Cairo", "Delhi", "Paris", "Quito", "Tunis", "Seoul", "Kyoto",
         "Dakar", "Minsk")  # fmt: skip


FRIENDS = ("Bob", "Carol", "Dave", "Erin", "Frank", "Grace", "Heidi", "Ivan", "Judy", "Mallory",
           "Niaj", "Olivia")  # fmt: skip


def _name(names: tuple[str, ...], number: int) -> str:
    return f"{names[number % len(names)]}{number // len(names) or ''}"


def sample_video(*, lines: bool = True, shots: int = 8, repeat: int = 1) -> Video:
    """Return a video with shots of 10 s each, the eight above `repeat` times; each time with a town
    of its own in the texts, and a friend in the lines, if there are several.
    """
    numbers = [i % 8 for i in range(shots * repeat)]

    def shown(n: int) -> str:
        text = READ[n % shots % 8]
        return f"{text} {_name(TOWNS, n // shots)}" if text and repeat > 1 else text

    def said(n: int) -> str:
        text = SAID[n % shots % 8]
        return f"{text[:-1]} with {_name(FRIENDS, n // shots)}." if repeat > 1 else text

    faces = {1: "; one large face in the middle"}
    return Video(
        video_id="video",
        uri="video.mp4",
        duration=10.0 * len(numbers),
        shots=tuple(Span(10.0 * n, 10.0 * n + 10) for n in range(len(numbers))),
        captions=tuple(
            Caption(
                10.0 * n + 5,
                f"The picture is {LIGHTS[i]}mostly {COLOURS[i]}{faces.get(i, '')}"
                + (f"; the text on screen reads '{shown(n)}'" if READ[i] else "")
                + ".",
            )
            for n, i in enumerate(numbers)
        ),
        texts=tuple(
            ScreenText(time=10.0 * n + 5, text=shown(n), score=0.99)
            for n, i in enumerate(numbers)
            if READ[i]
        ),
        lines=tuple(
            Line(start=10.0 * n + 1, end=10.0 * n + 6, text=said(n)) for n in range(len(numbers))
        )
        if lines
        else (),
    )


def near_questions(count: int) -> str:
    """Return a reply with questions whose evidence lies within one shot."""
    return "\n".join(
        f"QUESTION {n}: (other) What is done with egg {n}?\nCORRECT ANSWER: It is broken {n}\n"
        "EVIDENCE: 20.0-30.0"
        for n in range(1, count + 1)
    )


@dataclass(frozen=True)
class Replies:
    """The scripted model, with rules that guess, and a test's own replies for some prompts; every
    request is kept.
    """

    others: Mapping[str, Callable[[Request], str]] = field(default_factory=dict)
    asked: list[Request] = field(default_factory=list)
    identity: str = "rules"

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        replies = {**offline_filters.RULES, **self.others}
        reply = replies.get(request.prompt, lambda r: as_lines(fill_reply(r)))
        return Reply(text=reply(request), model="rules")


def asker(llm: Replies) -> Asker:
    return Asker(llm=llm, prompts=Prompts())
