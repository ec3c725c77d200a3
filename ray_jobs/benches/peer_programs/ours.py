"""Mustsee's `look`: shots, keyframes, descriptors of a picture a second."""

import sys

from actors.look import Look
from mustsee.records import Video
from ray_jobs.benches.look import ALONE

look = Look().open(ALONE)
seen = [look(Video(video_id=film, uri=film)) for film in sys.argv[1:]]
print(sum(len(v.shots) for v in seen), "shots,", sum(len(v.frames) for v in seen), "pictures kept")
