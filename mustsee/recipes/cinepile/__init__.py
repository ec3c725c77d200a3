"""CinePile (arXiv 2405.08813): questions on movie clips from audio descriptions and subtitles."""

from mustsee.papers import Paper

PAPER = Paper(
    layout="mustsee.recipes.cinepile.layout",
    rules="mustsee.recipes.cinepile.offline",
    choice_prompt="evaluate/cinepile",
)
