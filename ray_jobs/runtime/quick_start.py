"""Keeps work out of the start of a job that the job has no use for."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Generator


@contextlib.contextmanager
def without_collection() -> Generator[None]:
    """Collect no garbage meanwhile, and never scan what is there at the end: what imports make
    stays, and to search it for garbage takes a tenth of a start.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def keep_pandas_out() -> None:
    """Let PyArrow make arrays without a look at pandas, unless that is loaded.

    With the first array of a list it would import pandas, which takes 0.2 s, to see whether the
    list is a series. Jobs have no series. `to_pandas` and Ray Data import it where they need it.
    """
    import pyarrow as pa

    if "pandas" in sys.modules:
        return
    hiding = _WithoutPandas()
    sys.meta_path.insert(0, hiding)
    try:
        pa.array([])  # PyArrow tries once, and remembers that it failed.
    finally:
        sys.meta_path.remove(hiding)


class _WithoutPandas:
    """A finder for which there is no pandas."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("not looked for", name=name)
