"""Phrases of facts that the rules write and measure in frames: on-screen texts, colours of areas,
light and bars, things and people. Each frame shows a phrase, does not show it, or leaves it
open: a share between two bounds is doubtful, and so is a text that resembles a reading, or a
frame with unread letters.

Statements about a span of a video are written and measured likewise: on-screen texts, spoken words,
and states such as colours that fill much of the frame.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from mustsee.errors import BadRow
from mustsee.media.colours import NAMES
from mustsee.offline.looking import (
    AREAS,
    Evidence,
    ShownFrame,
    letters_of,
    likeness,
    read_all,
    sentence,
)
from mustsee.offline.things import find_thing, is_shown, shown_in
from mustsee.text import with_article
from mustsee.verify.traces import ASKED

TEXT = re.compile(r"the words? “(.+)”", re.IGNORECASE)
LINE = re.compile(r"“(.+)”")
COLOUR = "{} is clearly {}"  # area, colour
DARK, BRIGHT = "the whole picture is dark", "the whole picture is bright"
BARS = {
    (True, True, False, False): "black bars lie above and below the picture",
    (False, False, True, True): "black bars stand on both sides of the picture",
}
COLOURS = tuple(name for name in NAMES if name not in ("black", "white"))
AREA_COLOURS = (*COLOURS, "white")  # what is black is a dark picture
LIGHTER = "the {} is far brighter than the rest"
MAX_UNLIKE = 0.6  # likeness below which a reading is not another reading of a text
# Share of an area that is clearly of a colour from which it is, and share that may be taken for
# the colour up to which it is not.
MIN_COLOUR_SHARE, MAX_OTHER_SHARE = 0.6, 0.25
MIN_MUCH_SHARE, MAX_LITTLE_SHARE = 0.25, 0.1
# Mean brightness, 0 to 1: dark up to the first and not from the second, bright likewise reversed.
# A clear blue sky is bright, but hardly called so.
DARK_LIGHT, NOT_DARK_LIGHT, NOT_BRIGHT_LIGHT, BRIGHT_LIGHT = 0.15, 0.42, 0.5, 0.75
# By how much a half is brighter than the other: far from the first on; not up to the second, and
# to the third as a share of it, since in a dark picture little light stands out.
MIN_LIGHTER, MAX_HARDLY_LIGHTER, MAX_LIGHTER_SHARE = 0.25, 0.1, 1.3

Measure = Callable[[ShownFrame], bool | None]


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """Times of the frames that show a phrase, that do not, and that leave it open."""

    seen: tuple[float, ...] = ()
    unseen: tuple[float, ...] = ()
    open: tuple[float, ...] = ()

    @property
    def verdict(self) -> bool | None:
        """Whether the frames show it: one is enough, and none may leave it open."""
        return True if self.seen else None if self.open or not self.unseen else False


def sight_of(phrase: str, evidence: Evidence) -> Sighting:
    """Return where a phrase is seen. Raises BadRow for one that the rules cannot measure."""
    frames, bare = evidence.frames, _bare(phrase)
    if thing := find_thing(bare):
        shown = shown_in(thing, [frame.jpeg for frame in frames])
    else:
        measure = measure_of(phrase)
        if TEXT.fullmatch(bare):
            read_all(frames)  # A state is measured without reading, which is expensive.
        shown = [measure(frame) for frame in frames]
    verdicts = [(frame.time, verdict) for frame, verdict in zip(frames, shown, strict=True)]
    return Sighting(
        seen=tuple(time for time, verdict in verdicts if verdict),
        unseen=tuple(time for time, verdict in verdicts if verdict is False),
        open=tuple(time for time, verdict in verdicts if verdict is None),
    )


def verdict_of(phrase: str, evidence: Evidence) -> bool | None:
    """Return `sight_of(phrase, evidence).verdict`, of a thing without measuring every frame."""
    if thing := find_thing(_bare(phrase)):
        return is_shown(thing, [frame.jpeg for frame in evidence.frames])
    return sight_of(phrase, evidence).verdict


def measure_of(phrase: str) -> Measure:
    """Return the measure of a text or a state. Raises BadRow for what the rules cannot measure."""
    bare = _bare(phrase)
    if match := TEXT.fullmatch(bare):
        return lambda frame: _shows_text(match[1], frame)
    bare = bare[:1].lower() + bare[1:]
    measure = STATES.get(VIEWS.get(bare, bare))
    if measure is None:
        raise BadRow(f"the rules cannot measure {phrase[:60]!r}; vet/verifier=openai can")
    return measure


def _bare(phrase: str) -> str:
    return phrase.strip().rstrip(".")


def _shows_text(text: str, frame: ShownFrame) -> bool | None:
    if frame.shows(text):
        return True
    if frame.may_hide(text) or any(resembles(text, line) for line in frame.lines):
        return None
    return False


def resembles(text: str, reading: str) -> bool:
    """Whether a reading may be of a text: they are alike, or most letters of one follow each other
    in the other.
    """
    if likeness(text, reading) >= MAX_UNLIKE:
        return True
    one, other = letters_of(text), letters_of(reading)
    match = SequenceMatcher(None, one, other, autojunk=False).find_longest_match()
    return match.size >= max(3.0, MAX_UNLIKE * min(len(one), len(other)))


def _between(value: float, false_at: float, true_at: float) -> bool | None:
    """Whether a value is at the side of `true_at`; null between both."""
    sign = 1 if true_at > false_at else -1
    if sign * value >= sign * true_at:
        return True
    return False if sign * value <= sign * false_at else None


def _colour(area: str, colour: str, most: float, least: float) -> Measure:
    def measure(frame: ShownFrame) -> bool | None:
        clear, wide = frame.pixels.area_shares[area]
        if clear[colour] >= most:
            return True
        return False if wide[colour] <= least else None

    return measure


def _bars(sides: tuple[bool, ...]) -> Measure:
    def measure(frame: ShownFrame) -> bool | None:
        pixels = frame.pixels
        return None if pixels.light <= MIN_BAR_LIGHT else pixels.bar_sides == sides

    return measure


def _lighter(half: str, other: str) -> Measure:
    def measure(frame: ShownFrame) -> bool | None:
        light, least = (frame.pixels.half_lights[name] for name in (half, other))
        if light - least >= MIN_LIGHTER:
            return True
        is_equal = light - least <= MAX_HARDLY_LIGHTER and light <= MAX_LIGHTER_SHARE * least
        return False if is_equal else None

    return measure


MIN_BAR_LIGHT = 0.03  # mean brightness of a frame; bars of a black one are not to be told
MUCH = "much of the picture"
OPPOSITE = (("upper third", "lower third"), ("left half", "right half"))
OPPOSITE_HALVES = (("upper half", "lower half"), ("left half", "right half"))
STATES: Mapping[str, Measure] = {
    **{
        COLOUR.format(MUCH, colour): _colour("", colour, MIN_MUCH_SHARE, MAX_LITTLE_SHARE)
        for colour in AREA_COLOURS
    },
    **{
        COLOUR.format(f"the {area} of the picture", colour): _colour(
            area, colour, MIN_COLOUR_SHARE, MAX_OTHER_SHARE
        )
        for area in AREAS
        if area
        for colour in AREA_COLOURS
    },
    DARK: lambda frame: _between(frame.pixels.light, NOT_DARK_LIGHT, DARK_LIGHT),
    BRIGHT: lambda frame: _between(frame.pixels.light, NOT_BRIGHT_LIGHT, BRIGHT_LIGHT),
    **{
        LIGHTER.format(half): _lighter(half, other)
        for halves in OPPOSITE_HALVES
        for half, other in (halves, halves[::-1])
    },
    **{phrase: _bars(sides) for sides, phrase in BARS.items()},
}


def states_of(frames: Sequence[ShownFrame]) -> dict[str, list[bool | None]]:
    """Return for each state that a frame shows whether each of the frames does. Left out are bars
    that all frames have, which say nothing of a moment, and areas opposite to each other that one
    frame shows in one colour.
    """
    measured = {phrase: [measure(f) for f in frames] for phrase, measure in STATES.items()}
    shown = {phrase: verdicts for phrase, verdicts in measured.items() if any(verdicts)}
    left_out = {phrase for phrase in BARS.values() if all(shown.get(phrase, ()))}
    for colour in AREA_COLOURS:
        for areas in OPPOSITE:
            both = [COLOUR.format(f"the {area} of the picture", colour) for area in areas]
            if any(map(all, zip(*(measured[phrase] for phrase in both), strict=True))):
                left_out.update(both)
    return {phrase: verdicts for phrase, verdicts in shown.items() if phrase not in left_out}


VIEWS: Mapping[str, str] = {  # each state as something that can be seen
    **{
        f"{with_article(f'large {colour}')} area": COLOUR.format(MUCH, colour)
        for colour in AREA_COLOURS
    },
    **{
        f"{with_article(colour)} {area} of the picture": COLOUR.format(
            f"the {area} of the picture", colour
        )
        for area in AREAS
        if area
        for colour in AREA_COLOURS
    },
    **{
        with_article(f"{half} far brighter than the rest"): LIGHTER.format(half)
        for halves in OPPOSITE_HALVES
        for half in halves
    },
    "a dark picture": DARK,
    "a bright picture": BRIGHT,
    "black bars above and below the picture": BARS[True, True, False, False],
    "black bars on both sides of the picture": BARS[False, False, True, True],
}


READ = "The words “{}” can be read on the screen."
SAID = "One hears the words “{}”."
SEEN = "{} can be seen."
_HEAD = ASKED.partition("{}")[0]
_READ, _SAID = (re.compile(re.escape(form).replace(r"\{\}", "(.+)")) for form in (READ, SAID))


def make_statement(phrase: str) -> str | None:
    """Return a fact's phrase as a statement; null for one that the rules cannot measure."""
    if match := TEXT.fullmatch(phrase):
        return READ.format(match[1])
    if match := LINE.fullmatch(phrase):
        return SAID.format(match[1])
    if phrase in VIEWS or find_thing(phrase):
        return SEEN.format(sentence(phrase))
    return f"{sentence(phrase)}." if phrase in STATES else None


def check_statement(question: str, evidence: Evidence) -> tuple[bool, list[float]] | None:
    """Return whether a statement of the rules is true, and when; null for other questions."""
    if not question.startswith(_HEAD):
        return None
    text = question.removeprefix(_HEAD)
    if match := _READ.fullmatch(text):
        times = evidence.read(match[1])
    elif match := _SAID.fullmatch(text):
        times = [span.start for span in evidence.spans_spoken(match[1])]
    elif (phrase := _view_of(text)) is not None:
        times = list(sight_of(phrase, evidence).seen)
    else:
        return None
    return bool(times), times


def _view_of(statement: str) -> str | None:
    """Return the phrase of a statement on what is seen or so; null for another statement."""
    phrase = statement[:1].lower() + statement[1:].rstrip(".")
    bare = phrase.removesuffix(" can be seen")
    if bare in VIEWS or find_thing(bare):
        return bare
    return phrase if phrase in STATES else None
