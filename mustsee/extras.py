"""Packages that the base does not bring: an extra of `pyproject.toml` does, or the user."""

from __future__ import annotations

from importlib import import_module

from mustsee.errors import NotInstalled


def need(what: str, install: str, *modules: str) -> None:
    """Raise NotInstalled, in one line, unless all `modules` can be imported. `what`: the choice
    that needs them; `install`: what pip has to be given.
    """
    for name in modules:
        try:
            import_module(name)
        except ImportError as error:
            raise NotInstalled(
                f"{what} needs {name.partition('.')[0]} ({error}): pip install '{install}' on "
                "every machine that runs it"
            ) from error
