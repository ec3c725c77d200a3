"""Evaluation of models on questions: answers, scores, temporal certificates, and their files.

`ray_jobs.evaluate` and `ray_jobs.certificate` use it; `audit`, `raters` and `recipes` use parts.
"""
