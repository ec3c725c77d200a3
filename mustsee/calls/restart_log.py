"""The restart log: messages that a process received, written so that its successor can replay them.

It is a file on the local disk with one pickled `(name, arguments)` after another. A kill may have
cut off the last one.
"""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Iterator
from typing import Any

from mustsee.errors import MustseeError


class RestartLog:
    """A restart log in the file `path`; None: nothing is written."""

    def __init__(self, path: str | None = None) -> None:
        self._path, self._file = path, -1

    def read_entries(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Yield the messages of a killed predecessor. Read all of them before adding more."""
        if self._path is None:
            return
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with open(self._file, "rb", closefd=False) as file:
            content = io.BytesIO(file.read())
        whole = 0
        while whole < len(content.getbuffer()):
            try:
                name, arguments = pickle.load(content)
            except (EOFError, pickle.UnpicklingError):
                os.truncate(self._file, whole)
                return
            whole = content.tell()
            yield name, arguments

    def add(self, name: str, *arguments: Any) -> None:
        """Write a message. Raises MustseeError where the disk is full."""
        if self._path is None:
            return
        try:
            os.write(self._file, pickle.dumps((name, arguments)))
        except OSError as error:
            raise MustseeError(
                f"cannot write the run's counts to {self._path!r}: {error.strerror}; free disk "
                "space: finished work is kept, and the same command goes on from here"
            ) from error
