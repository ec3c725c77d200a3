"""Human rating: forms, ballots, results, and the exchange with other rating tools.

Used by `ray_jobs/rate.py`, by the raters' page in `serve/`, and by the export of Neptune's subsets.
"""
