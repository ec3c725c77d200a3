"""Which of these happens last before X?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mustsee.facts.forms.after import AfterForm


@dataclass(frozen=True, kw_only=True)
class BeforeForm(AfterForm):
    """As `AfterForm`, with the moments before in place of the next ones."""

    name: ClassVar[str] = "before"
    nearest: ClassVar[str] = "last"
    step: ClassVar[int] = -1
