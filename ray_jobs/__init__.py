"""The jobs: one module per command, started as `python -m ray_jobs.NAME` or `mustsee NAME`.

A job queues its stages in order and publishes the results. `cli` composes its configuration and
starts it; `runtime` runs the stages on Ray, shows progress, and writes the output folder.
"""

import os

# Ray reads both variables when it is imported. A local Ray listens on more than the loopback, so it
# requires a token; clients that connect to an address cannot detect the mode and need it set.
os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
