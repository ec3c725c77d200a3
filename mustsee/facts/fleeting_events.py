"""Brief events that sparse frames miss: somebody who stays in the picture turns, sits, looks up.

A look judges a moment of some seconds from a few frames, and a movement of the body that takes half
a second may lie between them. Of 26 questions of a film that were read beside their frames four
were wrong or doubtful, each for such a movement of one of its leading men.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mustsee.records import Fact

MIN_RANGE_S = 60.0  # seconds from the first to the last act of somebody who stays on the screen
_MOVES = (
    "bends crouches ducks glances kneels leans lifts lies looks lowers moves nods raises rises "
    "rolls shakes shifts sits smiles spins stands steps straightens stretches swings tilts turns "
    "twists walks"
)
_WITH = (
    "a aside around arm arms at away back both down eyes face floor forward forwards from ground "
    "hand hands head her his in inside it its leg legs low off on one onto out over round shoulder "
    "shoulders sideways slowly the their to toward towards up upright upward upwards wrist"
)
# Words that tell a subject from others: "a man in grey" is not "a man".
_TELLS = "and at behind beside by from in near of on wearing who whose with without"
_MOVEMENT = re.compile(
    rf"(?P<subject>.+?) (?:{_MOVES.replace(' ', '|')})(?: (?:{_WITH.replace(' ', '|')}))*",
    re.IGNORECASE,
)


def find_fleeting(facts: Sequence[Fact]) -> frozenset[str]:
    """Return the ids of the events that are no more than a movement of the body, of somebody who
    acts over at least `MIN_RANGE_S` of the video. English phrases only.
    """
    events = [fact for fact in facts if fact.kind == "event"]
    moves = {
        f.fact_id: match["subject"] for f in events if (match := _MOVEMENT.fullmatch(f.phrase))
    }
    found: set[str] = set()
    for name, subject in moves.items():
        times = [
            time
            for fact in events
            if re.match(rf"{re.escape(subject)} (?!(?:{_TELLS.replace(' ', '|')})\b)", fact.phrase)
            for span in fact.spans
            for time in (span.start, span.end)
        ]
        if max(times) - min(times) >= MIN_RANGE_S:
            found.add(name)
    return frozenset(found)
