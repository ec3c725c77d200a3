"""Additions to questions that passed every filter: reasoning traces, verified before they count.
The stage `enrich` runs them.
"""
