"""Every test runs without a network, a key or a home of its own."""

import ast
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
# Threads of a library wait for each other busily: on small arrays that is up to six times the work.
# This file is read before anything imports numpy.
for library in ("OMP", "OPENBLAS"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
# Ray's workers run at niceness 15: beside the tests' own processes they would get little of a core.
os.environ.setdefault("RAY_worker_niceness", "0")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# What outlives its test must not start a Ray for the next one.
os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")
gc.disable()  # until all is collected: what is imported stays


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in the developer's environment must not turn a test into a bill."""
    for name in ("OPENAI_API_KEY", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Without the slow tests a file that is slow as a whole is not imported: torch and JAX take
    seconds.
    """
    if config.option.markexpr != "not slow" or not collection_path.match("test_*.py"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    if "\npytestmark = " not in text:
        return None
    marks = [
        ast.unparse(node.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    return any("mark.slow" in each for each in marks) or None


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
    gc.enable()


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
