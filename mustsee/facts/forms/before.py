"""What happens right before X?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mustsee.facts.forms.after import AfterForm


@dataclass(frozen=True, kw_only=True)
class BeforeForm(AfterForm):
    """As `AfterForm`, with the moment before in place of the next one."""

    name: ClassVar[str] = "before"
    step: ClassVar[int] = -1
