"""FFmpeg's command, the binary of a wheel: every picture decoded, one a second kept."""

import re
import subprocess
import sys

import imageio_ffmpeg

count = 0
for video in sys.argv[1:]:
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-threads", "1", "-i", video, "-an"]
    command += ["-vf", "fps=1", "-f", "null", "-"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    count += int(re.findall(r"frame=\s*(\d+)", said)[-1])
print(count, "pictures kept")
