"""Conditions: the frames, clips and transcript lines that a model gets for one question, as data.

Filters, evaluations, audits and certificates use the same conditions.
"""
