"""The verifier without a model for questions without options: forms whose answer is itself an
on-screen text, a transcript line or a measurement. Further candidates make the answer "several",
and questions of other forms stay unverified.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mustsee.calls.llm import Request
from mustsee.errors import BadRow
from mustsee.media.colours import NAMES
from mustsee.offline.looking import Evidence, ShownFrame, read_all
from mustsee.offline.sight import QUOTE, SIDES, evidence_shown, named_spans
from mustsee.offline.wording import likeness, sentence
from mustsee.questions.checks import normal, words
from mustsee.verify.look_replies import HOLDS

MAX_READ_WITH_S = 12.0  # seconds between a transcript line and a text that goes with it
BEFORE_CARD = 0.85  # likeness from which two readings are the same text


@dataclass(frozen=True, kw_only=True)
class AnswerFits:
    """The fitting answers, and the times of their evidence."""

    answers: tuple[str, ...] = ()
    times: tuple[float, ...] = ()


Rule = Callable[[re.Match[str], Evidence], AnswerFits]


def in_words(request: Request) -> str:
    """Write `* ANSWER: Green`, SEVERAL or CANNOT BE TOLD, with spans as the verifier with options
    does. Raises BadRow for a question of an unknown form.
    """
    fitting, shown = AnswerFits(), evidence_shown(request)
    asked = request.variables["question"]
    rule = next(((r, m) for p, r in FORMS if (m := p.search(asked))), None)
    if rule is None:
        raise BadRow("the rules cannot answer this question in words; vet/verifier=openai can")
    if shown.frames:
        fitting = rule[0](rule[1], shown)
    has_several = len(fitting.answers) > 1
    answer = "SEVERAL" if has_several else next(iter(fitting.answers), "CANNOT BE TOLD")
    spans = "; ".join(f"{s.start:.1f}-{s.end:.1f}" for s in named_spans(fitting.times)) or "NONE"
    evidence, to_look_at = (spans, "NONE") if fitting.answers else ("NONE", spans)
    reason = "Several answers fit" if has_several else f"{answer} is all that fits"
    return (
        f"* SEEN: {reason if fitting.answers else 'Nothing measured decides it'}.\n"
        f"* PREMISE: {HOLDS}\n* EVIDENCE: {evidence}\n* LOOK: {to_look_at}\n* ANSWER: {answer}"
    )


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct readings."""
    distinct: list[str] = []
    for text in texts:
        if words(text) and all(likeness(text, f) < BEFORE_CARD for f in distinct):
            distinct.append(text)
    return tuple(distinct)


def _missing(match: re.Match[str], evidence: Evidence) -> AnswerFits:
    """Return the words in the gap, from all readings of the words around it."""
    before, _, after = (normal(part) for part in match[1].partition("…"))
    around = re.compile(rf"(?:^|.* ){re.escape(before)} ?(\w+) ?{re.escape(after)}(?: .*|$)")
    matches = [
        (match_in_line[1].capitalize(), p.time)
        for p in read_all(evidence.frames)
        for line in p.lines
        if (match_in_line := around.match(normal(line)))
    ]
    return AnswerFits(answers=_once(a for a, _ in matches), times=tuple(t for _, t in matches))


def _at_words(match: re.Match[str], evidence: Evidence) -> AnswerFits:
    spoken = evidence.times_spoken(match[1])
    near = [p for p in evidence.frames if any(abs(p.time - t) < MAX_READ_WITH_S for t in spoken)]
    return _all_read(near, ())


def _together(match: re.Match[str], evidence: Evidence) -> AnswerFits:
    return _all_read([p for p in read_all(evidence.frames) if p.shows(match[1])], (match[1],))


def _next(match: re.Match[str], evidence: Evidence) -> AnswerFits:
    """Return the texts that appear after a text and were not visible before."""
    times = evidence.read(match[1])
    if not times:
        return AnswerFits()
    earlier = [line for p in evidence.frames if p.time <= times[0] for line in p.lines]
    later = [p for p in evidence.frames if p.time > times[0]]
    texts = _all_read(later, (match[1], *earlier))
    return AnswerFits(answers=texts.answers, times=(times[0], *texts.times))


def _all_read(frames: Sequence[ShownFrame], but: Sequence[str]) -> AnswerFits:
    """Return all texts of the frames except those in `but`."""
    texts = [
        (line, p.time)
        for p in read_all(frames)
        for line in p.lines
        if all(likeness(line, excluded) < BEFORE_CARD for excluded in but)
    ]
    return AnswerFits(answers=_once(line for line, _ in texts), times=tuple(t for _, t in texts))


def _passing(match: re.Match[str], evidence: Evidence) -> AnswerFits:
    here, there = (
        (evidence.late, evidence.early) if match[1] == "end" else (evidence.early, evidence.late)
    )
    if evidence.end - evidence.start < 2:
        return AnswerFits()
    fits = [
        name
        for name in NAMES
        if max(p.colours.get(name, 0.0) for p in here) >= 0.2
        and max(p.colours.get(name, 0.0) for p in there) < 0.06
    ]
    return AnswerFits(
        answers=tuple(n.capitalize() for n in fits), times=(evidence.start, evidence.end)
    )


def _band(match: re.Match[str], evidence: Evidence) -> AnswerFits:
    group = {"end": evidence.late, "beginning": evidence.early}.get(match[2], evidence.frames)
    shares = [p.upper if match[1] == "upper" else p.lower for p in group]
    fits = [name for name in NAMES if min(s.get(name, 0.0) for s in shares) >= 0.5]
    return AnswerFits(
        answers=tuple(n.capitalize() for n in fits), times=tuple(p.time for p in group)
    )


def _bars(match: re.Match[str], evidence: Evidence) -> AnswerFits:
    sides = {p.bar_sides for p in evidence.frames if p.light > 0.03}
    names = [SIDES[side] for side in sides if side in SIDES]
    return AnswerFits(
        answers=tuple(n.capitalize() for n in names) if len(sides) == 1 else (),
        times=(evidence.start, evidence.end),
    )


def _neighbour(match: re.Match[str], evidence: Evidence) -> AnswerFits:
    """The line next to each that says the words."""
    cues = [i for i, line in enumerate(evidence.lines) if match_in(line.text, match[2])]
    step = 1 if match[1] == "after" else -1
    near = [(c, c + step) for c in cues if 0 <= c + step < len(evidence.lines)]
    return AnswerFits(
        answers=_once(_bare(evidence.lines[n].text) for _, n in near),
        times=tuple(evidence.lines[i].start for pair in near for i in pair),
    )


def _reason(match: re.Match[str], evidence: Evidence) -> AnswerFits:
    hits = [
        (_bare(reason[1]), line.start)
        for line in evidence.lines
        if match_in(line.text, match[1])
        and (reason := re.search(r"\bbecause\s+(.+)$", " ".join(line.text.split()), re.IGNORECASE))
    ]
    return AnswerFits(answers=_once(a for a, _ in hits), times=tuple(t for _, t in hits))


def match_in(text: str, quoted: str) -> bool:
    """Whether a line says the words, in their order."""
    return f" {normal(quoted)} " in f" {normal(text)} "


def _bare(text: str) -> str:
    return sentence(" ".join(text.split()).strip(" \"“”'-").rstrip(".;,:-"))


FORMS: tuple[tuple[re.Pattern[str], Rule], ...] = tuple(
    (re.compile(pattern), rule)
    for pattern, rule in (
        (rf"^Which word is missing in these words on the screen: {QUOTE}\?$", _missing),
        (rf"^Which words come up on the screen at about the time of {QUOTE}\?$", _at_words),
        (rf"^Which words are on the screen together with {QUOTE}\?$", _together),
        (rf"^Which words come up on the screen next after {QUOTE}\?$", _next),
        (
            r"^Which colour fills a large part of the picture at the (beginning|end) of the video,",
            _passing,
        ),
        (
            r"^Which colour fills most of the (upper|lower) third of the picture "
            r"(?:at the |all through the )(beginning|end|video)",
            _band,
        ),
        (r"^Where does the picture have black bars all through the video\?$", _bars),
        (rf"^What is said right (after|before) {QUOTE}\?$", _neighbour),
        (rf"^What is the reason given for this: {QUOTE}\?$", _reason),
    )
)
RULES: dict[str, Callable[[Request], str]] = {"filters/sight_open": in_words}
