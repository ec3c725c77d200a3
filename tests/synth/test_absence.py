"""A probe is searched for in its background as it is, with bars, and mirrored."""

from pathlib import Path

import numpy as np
import pytest

from mustsee.synth.absence import Absence, fitted_descriptors, frame_descriptors, nearest
from tests.support.sample_videos import scene, write

PROBE = (160, 120)
HOST = (256, 144)


def add_pillars(image: np.ndarray) -> np.ndarray:
    """A 4:3 image in the middle of a 16:9 one."""
    width, height = HOST
    inner = image[np.ix_(np.arange(height) * 120 // height, np.arange(192) * 160 // 192)]
    framed = np.zeros((height, width, 3), np.uint8)
    framed[:, 32:224] = inner
    return framed


@pytest.mark.parametrize("how", ["whole", "pillars", "mirrored", "both", "absent"])
def test_a_copy_of_the_probe_is_found_with_any_framing(tmp_path: Path, how: str) -> None:
    probe = [scene(7, n, *PROBE) for n in range(50)]
    size = PROBE if how in ("whole", "mirrored") else HOST
    others = [[scene(20 + k, n, *size) for n in range(50)] for k in range(4)]
    copy = {
        "whole": probe,
        "pillars": [add_pillars(image) for image in probe],
        "mirrored": [image[:, ::-1] for image in probe],
        "both": [add_pillars(image[:, ::-1]) for image in probe],
        "absent": others[3],
    }[how]
    clip = write(tmp_path / "clip.mp4", probe)
    host = write(tmp_path / "host.mp4", [*others[0], *others[1], *copy, *others[2]])
    background = frame_descriptors(str(host), 0.5)
    time, distance = nearest(fitted_descriptors(str(clip), 0.5, 0.0, 2.0, size), background)
    limit = Absence().apart
    assert limit is not None
    if how == "absent":
        assert distance > limit
    else:
        assert distance < limit / 2
        assert 4.0 <= time < 6.0
    unframed = nearest(frame_descriptors(str(clip), 0.5), background)[1]
    assert (unframed < limit) == (
        how == "whole"
    )  # without fitting, only the unframed copy is found
