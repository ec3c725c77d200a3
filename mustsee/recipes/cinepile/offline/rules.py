"""The registered rules of CinePile's prompts."""

from __future__ import annotations

from collections.abc import Callable

from mustsee.calls.llm import Request
from mustsee.recipes.cinepile.offline import scene, templates

RULES: dict[str, Callable[[Request], str]] = {
    "cinepile/pronouns": templates.pronouns,
    "cinepile/templates": templates.templates,
    "cinepile/shortlist": scene.shortlist,
    "cinepile/questions": scene.questions,
    "cinepile/choose": scene.choose,
    "cinepile/fits": scene.fits,
}
