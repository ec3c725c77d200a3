"""PySceneDetect's command with its adaptive detector."""

import csv
import subprocess
import sys
import tempfile
from pathlib import Path

import scenedetect  # noqa: F401  (so that importing it counts as start-up)

count = 0
with tempfile.TemporaryDirectory() as folder:
    for video in sys.argv[1:]:
        command = [sys.executable, "-m", "scenedetect", "-q", "-i", video, "-b", "pyav"]
        command += ["-o", folder, "detect-adaptive", "list-scenes", "-q", "-s", "-f", "scenes.csv"]
        subprocess.run(command, check=True, capture_output=True)
        with Path(folder, "scenes.csv").open() as file:
            count += len(list(csv.reader(file))) - 2
print(count, "shots")
