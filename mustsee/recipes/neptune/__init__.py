"""Neptune (arXiv 2412.09582): questions on videos from frames, transcript and on-screen text."""

from mustsee.papers import Paper

PAPER = Paper(
    layout="mustsee.recipes.neptune.layout",
    rules="mustsee.recipes.neptune.offline.rules",
    rules_need="text on the screen or speech",
    choice_prompt="evaluate/neptune",
)
