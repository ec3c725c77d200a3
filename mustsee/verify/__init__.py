"""Verifies that a question needs its video: question filters, model guesses and looks, and repair.

The stage `vet` runs the filters; `enrich`, `ray_jobs.certificate` and the recipes use parts.
"""

__all__ = [
    "blind",
    "candidates",
    "conditions",
    "duplicates",
    "fewest",
    "giveaways",
    "glimpse",
    "guess_counts",
    "guess_set",
    "look_replies",
    "looks",
    "match",
    "match_set",
    "meanings",
    "repair",
    "sight",
    "vetting",
    "videos",
]
