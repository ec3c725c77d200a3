"""Mustsee's `look`: shots, keyframes, descriptors of a frame a second."""

import sys

from actors.stages.look import Look
from benchmarks.harness import NO_CALLS
from mustsee.records import Video

look = Look().open(NO_CALLS)
rows = [look(Video(video_id=video, uri=video)) for video in sys.argv[1:]]
print(sum(len(v.shots) for v in rows), "shots,", sum(len(v.frames) for v in rows), "frames kept")
