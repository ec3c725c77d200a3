"""Videos made so that the answer is known: planned, cut, joined, checked for what is absent."""
