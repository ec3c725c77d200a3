"""A finished run with videos, for tests of the report."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from mustsee.files import schemas
from mustsee.files.store import Store
from mustsee.records import Keyframe, Question, Span, Video
from tests.support import sample_videos

RECORD = {
    "recipe": "neptune", "config": {}, "git": "", "versions": {"mustsee": "1"},
    "funnel": [{"stage": s, "in": 3, "out": 3, "dropped": {}, "problems": 0}
               for s in ("read", "look")],
    "questions": {"made": 3, "kept": 3, "dropped": {}, "subsets": {}, "types": {"Order": 3}},
    "computed": {}, "reused": {}, "seconds": {"total": 9.0}, "pace": {"stages": {}},
    "llm": {"calls": 0, "usd_per_kept_question": None, "by_prompt": {}},
}  # fmt: skip


def write(folder: Path) -> Path:
    """Write a run: q1 on a video that browsers play, with a frame a second; q2 on one that they do
    not play (33 s, evidence over the end of a span); q3 on one whose file is missing.
    """
    fps = 12
    sample_videos.write(folder / "a.mp4", sample_videos.cuts([48, 48]), fps=fps, tone=8.0)
    sample_videos.write(folder / "b.mkv", sample_videos.cuts([216, 180]), fps=fps, tone=33.0)
    ends = {"a.mp4": 8.0, "b.mkv": 33.0, "c.mp4": 8.0}
    videos = [
        Video(video_id=name, uri=str(folder / name), duration=end, fps=fps, lineage={"look": name})
        for name, end in ends.items()
    ]
    jpeg = io.BytesIO()
    Image.fromarray(sample_videos.scene(1)).save(jpeg, "JPEG")
    frames = tuple(Keyframe(time=float(t), shot=0, jpeg=jpeg.getvalue()) for t in range(8))
    table = pa.table({"keyframes": schemas.column("keyframes", [frames])})
    Store(str(folder / "store")).put_table("look", "a.mp4", table)
    spans = {
        "a.mp4": (Span(1, 2), Span(5, 6.5)),
        "b.mkv": (Span(18, 31.5),),
        "c.mp4": (Span(0, 1),),
    }
    questions = [
        Question(
            question_id=f"q{n}", video_id=name, recipe="neptune", question=f"What of {name}?",
            question_type="Order", options=("red", "blue"), answer_index=1, answer="blue",
            evidence=spans[name],
        )
        for n, name in enumerate(ends, 1)
    ]  # fmt: skip
    pq.write_table(schemas.table(questions, Question), folder / "questions.parquet")
    pq.write_table(schemas.table(videos, Video), folder / "videos.parquet")
    (folder / "run.json").write_text(json.dumps(RECORD))
    return folder
