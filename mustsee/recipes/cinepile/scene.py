"""The scene text that CinePile's prompts see: dialogue and description, tagged, with times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mustsee.align.place import Alignment
from mustsee.records import Line, SceneText

SUBTITLE, VISUAL = "<subtitle>", "<visual descriptions>"


@dataclass(frozen=True, kw_only=True)
class SceneLine:
    """A line of the scene: dialogue, or the narrator's description (`visual`); times in seconds."""

    start: float
    end: float
    text: str
    visual: bool


def scene_lines(scene: SceneText, *, threshold: float = 0.5) -> tuple[SceneLine, ...]:
    """Return the scene's lines; from a probability of `threshold` a line is the narrator's."""
    pairs = zip(scene.lines, scene.visual, strict=True)
    return tuple(
        SceneLine(start=x.start, end=x.end, text=" ".join(x.text.split()), visual=p >= threshold)
        for x, p in pairs
        if x.text.strip()
    )


def format_lines(lines: Sequence[SceneLine]) -> str:
    """Write one line of text for each: tag, start and end in seconds, text."""
    return "\n".join(
        f"{VISUAL if x.visual else SUBTITLE} {x.start:.1f} {x.end:.1f} {x.text}" for x in lines
    )


def scene_of(alignment: Alignment, lines: Sequence[Line], visual: Sequence[float]) -> SceneText:
    """Return the scene text of a placed clip, with the lines' times in the clip."""
    assert alignment.span is not None, "the clip was not placed"

    def shift_time(seconds: float) -> float:
        return max(0.0, (seconds - alignment.offset) / alignment.rate)

    return SceneText(
        lines=tuple(
            replace(x, start=shift_time(x.start), end=shift_time(x.end), words=()) for x in lines
        ),
        visual=tuple(visual),
        start=alignment.span.start,
        end=alignment.span.end,
        rate=alignment.rate,
        score=alignment.score,
        head=alignment.head,
        tail=alignment.tail,
    )
