"""Benchmarks, one module per subject: `python -m benchmarks.bench what=NAME` runs one and prints a
table. For developers; no product code imports them.
"""
