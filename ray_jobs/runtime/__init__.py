"""How a job runs: its cluster, stages, progress, estimate, summary and provenance."""
