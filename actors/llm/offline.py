"""The offline model: every prompt answered by rules, without weights, key or network.

The rules live in `mustsee/offline/`, one module per area of prompts, each with its `RULES`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mustsee.errors import BadRow
from mustsee.llm import Llm, Reply, Request

AREAS = (
    "caption", "neptune", "filters", "sight", "cinepile", "egoschema", "mlvu", "evaluate", "judge",
)  # fmt: skip
Rule = Callable[[Request], str]


@cache
def rules() -> dict[str, Rule]:
    """Prompt name -> rule."""
    found: dict[str, Rule] = {}
    for area in AREAS:
        if importlib.util.find_spec(f"mustsee.offline.{area}") is not None:
            found |= importlib.import_module(f"mustsee.offline.{area}").RULES
    return found


@cache
def revision() -> str:
    """Hash (12 hex digits) of the rules' source: a changed rule is another model."""
    import mustsee.offline as package

    total = hashlib.sha256()
    for path in sorted(Path(package.__path__[0]).glob("*.py")):
        total.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()[:12]


@dataclass(frozen=True)
class Offline:
    """The default model."""

    @property
    def identity(self) -> str:
        return f"offline {revision()}"

    def open(self) -> Llm:
        return OfflineLlm(self.identity)


@dataclass(frozen=True)
class OfflineLlm:
    """Deterministic in the request's variables and seed."""

    identity: str

    async def complete(self, request: Request) -> Reply:
        """Raises BadRow for a prompt without a rule."""
        rule = rules().get(request.prompt)
        if rule is None:
            raise BadRow(
                f"the offline model has no rule for prompt {request.prompt!r}; it knows "
                f"{', '.join(sorted(rules())) or 'none'}; use llm=openai for this prompt"
            )
        return Reply(text=rule(request), model="offline")
