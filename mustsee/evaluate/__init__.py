"""Evaluation of models on questions: answers, scores, temporal certificates, and their files.

`ray_jobs.evaluate` and `ray_jobs.certificate` use it; `audit`, `raters` and `recipes` use parts.
"""

__all__ = [
    "answers",
    "certificate",
    "certificate_show",
    "drawing",
    "every_eval_ever",
    "inspect_log",
    "metrics",
    "open_metrics",
    "rag",
    "released",
    "rubric",
    "rubric_scores",
    "score",
    "score_show",
    "siblings",
    "thresholds",
]
