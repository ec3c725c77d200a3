"""How a job runs on Ray: cluster, stages, progress, estimate, summary and provenance.

The modules of `ray_jobs` use it. `run` is the entry: `JobSettings.open` and `RunningJob`.
"""
