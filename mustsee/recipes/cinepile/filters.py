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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mustsee.calls.llm import Asker
from mustsee.errors import BadRow, Unparsed
from mustsee.recipes.cinepile.choosing import DIALOGUE, SCENE, choose, rotate_options, verdict
from mustsee.recipes.cinepile.mcq import OptionChoice
from mustsee.recipes.cinepile.scene import SceneLine, format_lines, scene_lines
from mustsee.records import Question, Verdict, Video
from mustsee.replies.forms import Form, form, list_of, one_of, record, words
from mustsee.text import LETTERS
from mustsee.verify.outcome import (
    AMBIGUOUS,
    DISPUTED,
    GUESSED,
    UNTOLD,
    FilterOutcome,
    add_outcome,
    mark_unverified,
)
from mustsee.verify.vetting import VettingContext

PROMPT = "cinepile/fits"
SPEAKERS = ("TOLD", "OPEN", "NONE")


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


async def fits(
    question: Question, asker: Asker, scene: str, *, seed: int = 0, train: bool = False
) -> Question:
    """Return the question with a verdict and the outcome. It is dropped if it depends
    on a speaker whom the scene does not name. If a wrong option fits beside the answer, it is
    dropped from the test split, and with `train` from train. It is unverified if the reply cannot
    be parsed.
    """
    options = tuple(question.options)
    blank = Verdict(
        filter="fits", model=asker.llm.identity, seed=seed, prompt=asker.prompts.digest(PROMPT)
    )
    try:
        reply, fitting = await asker.ask(
            PROMPT, fits_form(len(options)).keep_reply(), seed=seed,
            question=question.question, options=options, scene=scene, about=SCENE,
        )  # fmt: skip
    except BadRow as error:
        kept = (*question.verdicts, replace(blank, detail=str(error)))
        return mark_unverified(replace(question, verdicts=kept), "fits")
    others = [LETTERS[n] for n in fitting.places if n != question.answer_index]
    has_rival = bool(others) and question.answer_index in fitting.places
    is_open = fitting.speaker == "OPEN"
    passed = not (has_rival or is_open)
    outcome = FilterOutcome(
        filter="fits", passed=passed, fault=UNTOLD if is_open else AMBIGUOUS,
        reason="the scene does not name the speaker"
        if is_open
        else f"{', '.join(others)} fits as well as the answer",
        drops=is_open or train or "test" in question.subsets,
    )  # fmt: skip
    letters = "".join(LETTERS[n] for n in fitting.places) or "none"
    verdict = replace(
        blank,
        reply=reply,
        passed=passed,
        detail=f"fits: {letters}; speaker: {fitting.speaker.lower()}",
    )
    return add_outcome(replace(question, verdicts=(*question.verdicts, verdict)), outcome)


async def degenerate(question: Question, askers: Mapping[str, Asker], *, seed: int = 0) -> Question:
    """Return the question with each role's verdict and `metrics["degenerate"]` (0 or 1). It is
    dropped if it is degenerate and in the subset "test", and unverified if no parsed answer is
    wrong but some are unparseable.

    Each role has its own seed and order of the options, so three roles of one model give three
    guesses.
    """
    count = len(question.options)

    async def guess(turn: int, role: str) -> Verdict:
        options, own_seed = rotate_options(question.options, turn), seed + turn
        choice = await choose(askers[role], question.question, options, seed=own_seed)
        if choice is not None:
            choice = replace(choice, place=(choice.place - turn) % count)
        return verdict("degenerate", askers[role], question, choice, seed=own_seed, detail=role)

    verdicts = await asyncio.gather(*(guess(turn, role) for turn, role in enumerate(askers)))
    is_degenerate = bool(verdicts) and all(v.correct for v in verdicts)
    # An unparseable answer may be wrong.
    if not is_degenerate and all(v.correct is not False for v in verdicts):
        return mark_unverified(
            replace(question, verdicts=(*question.verdicts, *verdicts)), "degenerate"
        )
    drop = question.drop
    if is_degenerate and "test" in question.subsets:
        count = len(verdicts)
        drop = drop or f"degenerate: right in {count} of {count} models without the scene"
    return replace(
        question,
        verdicts=(*question.verdicts, *(replace(v, passed=not is_degenerate) for v in verdicts)),
        metrics={**question.metrics, "degenerate": float(is_degenerate)},
        drop=drop,
    )


async def hardness(question: Question, asker: Asker, scene: str, *, seed: int = 0) -> Question:
    """Return the question with its verdict and `metrics["hardness"]`; at 1 it is in the subset
    "hard". There is no metric if the call failed.
    """
    choice = await choose(
        asker, question.question, question.options, context=scene, about=SCENE, seed=seed
    )
    result = verdict("hardness", asker, question, choice, seed=seed, detail="whole scene")
    metrics, subsets = dict(question.metrics), question.subsets
    if result.correct is not None:
        metrics["hardness"] = float(not result.correct)
        if not result.correct:
            subsets = (*subsets, "hard")
    return replace(
        question, verdicts=(*question.verdicts, result), metrics=metrics, subsets=subsets
    )


async def vision(question: Question, asker: Asker, dialogue: str, *, seed: int = 0) -> Question:
    """Return the question with its verdict and `metrics["vision_reliance"]`; there is no metric if
    the call failed. No question is dropped.
    """
    choice = await choose(
        asker, question.question, question.options, context=dialogue or "(nothing is said)",
        about=DIALOGUE, seed=seed,
    )  # fmt: skip
    result = verdict("vision", asker, question, choice, seed=seed, detail="dialogue alone")
    metrics = dict(question.metrics)
    if result.correct is not None:
        metrics["vision_reliance"] = float(not result.correct)
    return replace(question, verdicts=(*question.verdicts, result), metrics=metrics)


GUESSERS = ("guesser", "guesser_2", "guesser_3")


def _lines_of(video: Video, threshold: float) -> tuple[SceneLine, ...]:
    return scene_lines(video.scene, threshold=threshold) if video.scene else ()


@dataclass(frozen=True, kw_only=True)
class Degenerate:
    """Drops questions from the test split that three guessers all answer without the scene."""

    name: ClassVar[str] = "degenerate"
    roles: ClassVar[tuple[str, ...]] = GUESSERS
    prompts: ClassVar[tuple[str, ...]] = ("cinepile/choose",)
    reads: ClassVar[tuple[str, ...]] = ()

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        guessers = {role: vetting.askers[role] for role in GUESSERS}
        return await degenerate(question, guessers, seed=vetting.seed)


@dataclass(frozen=True, kw_only=True)
class Fits:
    """Drops questions by a reading of the whole scene: if they depend on a speaker whom the scene
    does not name, and from the test split (with `train`, from both) if two options fit.
    """

    name: ClassVar[str] = "fits"
    roles: ClassVar[tuple[str, ...]] = ("reader",)
    prompts: ClassVar[tuple[str, ...]] = (PROMPT,)
    reads: ClassVar[tuple[str, ...]] = ("scene",)

    threshold: float = 0.5
    train: bool = False
    """Drop questions with two fitting options from train, too."""

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        scene = format_lines(_lines_of(video, self.threshold))
        reader = vetting.askers["reader"]
        return await fits(question, reader, scene, seed=vetting.seed, train=self.train)


@dataclass(frozen=True, kw_only=True)
class Vision:
    """Measures whether the role `reader` needs more than the dialogue."""

    name: ClassVar[str] = "vision"
    roles: ClassVar[tuple[str, ...]] = ("reader",)
    prompts: ClassVar[tuple[str, ...]] = ("cinepile/choose",)
    reads: ClassVar[tuple[str, ...]] = ("scene",)

    threshold: float = 0.5

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        lines = _lines_of(video, self.threshold)
        dialogue = "\n".join(f"{x.start:.1f} {x.end:.1f} {x.text}" for x in lines if not x.visual)
        return await vision(question, vetting.askers["reader"], dialogue, seed=vetting.seed)


@dataclass(frozen=True, kw_only=True)
class Hardness:
    """Measures whether the role `reader` errs although it sees the whole scene."""

    name: ClassVar[str] = "hardness"
    roles: ClassVar[tuple[str, ...]] = ("reader",)
    prompts: ClassVar[tuple[str, ...]] = ("cinepile/choose",)
    reads: ClassVar[tuple[str, ...]] = ("scene",)

    threshold: float = 0.5

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        scene = format_lines(_lines_of(video, self.threshold))
        return await hardness(question, vetting.askers["reader"], scene, seed=vetting.seed)


@dataclass(frozen=True, kw_only=True)
class Refine:
    """Marks questions that the role `guesser` guesses blind, and drops them from the test split.
    The role `reader` must answer a rewrite from the scene. Metrics: `weak`, of the original
    wording; `fixed`, of weak questions.
    """

    name: ClassVar[str] = "refine"
    roles: ClassVar[tuple[str, ...]] = ("guesser", "reader")
    prompts: ClassVar[tuple[str, ...]] = ("cinepile/choose",)
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
            return mark_unverified(question, self.name)
        passed = strong and not misled
        weak = any(r.filter == self.name for r in question.repairs) or not strong
        guessed = f"guessed without the scene in {right} of {len(verdicts)} rotations"
        outcome = FilterOutcome(
            filter=self.name, passed=passed, fault=DISPUTED if misled else GUESSED,
            reason="the scene gives another answer" if misled else guessed,
            drops=misled or "test" in question.subsets,
            metrics={"weak": float(weak), **({"fixed": float(passed)} if weak else {})},
        )  # fmt: skip
        return add_outcome(replace(question, drop=None), outcome)

    async def _test(self, question: Question, vetting: VettingContext) -> tuple[Verdict, ...]:
        """Return the blind model's verdict on each rotation."""
        asker, options = vetting.askers["guesser"], question.options

        async def test_rotation(by: int) -> Verdict:
            seed = vetting.seed + by
            choice = await self._choose(asker, question, rotate_options(options, by), None, seed)
            if choice is not None:
                choice = replace(choice, place=(choice.place - by) % len(options))
            return verdict("refine", asker, question, choice, seed=seed, detail=f"rotation {by}")

        return tuple(await asyncio.gather(*map(test_rotation, range(len(options)))))

    async def _read(self, question: Question, video: Video, vetting: VettingContext) -> Verdict:
        """Return the verdict of a model that reads the scene."""
        asker, seed = vetting.askers["reader"], vetting.seed
        scene = (
            format_lines(scene_lines(video.scene, threshold=self.threshold)) if video.scene else ""
        )
        choice = await self._choose(asker, question, question.options, scene, seed)
        return verdict("refine", asker, question, choice, seed=seed, detail="whole scene")

    async def _choose(
        self, asker: Asker, question: Question, options: Sequence[str], scene: str | None, seed: int
    ) -> OptionChoice | None:
        """Return a choice, after at most `again` retries."""
        for attempt in range(self.again + 1):
            choice = await choose(
                asker, question.question, options, context=scene,
                about="" if scene is None else SCENE, seed=seed + 1000 * attempt,
            )  # fmt: skip
            if choice is not None:
                return choice
        return None
