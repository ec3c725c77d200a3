"""Daft's read_video_frames: a picture a second, 320 x 180. Video by video: version 0.7.26 came to
no end with several at once.
"""

import sys

import daft

count = 0
for video in sys.argv[1:]:
    frames = daft.read_video_frames(video, 180, 320, sample_interval_seconds=1.0)
    count += len(frames.select("frame_index", "data").to_pydict()["frame_index"])
print(count, "pictures kept")
