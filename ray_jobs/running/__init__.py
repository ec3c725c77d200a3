"""What runs a job: its start, cluster, stages, progress, summary and provenance."""
