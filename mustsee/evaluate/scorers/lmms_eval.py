"""The rules of lmms-eval 0.7.3, each for the task of its name.

Video-MME, MLVU and many other tasks share one extractor, which ranks every place where a letter
stands by its form. MVBench, EgoSchema, Neptune, CinePile and TempCompass have rules of their own.
Reasoning is removed only where a task asks for it, so these rules read a reply as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from mustsee.evaluate.scorers import official
from mustsee.evaluate.scorers.official import ReplyReading, ScoringRule, score_letter
from mustsee.text import LETTERS

_PHRASES = (
    *(f"{the}{what} is"
      for the in ("the ", "")
      for what in ("answer", "correct answer", "best answer", "correct option", "best option",
                   "choice", "correct choice")),
    "i choose", "i select", "i pick", "my answer is", "my choice is",
    "옵션", "정답은", "답은", "답:", "答案是", "答案为", "选", "答えは",
)  # fmt: skip
_FORMS = ((6, "({})"), (5, "{}."), (4, "{}:"), (3, "{})"), (2, "{} "))  # rank, form of a letter
_START, _END, _PHRASE, _ANYWHERE = 10, 9, 7, 0  # ranks
_PUNCTUATION = ';/[]"{}()=+\\_->?<@`,!'
_PERIOD = re.compile(r"\.(?!\d)")
_MAX_PERIODS = 32  # removed from a reply to MVBench: a flag of `re` stands in place of a count
_LABELLED = re.compile(r"([A-E])\.\s*.+", re.IGNORECASE)
_NEPTUNE = (
    ("answer phrase", re.compile(r"ANSWER\s*(?:IS|:)?\s*[([]?\s*([A-E])")),
    ("'option X'", re.compile(r"OPTION\s*([A-E])")),
    ("'(X)'", re.compile(r"\(([A-E])\)")),
    ("'X)' or 'X.'", re.compile(r"\b([A-E])[).]")),
)


def read_by_rank(reply: str, options: Sequence[str], place: int, letters: str = "") -> ReplyReading:
    """Read the letter in the form of the highest rank, of several the last one.

    Any letter behind "the answer is" counts, also within a word. `letters`: those that count; "":
    those of the options.
    """
    places = list(_ranked(reply, letters or LETTERS[: len(options)]))
    if not places:
        return score_letter(None, "no letter", place)
    _, _, letter, step = max(places, key=lambda found: found[:2])
    return score_letter(letter, step, place)


def _ranked(reply: str, letters: str) -> Iterator[tuple[int, int, str, str]]:
    """Yield rank, position, letter and step of each candidate."""
    bare = reply.strip()
    for mark in ",.!?;:'\"":
        bare = bare.strip(mark)
    text, bare = f" {bare} ", bare.strip()
    found = False
    for letter in letters:
        for rank, form in _FORMS:
            if (at := text.rfind(form.format(letter))) >= 0:
                found = True
                yield rank, at, letter, f"'{form.format('X')}'"
        for at in _behind_phrases(text, letter):
            found = True
            yield _PHRASE, at, letter, "answer phrase"
        if bare.startswith(letter) and not bare[1:2].isalpha():
            found = True
            yield _START, 0, letter, "first character"
        if bare.endswith(letter) and not bare[-2:-1].isalpha():
            found = True
            yield _END, len(text) - 1, letter, "last character"
    if not found:
        for letter in letters:
            if (at := text.rfind(letter)) >= 0:
                yield _ANYWHERE, at, letter, "letter within a word"


def _behind_phrases(text: str, letter: str) -> Iterator[int]:
    """Yield the position of the first such letter behind the first place of each phrase."""
    lower = text.lower()
    for phrase in _PHRASES:
        begin = lower.find(phrase)
        if begin >= 0 and (at := text.find(letter, begin + len(phrase))) >= 0:
            yield at


def read_mvbench(reply: str, options: Sequence[str], place: int) -> ReplyReading:
    """Read "X. text", or else the first lone a to e in either case, also the article "a". An empty
    reply is left out.
    """
    if not reply:
        return ReplyReading(letter=None, step="empty reply", points=None)
    if match := _LABELLED.fullmatch(reply.strip()):
        return score_letter(match[1].upper(), "'X. text'", place)
    text = _without_punctuation(re.sub(r"[\n\t]", " ", reply).strip())
    for mark in "'\")(":
        text = text.strip(mark)
    match = re.search(r"\b[A-E]\b", text.strip().lower(), re.IGNORECASE)
    if match is None:
        return score_letter(None, "no lone letter", place)
    return score_letter(match[0].upper(), "first lone letter", place)


def _without_punctuation(text: str) -> str:
    """Remove marks that stand beside a space somewhere in the text, and all marks of a text with a
    number such as 1,000; other marks become spaces.
    """
    number, result = re.search(r"\d,\d", text), text
    for mark in _PUNCTUATION:
        gone = number or f"{mark} " in text or f" {mark}" in text
        result = result.replace(mark, "" if gone else " ")
    return _PERIOD.sub("", result, count=_MAX_PERIODS)


def read_egoschema(reply: str, options: Sequence[str], place: int) -> ReplyReading:
    """Read "(X)", "X " and "X.", of several forms the one whose last place is the earliest; in a
    reply of at least six words else the first labelled option that it repeats. Otherwise the rule
    draws one of the options.
    """
    letters = LETTERS[: min(5, len(options))]
    text = reply
    for mark in ",.!?;:'":
        text = text.strip(mark)
    text = f" {text} "
    forms = [form.format(letter) for form in ("({})", "{} ", "{}.") for letter in letters]
    if found := [form for form in forms if form in text]:
        first = min(found, key=text.rfind)
        step = f"'{re.sub('[A-E]', 'X', first)}'"
        return score_letter(first.strip("(). "), step, place)
    if len(text.split()) > 5:
        lower = text.lower()
        labelled = {x: f"{x}. {o.strip()}".lower() for x, o in zip(letters, options, strict=False)}
        if repeated := [x for x, option in labelled.items() if option in lower]:
            first = min(repeated, key=lambda x: lower.rfind(labelled[x]))
            return score_letter(first, "labelled option text", place)
    return ReplyReading(
        letter=None,
        step="random option",
        points=1 / len(letters) if place < len(letters) else 0.0,
        guesses=len(letters),
    )


def read_neptune(reply: str, options: Sequence[str], place: int) -> ReplyReading:
    """Read a lone letter, the last "answer is X", "option X", "(X)", "X)" or "X.", any letter of at
    most three words, or the first option whose text the reply contains. The reply is upper-cased,
    and letters have no right boundary.
    """
    upper = reply.strip().upper()
    if match := re.fullmatch(r"[([]?\s*([A-E])\s*[)\].:-]?\s*", upper):
        return score_letter(match[1], "lone letter", place)
    for step, pattern in _NEPTUNE:
        if letters := pattern.findall(upper):
            return score_letter(letters[-1], step, place)
    if len(upper.split()) <= 3 and (match := re.search(r"\b[A-E]\b", upper)):
        return score_letter(match[0], "letter among three words", place)
    words = _words(reply)
    for letter, option in zip("ABCDE", options, strict=False):
        if (text := _words(option)) and text in words:
            return score_letter(letter, "option text", place)
    return score_letter(None, "no letter, no option text", place)


def _words(text: str) -> str:
    """Return runs of a-z and 0-9 in lower case, with single spaces."""
    return " ".join(re.sub(r"[^a-z0-9\s]", " ", text.lower()).split())


_AS_SHARED = partial(read_by_rank, letters="ABCD")
RULES = {
    name: ScoringRule(
        version=f"lmms-eval 0.7.3 {name or '_task_utils/mcq_extract.py, letters of the question'}",
        read=read,
        failed="",
        letters=letters,
        averages=(official.MLVU_7, official.MLVU_9) if name == "mlvu" else (),
    )
    for name, read, letters in (
        ("", read_by_rank, ""),
        ("videomme", _AS_SHARED, "ABCD"),
        ("mlvu", _AS_SHARED, "ABCD"),
        ("mvbench", read_mvbench, "ABCDE"),
        ("egoschema", read_egoschema, "ABCDE"),
        ("neptune", read_neptune, "ABCDE"),
        ("cinepile", official.read_cinepile, "ABCDE"),
        ("tempcompass", official.read_tempcompass, "ABCD"),
    )
}
