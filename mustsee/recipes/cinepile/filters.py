"""CinePile's filters: degeneracy, fitting options, vision reliance, hardness, refinement.

Degeneracy (2.4): each of three models answers the question without the scene. Such a question is
dropped from the test split and kept in train. Vision reliance (2.4): 0 if a model answers from the
dialogue alone, else 1. Hardness (2.4): 1 if a model that sees the whole scene text errs, else 0.
Two faults that people found in the study (Fig. 5): a second option that fits the scene, and an
answer that names a speaker whom the scene does not name.

Refinement (CinePile 2.0): a question that is guessed blind is weak, and is repaired.

A question is tested on all cyclic rotations of its options, so that its answer is once at each
place. It is weak if more than `most` of these guesses are right (3 of 5). The run's repair
(`mustsee.verify.repair`) rewrites it with the blind model's reasons, up to a number of times (the
authors: 5), and it is tested after each rewrite.

The released code and the paper's text disagree on these:

- Weakness is measured on all rotations each time, so that one lucky miss does not make a question
  strong.
- A call whose reply cannot be parsed is retried. If a rotation still has no answer, the question is
  unverified: not weak, and as a rewrite it replaces nothing. If the endpoint is down (Transient),
  the clip is left to the next run.
- A rewrite must be well-formed, and a model that reads the scene must choose its answer; else the
  earlier wording is kept.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar

from mustsee.calls.llm import Asker
from mustsee.errors import BadRow, Unparsed
from mustsee.recipes.cinepile.ask import SceneLine, format_lines, scene_lines
from mustsee.recipes.cinepile.mcq import choice
from mustsee.records import Question, Verdict, Video
from mustsee.replies.forms import Form, form, list_of, one_of, record, words
from mustsee.text import LETTERS
from mustsee.verify import filters as outcomes
from mustsee.verify.conditions.seen import order, rotated_options
from mustsee.verify.filters import (
    FilterOutcome,
    VettingContext,
)

CHOOSE, FITS = "cinepile/choose", "cinepile/fits"  # prompts
GUESSERS = ("guesser", "guesser_2", "guesser_3")
SPEAKERS = ("TOLD", "OPEN", "NONE")
DIALOGUE = "What is said in the scene, with times in seconds:"
SCENE = (
    "A scene: what is said (<subtitle>) and what a narrator says of the picture "
    "(<visual descriptions>), with times in seconds:"
)


async def ask_choice(
    name: str, asker: Asker, question: Question, *, detail: str, seed: int, rotation: int = 0,
    context: str | None = None, about: str = "", tries: int = 1,
) -> Verdict:  # fmt: skip
    """Return the verdict of the filter `name` by the model's choice among the options, which it
    sees rotated by `rotation`. If none of its replies can be parsed, it is neither right nor wrong.
    Raises Transient, so that a later run repeats the call.
    """
    shown, options = order(len(question.options), rotation), rotated_options(question, rotation)
    verdict = Verdict(
        filter=name, model=asker.llm.identity, seed=seed, prompt=asker.prompts.digest(CHOOSE),
        detail=f"{detail}; no answer",
    )  # fmt: skip
    for attempt in range(tries):
        with suppress(BadRow):
            chosen = await asker.ask(
                CHOOSE, choice(options), seed=seed + 1000 * attempt, question=question.question,
                options=options, context=context, about=about,
            )  # fmt: skip
            place = shown[chosen.place]
            said, is_right = f"chose {LETTERS[place]}", place == question.answer_index
            return replace(
                verdict, reply=chosen.reply, correct=is_right, detail=f"{detail}; {said}"
            )
    return verdict


@dataclass(frozen=True, kw_only=True)
class FittingOptions:
    """`places`: indices of the options that fit. `speaker`: whether the scene names the speaker on
    whom the question depends (TOLD or OPEN), or it depends on none (NONE). `reply`: the text.
    """

    places: tuple[int, ...]
    speaker: str
    reply: str = ""


def fits_form(count: int) -> Form[FittingOptions]:
    """Parse `FITS: A, C` (or NONE) and `SPEAKER: TOLD`."""
    letters = LETTERS[:count]

    def make_fit(why: str, fits: Sequence[str], speaker: str) -> FittingOptions:
        return FittingOptions(places=tuple(sorted(map(letters.index, set(fits)))), speaker=speaker)

    def parse_fit(reply: str) -> FittingOptions:
        text = reply.replace("*", "")
        fits = re.search(r"^[\s>#-]*FITS\s*[:：]\s*(.*)$", text, re.IGNORECASE | re.MULTILINE)
        speaker = re.search(r"^[\s>#-]*SPEAKERS?\s*[:：]\s*(\w+)", text, re.I | re.MULTILINE)
        if not fits or not speaker or speaker[1].upper() not in SPEAKERS:
            raise Unparsed("it holds no lines 'FITS: ...' and 'SPEAKER: TOLD, OPEN or NONE'")
        letters_named = re.findall(r"(?<![A-Za-z'])([A-Z])(?![A-Za-z'])", fits[1])
        if unknown := [x for x in letters_named if x not in letters]:
            raise Unparsed(f"there is no option {unknown[0]}: they are {letters}")
        if not letters_named and not re.match(r"none\b", fits[1], re.IGNORECASE):
            raise Unparsed("'FITS:' names no option, and does not say NONE")
        return make_fit("", letters_named, speaker[1].upper())

    shape = record(
        make_fit,
        why=words("one sentence"),
        fits=list_of(
            one_of(letters, "the letter of an option"), "all options that fit; empty if none does"
        ),
        speaker=one_of(SPEAKERS, "whether the scene says who speaks, if it matters"),
    )
    return form(text=parse_fit, shape=shape)


@dataclass(frozen=True, kw_only=True)
class Degenerate:
    """Drops questions from the test split that three guessers all answer without the scene.

    Each role has its own seed and order of the options, so three roles of one model give three
    guesses. Metric: `degenerate` (0 or 1). A question is unverified if no parsed answer is wrong
    but some are unparseable.
    """

    name: ClassVar[str] = "degenerate"
    roles: ClassVar[tuple[str, ...]] = GUESSERS
    prompts: ClassVar[tuple[str, ...]] = (CHOOSE,)
    reads: ClassVar[tuple[str, ...]] = ()

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        async def guess(turn: int, role: str) -> Verdict:
            asker, seed = vetting.askers[role], vetting.seed + turn
            return await ask_choice(
                self.name, asker, question, detail=role, rotation=turn, seed=seed
            )

        verdicts = await asyncio.gather(*(guess(turn, role) for turn, role in enumerate(GUESSERS)))
        is_degenerate = all(v.correct for v in verdicts)
        # An unparseable answer may be wrong.
        if not is_degenerate and all(v.correct is not False for v in verdicts):
            unverified = replace(question, verdicts=(*question.verdicts, *verdicts))
            return outcomes.mark_unverified(unverified, "degenerate")
        drop = question.drop
        if is_degenerate and "test" in question.subsets:
            drop = drop or "degenerate: right in 3 of 3 models without the scene"
        tested = (replace(v, passed=not is_degenerate) for v in verdicts)
        return replace(
            question,
            verdicts=(*question.verdicts, *tested),
            metrics={**question.metrics, "degenerate": float(is_degenerate)},
            drop=drop,
        )


@dataclass(frozen=True, kw_only=True)
class Fits:
    """Drops questions by a reading of the whole scene: if they depend on a speaker whom the scene
    does not name, and from the test split (with `train`, from both) if a wrong option fits beside
    the answer. A question is unverified if the reply cannot be parsed.
    """

    name: ClassVar[str] = "fits"
    roles: ClassVar[tuple[str, ...]] = ("reader",)
    prompts: ClassVar[tuple[str, ...]] = (FITS,)
    reads: ClassVar[tuple[str, ...]] = ("scene",)

    threshold: float = 0.5
    train: bool = False
    """Drop questions with two fitting options from train, too."""

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        asker, options = vetting.askers["reader"], tuple(question.options)
        blank = Verdict(
            filter="fits",
            model=asker.llm.identity,
            seed=vetting.seed,
            prompt=asker.prompts.digest(FITS),
        )
        try:
            reply, fitting = await asker.ask(
                FITS, fits_form(len(options)).keep_reply(), seed=vetting.seed,
                question=question.question, options=options,
                scene=format_lines(_lines_of(video, self.threshold)), about=SCENE,
            )  # fmt: skip
        except BadRow as error:
            kept = (*question.verdicts, replace(blank, detail=str(error)))
            return outcomes.mark_unverified(replace(question, verdicts=kept), "fits")
        others = [LETTERS[n] for n in fitting.places if n != question.answer_index]
        has_rival = bool(others) and question.answer_index in fitting.places
        is_open = fitting.speaker == "OPEN"
        outcome = FilterOutcome(
            filter="fits", passed=not (has_rival or is_open),
            fault=outcomes.UNTOLD if is_open else outcomes.AMBIGUOUS,
            reason="the scene does not name the speaker"
            if is_open
            else f"{', '.join(others)} fits as well as the answer",
            drops=is_open or self.train or "test" in question.subsets,
        )  # fmt: skip
        letters = "".join(LETTERS[n] for n in fitting.places) or "none"
        read = replace(
            blank,
            reply=reply,
            passed=outcome.passed,
            detail=f"fits: {letters}; speaker: {fitting.speaker.lower()}",
        )
        return outcomes.add_outcome(replace(question, verdicts=(*question.verdicts, read)), outcome)


@dataclass(frozen=True, kw_only=True)
class Vision:
    """Measures whether the role `reader` needs more than the dialogue: `vision_reliance` is 1 if it
    errs; there is none if the call failed. No question is dropped.
    """

    name: ClassVar[str] = "vision"
    roles: ClassVar[tuple[str, ...]] = ("reader",)
    prompts: ClassVar[tuple[str, ...]] = (CHOOSE,)
    reads: ClassVar[tuple[str, ...]] = ("scene",)

    threshold: float = 0.5

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        lines = _lines_of(video, self.threshold)
        dialogue = "\n".join(f"{x.start:.1f} {x.end:.1f} {x.text}" for x in lines if not x.visual)
        read = await ask_choice(
            self.name, vetting.askers["reader"], question, detail="dialogue alone",
            context=dialogue or "(nothing is said)", about=DIALOGUE, seed=vetting.seed,
        )  # fmt: skip
        return _add_measure(question, read, "vision_reliance")


@dataclass(frozen=True, kw_only=True)
class Hardness:
    """Measures whether the role `reader` errs although it sees the whole scene: `hardness` is then
    1, and the question in the subset "hard"; there is none if the call failed.
    """

    name: ClassVar[str] = "hardness"
    roles: ClassVar[tuple[str, ...]] = ("reader",)
    prompts: ClassVar[tuple[str, ...]] = (CHOOSE,)
    reads: ClassVar[tuple[str, ...]] = ("scene",)

    threshold: float = 0.5

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        scene = format_lines(_lines_of(video, self.threshold))
        read = await ask_choice(
            self.name, vetting.askers["reader"], question, detail="whole scene",
            context=scene, about=SCENE, seed=vetting.seed,
        )  # fmt: skip
        if read.correct is False:
            question = replace(question, subsets=(*question.subsets, "hard"))
        return _add_measure(question, read, "hardness")


def _add_measure(question: Question, read: Verdict, metric: str) -> Question:
    metrics = dict(question.metrics)
    if read.correct is not None:
        metrics[metric] = float(not read.correct)
    return replace(question, verdicts=(*question.verdicts, read), metrics=metrics)


def _lines_of(video: Video, threshold: float) -> tuple[SceneLine, ...]:
    return scene_lines(video.scene, threshold=threshold) if video.scene else ()


@dataclass(frozen=True, kw_only=True)
class Refine:
    """Marks questions that the role `guesser` guesses blind, and drops them from the test split.
    The role `reader` must answer a rewrite from the scene. Metrics: `weak`, of the original
    wording; `fixed`, of weak questions.
    """

    name: ClassVar[str] = "refine"
    roles: ClassVar[tuple[str, ...]] = ("guesser", "reader")
    prompts: ClassVar[tuple[str, ...]] = (CHOOSE,)
    reads: ClassVar[tuple[str, ...]] = ("scene",)

    most: int = 2
    """Rotations of five that may be guessed right."""
    again: int = 2
    """Repetitions of a failed call."""
    threshold: float = 0.5
    """Least probability at which a line counts as the narrator's."""

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        if question.answer_index is None or len(question.options) < 2:
            return question
        verdicts = await self._test(question, vetting)
        right = sum(v.correct is True for v in verdicts)
        strong, misled = right <= self.most, False
        reworded = any(r.kind == "wording" for r in question.repairs)
        complete = all(v.correct is not None for v in verdicts)
        if complete and strong and reworded:
            verdicts = (*verdicts, await self._read(question, video, vetting))
            complete = verdicts[-1].correct is not None
            misled = not verdicts[-1].correct
        question = replace(question, verdicts=(*question.verdicts, *verdicts))
        if not complete:
            return outcomes.mark_unverified(question, self.name)
        passed = strong and not misled
        weak = any(r.filter == self.name for r in question.repairs) or not strong
        guessed = f"guessed without the scene in {right} of {len(verdicts)} rotations"
        outcome = FilterOutcome(
            filter=self.name, passed=passed,
            fault=outcomes.DISPUTED if misled else outcomes.GUESSED,
            reason="the scene gives another answer" if misled else guessed,
            drops=misled or "test" in question.subsets,
            metrics={"weak": float(weak), **({"fixed": float(passed)} if weak else {})},
        )  # fmt: skip
        return outcomes.add_outcome(replace(question, drop=None), outcome)

    async def _test(self, question: Question, vetting: VettingContext) -> tuple[Verdict, ...]:
        """Return the guesser's verdicts, one for each rotation of the options."""
        calls = (
            ask_choice(
                self.name, vetting.askers["guesser"], question, detail=f"rotation {by}",
                rotation=by, seed=vetting.seed + by, tries=self.again + 1,
            )
            for by in range(len(question.options))
        )  # fmt: skip
        return tuple(await asyncio.gather(*calls))

    async def _read(self, question: Question, video: Video, vetting: VettingContext) -> Verdict:
        """Return the verdict of the reader, who has the whole scene."""
        return await ask_choice(
            self.name, vetting.askers["reader"], question, detail="whole scene",
            context=format_lines(_lines_of(video, self.threshold)), about=SCENE,
            seed=vetting.seed, tries=self.again + 1,
        )  # fmt: skip
