"""What a process was told, written down as it comes, so that its successor knows the same.

A restart log is a file on the local disk, of `(name, arguments)` one after the other. The successor
of a killed process has each of them told to it again; of the last one a kill may have left a part.
"""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Iterator
from typing import Any

from mustsee.errors import MustseeError


class RestartLog:
    """Appends to the file `path`; None: nothing is written down."""

    def __init__(self, path: str | None = None) -> None:
        self._path, self._file = path, -1

    def read_entries(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """What a killed predecessor wrote down. To be read to its end before more is added."""
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
        """Write down that something was told. Raises MustseeError where the disk is full."""
        if self._path is None:
            return
        try:
            os.write(self._file, pickle.dumps((name, arguments)))
        except OSError as error:
            raise MustseeError(
                f"cannot write {self._path!r}, where the run's counts are kept: {error.strerror}; "
                "free space: what is finished is kept, the same command goes on from here"
            ) from error
