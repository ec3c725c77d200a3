"""What a scorer reads in one reply, and the benchmarks' own scorers, which need no judge: of
CinePile, MLVU, Video-MME, MVBench and the rules that TempCompass tries before it asks a model.
EgoSchema's server takes numbers, and Neptune has no released scorer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mustsee.replies.extract import extract, official
from mustsee.text import LETTERS


@dataclass(frozen=True, kw_only=True)
class ReplyReading:
    """What a scorer reads in a reply.

    `letter`: the option, in the order in which options were shown; None where the reply is
    unreadable to the scorer. `step`: the step that decided. `points`: what the scorer counts, the
    expected value where it guesses; None where it leaves the reply out. `guesses`: number of
    outcomes among which it draws at random; 0: it does not.
    """

    letter: str | None
    step: str
    points: float | None
    guesses: int = 0


@dataclass(frozen=True, kw_only=True)
class ScoringRule:
    """How one version of a scorer scores the replies to a benchmark.

    `version`: what the rule follows. `read`: of a reply, the options as shown, and the place of the
    right one. `failed`: the reply that the scorer gets for a failed call; None: it leaves the call
    out. `letters`: the only letters that it reads; "": those of the question's options. `averages`:
    lists of question types; it averages over the first that has all types of the questions, and a
    type without questions counts as 0; (): it takes the mean over the replies.
    """

    version: str
    read: Callable[[str, Sequence[str], int], ReplyReading]
    failed: str | None = None
    letters: str = ""
    averages: tuple[tuple[str, ...], ...] = ()


def score_letter(letter: str | None, step: str, place: int) -> ReplyReading:
    """Return the reading of a letter that scores if it is that of the right option, at `place`."""
    return ReplyReading(letter=letter, step=step, points=float(letter == LETTERS[place]))


def read_ours(reply: str, options: Sequence[str], place: int) -> ReplyReading:
    """Read what the reply declares; the step is the rule of `mustsee.replies.extract.choice`."""
    extraction = extract(reply, options)
    return score_letter(extraction.letter, extraction.rule, place)


OUR_RULES = {"": ScoringRule(version="mustsee.replies.extract", read=read_ours)}


MLVU_7 = ("topic_reasoning", "anomaly_reco", "findNeedle", "ego", "plotQA", "order", "count")
MLVU_9 = (*MLVU_7, "sports_qa", "tutorial_qa")  # the released test adds two tasks
# The last two are joined in its list, where commas are missing.
_PREFIXES = ("The best answer is", "The correct answer is", "The answer is", "The answer",
             "The best option isThe correct option is", "Best answer:Best option:")  # fmt: skip


def read_cinepile(reply: str, options: Sequence[str], place: int) -> ReplyReading:
    """Read a lone letter, or "Answer: X text", whose text must be the option's; else the whole
    reply must be the option's text.
    """
    letter, text = official.cinepile_parts(reply)
    right = place < 5 and official.cinepile(reply, options, place)
    if letter is None:
        same = [n for n, option in enumerate(options) if text.lower() == option.strip().lower()]
        letter = LETTERS[place] if right else LETTERS[same[0]] if same else None
        step = "whole option text" if letter else "no 'Answer: X'"
    else:
        wrong_text = letter == LETTERS[place] and not right
        step = "letter with other text" if wrong_text else "'Answer: X'" if text else "letter"
    return ReplyReading(letter=letter, step=step, points=float(right))


def read_mlvu(reply: str, options: Sequence[str], place: int) -> ReplyReading:
    """Read the character before the first ")", or else the whole reply."""
    letters = LETTERS[: len(options)]
    letter = next((x for n, x in enumerate(letters) if official.mlvu(reply, n)), None)
    step = "no lone letter"
    if letter is not None:
        step = "character before ')'" if ")" in reply else "whole reply"
    return score_letter(letter, step, place)


def first_capital(reply: str, prefixes: Sequence[str]) -> tuple[str | None, str]:
    """Return the first capital A to D, also within a word, and the step. `prefixes`: removed
    before, wherever they stand, one after the other.
    """
    text = reply.strip()
    for prefix in prefixes:
        text = text.replace(prefix, "")
    match = re.search("[ABCD]", text)
    if match is None:
        return None, "no capital A to D"
    inner = re.search(r"\w", text[match.start() - 1 : match.start()] + text[match.end() :][:1])
    return match[0], "first capital, within a word" if inner else "first capital"


def read_videomme(reply: str, options: Sequence[str], place: int) -> ReplyReading:
    """Read the first capital A to D; a reply without one is left out."""
    letter, step = first_capital(reply, _PREFIXES)
    if letter is None:
        return ReplyReading(letter=None, step=step, points=None)
    return score_letter(letter, step, place)


def begins_as_option(reply: str, place: int) -> bool:
    """Whether the first word is part of the label "(x)" of the option at `place`, or contains it.
    An empty first word is part of every label.
    """
    word, label = reply.lower().split(" ")[0], f"({LETTERS[place].lower()})"
    return word.replace(".", "") in label or label in word


def read_mvbench(reply: str, options: Sequence[str], place: int) -> ReplyReading:
    """Compare the first word of the first line, behind an opening bracket, with the options'
    labels.
    """
    line = "(" + reply.strip().split("\n")[0]
    fitting = [LETTERS[n] for n in range(len(options)) if begins_as_option(line, n)]
    letter = fitting[0] if len(fitting) == 1 else None
    step = "first word" if letter else "first word fits several labels" if fitting else "no label"
    return ReplyReading(letter=letter, step=step, points=float(LETTERS[place] in fitting))


def read_tempcompass(reply: str, options: Sequence[str], place: int) -> ReplyReading:
    """Read a lone A to D, "X." or "X)" at the start. TempCompass asks a model about other replies;
    here they are unreadable.
    """
    match = re.match(r"([ABCD])(?:\Z|[.)])", reply)
    if match is None:
        return score_letter(None, "would ask its judge", place)
    return score_letter(match[1], "letter" if reply == match[1] else "'X.' or 'X)' first", place)


RULES = {
    "cinepile": ScoringRule(
        version="CinePile's released parser", read=read_cinepile, letters="ABCDE"
    ),
    "mlvu": ScoringRule(version="MLVU dev's choice_bench", read=read_mlvu),
    "videomme": ScoringRule(
        version="Video-MME eval_your_results.py", read=read_videomme, letters="ABCD"
    ),
    "mvbench": ScoringRule(version="MVBench, VideoChat2's check_ans", read=read_mvbench),
    "tempcompass": ScoringRule(
        version="TempCompass multi-choice, without its judge", read=read_tempcompass,
        letters="ABCD",
    ),
}  # fmt: skip
