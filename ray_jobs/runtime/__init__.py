"""How a job runs on Ray: cluster, stages, progress, estimate, summary and provenance.

The modules of `ray_jobs` use it. `run` is the entry: `JobSettings.open` and `RunningJob`.
"""

__all__ = [
    "asked_models",
    "barrier",
    "cluster",
    "dry_run",
    "dry_run_rows",
    "experiment",
    "fact_lines",
    "forecast",
    "heartbeat",
    "judge_trainers",
    "last_words",
    "local_ray",
    "lookups",
    "outcome",
    "preview",
    "progress",
    "provenance",
    "question_rows",
    "rehearse",
    "run",
    "stand_in",
    "stream",
    "summary",
    "trials",
    "web",
]
