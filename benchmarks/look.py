"""The cost of `look` beside plain decoding, and beside other tools.

    python -m benchmarks.bench what=look [what.video=FILE]

CPU seconds, user and system; each row is the best of `repeats` rounds, in which all alternatives
take turns, one decoding thread on every side.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from actors.part import LlmConfig, RunContext
from actors.stages.look import Faces, Look
from benchmarks.figures import BenchTable
from mustsee.calls.llm import Llm
from mustsee.media.keyframes import KeyframeRules
from mustsee.media.onscreen import TextRules
from mustsee.media.video import frames_at, open_video
from mustsee.records import Video
from mustsee.store import Store

Row = tuple[str, float, float, str]


@dataclass(frozen=True, kw_only=True)
class LookBench:
    """`seconds` of the video are measured (0: all); `larger`: how many of them also at 1080p
    (0: none); `extras`: also faces and text; `peers`: also PySceneDetect's command.
    """

    video: str = "examples/videos/pancakes.mp4"
    seconds: float = 30.0
    repeats: int = 3
    larger: float = 8.0
    extras: bool = True
    peers: bool = True

    def __call__(self) -> BenchTable:
        with tempfile.TemporaryDirectory() as folder:
            video = head(self.video, f"{folder}/head.mkv", self.seconds or math.inf)
            rows, notes = self.measure_file(video, peers=self.peers)
            if self.larger > 0:
                path = f"{folder}/1080p.mp4"
                upscale(video, path, self.larger)
                more, _ = self.measure_file(path, peers=False)
                rows += [
                    (f"1080p: {name}", cost, share, remark) for name, cost, share, remark in more
                ]
            if self.extras:
                rows += self.measure_parts(video, rows[0][1])
            rows += self.sparse(video, rows[0][1])
        what = f"{self.seconds:g} s of " if self.seconds else ""
        return BenchTable(
            title=f"look at {what}{Path(self.video).name}",
            columns=("what", "CPU s", "of decoding", "remark"),
            rows=tuple(rows),
            notes=(f"best of {self.repeats} rounds in turn, 1 thread each", *notes),
        )

    def measure_file(self, path: str, *, peers: bool) -> tuple[list[Row], list[str]]:
        """Look and its alternatives on one file."""
        look = Look().open(ALONE)
        row = Video(video_id="bench", uri=path)
        contest: dict[str, Callable[[], Any]] = {
            "decode, nothing else": lambda: decode(path),
            "look: shots, keyframes, descriptors": lambda: look(row),
            "decode through an fps=1 filter": lambda: one_a_second(path),
        }
        best = dict.fromkeys(contest, float("inf"))
        for _ in range(self.repeats):
            for name, run in contest.items():
                best[name] = min(best[name], cpu(run))
        seen: Any = look(row)
        ours = [shot.start for shot in seen.shots[1:]]
        remarks = {"look: shots, keyframes, descriptors": f"{len(ours)} cuts"}
        notes: list[str] = []
        if peers:
            theirs: list[float] = []
            name = "PySceneDetect's command (detect-adaptive)"
            best[name] = cpu(lambda: theirs.extend(pyscenedetect(path)), resource.RUSAGE_CHILDREN)
            with open_video(path) as watched:
                frame = 1.5 / (watched.fps or 25.0)
            shared = sum(any(abs(a - b) <= frame for b in ours) for a in theirs)
            remarks[name] = f"{len(theirs)} cuts, {shared} of them ours within a frame"
            notes.append(_ray_note())
        base = best["decode, nothing else"]
        return [(n, s, s / base, remarks.get(n, "")) for n, s in best.items()], notes

    def measure_parts(self, path: str, base: float) -> list[Row]:
        """What each part costs on top of one that does without it."""
        row = Video(video_id="bench", uri=path)
        least = Look(keyframes=KeyframeRules(every=3600.0), sample_every=3600.0)
        contest = {
            "": Look(),
            "keyframes": dataclasses.replace(Look(), keyframes=least.keyframes),
            "descriptors at 1 fps": dataclasses.replace(Look(), sample_every=least.sample_every),
            "faces at 1 fps": Look(faces=Faces()),
            "text on the screen": Look(texts=TextRules()),
        }
        opened: dict[str, Any] = {name: part.open(ALONE) for name, part in contest.items()}
        best = dict.fromkeys(contest, float("inf"))
        for _ in range(self.repeats):
            for name, look in opened.items():
                best[name] = min(best[name], cpu(lambda look=look: look(row)))
        seen = {name: opened[name](row) for name in ("faces at 1 fps", "text on the screen")}
        remarks = {
            "faces at 1 fps": f"{sum(len(f.faces) for f in seen['faces at 1 fps'].frames)} faces",
            "text on the screen": f"{len(seen['text on the screen'].texts)} lines",
        }
        whole = best.pop("")
        spared = {n: max(0.0, whole - best.pop(n)) for n in ("keyframes", "descriptors at 1 fps")}
        spared["shots, what is left"] = max(0.0, whole - base - sum(spared.values()))
        added = {n: max(0.0, cost - whole) for n, cost in best.items()}
        rows = {f"look, of it {n}": c for n, c in spared.items()}
        rows |= {f"on top, {n}": c for n, c in added.items()}
        found = {f"on top, {n}": remark for n, remark in remarks.items()}
        return [(name, cost, cost / base, found.get(name, "")) for name, cost in rows.items()]

    def sparse(self, path: str, base: float) -> list[Row]:
        """Single frames by seeking, at and beyond the distance of keyframes."""
        with open_video(path) as watched:
            index = watched.index()
            times = [watched.seconds(key) for key in index.keys]
            end = watched.seconds(index.stamps[-1])
        group = max((b - a for a, b in pairwise(times)), default=end)
        rows: list[Row] = []
        for factor in (1, 2, 5):
            step = group * factor
            wanted = [step / 2 + n * step for n in range(max(1, int(end / step)))]
            for name, slack in (("exact", 0.0), ("nearest keyframe", step / 2)):
                seconds = min(
                    cpu(lambda w=wanted, s=slack: list(frames_at(path, w, slack=s)))
                    for _ in range(self.repeats)
                )
                label = f"a frame every {step:.3g} s, {name}"
                remark = f"{base / seconds:.1f}x cheaper than decoding; {factor} x keyframe spacing"
                rows.append((label, seconds, seconds / base, remark))
        return rows


def _no_model(config: LlmConfig) -> Llm:
    raise AssertionError("look asks no model")


ALONE = RunContext(store=Store(""), llm=_no_model, count=lambda name, n: None)


def cpu(run: Callable[[], Any], who: int = resource.RUSAGE_SELF) -> float:
    """CPU seconds that `run` takes."""
    before = resource.getrusage(who)
    run()
    after = resource.getrusage(who)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def decode(path: str) -> int:
    """Decode every frame and look at none."""
    import av

    with av.open(path) as container:
        stream = container.streams.video[0]
        stream.thread_type = "NONE"
        stream.codec_context.thread_count = 1
        return sum(1 for _ in container.decode(stream))


def one_a_second(path: str) -> int:
    """Decode every frame, and let FFmpeg's fps filter keep one a second."""
    import av
    import av.filter
    from av.error import BlockingIOError as NotYet
    from av.error import EOFError as Over

    with av.open(path) as container:
        stream = container.streams.video[0]
        stream.thread_type = "NONE"
        stream.codec_context.thread_count = 1
        graph = av.filter.Graph()
        graph.link_nodes(
            graph.add_buffer(template=stream), graph.add("fps", "1"), graph.add("buffersink")
        ).configure()
        kept = 0
        for frame in container.decode(stream):
            graph.push(frame)
            try:
                while True:
                    graph.pull()
                    kept += 1
            except (NotYet, Over):
                continue
        return kept


def pyscenedetect(path: str) -> Sequence[float]:
    """The cuts that PySceneDetect's own command finds, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "scenedetect",
            "-q",
            "-i",
            path,
            "-b",
            "pyav",
            "-o",
            folder,
        ]
        tail = ["detect-adaptive", "list-scenes", "-q", "-s", "-f", "scenes.csv"]
        subprocess.run([*command, *tail], check=True, capture_output=True)
        lines = Path(folder, "scenes.csv").read_text().splitlines()
    header = lines[0].split(",")
    at = header.index("Start Time (seconds)")
    return [float(line.split(",")[at]) for line in lines[2:]]


def head(path: str, target: str, seconds: float) -> str:
    """The first seconds of a video, its pictures copied as they are."""
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
    """The video's first seconds at 1920 x 1080."""
    import av

    with av.open(target, "w") as out, open_video(source) as watched:
        stream = out.add_stream("libx264", rate=round(watched.fps or 25), options={"crf": "21"})
        stream.width, stream.height, stream.pix_fmt = 1920, 1080, "yuv420p"
        for number, picture in enumerate(watched.pictures(0, seconds)):
            frame = picture.decoded.reformat(1920, 1080, "yuv420p", interpolation="BICUBIC")
            frame.pts, frame.time_base = number, 1 / stream.codec_context.framerate
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))


def _ray_note() -> str:
    if importlib.util.find_spec("decord") is None:
        return "ray.data.read_videos was not run: it needs decord, which is not installed"
    return "ray.data.read_videos was not run: it hands on every frame decoded, one block each"
