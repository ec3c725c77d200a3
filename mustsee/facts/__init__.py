"""Facts: atomic, timed statements about a video, verified once, from which code composes questions.

The stage `ask` with `ask=facts` runs `recipe`. `table` holds what is true at which moment, `forms`
make questions of it, `draw` gives them options that words do not decide, and `select` takes as many
as are wanted. `recuts` asks the same questions of a video and of its re-cut.
"""

__all__ = [
    "acts",
    "cases",
    "claims",
    "deep",
    "deep_settings",
    "draw",
    "exam",
    "extract",
    "forms",
    "funnel",
    "look",
    "moments",
    "open",
    "point_exam",
    "points",
    "rank",
    "recipe",
    "recuts",
    "search",
    "select",
    "settings",
    "stem",
    "steps",
    "table",
    "unread",
    "weigh",
    "wording",
]
