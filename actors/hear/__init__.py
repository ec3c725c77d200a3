"""Sound to timed lines: one module for each choice of `hear=`."""
