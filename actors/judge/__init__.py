"""Engines of answer equivalence and their training: one module for each choice of `judge=`."""
