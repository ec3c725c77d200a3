"""The order of work: one file per job, started as `python -m ray_jobs.NAME`."""

import os

# Both are read when Ray is imported. A local Ray listens on more than the loopback, so it asks for
# a token; the mode is said aloud because clients that are given an address do not find it out.
os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
