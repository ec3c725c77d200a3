"""MLVU's prompts answered by rules: questions ask for a missing word of the scene's description."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from mustsee.calls.llm import Request

_SMALL = frozenset(  # words that are not asked for
    """a an the his her their its in on at of to with from into for by and or is are was were be
    being while as it this that there some someone something who which very two one his then
    """.split()  # noqa: SIM905
)
_KINDS = (  # words of one kind are decoys for each other
    "red blue green yellow black white brown orange grey purple pink golden".split(),  # noqa: SIM905
    "man woman boy girl child baby".split(),  # noqa: SIM905
    "kitchen garden street park beach forest room field".split(),  # noqa: SIM905
    "dog cat horse bird rabbit cow sheep".split(),  # noqa: SIM905
)
_OTHERS = "table bottle chair window hat ladder basket mirror bench lamp rope bucket".split()  # noqa: SIM905


def _needle(request: Request) -> str:
    caption = " ".join(str(request.variables["caption"]).split()).rstrip(".")
    most, decoy_count = int(request.variables["most"]), int(request.variables["decoys"])
    candidates = [
        w
        for w in dict.fromkeys(re.findall(r"[A-Za-z]{3,}", caption))
        if w.lower() not in _SMALL and len(re.findall(rf"\b{w}\b", caption)) == 1
    ]
    rng = random.Random(f"{request.seed}/{caption}")
    of_a_kind = [w for w in candidates if any(w.lower() in kind for kind in _KINDS)]
    chosen = (of_a_kind + [w for w in candidates[::-1] if w not in of_a_kind])[:most] or [caption]
    blocks: list[str] = []
    for number, word in enumerate(chosen, 1):
        scene = re.sub(rf"\b{re.escape(word)}\b", "...", caption, count=1)
        kind = next((k for k in _KINDS if word.lower() in k), _OTHERS)
        same_kind = [w for w in kind if w != word.lower() and w not in caption.lower()]
        further = [w for w in _OTHERS if w not in same_kind and w not in caption.lower()]
        rng.shuffle(same_kind)
        decoys = [*same_kind, *further][:decoy_count]
        lines = [
            f"QUESTION {number}: One scene of the video shows: '{scene}'. Which word is left out?",
            f"CORRECT ANSWER: {word.lower()}",
            *(f"WRONG ANSWER {n}: {text}" for n, text in enumerate(decoys, 1)),
        ]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _absent(request: Request) -> str:
    """Write UNCLEAR: the rules recognise no actions."""
    numbers = range(1, len(request.variables["shown"]) + 1)
    return "\n".join(["SEEN: light and colours", *(f"SHOWN {n}: UNCLEAR" for n in numbers)])


RULES: dict[str, Callable[[Request], str]] = {"mlvu/needle": _needle, "mlvu/absent": _absent}
