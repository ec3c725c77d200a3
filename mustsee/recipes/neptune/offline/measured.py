"""Facts from the captions of the pixel captioner: colours, light and bars that are certain."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mustsee.facts.extract import make_fact
from mustsee.facts.table import Entry
from mustsee.media.colours import NEAR
from mustsee.offline.facts_phrases import BARS, BRIGHT, COLOUR, COLOURS, DARK, MUCH
from mustsee.records import Caption, Fact, Span

_MEASURED = re.compile(r"(?:[A-Z][a-z ,]* can be seen\. )?The picture is ")
_LIGHT = re.compile(r"\bpicture is (very dark|dark|dim|bright)\b")
_LIST = r"([a-z]+(?:, [a-z]+)*(?: and [a-z]+)?)"
_TOP, _BOTTOM = re.compile(r"\b([a-z]+) at the top\b"), re.compile(r"\b([a-z]+) at the bottom\b")
_MUCH, _SOME = re.compile(rf"\bmuch clear {_LIST}"), re.compile(rf"\bsome clear {_LIST}")
_BARS = re.compile(r"\bblack bars ([a-z ]+)")
_READ = re.compile(r";? ?the text on screen reads '.*'", re.DOTALL)
_PLACES = {
    (True, True, False, False): "above and below",
    (False, False, True, True): "on the left and the right",
}
AROUND_S = 1.0  # seconds before and after a frame in which a state of it is claimed


def measure_caption(text: str) -> Mapping[str, bool | None] | None:
    """Return what a caption of the pixel captioner says of each state; null for another caption.
    A colour is doubtful where there is some of it, or much of one that it may be taken for.
    """
    bare = _READ.sub("", text)
    if not _MEASURED.match(bare):
        return None

    def colours_in(pattern: re.Pattern[str]) -> set[str]:
        match = pattern.search(bare)
        return set(re.split(r", | and ", match[1])) if match else set()

    much, some = colours_in(_MUCH), colours_in(_SOME)
    states: dict[str, bool | None] = {}
    for colour in COLOURS:
        doubtful = bool(({colour} | NEAR[colour]) & (much | some))
        top, bottom = colour in colours_in(_TOP), colour in colours_in(_BOTTOM)
        areas = {
            MUCH: colour in much,
            "the upper third of the picture": top and not bottom,
            "the lower third of the picture": bottom and not top,
        }
        for area, is_sure in areas.items():
            states[COLOUR.format(area, colour)] = True if is_sure else None if doubtful else False
    light = match[1] if (match := _LIGHT.search(bare)) else ""
    states[DARK] = {"very dark": True, "dark": None}.get(light, False)
    states[BRIGHT] = {"bright": True, "": None}.get(light, False)
    bars = match[1] if (match := _BARS.search(bare)) else ""
    return states | {phrase: bars.startswith(_PLACES[sides]) for sides, phrase in BARS.items()}


def state_facts(
    captions: Sequence[Caption], moments: Sequence[Span]
) -> tuple[list[Fact], dict[Entry, bool | None]]:
    """Return a fact for each state that some frames show and others do not, and its entries."""
    measured: list[tuple[int, float, Mapping[str, bool | None]]] = []
    for caption in captions:
        states = measure_caption(caption.text)
        number = next((n for n, m in enumerate(moments) if m.start <= caption.time < m.end), None)
        if states is not None and number is not None:
            measured.append((number, caption.time, states))
    facts: list[Fact] = []
    truth: dict[Entry, bool | None] = {}
    for phrase in measured[0][2] if measured else ():
        verdicts: dict[int, list[bool | None]] = {}
        spans: list[Span] = []
        for number, time, states in measured:
            verdicts.setdefault(number, []).append(states[phrase])
            if states[phrase]:
                here = moments[number]
                around = Span(max(here.start, time - AROUND_S), min(here.end, time + AROUND_S))
                spans.append(around)
        if not spans or all(all(v) for v in verdicts.values()):
            continue
        fact = make_fact("state", phrase, spans, "captions")
        facts.append(fact)
        for number in range(len(moments)):
            shown = verdicts.get(number, [None])
            truth[fact.fact_id, number] = True if any(shown) else None if None in shown else False
    return facts, truth
