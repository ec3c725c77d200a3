"""The scene text that CinePile's prompts see: dialogue and description, tagged, with times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mustsee.align.place import Alignment
from mustsee.records import Line, SceneText

SUBTITLE, VISUAL = "<subtitle>", "<visual descriptions>"


@dataclass(frozen=True, kw_only=True)
class SceneLine:
    """A line of the scene: said by a character, or by the narrator of what is seen."""

    start: float
    end: float
    text: str
    visual: bool


def scene_lines(scene: SceneText, *, threshold: float = 0.5) -> tuple[SceneLine, ...]:
    """The scene's lines; from a probability of `threshold` a line is the narrator's."""
    pairs = zip(scene.lines, scene.visual, strict=True)
    return tuple(
        SceneLine(start=x.start, end=x.end, text=" ".join(x.text.split()), visual=p >= threshold)
        for x, p in pairs
        if x.text.strip()
    )


def format_lines(lines: Sequence[SceneLine]) -> str:
    """One row a line: tag, start and end in seconds, text."""
    return "\n".join(
        f"{VISUAL if x.visual else SUBTITLE} {x.start:.1f} {x.end:.1f} {x.text}" for x in lines
    )


def scene_of(found: Alignment, lines: Sequence[Line], visual: Sequence[float]) -> SceneText:
    """The record of a placed clip; the lines' times become the clip's."""
    assert found.span is not None, "the clip was not placed"

    def shift_time(seconds: float) -> float:
        return max(0.0, (seconds - found.offset) / found.rate)

    return SceneText(
        lines=tuple(
            replace(x, start=shift_time(x.start), end=shift_time(x.end), words=()) for x in lines
        ),
        visual=tuple(visual),
        start=found.span.start,
        end=found.span.end,
        rate=found.rate,
        score=found.score,
        head=found.head,
        tail=found.tail,
    )
