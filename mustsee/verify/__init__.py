"""Verifies that a question needs its video: question filters, model guesses and looks, and repair.

The stage `vet` runs the filters, the stage `enrich` the `traces`; `ray_jobs.certificate` and the
recipes use parts.
"""
