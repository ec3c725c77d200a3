"""Real test material beside a checkout. Tests that need it skip where it is missing."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3] / "shared"


def material(relative: str, *, root: str = "data") -> Path:
    """Return the path of a file or folder of the material, or skip the test."""
    path = ROOT / root / relative
    if not path.exists():
        pytest.skip(f"the test material {root}/{relative} is not beside this checkout")
    return path
