"""Audits of datasets: shortcuts, what frames and their order add, repeats, and doubtful keys.

`ray_jobs.audit` uses it.
"""
