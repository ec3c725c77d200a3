"""What `mustsee make` leaves out where nothing reads it."""

from pathlib import Path

import pytest

from actors.stages.look import Look
from ray_jobs.cli.launch import build, compose


@pytest.mark.parametrize(
    ("overrides", "detects"),
    [
        ([], True),
        (["llm=openai", "llm.model=m"], False),
        (["llm=openai", "llm.model=m", "look.objects.always=true"], True),
        (["llm=openai", "llm.model=m", "ask/writer=offline"], True),
        (["llm=openai", "llm.model=m", "ask=neptune"], True),
        (["look=default"], False),
    ],
)
def test_objects_are_detected_where_something_reads_them(
    overrides: list[str], detects: bool, tmp_path: Path
) -> None:
    given = [f"videos={tmp_path}", f"out={tmp_path / 'out'}", *overrides]
    look = build(compose("make", given)).used_look()
    assert isinstance(look, Look)
    assert (look.objects is not None) is detects
