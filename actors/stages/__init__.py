"""The parts of the jobs' stages, one file each; configurations name them as `_target_`."""
