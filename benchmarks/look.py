"""The CPU cost of `look` and of each of its parts, against decoding alone.

    python -m benchmarks.bench what=look [what.video=FILE]

CPU seconds, user and system; each row is the best of `repeats` rounds, in which all alternatives
take turns, with one decoding thread each. `what=peers` compares with other tools.
"""

from __future__ import annotations

import dataclasses
import math
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from actors.stages.look import Faces, Look, Objects
from benchmarks.figures import BenchTable
from benchmarks.harness import NO_CALLS, best_cpu_seconds, cpu_seconds
from mustsee.media.frame_times import frame_times
from mustsee.media.keyframes import KeyframeRules
from mustsee.media.onscreen import TextRules
from mustsee.media.video import frames_at, open_video
from mustsee.records import Video

Row = tuple[str, float, float, str]  # what, CPU seconds, ratio to decoding, remark


@dataclass(frozen=True, kw_only=True)
class LookBench:
    """`seconds`: length measured (0: all). `larger`: seconds also measured at 1080p (0: none).
    `extras`: measure faces, on-screen text and objects, too.
    """

    video: str = "examples/videos/pancakes.mp4"
    seconds: float = 30.0
    repeats: int = 3
    larger: float = 8.0
    extras: bool = True

    def __call__(self) -> BenchTable:
        with tempfile.TemporaryDirectory() as folder:
            video = head(self.video, f"{folder}/head.mkv", self.seconds or math.inf)
            rows = self.measure_file(video)
            if self.larger > 0:
                path = f"{folder}/1080p.mp4"
                upscale(video, path, self.larger)
                rows += [(f"1080p: {name}", *rest) for name, *rest in self.measure_file(path)]
            if self.extras:
                rows += self.measure_parts(video, float(rows[0][1]))
            rows += self.measure_sparse(video, float(rows[0][1]))
        what = f"{self.seconds:g} s of " if self.seconds else ""
        return BenchTable(
            title=f"look at {what}{Path(self.video).name}",
            columns=("what", "CPU s", "of decoding", "remark"),
            rows=tuple(rows),
            notes=(f"best of {self.repeats} rounds in turn, 1 thread each",),
        )

    def measure_file(self, path: str) -> list[Row]:
        """Measure `look` against decoding alone on one file."""
        look, row = Look().open(NO_CALLS), Video(video_id="bench", uri=path)
        name, decoding = "look: shots, keyframes, descriptors", "decode, nothing else"
        best = best_cpu_seconds(
            {decoding: lambda: decode(path), name: lambda: look(row)}, self.repeats
        )
        result: Any = look(row)
        remarks = {name: f"{len(result.shots) - 1} cuts"}
        return [(n, s, s / best[decoding], remarks.get(n, "")) for n, s in best.items()]

    def measure_parts(self, path: str, base: float) -> list[Row]:
        """Measure what each part of `look` adds to the whole without it."""
        row = Video(video_id="bench", uri=path)
        least = Look(keyframes=KeyframeRules(every=3600.0), sample_every=3600.0)
        contest = {
            "": Look(),
            "keyframes": dataclasses.replace(Look(), keyframes=least.keyframes),
            "descriptors at 1 fps": dataclasses.replace(Look(), sample_every=least.sample_every),
            "faces at 1 fps": Look(faces=Faces()),
            "on-screen text": Look(texts=TextRules()),
            "objects": Look(objects=Objects()),
        }
        opened: dict[str, Any] = {name: part.open(NO_CALLS) for name, part in contest.items()}
        best = best_cpu_seconds(
            {name: lambda look=look: look(row) for name, look in opened.items()}, self.repeats
        )
        face_frames = opened["faces at 1 fps"](row).frames
        text_lines = opened["on-screen text"](row).texts
        remarks = {
            "faces at 1 fps": f"{sum(len(f.faces) for f in face_frames)} faces",
            "on-screen text": f"{len(text_lines)} lines",
        }
        whole = best.pop("")
        spared = {n: max(0.0, whole - best.pop(n)) for n in ("keyframes", "descriptors at 1 fps")}
        spared["shots, the rest"] = max(0.0, whole - base - sum(spared.values()))
        added = {n: max(0.0, cost - whole) for n, cost in best.items()}
        rows = {f"look, of it {n}": c for n, c in spared.items()}
        rows |= {f"on top, {n}": c for n, c in added.items()}
        notes = {f"on top, {n}": remark for n, remark in remarks.items()}
        return [(name, cost, cost / base, notes.get(name, "")) for name, cost in rows.items()]

    def measure_sparse(self, path: str, base: float) -> list[Row]:
        """Measure single frames by seeking, at and beyond the distance of keyframes."""
        with open_video(path) as video:
            index = frame_times(path)
            times = [video.seconds(key) for key in index.keys]
            end = video.seconds(index.stamps[-1])
        group = max((b - a for a, b in pairwise(times)), default=end)
        rows: list[Row] = []
        for factor in (1, 2, 5):
            step = group * factor
            wanted = [step / 2 + n * step for n in range(max(1, int(end / step)))]
            for name, slack in (("exact", 0.0), ("nearest keyframe", step / 2)):
                seconds = min(
                    cpu_seconds(lambda w=wanted, s=slack: list(frames_at(path, w, slack=s)))
                    for _ in range(self.repeats)
                )
                label = f"a frame every {step:.3g} s, {name}"
                remark = f"{base / seconds:.1f}x cheaper than decoding; {factor} x keyframe spacing"
                rows.append((label, seconds, seconds / base, remark))
        return rows


def decode(path: str) -> int:
    """Decode every frame and return how many there are."""
    import av

    with av.open(path) as container:
        stream = container.streams.video[0]
        stream.thread_type = "NONE"
        stream.codec_context.thread_count = 1
        return sum(1 for _ in container.decode(stream))


def head(path: str, target: str, seconds: float) -> str:
    """Write the first seconds of a video, its packets copied, and return the path."""
    import av

    with av.open(path) as source, av.open(target, "w") as out:
        stream = source.streams.video[0]
        copy = out.add_stream_from_template(stream)
        for packet in source.demux(stream):
            if packet.dts is None or float(packet.dts * packet.time_base) > seconds:
                break
            packet.stream = copy
            out.mux(packet)
    return target


def upscale(source: str, target: str, seconds: float) -> None:
    """Write the video's first seconds at 1920 x 1080."""
    import av

    with av.open(target, "w") as out, open_video(source) as video:
        stream = out.add_stream("libx264", rate=round(video.fps or 25), options={"crf": "21"})
        stream.width, stream.height, stream.pix_fmt = 1920, 1080, "yuv420p"
        for number, timed in enumerate(video.frames(0, seconds)):
            frame = timed.decoded.reformat(1920, 1080, "yuv420p", interpolation="BICUBIC")
            frame.pts, frame.time_base = number, 1 / stream.codec_context.framerate
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
