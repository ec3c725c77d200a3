"""Daft's read_video_frames: a frame a second, 320 x 180. One video a call, because version 0.7.26
did not finish with several.
"""

import sys

import daft

count = 0
for video in sys.argv[1:]:
    frames = daft.read_video_frames(video, 180, 320, sample_interval_seconds=1.0)
    count += len(frames.select("frame_index", "data").to_pydict()["frame_index"])
print(count, "frames kept")
