"""What `python -m benchmarks.bench` measures, one module per subject."""
