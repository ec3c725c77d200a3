"""The records of a dry run: its settings, the remaining work, and the rehearsed rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from actors.engine.stage import Stage
from mustsee.errors import UserError
from mustsee.run.estimate import TriedRow


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """The settings of a dry run.

    `dry_run`: print what the run would take, and end.
    `dry_run_rows`: number of rows that the estimate is made from.
    `dry_run_usd`: budget of model calls on these rows; 0: the scripted model stands in.
    `dry_run_call_seconds`: duration of one call; None: from its tokens.
    """

    dry_run: bool = False
    dry_run_rows: int = 5
    dry_run_usd: float = 0.0
    dry_run_call_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.dry_run_rows < 1:
            raise UserError(f"dry_run_rows={self.dry_run_rows!r}: must be at least 1")
        if self.dry_run_usd < 0:
            raise UserError(f"dry_run_usd={self.dry_run_usd!r}: must be 0 or more")

    @property
    def free(self) -> bool:
        """Whether no endpoint is called."""
        return self.dry_run and not self.dry_run_usd


@dataclass(frozen=True, kw_only=True)
class RemainingWork:
    """The work that the store lacks.

    `stages`: all stages, and those that write the decisions which could be made already.
    `since`: by row id, the number of its first missing stage.
    `sizes`: by row id, its number of questions or its seconds of video.
    `share`: share of the rows that an open sampling decision keeps, from stage `sampled` on.
    `undecided`: names of decisions that could not be made yet.
    """

    stages: Sequence[Stage]
    since: Mapping[str, int]
    sizes: Mapping[str, float]
    share: float = 1.0
    sampled: int = 0
    undecided: Sequence[str] = ()


@dataclass(kw_only=True)
class RehearsedRows:
    """The rows that went through the stages.

    `did[n]`: the work of stage `n` by row id. `kept[n]`: whether its results are in the store.
    `failed`: messages of failed rows. `opening`: seconds that all stages took to start.
    `spent`: USD.
    """

    did: list[dict[str, TriedRow]] = field(default_factory=list[dict[str, TriedRow]])
    kept: list[bool] = field(default_factory=list[bool])
    names: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])
    opening: float = 0.0
    spent: float = 0.0
