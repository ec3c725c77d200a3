"""Answer equivalence: whether a candidate answer says what the reference says."""
