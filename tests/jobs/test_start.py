"""Ray that is slow to start, or does not."""

from typing import Any

import pytest
import ray

from mustsee.errors import MustseeError
from ray_jobs.running import cluster


class Starter:
    def __init__(self, failures: int) -> None:
        self.failures, self.tries = failures, 0

    def __call__(self, **_: Any) -> None:
        self.tries += 1
        if self.tries <= self.failures:
            raise Exception("The current node timed out during startup.\nA long trace follows.")


@pytest.mark.parametrize(("failures", "tries"), [(0, 1), (2, 3)])
def test_a_slow_start_is_tried_again_and_said(
    failures: int, tries: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    starter = Starter(failures)
    monkeypatch.setattr(ray, "init", starter)
    cluster._start("starting Ray", 3, address="local")
    assert starter.tries == tries
    said = capsys.readouterr().err.splitlines()
    assert [line.startswith("mustsee: starting Ray failed (The current") for line in said] == [
        True
    ] * failures


def test_no_start_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "init", Starter(9))
    with pytest.raises(MustseeError, match=r"starting Ray failed: The current node") as caught:
        cluster._start("starting Ray", 3, address="local")
    assert "\n" not in str(caught.value)


def test_a_cluster_that_cannot_be_joined_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    starter = Starter(9)
    monkeypatch.setattr(ray, "init", starter)
    monkeypatch.setattr(cluster, "answers", lambda address: True)
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    said = r"^joining the Ray cluster at head:6379 failed: The"
    with pytest.raises(MustseeError, match=said), cluster.connected():
        pass
    assert starter.tries == 1
