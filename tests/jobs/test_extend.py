"""A new captioner, video filter and question filter are a module and a yaml each, nothing more."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = {
    "actors/caption/word.py": '''
        """caption=word: the same word for every keyframe."""

        import dataclasses
        from dataclasses import dataclass
        from typing import ClassVar

        from actors.part import Opened, RunContext
        from mustsee.records import Caption, Video


        @dataclass(frozen=True, kw_only=True)
        class Word:
            version: ClassVar[str] = "1"
            reads: ClassVar[tuple[str, ...]] = ("keyframes",)
            needs: ClassVar[tuple[str, ...]] = ()
            writes: ClassVar[tuple[str, ...]] = ("captions",)
            word: str

            def open(self, run: RunContext) -> Opened:
                def caption(video: Video) -> Video:
                    found = tuple(Caption(k.time, self.word) for k in video.keyframes or ())
                    return dataclasses.replace(video, captions=found)

                return caption
    ''',
    "conf/caption/word.yaml": """
        # one word
        _target_: actors.caption.word.Word
        word: A zebra.
    """,
    "mustsee/filters/long.py": '''
        """Videos that are too long."""

        from dataclasses import dataclass

        from mustsee.records import Video


        @dataclass(frozen=True, kw_only=True)
        class Long:
            after: str
            seconds: float

            def __call__(self, video: Video) -> str | None:
                long = (video.duration or 0) > self.seconds
                return f"long: {video.duration:.0f} s" if long else None
    ''',
    "conf/filters/long.yaml": """
        # films above a length are left out
        long:
          _target_: mustsee.filters.long.Long
          after: probe
          seconds: 60
    """,
    "mustsee/filters/letter.py": '''
        """Questions that begin with a letter."""

        from dataclasses import dataclass, replace
        from typing import ClassVar

        from mustsee.filters.vetting import Vetting
        from mustsee.records import Question, Video


        @dataclass(frozen=True, kw_only=True)
        class Letter:
            name: ClassVar[str] = "letter"
            roles: ClassVar[tuple[str, ...]] = ()
            prompts: ClassVar[tuple[str, ...]] = ()
            reads: ClassVar[tuple[str, ...]] = ()
            letter: str

            async def __call__(
                self, question: Question, video: Video, vetting: Vetting
            ) -> Question:
                begins = question.question.startswith(self.letter)
                return replace(question, drop="letter: unwanted") if begins else question
    ''',
    "conf/vet/letter.yaml": """
        # no question begins with W
        _target_: actors.vet.Vet
        filters:
          - _target_: mustsee.filters.letter.Letter
            letter: W
        subset: chosen
        seed: ${seed}
    """,
}


def unindented(text: str) -> str:
    lines = text.strip("\n").splitlines()
    margin = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[margin:] for line in lines).rstrip() + "\n"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_each_is_a_module_and_a_yaml(tmp_path: Path) -> None:
    house = tmp_path / "house"
    for folder in ("mustsee", "actors", "serve", "ray_jobs", "conf", "prompts"):
        unneeded = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, house / folder, ignore=unneeded)
    for name, text in PARTS.items():
        assert not (house / name).exists()
        (house / name).write_text(unindented(text))
    command = [
        sys.executable, "-m", "ray_jobs.neptune", f"videos={ROOT / 'examples/videos'}",
        f"out={tmp_path / 'out'}", "caption=word", "filters=long", "vet=letter",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=house, env=os.environ.copy())
    assert done.returncode == 0, done.stderr
    videos = pq.read_table(tmp_path / "out/videos.parquet").to_pylist()
    assert {v["video_id"] for v in videos if (v["drop"] or "").startswith("long:")} == {
        "birdhouse", "pancakes"
    }  # fmt: skip
    captioned = [v for v in videos if v["captions"]]
    assert captioned
    assert all({c["text"] for c in v["captions"]} == {"A zebra."} for v in captioned)
    questions = pq.read_table(tmp_path / "out/questions.parquet").to_pylist()
    assert questions
    for question in questions:
        fell = question["drop"] == "letter: unwanted"
        assert fell == question["question"].startswith("W") or question["drop"]
        assert ("chosen" in question["subsets"]) == (question["drop"] is None)
    funnel = json.loads((tmp_path / "out/run.json").read_text())["funnel"]
    assert next(s for s in funnel if s["stage"] == "probe")["dropped"]["long"] == 2
