"""The rating job in a process of its own, serving."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


class Served:
    """The job; it keeps its port when it is killed and started again. `links`: by name."""

    def __init__(self, run: Path, *overrides: str) -> None:
        self._command = [sys.executable, "-m", "ray_jobs.rate", f"questions={run}", *overrides]
        self.links: dict[str, str] = {}
        self._port = "0"
        self.start()

    @property
    def pid(self) -> int:
        return self._job.pid

    def start(self) -> None:
        self._job = subprocess.Popen(
            [*self._command, f"port={self._port}"], stdout=subprocess.PIPE, text=True
        )
        assert self._job.stdout is not None
        for line in self._job.stdout:
            if match := re.match(r"(\w+): (http://[^/]+:(\d+)/r/\S+)", line):
                self.links[match[1]], self._port = match[2], match[3]
            if "Ctrl-C" in line:
                return
        raise AssertionError("the rating job did not start")

    def kill(self) -> None:
        self._job.kill()
        self._job.wait()
        assert self._job.stdout is not None
        self._job.stdout.close()
