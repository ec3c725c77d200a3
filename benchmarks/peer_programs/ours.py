"""Mustsee's `look`: shots, keyframes, descriptors of a picture a second."""

import sys

from actors.stages.look import Look
from benchmarks.look import ALONE
from mustsee.records import Video

look = Look().open(ALONE)
seen = [look(Video(video_id=video, uri=video)) for video in sys.argv[1:]]
print(sum(len(v.shots) for v in seen), "shots,", sum(len(v.frames) for v in seen), "pictures kept")
