"""What `mustsee make` leaves out where nothing reads it."""

from pathlib import Path

import pytest

from actors.stages.look import Look
from ray_jobs.cli.compose import CONF
from ray_jobs.cli.launch import build, compose

MODEL = ("llm=openai", "llm.model=m")
FILTERS = ("metadata", "static", "talking_head")
PRESETS = sorted(path.stem for path in (CONF / "experiment").glob("*.yaml"))
UNNAMED = ("api", "tpu")  # presets that leave the model to you


@pytest.mark.parametrize(
    ("overrides", "objects", "faces"),
    [
        ([], True, True),
        ([*MODEL], False, False),
        ([*MODEL, "look.objects.always=true"], True, False),
        ([*MODEL, "filters=video"], False, True),
        ([*MODEL, "filters=video", *(f"filters.{name}=null" for name in FILTERS)], False, False),
        ([*MODEL, "ask/writer=offline"], True, True),
        ([*MODEL, "ask=neptune"], True, True),
        ([*MODEL, "ask=whole"], False, False),
        ([*MODEL, "ask=script"], False, False),
        (["look=default"], False, True),
    ],
)
def test_objects_and_faces_are_detected_where_something_reads_them(
    overrides: list[str], objects: bool, faces: bool, tmp_path: Path
) -> None:
    assert detectors(overrides, tmp_path) == (objects, faces)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_whose_model_writes_detects_neither(preset: str, tmp_path: Path) -> None:
    overrides = [f"+experiment={preset}", *(["llm.model=m"] if preset in UNNAMED else [])]
    rules = preset == "laptop"
    assert detectors(overrides, tmp_path) == (rules, rules)


def test_a_wish_in_your_own_words_needs_no_detector(tmp_path: Path) -> None:
    wish = tmp_path / "wish.txt"
    wish.write_text("Ask who does what, and why.")
    assert detectors([*MODEL, f"prompt={wish}"], tmp_path) == (False, False)


def detectors(overrides: list[str], folder: Path) -> tuple[bool, bool]:
    """Whether `mustsee make` detects objects, and faces."""
    given = [f"videos={folder}", f"out={folder / 'out'}", *overrides]
    look = build(compose("make", given)).used_look()
    assert isinstance(look, Look)
    return look.objects is not None, look.faces is not None
