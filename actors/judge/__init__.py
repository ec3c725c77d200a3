"""Engines of answer equivalence and their training: one module for each choice of `judge=`."""

__all__ = [
    "bem",
    "checkpoint",
    "compass",
    "gem",
    "gem_fit",
    "gem_jax",
    "lexical",
    "llm",
    "mini",
    "nli",
    "roberta",
    "seat",
    "simpleqa",
    "tokens",
]
