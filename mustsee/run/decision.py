"""What is decided over all rows of a run together, at a barrier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Decision:
    """`clusters`: the cluster by video id; `drops`: why a row is dropped, by video id; `questions`:
    why a question is dropped, by question id. What is not named stays as it is.
    """

    clusters: Mapping[str, int] = field(default_factory=dict[str, int])
    drops: Mapping[str, str] = field(default_factory=dict[str, str])
    questions: Mapping[str, str] = field(default_factory=dict[str, str])


class Decider(Protocol):
    """A rule that must see all rows. `columns`: the large ones that it reads besides the small."""

    @property
    def columns(self) -> Sequence[str]: ...

    def __call__(self, rows: pa.Table, /) -> Decision: ...


@runtime_checkable
class RowSampler(Protocol):
    """A decider that keeps at most `size` rows; None: all."""

    @property
    def size(self) -> int | None: ...
