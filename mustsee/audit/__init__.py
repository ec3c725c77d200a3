"""How much of a dataset needs its video: shortcuts, what pictures and order add, repeats."""
