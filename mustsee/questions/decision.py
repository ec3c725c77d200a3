"""Decisions that need all rows of a run, taken at a barrier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The changes to rows that a decider orders; rows and questions that it does not name stay.

    `clusters`: video id -> cluster. `drops`: video id -> why the row is dropped. `questions`:
    question id -> why the question is dropped. `metrics`: question id -> further metrics.
    `leaves`: question id -> subsets that it leaves.
    """

    clusters: Mapping[str, int] = field(default_factory=dict[str, int])
    drops: Mapping[str, str] = field(default_factory=dict[str, str])
    questions: Mapping[str, str] = field(default_factory=dict[str, str])
    metrics: Mapping[str, Mapping[str, float]] = field(
        default_factory=dict[str, Mapping[str, float]]
    )
    leaves: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])


class Decider(Protocol):
    """A rule over all rows of a run. `columns`: the large columns that it reads; it always gets the
    small ones.
    """

    @property
    def columns(self) -> Sequence[str]: ...

    def __call__(self, rows: pa.Table, /) -> Decision: ...


@runtime_checkable
class RowSampler(Protocol):
    """A decider that keeps at most `size` rows; None keeps all."""

    @property
    def size(self) -> int | None: ...
