"""Answerers of questions, for `evaluate` and `audit`: a model, or a guesser without one."""
