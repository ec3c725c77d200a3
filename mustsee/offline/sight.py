"""The verifier without a model. It answers questions of known forms from its measurements of the
frames; other questions stay unverified.

A form is a pattern of the question's text with a rule that gives the fitting options. One fitting
option is the answer. None, or frames with doubtful measurements, make the question undecidable, and
several make it ambiguous.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mustsee.calls.llm import Request
from mustsee.errors import BadRow
from mustsee.media.colours import NAMES, half_of
from mustsee.offline.looking import Evidence, read_all, sort_frames
from mustsee.offline.statements import check_statement
from mustsee.questions.checks import holds
from mustsee.records import Span
from mustsee.verify.conditions.seen import merge_spans
from mustsee.verify.look_replies import OPEN, RIGHT, WRONG, OptionVerdict, say

MOMENT_REACH_S = 1.0  # seconds before and after a time that are named as evidence with it
MAX_APART_S = 12.0  # seconds between a line and the text on the screen that goes with it
HARDLY_FARTHER_S = 1.5  # seconds by which another text must be farther from the line


@dataclass(frozen=True, kw_only=True)
class OptionFits:
    """Indices of the fitting options, and the times of their evidence."""

    fits: tuple[int, ...] = ()
    times: tuple[float, ...] = ()


Form = Callable[[re.Match[str], tuple[str, ...], Evidence], OptionFits]


def look(request: Request) -> str:
    """Write a verdict on each option, with the spans around the measured times.

    Raises BadRow for a question of an unknown form.
    """
    options = tuple(request.variables["options"])
    shown = evidence_shown(request)
    fitting = OptionFits()
    if shown.frames:
        fitting = _answer(request.variables["question"], options, shown)
    measured = named_spans(fitting.times)
    if fitting.fits and not measured:  # All that is shown decides that something is absent.
        measured = (Span(shown.start, shown.end),)
    other = OptionVerdict(WRONG) if fitting.fits else OptionVerdict(OPEN, measured)
    verdicts = [
        OptionVerdict(RIGHT, measured) if i in fitting.fits else other for i in range(len(options))
    ]
    return say(verdicts, _why(len(fitting.fits)))


def evidence_shown(request: Request) -> Evidence:
    """Return the frames and lines of a look and of the earlier ones in its chat."""
    variables = request.variables
    jpegs = [jpeg for message in request.messages for jpeg in message.images]
    times = (*variables["earlier_frames"], *variables["frames"])
    lines = sorted(
        (*variables["earlier_lines"], *variables["lines"]), key=lambda x: (x.start, x.end)
    )
    return Evidence(frames=sort_frames(times, jpegs), lines=tuple(lines))


def _answer(question: str, options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    if (statement := check_statement(question, evidence)) is not None:
        return OptionFits(
            fits=(options.index("Yes" if statement[0] else "No"),), times=tuple(statement[1])
        )
    for pattern, form in FORMS:
        if match := pattern.search(question):
            return form(match, options, evidence)
    raise BadRow("the rules cannot measure what the question asks for; vet/verifier=openai can")


def _why(count: int) -> str:
    if count == 1:
        return "It is the only option that fits what was measured."
    return "Several options fit what was measured." if count else "Nothing measured decides it."


def named_spans(times: Sequence[float]) -> tuple[Span, ...]:
    """Return the joined spans around times."""
    around = [Span(max(0.0, time - MOMENT_REACH_S), time + MOMENT_REACH_S) for time in times]
    return merge_spans(around, Span(0.0, float("inf")))


def _bare(text: str) -> str:
    return text.strip().strip('“”". ')


def _ordered(options: tuple[str, ...], first: Callable[[str], float | None]) -> OptionFits:
    """Return the options that list their things in the order of their first times."""
    things = [_bare(thing) for thing in options[0].split(";")]
    first_times = {thing: first(thing) for thing in things}
    times = [t for t in first_times.values() if t is not None]
    if len(times) < len(things) or len(set(times)) < len(things):
        return OptionFits()
    right = sorted(things, key=lambda thing: first_times[thing] or 0.0)
    fits = [i for i, o in enumerate(options) if [_bare(t) for t in o.split(";")] == right]
    return OptionFits(fits=tuple(fits), times=tuple(times))


def _first(times: Sequence[float]) -> float | None:
    return min(times, default=None)


def _read_order(match: re.Match[str], options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    return _ordered(options, lambda thing: _first(evidence.read(thing)))


def _said_order(match: re.Match[str], options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    return _ordered(options, lambda thing: _first(evidence.times_spoken(thing)))


def _colour_order(match: re.Match[str], options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    def first(colour: str) -> float | None:
        """Return when a colour is first large, if it was never half as large before."""
        shares = [(p.time, p.colours.get(colour, 0.0)) for p in evidence.frames]
        large = next((i for i, (_, share) in enumerate(shares) if share >= 0.2), None)
        if large is None or any(share > 0.1 for _, share in shares[:large]):
            return None
        return shares[large][0]

    return _ordered(options, first)


def _end_read(match: re.Match[str], options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    """Decide which text is first or last; all of them must be visible."""
    firsts = [_first(evidence.read(option)) for option in options]
    times = [t for t in firsts if t is not None]
    if len(times) < len(options):
        return OptionFits()
    best = min(times) if match[1] == "first" else max(times)
    return OptionFits(fits=tuple(i for i, t in enumerate(firsts) if t == best), times=tuple(times))


def _soonest(match: re.Match[str], options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    start = _first(evidence.read(match[1]))
    if start is None:
        return OptionFits()
    firsts = [_first(evidence.read(option)) for option in options]
    later = [t for t in firsts if t is not None and t > start]
    if not later or any(t == start for t in firsts):
        return OptionFits()
    fits = tuple(i for i, t in enumerate(firsts) if t == min(later))
    return OptionFits(fits=fits, times=(start, min(later)))


def _together(match: re.Match[str], options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    here = [p for p in read_all(evidence.frames) if p.shows(match[1])]
    fits = [i for i, o in enumerate(options) if any(p.shows(o) for p in here)]
    return OptionFits(fits=tuple(fits), times=tuple(p.time for p in here))


def _missing(match: re.Match[str], options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    texts = [match[1].replace("…", option) for option in options]
    times = [evidence.read(text) for text in texts]
    exact = [i for i, t in enumerate(times) if t and evidence.read(options[i])]
    return OptionFits(fits=tuple(exact), times=tuple(t for i in exact for t in times[i]))


def _when_read(match: re.Match[str], options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    return _when(
        options, evidence, [(p.time, p.shows(match[1])) for p in read_all(evidence.frames)]
    )


def _when_coloured(
    match: re.Match[str], options: tuple[str, ...], evidence: Evidence
) -> OptionFits:
    shares = [(p.time, p.colours.get(match[1], 0.0)) for p in evidence.frames]
    clear = [(t, share >= 0.2) for t, share in shares if share >= 0.2 or share < 0.08]
    return _when(options, evidence, clear)


def _when(
    options: tuple[str, ...], evidence: Evidence, presence: Sequence[tuple[float, bool]]
) -> OptionFits:
    """Decide in which part of the video something is present. It takes clear frames of the
    beginning, the middle and the end.
    """
    length = max(1e-9, evidence.end - evidence.start)
    shares = [((t - evidence.start) / length, yes) for t, yes in presence]
    times = [t for t, yes in presence if yes]
    if not times or not all(any(abs(x - at) < 0.12 for x, _ in shares) for at in (0, 0.5, 1)):
        return OptionFits()
    present = [x for x, yes in shares if yes]
    absent = [x for x, yes in shares if not yes]
    word = "?"
    if not absent:
        word = "all through"
    elif max(present) < 0.48 and min(present) < 0.28:
        word = "first half"
    elif min(present) > 0.52 and max(present) > 0.72:
        word = "second half"
    elif 0.2 <= min(present) < 0.48 and 0.52 < max(present) <= 0.8:
        word = "middle"
    elif min(present) < 0.2 and max(present) > 0.8 and any(0.3 < x < 0.7 for x in absent):
        word = "again"
    return _chosen(options, word, times)


def _chosen(options: tuple[str, ...], word: str, times: Sequence[float]) -> OptionFits:
    """Return the option with a word; of several, the shortest."""
    fits = sorted((len(o), i) for i, o in enumerate(options) if word in o.lower())
    return OptionFits(fits=tuple(i for _, i in fits[:1]), times=tuple(times))


def _largest(match: re.Match[str], options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    """Decide which colour fills at least 5 % of each frame, and twice the share of the others."""
    fits: list[int] = []
    for i, option in enumerate(options):
        others = [o.lower() for o in options if o != option]
        fits += [i] * all(
            p.colours.get(option.lower(), 0.0)
            >= max(0.05, *(2 * p.traces.get(o, 1.0) for o in others))
            for p in evidence.frames
        )
    return OptionFits(fits=tuple(fits), times=tuple(p.time for p in evidence.frames))


def _half(match: re.Match[str], options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    if match[1] not in NAMES:
        return OptionFits()
    halves = {half_of(p.inside, match[1]) for p in evidence.frames}
    if len(halves) != 1 or not (half := halves.pop()):
        return OptionFits()
    times = [p.time for p in evidence.frames]
    return _chosen(options, f"{half} half", times)


def _highest(match: re.Match[str], options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    """Decide which text is the highest or lowest: all are in one frame, and the heights differ."""
    best: set[int] = set()
    times: list[float] = []
    for frame in read_all(evidence.frames):
        tops = [frame.top(option) for option in options]
        tops_known = [t if match[1] == "high" else -t for t in tops if t is not None]
        if len(tops_known) == len(options):
            first, second = sorted(tops_known)[:2]
            times.append(frame.time)
            best |= {tops_known.index(first)} if second - first >= 0.02 else {-1}
    fits = tuple(best) if len(best) == 1 and -1 not in best else ()
    return OptionFits(fits=fits, times=tuple(times))


def _passing(match: re.Match[str], options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    here, there = (
        (evidence.late, evidence.early) if match[1] == "end" else (evidence.early, evidence.late)
    )
    if evidence.end - evidence.start < 2 * MOMENT_REACH_S:
        return OptionFits()
    fits = [
        i
        for i, option in enumerate(options)
        if max(p.colours.get(option.lower(), 0.0) for p in here) >= 0.2
        and max(p.colours.get(option.lower(), 0.0) for p in there) < 0.06
    ]
    return OptionFits(fits=tuple(fits), times=(evidence.start, evidence.end))


def _band(match: re.Match[str], options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    group = {"end": evidence.late, "beginning": evidence.early}.get(match[2], evidence.frames)
    shares = [p.upper if match[1] == "upper" else p.lower for p in group]
    fits = [
        i
        for i, option in enumerate(options)
        if min(share.get(option.lower(), 0.0) for share in shares) >= 0.5
    ]
    return OptionFits(fits=tuple(fits), times=tuple(p.time for p in group))


def _light(match: re.Match[str], options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    """Decide which part is darker or lighter than the others by a third, or that all are alike."""
    groups = (evidence.early, evidence.halfway, evidence.late)
    if not all(groups):
        return OptionFits()
    light = [sum(p.light for p in group) / len(group) for group in groups]
    times = [group[0].time for group in groups]
    order = sorted(range(3), key=lambda i: light[i])
    best, other = order[:2] if match[1] == "dark" else order[:0:-1]
    low, high = sorted((light[best], light[other]))
    if high - low >= 0.08 and low <= 0.67 * high:
        return _chosen(options, ("at the beginning", "halfway", "at the end")[best], times)
    if max(light) - min(light) < 0.04:
        return _chosen(options, "all through", times)
    return OptionFits()


def _bars(match: re.Match[str], options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    sides = {p.bar_sides for p in evidence.frames if p.light > 0.03}
    if len(sides) != 1:
        return OptionFits()
    name = SIDES.get(sides.pop(), "?")
    fits = tuple(i for i, option in enumerate(options) if option.lower() == name)
    return OptionFits(fits=fits, times=(evidence.start, evidence.end))


SIDES = {
    (True, True, False, False): "above and below",
    (False, False, True, True): "on the left and the right",
    (True, True, True, True): "on all four sides",
    (False, False, True, False): "only on the left",
    (True, False, False, False): "only above",
    (False, True, False, False): "only below",
}


def _read_at_words(
    match: re.Match[str], options: tuple[str, ...], evidence: Evidence
) -> OptionFits:
    return _nearest(evidence.times_spoken(match[1]), [evidence.read(o) for o in options])


def _said_at_card(match: re.Match[str], options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    return _nearest(evidence.read(match[1]), [evidence.times_spoken(o) for o in options])


def _nearest(cues: Sequence[float], times: Sequence[Sequence[float]]) -> OptionFits:
    """Return the options at the least distance from a cue, which is at most `MAX_APART_S`, and
    those hardly farther from it.
    """
    pairs = [
        min(((abs(t - cue), t, cue) for t in own for cue in cues), default=None) for own in times
    ]
    least = min((pair[0] for pair in pairs if pair), default=MAX_APART_S)
    if least >= MAX_APART_S:
        return OptionFits()
    fits = {i: pair for i, pair in enumerate(pairs) if pair and pair[0] <= least + HARDLY_FARTHER_S}
    return OptionFits(fits=tuple(fits), times=tuple(t for _, *both in fits.values() for t in both))


def _neighbour(match: re.Match[str], options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    """Decide which option is nearest to the quoted words, on the side of the question."""
    cue = _first(evidence.times_spoken(match[2]))
    if cue is None:
        return OptionFits()
    sign = 1 if match[1] == "after" else -1
    gaps = {
        i: min(
            (sign * (t - cue) for t in evidence.times_spoken(o) if sign * (t - cue) > 0),
            default=None,
        )
        for i, o in enumerate(options)
    }
    near = min((g for g in gaps.values() if g is not None), default=None)
    fits = tuple(i for i, g in gaps.items() if g is not None and g == near)
    return OptionFits(fits=fits, times=(cue, cue + sign * near) if near is not None else ())


def _reason(match: re.Match[str], options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    """Decide which option follows the effect and "because" in the transcript."""
    effects = evidence.times_spoken(match[1])
    text = " ".join(line.text for line in evidence.lines)
    fits = [i for i, o in enumerate(options) if holds(text, f"{match[1]} because {o}")]
    return OptionFits(fits=tuple(fits), times=tuple(effects))


def _said_alone(match: re.Match[str], options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    """Decide which option is in the transcript."""
    bare = [re.sub(r"^To ", "", option) for option in options]
    times = [evidence.times_spoken(text) for text in bare]
    fits = tuple(i for i, t in enumerate(times) if t)
    return OptionFits(fits=fits, times=tuple(t for i in fits for t in times[i]))


def _said_first(match: re.Match[str], options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    """Decide which option is in the transcript first."""
    bare = [re.sub(r"^To ", "", option) for option in options]
    times = [_first(evidence.times_spoken(text)) for text in bare]
    first = min((t for t in times if t is not None), default=None)
    fits = tuple(i for i, t in enumerate(times) if t is not None and t == first)
    return OptionFits(fits=fits, times=(first,) if first is not None else ())


def _said_last(match: re.Match[str], options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    times = [max(evidence.times_spoken(option), default=None) for option in options]
    last = max((t for t in times if t is not None), default=None)
    fits = tuple(i for i, t in enumerate(times) if t is not None and t == last)
    return OptionFits(fits=fits, times=(last,) if last is not None else ())


QUOTE = r"[“\"]([^”\"]+)[”\"]"
FORMS: tuple[tuple[re.Pattern[str], Form], ...] = tuple(
    (re.compile(pattern), form)
    for pattern, form in (
        (r"^In what order do these words come up on the screen:", _read_order),
        (r"^In what order are these things said:", _said_order),
        (r"^In what order do these colours first fill a large part of the picture:", _colour_order),
        (r"^Which of these words come up on the screen (first|last)\?$", _end_read),
        (rf"^Which of these words come up on the screen soonest after {QUOTE}\?$", _soonest),
        (rf"^Which of these words are on the screen together with {QUOTE}\?$", _together),
        (rf"^Which word is missing in these words on the screen: {QUOTE}\?$", _missing),
        (rf"^When can the words? {QUOTE} be read on the screen\?$", _when_read),
        (r"^When is a large part of the picture clearly ([a-z]+)\?$", _when_coloured),
        (r"^Which of these colours takes up the most room in the picture all through", _largest),
        (r"^Where in the picture is nearly everything that is clearly ([a-z]+)\?$", _half),
        (r"^All of these words are on the screen at once\. Which stand (high|low)est\?$", _highest),
        (r"^Which colour fills a large part of the picture at the (beginning|end) of", _passing),
        (
            r"^Which colour fills most of the (upper|lower) third of the picture "
            r"(?:at the |all through the )(beginning|end|video)",
            _band,
        ),
        (r"^At which of these times in the video is the picture (dark|light)est\?$", _light),
        (r"^Where does the picture have black bars all through the video\?$", _bars),
        (rf"^Which words come up on the screen at about the time of {QUOTE}\?$", _read_at_words),
        (rf"^What is said in the part in which {QUOTE} comes up on the screen\?$", _said_at_card),
        (rf"^What is said right (after|before) {QUOTE}\?$", _neighbour),
        (rf"^What is the reason given for this: {QUOTE}\?$", _reason),
        (r"^What does the video set out to do, as it says near its beginning\?$", _said_first),
        (r"^Which of these are named together in one breath\?$", _said_alone),
        (r"^With which words do the makers leave their viewers at the very end\?$", _said_last),
    )
)
RULES: dict[str, Callable[[Request], str]] = {
    "filters/sight": look,
}
