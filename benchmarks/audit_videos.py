"""The planted set: 40 videos and 400 questions, half of them clean, half with one known fault each.

The videos are journeys (`sight_videos`) of ten stops. A clean question asks what comes right after,
or before, a shape that is seen once: no words, no single picture and no pictures out of order tell.
A planted one is the same with one thing that gives its answer away, or that is wrong with it.
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
CLEAN, EACH = 5, 5  # questions of a video: clean ones, planted ones
SHORTCUTS = ("blind", "transcript", "one_frame", "shuffled")  # kinds of the shortcut ratio
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
    """`rows`: the videos with all their lines and questions; `known`: what is known of each
    question; `benchmark`: another dataset that holds the questions of kind "taken".
    """

    rows: tuple[Video, ...]
    known: tuple[PlantedQuestion, ...]
    benchmark: tuple[Question, ...]

    @property
    def questions(self) -> list[Question]:
        return [p.question for p in self.known]

    def videos_of_kind(self, kind: str) -> list[Video]:
        """The videos with the questions of one kind."""
        ids = {p.question.question_id for p in self.known if p.kind == kind}
        return [
            replace(r, questions=tuple(q for q in r.questions or () if q.question_id in ids))
            for r in self.rows
        ]


def plant_questions(folder: Path, count: int = 40, seed: int = 0) -> Set:
    """`count` videos, written into `folder`, with ten questions each."""
    rows: list[Video] = []
    known: list[PlantedQuestion] = []
    for number in range(count):
        video = sight_videos.journey(f"trip{number:02d}", STOPS, SECONDS, seed=seed + number)
        sight_videos.write(video, folder)
        asking = PlantedQuestions(video, random.Random(f"{seed}/{video.name}/planted"))
        mine = [PlantedQuestion(kind="clean", question=asking.clean()) for _ in range(CLEAN)]
        for place in range(EACH):
            kind = KINDS[(number * EACH + place) % len(KINDS)]
            mine.append(
                PlantedQuestion(kind=kind, question=asking.plant_question(kind, mine, known))
            )
        known += mine
        row = video.row(folder, [p.question for p in mine])
        rows.append(replace(row, lines=tuple(sorted(asking.lines, key=lambda x: x.start))))
    taken = [p.question for p in known if p.kind == "taken"]
    others = [replace(q, question_id=f"b{n}", video_id=f"other{n}") for n, q in enumerate(taken)]
    return Set(rows=tuple(rows), known=tuple(known), benchmark=tuple(others))


class PlantedQuestions:
    """The questions of one video."""

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
        """Shapes that are seen once, what comes next to them, how, and what is asked of it."""
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
        return self._asked("clean", self._text(scene, how, attribute), other.tell(attribute),
                           attribute, self._between(scene, other))  # fmt: skip

    def plant_question(
        self, kind: str, mine: Sequence[PlantedQuestion], known: Sequence[PlantedQuestion]
    ) -> Question:
        if kind in SHORTCUTS:
            return self._shortcut(kind)
        if kind == "repeat":
            return replace(self.rng.choice([p.question for p in mine if p.kind == "clean"]),
                           question_id=self._id(kind), question_type=kind)  # fmt: skip
        scene, other, how, attribute = self.free.pop()
        text, right = self._text(scene, how, attribute), other.tell(attribute)
        asked = self._asked(kind, text, right, attribute, self._between(scene, other))
        if kind == "repeat elsewhere":
            first = next((p.question for p in known if p.kind == "repeat elsewhere"), None)
            return asked if first is None else replace(
                first, question_id=asked.question_id, video_id=asked.video_id,
                evidence=asked.evidence,
            )  # fmt: skip
        if kind == "wrong key":
            wrong = self.rng.choice([o for o in asked.options if o != right])
            return replace(asked, answer=wrong, answer_index=asked.options.index(wrong))
        if kind == "taken":
            return asked
        return self._given_away(kind, asked, scene, how)

    def _shortcut(self, kind: str) -> Question:
        """What somebody knows who is shown nothing, the words, one picture, pictures unordered."""
        if kind == "one_frame":
            text = f"{self.start}, what colour is the bar along the lower edge?"
            whole = Span(0.0, self.video.seconds)
            return self._asked(kind, text, self.video.bar, "colour", (whole,))
        if kind == "shuffled":
            forms = [s.form for s in self.video.scenes]
            scene = next(s for s in self.video.scenes
                         if s.form in sight_videos.RARE and forms.count(s.form) == 1)  # fmt: skip
            text = f"{self.start}, what colour is the {scene.form}?"
            return self._asked(kind, text, scene.colour, "colour", (scene.span,))
        scene = self.plain.pop()
        text = f"{self.start}, what colour is the shape at {scene.stop}?"
        if kind == "blind":
            text = text.replace("?", f", the same as {sight_videos.LIKE[scene.colour]}?")
        else:
            said = f"The shape at {scene.stop} is {scene.colour}."
            self.lines.append(Line(start=scene.line.end, end=scene.line.end + 0.5, text=said))
        return self._asked(kind, text, scene.colour, "colour", (scene.span,))

    def _given_away(self, kind: str, asked: Question, scene: DrawnScene, how: str) -> Question:
        """The options worded so that one of them stands out."""
        right = asked.answer_index or 0
        options = [f"it is {option} there" for option in asked.options]
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
            # each wrong option differs from the right one in one look
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
        else:  # prior: one answer is always right
            true = asked.options[right]
            text = asked.question.replace("what colour is", f"is it {true},").replace(
                "where in the picture is", f"is it at the {true},"
            )
            names = ["yes", "no", "in part", "never", "at times"]
            self.rng.shuffle(names)
            return replace(asked, question=text, options=tuple(names), answer="yes",
                           answer_index=names.index("yes"))  # fmt: skip
        return replace(asked, options=tuple(options), answer=options[right], answer_index=right)

    def _between(self, scene: DrawnScene, other: DrawnScene) -> tuple[Span, ...]:
        """The stretch from the one to the other."""
        both = sorted((scene.span, other.span), key=lambda s: s.start)
        return (Span(both[0].start, both[1].end),)

    def _text(self, scene: DrawnScene, how: str, attribute: str) -> str:
        what = "what colour is" if attribute == "colour" else "where in the picture is"
        return f"{self.start}, {what} the {how} the {scene.form}?"

    def _asked(
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
