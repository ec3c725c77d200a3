"""Real test material beside a checkout. A user's checkout has none: tests that want it skip."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3] / "shared"


def material(relative: str, *, root: str = "data") -> Path:
    """The path of a material file or folder, or a skip that says what is missing."""
    path = ROOT / root / relative
    if not path.exists():
        pytest.skip(f"no test material {root}/{relative} beside this checkout")
    return path
