"""Facts: atomic, timed statements about a video, verified once, from which code composes questions.

The stage `ask` with `ask=facts` runs `recipe`. `table` holds what is true at which moment, `forms`
make questions of it, `draw` gives them options that words do not decide, and `select` takes as many
as are wanted.
"""
