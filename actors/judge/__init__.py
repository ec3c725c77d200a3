"""Engines of answer equivalence: one module for each choice of `judge=`, and their training."""
