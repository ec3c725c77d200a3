"""Daft's read_video_frames: a picture a second, 320 x 180. Film by film: version 0.7.26 came to no
end with several at once.
"""

import sys

import daft

count = 0
for film in sys.argv[1:]:
    frames = daft.read_video_frames(film, 180, 320, sample_interval_seconds=1.0)
    count += len(frames.select("frame_index", "data").to_pydict()["frame_index"])
print(count, "pictures kept")
