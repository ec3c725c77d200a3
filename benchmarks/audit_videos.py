"""The planted set: 40 videos and 400 questions, half of them clean, half with one known fault each.

The videos are journeys (`sight_videos`) of ten stops. A clean question is about the neighbour of a
shape that occurs once: words, a single frame and frames out of order do not suffice. A planted one
is the same with one thing that gives its answer away, or with one error.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import sight_videos
from benchmarks.sight_videos import DrawnScene, DrawnVideo
from mustsee.records import Line, Question, Span, Video

STOPS, SECONDS = 10, 4.0
CLEAN, PLANTED = 5, 5  # questions of each kind on a video
SHORTCUTS = ("blind", "transcript", "one_frame", "shuffled")  # kinds that the shortcut ratio counts
GUESSED = {  # kind -> the guesser that must find it
    "longest": "longest", "place": "place B", "echo": "echoing", "central": "central",
    "prior": "prior", "novel": "novel",
}  # fmt: skip
STEPS = {"first shape after": 1, "second shape after": 2, "first shape before": -1,
         "second shape before": -2}  # fmt: skip
FAULTS = ("repeat", "repeat elsewhere", "wrong key", "taken")
KINDS = (*SHORTCUTS, *GUESSED, *FAULTS)
LOOKS = (("large", "small"), ("near", "far"), ("still", "moving"), ("bright", "dull"),
         ("rough", "smooth"), ("thick", "thin"))  # fmt: skip
COMMON = ("grandmother", "marketplace", "wheelbarrow", "candlelight", "countryside")
SYLLABLES = ("bru", "kel", "tav", "mor", "zin", "fop", "lud", "wex", "gri", "yan")


@dataclass(frozen=True, kw_only=True)
class PlantedQuestion:
    """A question with its kind ("clean" or one of `KINDS`)."""

    kind: str
    question: Question


@dataclass(frozen=True, kw_only=True)
class Set:
    """`rows`: the videos with all lines and questions. `planted`: the questions with their kinds.
    `benchmark`: another dataset, with the questions of kind "taken".
    """

    rows: tuple[Video, ...]
    planted: tuple[PlantedQuestion, ...]
    benchmark: tuple[Question, ...]

    @property
    def questions(self) -> list[Question]:
        return [p.question for p in self.planted]


def plant_questions(folder: Path, count: int = 40, seed: int = 0) -> Set:
    """Write `count` videos into `folder` and plant ten questions on each."""
    rows: list[Video] = []
    every: list[PlantedQuestion] = []
    for number in range(count):
        video = sight_videos.journey(f"trip{number:02d}", STOPS, SECONDS, seed=seed + number)
        sight_videos.write(video, folder)
        maker = PlantedQuestions(video, random.Random(f"{seed}/{video.name}/planted"))
        own = [PlantedQuestion(kind="clean", question=maker.clean()) for _ in range(CLEAN)]
        for place in range(PLANTED):
            kind = KINDS[(number * PLANTED + place) % len(KINDS)]
            own.append(PlantedQuestion(kind=kind, question=maker.plant_question(kind, own, every)))
        every += own
        row = video.row(folder, [p.question for p in own])
        rows.append(replace(row, lines=tuple(sorted(maker.lines, key=lambda x: x.start))))
    taken = [p.question for p in every if p.kind == "taken"]
    others = [replace(q, question_id=f"b{n}", video_id=f"other{n}") for n, q in enumerate(taken)]
    return Set(rows=tuple(rows), planted=tuple(every), benchmark=tuple(others))


class PlantedQuestions:
    """Plants the questions of one video."""

    def __init__(self, video: DrawnVideo, rng: random.Random) -> None:
        self.video, self.rng = video, rng
        self.lines = [scene.line for scene in video.scenes]
        stops = [s.stop for s in video.scenes]
        self.plain = [s for s in video.scenes if stops.count(s.stop) == 1]
        rng.shuffle(self.plain)
        self.free = list(self._neighbours())
        rng.shuffle(self.free)
        self.number = 0
        on = [video.scenes[n].stop for n in (2, 5, 7)]
        self.start = f"On the way from {on[0]} by {on[1]} to {on[2]}"

    def _neighbours(self) -> Iterator[tuple[DrawnScene, DrawnScene, str, str]]:
        """Yield each shape that occurs once, its neighbour, their relation, and an attribute."""
        scenes = self.video.scenes
        forms = [s.form for s in scenes]
        for at, scene in enumerate(scenes):
            if scene.form not in sight_videos.RARE or forms.count(scene.form) > 1:
                continue
            for how, away in STEPS.items():
                for attribute in ("colour", "place"):
                    yield scene, scenes[at + away], how, attribute

    def clean(self) -> Question:
        scene, other, how, attribute = self.free.pop()
        return self._question("clean", self._text(scene, how, attribute), other.fact(attribute),
                           attribute, self._between(scene, other))  # fmt: skip

    def plant_question(
        self, kind: str, own: Sequence[PlantedQuestion], planted: Sequence[PlantedQuestion]
    ) -> Question:
        if kind in SHORTCUTS:
            return self._shortcut(kind)
        if kind == "repeat":
            return replace(self.rng.choice([p.question for p in own if p.kind == "clean"]),
                           question_id=self._id(kind), question_type=kind)  # fmt: skip
        scene, other, how, attribute = self.free.pop()
        text, right = self._text(scene, how, attribute), other.fact(attribute)
        question = self._question(kind, text, right, attribute, self._between(scene, other))
        if kind == "repeat elsewhere":
            first = next((p.question for p in planted if p.kind == "repeat elsewhere"), None)
            return question if first is None else replace(
                first, question_id=question.question_id, video_id=question.video_id,
                evidence=question.evidence,
            )  # fmt: skip
        if kind == "wrong key":
            wrong = self.rng.choice([o for o in question.options if o != right])
            return replace(question, answer=wrong, answer_index=question.options.index(wrong))
        if kind == "taken":
            return question
        return self._given_away(kind, question, scene, how)

    def _shortcut(self, kind: str) -> Question:
        """Return a question that the condition of this kind suffices to answer."""
        if kind == "one_frame":
            text = f"{self.start}, what colour is the bar along the lower edge?"
            whole = Span(0.0, self.video.seconds)
            return self._question(kind, text, self.video.bar, "colour", (whole,))
        if kind == "shuffled":
            forms = [s.form for s in self.video.scenes]
            scene = next(s for s in self.video.scenes
                         if s.form in sight_videos.RARE and forms.count(s.form) == 1)  # fmt: skip
            text = f"{self.start}, what colour is the {scene.form}?"
            return self._question(kind, text, scene.colour, "colour", (scene.span,))
        scene = self.plain.pop()
        text = f"{self.start}, what colour is the shape at {scene.stop}?"
        if kind == "blind":
            text = text.replace("?", f", the same as {sight_videos.LIKE[scene.colour]}?")
        else:
            text_line = f"The shape at {scene.stop} is {scene.colour}."
            self.lines.append(Line(start=scene.line.end, end=scene.line.end + 0.5, text=text_line))
        return self._question(kind, text, scene.colour, "colour", (scene.span,))

    def _given_away(self, kind: str, question: Question, scene: DrawnScene, how: str) -> Question:
        """Word the options so that one of them stands out."""
        right = question.answer_index or 0
        options = [f"it is {option} there" for option in question.options]
        if kind == "longest":
            options[right] = options[right].replace("it is", "it is, as one sees, clearly")
        elif kind == "place":
            options[right], options[1] = options[1], options[right]
            right = 1
        elif kind == "echo":
            other = "a thing that is in one of the pictures: "
            own = f"the {how} the {scene.form}: "
            options = [(own if n == right else other) + o for n, o in enumerate(options)]
        elif kind == "central":
            # Each wrong option differs from the right one in one look.
            looks = [self.rng.sample(pair, 2) for pair in self.rng.sample(LOOKS, len(options))]
            for n in range(len(options)):
                signs = [int(n == k != right) for k in range(len(options))]
                options[n] += ", " + ", ".join(
                    look[s] for look, s in zip(looks, signs, strict=True)
                )
        elif kind == "novel":
            options = [
                f"{o} like a {self._word() if n == right else COMMON[n]}"
                for n, o in enumerate(options)
            ]
        else:  # prior: the same answer is always right
            true = question.options[right]
            text = question.question.replace("what colour is", f"is it {true},").replace(
                "where in the picture is", f"is it at the {true},"
            )
            names = ["yes", "no", "in part", "never", "at times"]
            self.rng.shuffle(names)
            return replace(question, question=text, options=tuple(names), answer="yes",
                           answer_index=names.index("yes"))  # fmt: skip
        return replace(question, options=tuple(options), answer=options[right], answer_index=right)

    def _between(self, scene: DrawnScene, other: DrawnScene) -> tuple[Span, ...]:
        """Return the span from one scene to the other."""
        both = sorted((scene.span, other.span), key=lambda s: s.start)
        return (Span(both[0].start, both[1].end),)

    def _text(self, scene: DrawnScene, how: str, attribute: str) -> str:
        what = "what colour is" if attribute == "colour" else "where in the picture is"
        return f"{self.start}, {what} the {how} the {scene.form}?"

    def _question(
        self, kind: str, text: str, answer: str, attribute: str, evidence: tuple[Span, ...]
    ) -> Question:
        values = [*(sight_videos.COLOURS if attribute == "colour" else sight_videos.PLACES)]
        others = self.rng.sample([v for v in values if v != answer], 4)
        options = [answer, *others]
        self.rng.shuffle(options)
        spans = tuple(sorted(evidence, key=lambda s: s.start))
        return Question(
            question_id=self._id(kind),
            video_id=self.video.name,
            recipe="planted",
            question=text,
            question_type=kind,
            options=tuple(options),
            answer_index=options.index(answer),
            answer=answer,
            evidence=spans,
        )

    def _id(self, kind: str) -> str:
        self.number += 1
        return f"{self.video.name}/{self.number}-{kind.replace(' ', '-')}"

    def _word(self) -> str:
        return "".join(self.rng.choices(SYLLABLES, k=4))
