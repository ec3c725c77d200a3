"""What `python -m ray_jobs.bench` measures, one module per subject."""
