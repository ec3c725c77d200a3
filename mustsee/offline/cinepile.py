"""CinePile's prompts answered by rules."""

from __future__ import annotations

from collections.abc import Callable

from mustsee.calls.llm import Request
from mustsee.offline import cinepile_scene, cinepile_templates

RULES: dict[str, Callable[[Request], str]] = {
    "cinepile/pronouns": cinepile_templates.pronouns,
    "cinepile/templates": cinepile_templates.templates,
    "cinepile/shortlist": cinepile_scene.shortlist,
    "cinepile/questions": cinepile_scene.questions,
    "cinepile/choose": cinepile_scene.choose,
    "cinepile/fits": cinepile_scene.fits,
}
