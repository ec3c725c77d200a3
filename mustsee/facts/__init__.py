"""Facts: atomic, timed statements about a video, verified once, from which code composes questions.

The stage `ask` with `ask=facts` runs `recipe`. `table` holds what is true at which moment, `forms`
make questions of it, and `select` takes those that words do not give away. `recuts` asks the same
questions of a video and of its re-cut.
"""

__all__ = [
    "acts",
    "cases",
    "exam",
    "extract",
    "forms",
    "look",
    "moments",
    "open",
    "rank",
    "recipe",
    "recuts",
    "search",
    "select",
    "settings",
    "stem",
    "steps",
    "table",
]
