"""What a dry run is asked, what a run has still to do, and what was tried of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from actors.engine.stage import Stage
from mustsee.errors import UserError
from mustsee.run.estimate import TriedRow


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """`dry_run`: say what the run would take, and end. `dry_run_rows`: rows that it is told from.
    `dry_run_usd`: the most that asking the models about these rows may cost; 0: rules stand in for
    them. `dry_run_call_seconds`: of one call; None: by its tokens.
    """

    dry_run: bool = False
    dry_run_rows: int = 5
    dry_run_usd: float = 0.0
    dry_run_call_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.dry_run_rows < 1:
            raise UserError(f"dry_run_rows={self.dry_run_rows!r}: at least 1")
        if self.dry_run_usd < 0:
            raise UserError(f"dry_run_usd={self.dry_run_usd!r}: 0 or more")

    @property
    def free(self) -> bool:
        """Whether no endpoint is asked."""
        return self.dry_run and not self.dry_run_usd


@dataclass(frozen=True, kw_only=True)
class RemainingWork:
    """What a run has still to do: its stages, decisions that could be made among them; by row, the
    first of them (by number) that the store lacks; the rows' sizes. `share`: of the rows, those
    that a decision leaves which could not be made yet, from the stage `sampled` on.
    """

    stages: Sequence[Stage]
    since: Mapping[str, int]
    sizes: Mapping[str, float]
    share: float = 1.0
    sampled: int = 0
    undecided: Sequence[str] = ()


@dataclass(kw_only=True)
class RehearsedRows:
    """What was tried: `did[n]`, by row, what the stage `n` did; `kept[n]`: whether that is in the
    store now; `failed`: messages of rows that failed; `opening`: seconds until all stages were up.
    """

    did: list[dict[str, TriedRow]] = field(default_factory=list[dict[str, TriedRow]])
    kept: list[bool] = field(default_factory=list[bool])
    names: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])
    opening: float = 0.0
    spent: float = 0.0
