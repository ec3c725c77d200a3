"""The stages of the jobs, one file each."""
