"""Two faults that people found in CinePile's study (Fig. 5): a second option that fits the scene,
and an answer that names a speaker whom the scene does not name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mustsee.calls.llm import Asker
from mustsee.errors import BadRow, Unparsed
from mustsee.recipes.cinepile.choosing import SCENE
from mustsee.records import Question, Verdict
from mustsee.replies.forms import Form, form, list_of, one_of, record, words
from mustsee.text import LETTERS
from mustsee.verify.outcome import AMBIGUOUS, UNTOLD, FilterOutcome, add_outcome, mark_unverified

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
