"""Human rating: forms, ballots, results, and the exchange with other rating tools.

Used by `ray_jobs/rate.py`, by the raters' page in `serve/`, and by the export of Neptune's subsets.
"""

__all__ = [
    "agreement",
    "ballots",
    "box",
    "correctness",
    "deal",
    "exchange",
    "form",
    "kept",
    "label_studio",
    "marks",
    "modalities",
    "potato",
    "queries",
    "rating_run",
    "replies",
    "results",
    "settle",
    "training",
    "transfer",
    "videos",
    "written",
]
