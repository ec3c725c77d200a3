"""Videos shared by several of these tests."""

from pathlib import Path

import pytest

from tests.support.sample_videos import B_FRAMES, cuts, write


@pytest.fixture(scope="session")
def b_frames(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten shots of 12 to 21 frames: H.264 with a pyramid of B-frames, a keyframe every half second,
    1.5 s of sound that begins half a second late.
    """
    path = tmp_path_factory.mktemp("videos") / "b.mp4"
    return write(path, cuts(range(12, 22)), options=B_FRAMES, tone=1.5, late=0.5)
