"""Questions that people found faulty in CinePile's study (Fig. 5): a second option that fits the
scene as well, and an answer that says who speaks where the scene leaves that open.
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
from mustsee.verify.vetting import mark_unverified

PROMPT = "cinepile/fits"
SPEAKERS = ("TOLD", "OPEN", "NONE")


@dataclass(frozen=True, kw_only=True)
class FittingOptions:
    """The places of the options that fit; `speaker`: whether the scene tells who says what the
    question hangs on (TOLD, OPEN), or it hangs on nobody's words (NONE). `reply`: as it was said.
    """

    places: tuple[int, ...]
    speaker: str
    reply: str = ""


def fits_form(count: int) -> Form[FittingOptions]:
    """`FITS: A, C`, or NONE, and `SPEAKER: TOLD`."""
    letters = LETTERS[:count]

    def make_fit(why: str, fits: Sequence[str], speaker: str) -> FittingOptions:
        return FittingOptions(places=tuple(sorted(map(letters.index, set(fits)))), speaker=speaker)

    def parse_fit(reply: str) -> FittingOptions:
        text = reply.replace("*", "")
        fits = re.search(r"^[\s>#-]*FITS\s*[:：]\s*(.*)$", text, re.IGNORECASE | re.MULTILINE)
        speaker = re.search(r"^[\s>#-]*SPEAKERS?\s*[:：]\s*(\w+)", text, re.I | re.MULTILINE)
        if not fits or not speaker or speaker[1].upper() not in SPEAKERS:
            raise Unparsed("it holds no lines 'FITS: ...' and 'SPEAKER: TOLD, OPEN or NONE'")
        named = re.findall(r"(?<![A-Za-z'])([A-Z])(?![A-Za-z'])", fits[1])
        if strange := [x for x in named if x not in letters]:
            raise Unparsed(f"there is no option {strange[0]}: they are {letters}")
        if not named and not re.match(r"none\b", fits[1], re.IGNORECASE):
            raise Unparsed("'FITS:' names no option, and does not say NONE")
        return make_fit("", named, speaker[1].upper())

    shape = record(
        make_fit,
        why=words("one sentence"),
        fits=list_of(one_of(letters, "a letter"), "all that fit"),
        speaker=one_of(SPEAKERS, "whether the scene tells who speaks"),
    )
    return form(text=parse_fit, shape=shape)


async def fits(
    question: Question, asker: Asker, scene: str, *, seed: int = 0, train: bool = False
) -> Question:
    """The question with a verdict and `metrics["fits_passed"]`. One that hangs on a speaker whom
    the scene leaves open is dropped; one of which a wrong option fits beside the answer is dropped
    from the test split, and with `train` from train. Unvetted where the reply cannot be read.
    """
    options = tuple(question.options)
    blank = Verdict(
        filter="fits", model=asker.llm.identity, seed=seed, prompt=asker.prompts.digest(PROMPT)
    )
    try:
        reply, found = await asker.ask(
            PROMPT, fits_form(len(options)).with_reply(), seed=seed,
            question=question.question, options=options, scene=scene, about=SCENE,
        )  # fmt: skip
    except BadRow as error:
        kept = (*question.verdicts, replace(blank, detail=str(error)))
        return mark_unverified(replace(question, verdicts=kept), "fits")
    others = [LETTERS[n] for n in found.places if n != question.answer_index]
    beside = bool(others) and question.answer_index in found.places
    is_open = found.speaker == "OPEN"
    reason = None
    if is_open:
        reason = "fits: the scene leaves open who speaks"
    elif beside and (train or "test" in question.subsets):
        reason = f"fits: {', '.join(others)} fits as well as the answer"
    passed = not (beside or is_open)
    said = "".join(LETTERS[n] for n in found.places) or "none"
    verdict = replace(
        blank, reply=reply, passed=passed, detail=f"fits: {said}; speaker: {found.speaker.lower()}"
    )
    return replace(
        question,
        verdicts=(*question.verdicts, verdict),
        metrics={**question.metrics, "fits_passed": float(passed)},
        drop=question.drop or reason,
    )
