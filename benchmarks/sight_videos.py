"""The proving set of `sight`: videos with known facts, and questions of known kind on them.

A video is a journey from stop to stop. At each stop one large shape of one form, colour and place
(in a black-and-white video: one brightness) stands before a grey pattern, and a transcript line
names the stop; a bar along the lower edge stays the same throughout. Stops have different names,
except one that is visited twice with different shapes. Of the rarer forms two occur once, one
twice, one never.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mustsee.questions.drafts import Draft, finish_question
from mustsee.records import Line, Question, Span, Video

WIDTH, HEIGHT, FPS = 160, 120, 4
BAR = 12  # rows
RADIUS = 20
COLOURS = {
    "red": (215, 30, 30), "green": (30, 170, 40), "blue": (40, 60, 225), "yellow": (230, 215, 30),
    "purple": (150, 40, 190), "turquoise": (30, 190, 190),
}  # fmt: skip
GREYS = {"black": (12,) * 3, "dark grey": (58,) * 3, "light grey": (192,) * 3, "white": (245,) * 3}
PLACES = {
    "upper left": (36, 28), "upper right": (124, 28), "lower left": (36, 80),
    "lower right": (124, 80), "centre": (80, 54),
}  # fmt: skip
COMMON, RARE = ("square", "circle"), ("triangle", "cross", "ring", "diamond")
LIKE = {
    "red": "ripe tomatoes", "green": "fresh grass", "blue": "a clear sky", "yellow": "lemons",
    "purple": "ripe plums", "turquoise": "a tropical lagoon", "black": "coal",
    "dark grey": "wet slate", "light grey": "pale ash", "white": "fresh snow",
}  # fmt: skip
NAMES = tuple(
    first + last
    for last in ("low", "by", "ton", "ford", "wick", "mere", "holm", "den")
    for first in ("Mar", "Den", "Har", "Kel", "Tor", "Wes", "Lin", "Bro")
)
KINDS = (
    "right", "two places", "wrong answer", "two fit", "evidence elsewhere", "guessable",
    "one frame", "undecidable",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class DrawnScene:
    """The facts of one stop; `line`: the transcript line that names it."""

    span: Span
    line: Line
    stop: str
    form: str
    colour: str
    place: str

    def fact(self, attribute: str) -> str:
        return str(vars(self)[attribute])


@dataclass(frozen=True, kw_only=True)
class DrawnVideo:
    """A video's facts. `never`: the rarer form that does not occur."""

    name: str
    scenes: tuple[DrawnScene, ...]
    bar: str
    never: str
    grey: bool

    @property
    def seconds(self) -> float:
        return self.scenes[-1].span.end

    @property
    def tones(self) -> dict[str, tuple[int, ...]]:
        return dict(GREYS if self.grey else COLOURS)

    def row(self, folder: Path, questions: Sequence[Question]) -> Video:
        return Video(
            video_id=self.name,
            uri=str(folder / f"{self.name}.mp4"),
            digest=self.name,
            duration=self.seconds,
            shots=tuple(scene.span for scene in self.scenes),
            lines=tuple(scene.line for scene in self.scenes),
            questions=tuple(questions),
        )


@dataclass(frozen=True, kw_only=True)
class KnownQuestion:
    """A question with its kind, its right answers, and the spans that show them."""

    kind: str
    question: Question
    answers: tuple[str, ...]
    truth: tuple[Span, ...]


def journeys(seed: int = 0) -> tuple[DrawnVideo, ...]:
    """Return the eight videos: one of twenty minutes, one of five, one black-and-white."""
    shapes = [(20, 8.0)] * 5 + [(26, 12.0), (20, 8.0), (48, 25.0)]
    return tuple(
        journey(f"journey{n}", count, seconds, seed=seed + n, grey=n == 6)
        for n, (count, seconds) in enumerate(shapes)
    )


def journey(name: str, count: int, seconds: float, *, seed: int, grey: bool = False) -> DrawnVideo:
    """Return a video of `count` stops and `count * seconds` seconds, about `seconds` a stop."""
    rng = random.Random(f"{seed}/{name}")
    twice, once, other, never = rng.sample(RARE, 4)
    forms = [rng.choice(COMMON) for _ in range(count)]
    first, second, *rest = rng.sample(range(2, count - 2), 5)
    for number, form in zip((first, second, *rest), (twice, twice, once, other, ""), strict=True):
        forms[number] = form or forms[number]
    stops = rng.sample(NAMES, count)
    again = next(n for n in range(count - 1, 0, -1) if forms[n] in COMMON)
    before = next(n for n in range(count) if forms[n] in COMMON)
    stops[again] = stops[before]  # Colours differ between neighbours and between these two.
    tones = list(GREYS if grey else COLOURS)
    edges = [n * seconds + (rng.uniform(-0.2, 0.2) * seconds if n else 0) for n in range(count)]
    edges = [round(FPS * t) / FPS for t in (*edges, count * seconds)]
    scenes: list[DrawnScene] = []
    for number in range(count):
        start, end = edges[number : number + 2]
        pair = {again: before, first: second, second: first}.get(number, number - 1)
        taken = [scenes[n] for n in {number - 1, pair} if 0 <= n < number]
        colour = rng.choice([t for t in tones if t not in {s.colour for s in taken}])
        place = rng.choice([p for p in PLACES if p not in {s.place for s in taken}])
        text = rng.choice(("We stop at {}.", "This is {} now.", "Here we are, at {}."))
        line = Line(start=start + 1, end=min(start + 5, end - 1), text=text.format(stops[number]))
        scenes.append(
            DrawnScene(
                span=Span(start, end),
                line=line,
                stop=stops[number],
                form=forms[number],
                colour=colour,
                place=place,
            )
        )
    return DrawnVideo(
        name=name, scenes=tuple(scenes), bar=rng.choice(tones), never=never, grey=grey
    )


def inside(form: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return which points belong to a form; `x`, `y` from -1 to 1, downwards."""
    radius = np.hypot(x, y)
    return {
        "square": (abs(x) <= 1) & (abs(y) <= 1),
        "circle": radius <= 1,
        "triangle": (abs(y) <= 1) & (2 * abs(x) <= y + 1),
        "cross": (np.minimum(abs(x), abs(y)) <= 1 / 3) & (np.maximum(abs(x), abs(y)) <= 1),
        "ring": (radius <= 1) & (radius >= 0.55),
        "diamond": abs(x) + abs(y) <= 1,
    }[form]


def draw_scene(video: DrawnVideo, scene: DrawnScene, number: int) -> np.ndarray:
    """Draw a frame of the scene; the pattern behind the shape moves with `number`."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    width = 6 + int(scene.span.start) % 7
    pattern = ((x + number) // width + (y // width) * (width % 2)) % 2
    image = np.repeat((108 + 22 * pattern)[..., None], 3, axis=2).astype(np.uint8)
    across, down = PLACES[scene.place]
    image[inside(scene.form, (x - across) / RADIUS, (y - down) / RADIUS)] = video.tones[
        scene.colour
    ]
    image[-BAR:] = video.tones[video.bar]
    return image


def write(video: DrawnVideo, folder: Path) -> Path:
    """Write the video as a file, four frames a second, without sound."""
    import av

    path = folder / f"{video.name}.mp4"
    with av.open(str(path), "w") as out:
        options = {"preset": "ultrafast", "crf": "20", "g": str(5 * FPS)}
        stream = out.add_stream("libx264", rate=FPS, options=options)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for image in _frames(video):
            out.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        out.mux(stream.encode(None))
    return path


def _frames(video: DrawnVideo) -> Iterator[np.ndarray]:
    for scene in video.scenes:
        first, last = round(scene.span.start * FPS), round(scene.span.end * FPS)
        phases = [draw_scene(video, scene, 3 * n) for n in range(4)]
        yield from (phases[n // FPS % 4] for n in range(first, last))


def questions(video: DrawnVideo, seed: int = 0) -> tuple[KnownQuestion, ...]:
    """Return twenty questions on a video, of all kinds."""
    return tuple(_QuestionMaker(video, random.Random(f"{seed}/{video.name}/questions")).all())


class _QuestionMaker:
    def __init__(self, video: DrawnVideo, rng: random.Random) -> None:
        self.video, self.rng = video, rng
        stops = [s.stop for s in video.scenes]
        self.plain = [
            s for s in video.scenes if stops.count(s.stop) == 1 and s.form in COMMON
        ]  # scenes that only their stop names
        rng.shuffle(self.plain)
        self.tone = "How bright is" if video.grey else "What colour is"

    def all(self) -> Iterator[KnownQuestion]:
        for attribute in ("colour", "place", "form", "colour"):
            yield self.right("right", self.plain.pop(), attribute)
        once, other = (s for s in self.video.scenes if self._occurrences(s.form) == 1)
        half = Span(once.line.end, once.span.end)  # the scene begins before it
        yield self.by_form("right", once, (once.span,), (half,))
        for attribute in ("colour", "place", "colour"):
            yield self.two_places(attribute)
        for attribute in ("colour", "place"):
            yield self.wrong_answer(self.plain.pop(), attribute)
        yield from self.two_fit()
        for attribute in ("colour", "place"):
            scene = self.plain.pop()
            yield self.right("evidence elsewhere", scene, attribute, self._away(scene))
        yield self.by_form("evidence elsewhere", other, (other.span,), self._away(other))
        for _ in range(2):
            yield self.guessable(self.plain.pop())
        yield self.one_frame()
        yield from self.undecidable()

    def right(
        self, kind: str, scene: DrawnScene, attribute: str, evidence: tuple[Span, ...] | None = None
    ) -> KnownQuestion:
        spoken = Span(scene.line.start, scene.line.end)
        text = f"{self._start(attribute)} the shape at {scene.stop}?"
        answer = scene.fact(attribute)
        return self._question(kind, text, answer, attribute, evidence or (scene.span,), (spoken,))

    def by_form(
        self, kind: str, scene: DrawnScene, truth: tuple[Span, ...], evidence: tuple[Span, ...]
    ) -> KnownQuestion:
        text = f"{self.tone} the {scene.form}?"
        return self._question(kind, text, scene.colour, "colour", evidence, truth)

    def two_places(self, attribute: str) -> KnownQuestion:
        first, second = self.rng.choice(
            [
                (a, b)
                for a in self.plain
                for b in self.plain
                if b.span.start - a.span.start >= 60 and a.fact(attribute) != b.fact(attribute)
            ]
        )
        text = (
            f"{self._start(attribute)} the shape at {first.stop}, and what is it later, at "
            f"{second.stop}?"
        )
        values = self._values(attribute)
        answer = f"{first.fact(attribute)}, then {second.fact(attribute)}"
        pairs = [f"{a}, then {b}" for a in values for b in values if a != b]
        spans = (first.span, second.span)
        return self._question("two places", text, answer, attribute, spans, spans, pairs)

    def wrong_answer(self, scene: DrawnScene, attribute: str) -> KnownQuestion:
        true = scene.fact(attribute)
        text = f"{self._start(attribute)} the shape at {scene.stop}?"
        key = self.rng.choice([v for v in self._values(attribute) if v != true])
        return self._question(
            "wrong answer", text, key, attribute, (scene.span,), (scene.span,), also=(true,)
        )

    def two_fit(self) -> Iterator[KnownQuestion]:
        """Ask about two stops of one name, then two shapes of one form, one with half evidence."""
        stops = [s.stop for s in self.video.scenes]
        named = [s for s in self.video.scenes if stops.count(s.stop) == 2]
        formed = [s for s in self.video.scenes if self._occurrences(s.form) == 2]
        wholly = self.rng.random() < 0.5
        for scenes, reference, both in (
            (named, f"shape at {named[0].stop}", wholly),
            (formed, formed[0].form, not wholly),
        ):
            spans = tuple(s.span for s in scenes)
            yield self._question(
                "two fit",
                f"{self.tone} the {reference}?",
                scenes[0].colour,
                "colour",
                spans if both else spans[:1],
                spans,
                also=(scenes[1].colour,),
            )

    def guessable(self, scene: DrawnScene) -> KnownQuestion:
        text = f"{self.tone} the shape at {scene.stop}, the same as {LIKE[scene.colour]}?"
        return self._question(
            "guessable", text, scene.colour, "colour", (scene.span,), (scene.span,)
        )

    def one_frame(self) -> KnownQuestion:
        span = self.rng.choice(self.video.scenes).span
        text = f"{self.tone} the bar along the lower edge?"
        return self._question("one frame", text, self.video.bar, "colour", (span,), (span,))

    def undecidable(self) -> Iterator[KnownQuestion]:
        unknown = self.rng.choice(
            [n for n in NAMES if n not in {s.stop for s in self.video.scenes}]
        )
        for reference in (f"shape at {unknown}", self.video.never):
            span = self.rng.choice(self.video.scenes).span
            text = f"{self.tone} the {reference}?"
            answer = self.rng.choice(self._values("colour"))
            known = self._question("undecidable", text, answer, "colour", (span,), ())
            yield KnownQuestion(kind=known.kind, question=known.question, answers=(), truth=())

    def _occurrences(self, form: str) -> int:
        return sum(s.form == form for s in self.video.scenes) if form in RARE else 0

    def _away(self, scene: DrawnScene) -> tuple[Span, ...]:
        """Return the span of a scene far from this one, at a stop that is visited once."""
        far = [s for s in self.plain if abs(s.span.start - scene.span.start) > 30]
        return (self.rng.choice(far).span,)

    def _start(self, attribute: str) -> str:
        starts = {"colour": self.tone, "place": "Where in the picture is"}
        return starts.get(attribute, "Of which form is")

    def _values(self, attribute: str) -> list[str]:
        every = {"colour": self.video.tones, "place": PLACES, "form": (*COMMON, *RARE)}
        return list(every[attribute])

    def _question(
        self, kind: str, text: str, answer: str, attribute: str, evidence: tuple[Span, ...],
        truth: tuple[Span, ...], values: Sequence[str] = (), also: tuple[str, ...] = (),
    ) -> KnownQuestion:  # fmt: skip
        """Return a known question. `also`: values that must be among the wrong answers."""
        rest = [v for v in values or self._values(attribute) if v not in (answer, *also)]
        others = self.rng.sample(rest, min(4 - len(also), len(rest)))
        draft = Draft(
            question=text, answer=answer, evidence=evidence, decoys=(*also, *others), tag=attribute
        )
        question = finish_question(
            draft,
            video_id=self.video.name,
            recipe="proving",
            question_type=attribute,
            seed=0,
            decoys=len(draft.decoys),
        )
        assert question.drop is None, question
        answers = also if kind == "wrong answer" else (answer, *also)
        return KnownQuestion(kind=kind, question=question, answers=answers, truth=truth)
