"""Every test runs without a network, a key or a home of its own."""

import gc
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from omegaconf import OmegaConf

from tests.support import postgres

# Timing belongs to the benches: a busy machine must not fail a property. `make test` tries the same
# cases each time; `pytest --hypothesis-profile=search` tries new ones.
settings.register_profile("same", deadline=None, max_examples=60, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=600, print_blob=True)
settings.load_profile("same")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
# Ray's workers run at niceness 15: beside the tests' own processes they would get little of a core.
os.environ.setdefault("RAY_worker_niceness", "0")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# A thread of Ray Data that outlives its test must not start a Ray of its own for the next one.
os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in the developer's environment must not turn a test into a bill."""
    for name in ("OPENAI_API_KEY", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What has a Ray cluster is slow; models and whole jobs are marked where they stand."""
    for item in items:
        if {"ray", "_ray"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Imported modules live until the end: without them a garbage collection is ten times faster,
    and composing a configuration, which triggers dozens, takes half the time.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def parsed_once() -> Iterator[None]:
    """Parse each configuration file once per content: composing a job reads some thirty files."""
    load = OmegaConf.load
    parsed: dict[bytes, bytes] = {}

    def load_once(file: Any) -> Any:
        try:
            content = Path(getattr(file, "name", file)).read_bytes()
        except (OSError, TypeError):
            return load(file)
        if content not in parsed:
            parsed[content] = pickle.dumps(load(file))
        return pickle.loads(parsed[content])  # ten times as fast as a deep copy

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OmegaConf, "load", load_once)
        yield


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The address of a database; skips where there is none."""
    with postgres.postgresql() as address:
        yield address


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def votes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where votes go: a file that is not there yet, then a schema without tables."""
    if request.param == "sqlite":
        yield str(tmp_path / "votes.sqlite")
        return
    with postgres.schema(request.getfixturevalue("postgresql"), "votes") as address:
        yield address
