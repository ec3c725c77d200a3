"""CinePile (arXiv 2405.08813): questions on movie clips from audio descriptions and subtitles."""

from mustsee.papers import Paper

__all__ = [
    "PAPER",
    "ask",
    "categories",
    "choosing",
    "degenerate",
    "filters",
    "fits",
    "hardness",
    "induction",
    "layout",
    "mcq",
    "offline",
    "question_lists",
    "refine",
    "scene",
    "split",
    "template_report",
    "templates",
    "vision",
]

PAPER = Paper(
    layout="mustsee.recipes.cinepile.layout",
    rules="mustsee.recipes.cinepile.offline.rules",
    rules_need="described frames and dialogue",
    choice_prompt="evaluate/cinepile",
)
