"""The command line: from overrides to a job that starts."""
