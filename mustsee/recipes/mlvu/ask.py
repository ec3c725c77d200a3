"""MLVU (arXiv 2406.04264): long videos that are synthesised so that the answer is known.

A task plans all its videos at once: backgrounds, inserted clips, their places, and questions with
the place of the answer among the options. So places, orders and counts are balanced. Each video is
a row with `plan`, `segments` (the inserted clips, in the time of the whole video) and, except for
needles, `questions`. `mustsee.synth.make` writes the file, and a language model writes the
questions on needles (`ask_needle`).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from math import factorial
from typing import ClassVar

from mustsee.calls.llm import Asker
from mustsee.errors import BadRow, Unparsed, UserError
from mustsee.questions.checks import normal
from mustsee.questions.drafts import Draft, finish_question
from mustsee.questions.replies import questions
from mustsee.records import Provenance, Question, Span, Video, group_pairs
from mustsee.replies.forms import Form
from mustsee.synth.insertions import (
    Background,
    InsertedClip,
    SynthesisSettings,
    clips_by_label,
    cycle_choices,
    row,
    with_question,
)


@dataclass(frozen=True, kw_only=True)
class Needle:
    """Inserts one captioned clip into each video; `ask_needle` asks about it (MLVU, F.4)."""

    making: SynthesisSettings = field(default_factory=SynthesisSettings)
    name: str = "needle"

    def rows(self, backgrounds: Sequence[Background], clips: Sequence[InsertedClip]) -> list[Video]:
        captioned = [clip for clip in clips if clip.caption]
        if not captioned:
            raise UserError("needles need clips with a caption: give a 'caption' column")
        drawn = cycle_choices(self.making.items, captioned, f"{self.making.seed}/needle")
        return [
            row(
                self.name,
                self.making.plan(backgrounds, [clip], f"{self.making.seed}/needle/{n}"),
                [clip.caption],
            )
            for n, clip in enumerate(drawn)
        ]


ORDER_QUESTIONS = (
    "In which order do these actions appear in the video?",
    "What is the order in which the video shows the following actions?",
    "Which of these sequences of actions is the one seen in the video?",
)


@dataclass(frozen=True, kw_only=True)
class Order:
    """Inserts clips of `actions` different actions, and asks for their order (MLVU, F.8)."""

    making: SynthesisSettings = field(default_factory=SynthesisSettings)
    actions: int = 4
    """Different actions in each video."""
    arrow: str = " --> "
    name: str = "order"

    def rows(self, backgrounds: Sequence[Background], clips: Sequence[InsertedClip]) -> list[Video]:
        by_action = clips_by_label(clips)
        if len(by_action) < self.actions:
            raise UserError(
                f"an order of {self.actions} needs as many actions, the clips have "
                f"{len(by_action)}: {sorted(by_action)!r}; set the 'label' column"
            )
        making, rows = self.making, list[Video]()
        _enough_orders(self.actions, making.options)
        slots = cycle_choices(making.items, range(making.options), f"{making.seed}/order/slots")
        for n, slot in enumerate(slots):
            seed = f"{making.seed}/order/{n}"
            rng = random.Random(seed)
            names = rng.sample(sorted(by_action), self.actions)
            chosen = [rng.choice(by_action[name]) for name in names]
            video = row(self.name, making.plan(backgrounds, chosen, seed))
            others = [p for p in permutations(names) if list(p) != names]
            draft = Draft(
                question=rng.choice(ORDER_QUESTIONS),
                answer=self.arrow.join(names),
                decoys=tuple(map(self.arrow.join, rng.sample(others, making.options - 1))),
            )
            rows.append(with_question(video, "order", draft, slot))
        return rows


@dataclass(frozen=True, kw_only=True)
class Events:
    """Inserts `events` captioned events of one source, in their order. The question numbers them so
    that each permutation is the answer equally often (in the release, 1->2->3->4 is the answer of
    31 questions of 136).
    """

    making: SynthesisSettings = field(default_factory=SynthesisSettings)
    events: int = 4
    """Events of one source in each video."""
    arrow: str = "->"
    name: str = "order"

    def rows(self, backgrounds: Sequence[Background], clips: Sequence[InsertedClip]) -> list[Video]:
        in_order = sorted(clips, key=lambda c: (c.source, c.event, c.start))
        sources = group_pairs((c.source, c) for c in in_order if c.source and c.caption)
        runs = [of_source for own in sources.values() if (of_source := self._runs(own))]
        if not runs:
            raise UserError(
                f"an order of events needs sources with {self.events} captioned clips in a row, no "
                "two captions alike: give 'source', 'event' and 'caption' columns"
            )
        making, rows = self.making, list[Video]()
        _enough_orders(self.events, making.options)
        orders = list(permutations(range(1, self.events + 1)))
        slots = cycle_choices(making.items, range(making.options), f"{making.seed}/events/slots")
        answers = cycle_choices(making.items, orders, f"{making.seed}/events/orders")
        runs_drawn = cycle_choices(making.items, runs, f"{making.seed}/events/sources")
        for n, (slot, answer, choices) in enumerate(zip(slots, answers, runs_drawn, strict=True)):
            seed = f"{making.seed}/events/{n}"
            rng = random.Random(seed)
            chosen = choices[rng.randrange(len(choices))]
            captions = [clip.caption for clip in chosen]
            video = row(self.name, making.plan(backgrounds, chosen, seed), captions)
            listed = "; ".join(f"({k}) {captions[answer.index(k)]}" for k in sorted(answer))
            others = rng.sample([o for o in orders if o != answer], making.options - 1)
            draft = Draft(
                question="Put these events of the video into the order in which they happen: "
                f"{listed}.",
                answer=self._text(answer),
                decoys=tuple(map(self._text, others)),
            )
            rows.append(with_question(video, "order", draft, slot))
        return rows

    def _runs(self, clips: Sequence[InsertedClip]) -> list[Sequence[InsertedClip]]:
        """Return the runs of successive events with different captions; others have no order."""
        runs = [clips[n : n + self.events] for n in range(len(clips) - self.events + 1)]
        return [run for run in runs if len({normal(c.caption) for c in run}) == len(run)]

    def _text(self, order: Sequence[int]) -> str:
        return self.arrow.join(map(str, order))


def _enough_orders(things: int, options: int) -> None:
    if factorial(things) < options:
        raise UserError(
            f"{things} things have {factorial(things)} orders, fewer than options={options}: "
            "take more things, or fewer options"
        )


COUNT_QUESTIONS = (
    "How many separate times does the video show the action '{}'?",
    "Throughout the whole video, how often does '{}' occur?",
    "In how many different scenes of the video is '{}' seen?",
)


@dataclass(frozen=True, kw_only=True)
class Count:
    """Inserts 1 to `most` different clips of one action, and asks for their number (MLVU, F.9)."""

    making: SynthesisSettings = field(default_factory=SynthesisSettings)
    most: int = 5
    """Clips of the action, at most; at least 1."""
    name: str = "count"

    def rows(self, backgrounds: Sequence[Background], clips: Sequence[InsertedClip]) -> list[Video]:
        by_action = clips_by_label(clips)
        making, rows = self.making, list[Video]()
        numbers = cycle_choices(making.items, range(1, self.most + 1), f"{making.seed}/count/n")
        slots = cycle_choices(making.items, range(making.options), f"{making.seed}/count/slots")
        for n, (count, slot) in enumerate(zip(numbers, slots, strict=True)):
            rng = random.Random(f"{making.seed}/count/{n}")
            actions = sorted(a for a, clips_of in by_action.items() if len(clips_of) >= count)
            if not actions:
                raise UserError(
                    f"no action has {count} different clips: give more, or lower most={self.most}"
                )
            action = rng.choice(actions)
            inserted = rng.sample(by_action[action], count)
            rng.shuffle(inserted)
            video = row(self.name, making.plan(backgrounds, inserted, f"{making.seed}/count/{n}"))
            evidence = [Span(s.start, s.end) for s in video.segments or () if s.topic == action]
            draft = Draft(
                question=rng.choice(COUNT_QUESTIONS).format(action),
                answer=str(count),
                decoys=tuple(map(str, self._others(count, rng))),
            )
            rows.append(with_question(video, "count", draft, slot, evidence))
        return rows

    def _others(self, count: int, rng: random.Random) -> list[int]:
        """Draw wrong numbers, first those that are right in other videos."""
        count_wanted = self.making.options - 1
        possible = [k for k in range(1, self.most + 1) if k != count]
        spare = [0, *range(self.most + 1, self.most + 1 + count_wanted)]
        chosen = rng.sample(possible, min(count_wanted, len(possible)))
        chosen += spare[: count_wanted - len(chosen)]
        rng.shuffle(chosen)
        return chosen


ANOMALIES = (
    *("Abuse", "Arrest", "Arson", "Assault", "Burglary", "Explosion", "Fighting"),
    *("RoadAccidents", "Robbery", "Shooting", "Shoplifting", "Stealing", "Vandalism", "Normal"),
)
ANOMALY_QUESTIONS = (
    "Does this surveillance footage contain an anomaly, and of what kind?",
    "Which kind of anomaly, if any, can be seen in this video?",
    "What type of abnormal event does the video show?",
    "Which of these labels fits what happens in this surveillance video?",
)


@dataclass(frozen=True, kw_only=True)
class Anomaly:
    """Anomaly recognition from a table of labels (MLVU, F.2)."""

    options: int = 4
    least: float = 180
    """Shortest video, seconds; shorter ones are left out."""
    labels: Sequence[str] = ANOMALIES
    """Options."""
    questions: Sequence[str] = field(default=ANOMALY_QUESTIONS)
    seed: int = 0

    def rows(self, labelled: Sequence[tuple[Video, str]]) -> list[Video]:
        """Return the videos, which need a duration, with a question each. Raises UserError for a
        label that is not in `labels`.
        """
        unknown = sorted({label for _, label in labelled} - set(self.labels))
        if unknown:
            raise UserError(f"labels {unknown!r} are not among labels={list(self.labels)!r}")
        long_videos = sorted(
            ((v, label) for v, label in labelled if (v.duration or 0.0) >= self.least),
            key=lambda pair: pair[0].video_id,
        )
        slots = cycle_choices(len(long_videos), range(self.options), f"{self.seed}/anomaly/slots")
        rows: list[Video] = []
        for (video, label), slot in zip(long_videos, slots, strict=True):
            rng = random.Random(f"{self.seed}/{video.video_id}/anomaly")
            others = [other for other in self.labels if other != label]
            draft = Draft(
                question=rng.choice(list(self.questions)),
                answer=label,
                decoys=tuple(rng.sample(others, self.options - 1)),
            )
            rows.append(with_question(video, "anomaly_reco", draft, slot, ()))
        return rows


@dataclass(frozen=True, kw_only=True)
class NeedleSettings:
    """How needles are asked about."""

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("video_id", "segments", "questions", "tags")
    area: ClassVar[str] = "mlvu"

    most: int = 3
    """Questions about one needle, at most."""
    options: int = 4
    """Options of each question."""
    seed: int = 0


async def ask_needle(video: Video, asker: Asker, settings: NeedleSettings) -> Video:
    """Return the row with questions on each captioned segment. Their evidence is the segment, their
    subsets are the row's tags. A row that has questions is returned unchanged. Raises BadRow for a
    row without captioned segments.
    """
    if video.questions:
        return video
    captioned = [segment for segment in video.segments or () if segment.dense_caption]
    if not captioned:
        raise BadRow(f"video {video.video_id!r} has no captioned needle to ask about")
    decoys = settings.options - 1
    questions_made: list[Question] = []
    for segment in captioned:
        drafts = await asker.ask(
            "mlvu/needle",
            needle_form(settings.most, decoys),
            seed=settings.seed,
            caption=segment.dense_caption,
            most=settings.most,
            decoys=decoys,
        )
        span = Span(segment.start, segment.end)
        questions_made += [
            finish_question(
                replace(draft, evidence=(span,)),
                video_id=video.video_id,
                recipe="mlvu",
                question_type="findNeedle",
                seed=settings.seed,
                decoys=decoys,
                provenance=Provenance(
                    llm=asker.llm.identity, prompts=asker.prompts.digest("mlvu/needle")
                ),
            )
            for draft in drafts
        ]
    return replace(video, questions=tuple(replace(q, subsets=video.tags) for q in questions_made))


def needle_form(most: int, decoys: int) -> Form[list[Draft]]:
    """Parse questions with all their decoys."""

    def complete(drafts: Sequence[Draft]) -> list[Draft]:
        for draft in drafts:
            if len(draft.decoys) < decoys:
                raise Unparsed(
                    f"the question {draft.question[:60]!r} has {len(draft.decoys)} lines "
                    f"'WRONG ANSWER n: ...', not {decoys}"
                )
        return [replace(draft, decoys=draft.decoys[:decoys]) for draft in drafts]

    return questions(most, kind="", wrong=decoys).map(complete)
