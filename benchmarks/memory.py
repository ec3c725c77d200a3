"""Peak memory of `look` against the length of the video.

    python -m benchmarks.bench what=memory

One minute is drawn and encoded; longer videos repeat its packets with later times, which takes
seconds. Each video goes through `look` in a fresh process, whose peak resident set (VmHWM) counts.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.figures import BenchTable
from benchmarks.harness import run_json_child

FPS, WIDTH, HEIGHT = 12, 320, 180
SHOT_S = 5

CHILD = """
import json, resource, sys
from actors.stages.look import Look
from mustsee.records import Video
from benchmarks.harness import NO_CALLS
row = Look().open(NO_CALLS)(Video(video_id="bench", uri=sys.argv[1]))
used = resource.getrusage(resource.RUSAGE_SELF)
peak = next(l for l in open("/proc/self/status") if l.startswith("VmHWM"))
print(json.dumps({"mib": int(peak.split()[1]) / 1024, "cpu": used.ru_utime + used.ru_stime,
    "shots": len(row.shots), "keyframes": len(row.keyframes), "frames": len(row.frames)}))
"""


@dataclass(frozen=True, kw_only=True)
class MemoryBench:
    """`minutes`: video lengths; ratios are to the second one."""

    minutes: tuple[int, ...] = (1, 10, 60, 180)

    def __call__(self) -> BenchTable:
        rows: list[list[float]] = []
        with tempfile.TemporaryDirectory() as folder:
            draw(minute := f"{folder}/1.mp4")
            for length in self.minutes:
                path = f"{folder}/{length}min.mp4"
                repeat(minute, path, 60 * length)
                measures = run_json_child(CHILD, [path], f"look at {length} minutes")
                rows.append([length, *measures.values()])
        base = rows[min(1, len(rows) - 1)][1]
        return BenchTable(
            title="peak memory of look against length",
            columns=("minutes", "peak MiB", "to the second", "CPU s", "shots", "keyframes",
                     "frames"),
            rows=tuple((int(r[0]), round(r[1]), r[1] / base, r[2], *map(int, r[3:])) for r in rows),
            notes=(
                f"{WIDTH}x{HEIGHT}, {FPS} fps, a cut every {SHOT_S} s; fresh process each, "
                "libraries included",
            ),
        )  # fmt: skip


def draw_frames() -> Iterator[np.ndarray]:
    """Yield a minute of drifting checks, in other colours each shot."""
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    for _ in range(60 // SHOT_S):
        one, two, size = rng.integers(0, 255, 3), rng.integers(0, 255, 3), rng.integers(20, 60)
        for number in range(SHOT_S * FPS):
            checks = ((rows + number) // size + (columns + 2 * number) // size) % 2
            yield np.where(checks[..., None], one, two).astype(np.uint8)


def draw(target: str) -> None:
    """Encode the minute as H.264 with B-frames and a keyframe every two seconds."""
    import av

    options = {"crf": "28", "preset": "veryfast", "g": str(2 * FPS)}
    with av.open(target, "w") as out:
        stream = out.add_stream("libx264", rate=FPS, options=options)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for image in draw_frames():
            out.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        out.mux(stream.encode(None))


def repeat(source: str, target: str, seconds: float) -> None:
    """Write a video over and over until it lasts `seconds`, picture and sound, without encoding it
    again.
    """
    import av

    with av.open(source) as first, av.open(target, "w") as out:
        kept = [*first.streams.video[:1], *first.streams.audio[:1]]
        copies = {s.index: out.add_stream_from_template(s) for s in kept}
        length = max(float((s.duration or 0) * (s.time_base or 0)) for s in kept)
        written = dict.fromkeys(copies, -math.inf)
        for start in np.arange(0.0, seconds, length):
            with av.open(source) as container:
                for packet in container.demux([container.streams[index] for index in copies]):
                    if packet.dts is None or packet.pts is None:
                        continue
                    index, later = packet.stream.index, round(start / float(packet.time_base))
                    packet.pts, packet.dts = packet.pts + later, packet.dts + later
                    is_over = packet.dts * packet.time_base >= seconds
                    if is_over or packet.dts <= written[index]:  # silence before coded sound
                        continue
                    written[index], packet.stream = packet.dts, copies[index]
                    out.mux(packet)
