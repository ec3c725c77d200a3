"""Neptune (arXiv 2412.09582): questions on videos from frames, transcript and on-screen text."""

from mustsee.papers import Paper

PAPER = Paper(layout="mustsee.recipes.neptune.layout", choice_prompt="evaluate/neptune")
