"""FFmpeg's command, from the binary of a wheel: decode every frame, keep one a second."""

import re
import subprocess
import sys

import imageio_ffmpeg

count = 0
for video in sys.argv[1:]:
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-threads", "1", "-i", video, "-an"]
    command += ["-vf", "fps=1", "-f", "null", "-"]
    log = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    count += int(re.findall(r"frame=\s*(\d+)", log)[-1])
print(count, "frames kept")
