"""Every test runs without a network, a key or a home of its own."""

import os

import pytest
from hypothesis import settings

# Timing belongs to the benches: a busy machine must not fail a property. `make test` tries the same
# cases each time; `pytest --hypothesis-profile=search` tries new ones.
settings.register_profile("same", deadline=None, max_examples=60, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=600, print_blob=True)
settings.load_profile("same")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ.setdefault("JAX_PLATFORMS", "cpu")


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
