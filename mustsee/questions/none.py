"""Why no question was made of a video: said where questions are made, and shown with the video."""

from __future__ import annotations

from collections.abc import Collection

from mustsee.calls.llm import is_rules
from mustsee.papers import Paper, papers
from mustsee.records import Video


def no_questions_reason(video: Video, asked: str, reads: Collection[str], area: str) -> str:
    """`asked`: the identity of who was to write questions; `reads`: the columns that it was given;
    `area`: the folder of its prompts.
    """
    columns = {
        "lines": ("lines of speech", video.lines), "texts": ("texts on the screen", video.texts),
        "captions": ("captions", video.captions),
        "scene": ("lines of its scene", video.scene and video.scene.lines),
    }  # fmt: skip
    told = [(len(some or ()), what) for name, (what, some) in columns.items() if name in reads]
    found = ", ".join(f"{what}: {count}" for count, what in told)
    if not is_rules(asked):
        return f"the model wrote no question that can be used: {asked}" + (
            f", which was given {found}" if found else ""
        )
    need = f"the rules need {papers().get(area, Paper()).rules_need}"
    if area == "neptune" and not video.lines and not video.texts:
        return f"{need}: found none"
    return f"{need}: found too little to ask about" + (f" ({found})" if found else "")
