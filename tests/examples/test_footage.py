"""The demonstration's videos of real footage: made of two wheels, whose files are checked."""

from __future__ import annotations

import hashlib
import importlib
import io
import zipfile
from pathlib import Path
from types import ModuleType

import av
import pytest
from PIL import Image

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def footage(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module("make_footage")


def write_wheel(folder: Path) -> str:
    """Write a wheel with one photograph, red on its left and blue on its right."""
    photo, file = Image.new("RGB", (640, 360), "blue"), io.BytesIO()
    photo.paste("red", (0, 0, 320, 360))
    photo.save(file, "PNG")
    with zipfile.ZipFile(folder / "scikit_image-1.whl", "w") as wheel:
        wheel.writestr("skimage/data/coffee.png", file.getvalue())
    return hashlib.sha256(file.getvalue()).hexdigest()


def test_a_camera_moves_over_a_photograph(
    footage: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(footage.PHOTOS, "coffee.png", (write_wheel(tmp_path), "ours"))
    left, right = (0.2, 0.28, 0.3), (0.8, 0.28, 0.3)
    shots = (footage.Pan("coffee.png", left, right, say="From left to right.", seconds=2),)
    cues = footage.encode(shots, footage.Sources(tmp_path), tmp_path / "a.mp4")
    assert [(round(c.start, 2), round(c.end, 2), c.text) for c in cues] == [
        (0.6, 1.4, "From left to right.")
    ]
    with av.open(str(tmp_path / "a.mp4")) as opened:
        frames = [frame.to_image() for frame in opened.decode(video=0)]
    assert len(frames) == 24
    first, last = (frame.getpixel((320, 180)) for frame in (frames[0], frames[-1]))
    assert first[0] > 200 > 60 > first[2]
    assert last[2] > 200 > 60 > last[0]


def test_another_file_than_the_one_used_before_is_refused(
    footage: ModuleType, tmp_path: Path
) -> None:
    write_wheel(tmp_path)
    sources = footage.Sources(tmp_path)
    with pytest.raises(SystemExit, match=r"coffee\.png"):
        sources.read("coffee.png")
    with pytest.raises(SystemExit, match=r"bikes\.mp4: missing"):
        sources.read("bikes.mp4")
