"""Why no question was made from a video. The reason is stored with the video (`unasked`)."""

from __future__ import annotations

from collections.abc import Collection

from mustsee.calls.llm import is_rules
from mustsee.papers import Paper, papers
from mustsee.records import Video


def no_questions_reason(video: Video, writer: str, reads: Collection[str], area: str) -> str:
    """Return why a video has no questions.

    `writer`: identity of the model that should write them. `reads`: columns that it was given.
    `area`: folder of its prompts.
    """
    columns = {
        "lines": ("lines of speech", video.lines), "texts": ("texts on the screen", video.texts),
        "captions": ("captions", video.captions),
        "scene": ("lines of its scene", video.scene and video.scene.lines),
    }  # fmt: skip
    counts = ", ".join(
        f"{what}: {len(items or ())}" for name, (what, items) in columns.items() if name in reads
    )
    if not is_rules(writer):
        return f"the model wrote no usable question: {writer}" + (
            f", which was given {counts}" if counts else ""
        )
    need = f"the rules need {papers().get(area, Paper()).rules_need}"
    unheard = f"; {video.unheard}" if video.unheard and not video.lines else ""
    counted = f" ({counts})" if counts else ""
    return f"{need}: found too little to ask about{counted}{unheard}"
