"""PyAV: decode every frame and do nothing with it."""

import sys

import av

count = 0
for video in sys.argv[1:]:
    with av.open(video) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count = 1
        count += sum(1 for _ in container.decode(stream))
print(count, "frames decoded")
