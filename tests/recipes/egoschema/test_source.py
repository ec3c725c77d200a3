"""`NarrationSource`: the captions of a run become clips of its videos."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mustsee.files import schemas
from mustsee.recipes.egoschema.narrations import NarrationColumns
from mustsee.records import Caption, Video
from ray_jobs.egoschema import NarrationSource


@pytest.mark.parametrize(("duration", "spans"), [(400.0, [(0.0, 180.0), (180.0, 360.0)]),
                                                  (359.0, [(0.0, 180.0)])])  # fmt: skip
def test_a_run_s_folder_gives_clips_up_to_the_length_of_its_videos(
    tmp_path: Path, duration: float, spans: list[tuple[float, float]]
) -> None:
    """The last caption, at 358 s, is not the end of the video."""
    captions = tuple(Caption(float(t), "C wipes the lamp") for t in range(0, 360, 2))
    file = tmp_path / "ride.mp4"
    file.write_bytes(b"a video")
    row = Video(video_id="ride", uri=str(file), duration=duration, captions=captions)
    pq.write_table(schemas.table([row], Video), tmp_path / "videos.parquet")
    source = NarrationSource(
        narrations=str(tmp_path), columns=NarrationColumns(form="captions"), videos=str(file)
    )
    clips, _ = source.rows()
    assert [(clip.start, clip.end) for clip in clips] == spans
    assert {clip.uri for clip in clips} == {str(file)}
    assert all(clip.plan for clip in clips), "they can be cut"
