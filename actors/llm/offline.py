"""The offline model, which answers prompts by rules, without weights, key or network.

The rules are in `mustsee/offline/`; a paper may have rules of its own prompts in its folder of
`mustsee/recipes/`. `RULES` of a module maps the name of a prompt to its rule.
"""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

import mustsee.offline
from actors.part import Capabilities
from mustsee.calls.llm import Llm, Reply, Request
from mustsee.errors import BadRow, UserError
from mustsee.offline.evaluate import choice_letter
from mustsee.papers import papers
from mustsee.prompts import ENGLISH
from mustsee.records import RULES

PACKAGE = Path(__file__).parents[2] / "mustsee"
Rule = Callable[[Request], str]
# The package of an import, and its names.
IMPORT = re.compile(r"^[ \t]*(?:from ([\w.]+) )?import (\([^)]*\)|.*)", re.MULTILINE)


@cache
def rules() -> dict[str, Rule]:
    """Prompt name -> rule."""
    rules: dict[str, Rule] = {}
    for module in pkgutil.iter_modules(mustsee.offline.__path__, "mustsee.offline."):
        rules |= getattr(importlib.import_module(module.name), "RULES", {})
    for paper in papers().values():
        rules = {paper.choice_prompt: choice_letter} | rules | paper.load_rules()
    return rules


def has_rules(prompts: str) -> bool:
    """Whether there is a rule for a prompt, or for any in a folder of prompts."""
    return any(name == prompts or name.startswith(f"{prompts}/") for name in rules())


@cache
def revision() -> str:
    """Hash (12 hex digits) of the rules' source: a changed rule is another model."""
    return digest(PACKAGE)


def digest(package: Path) -> str:
    """Hash of the rules in `package`, and of every module of it that they import."""
    total = hashlib.sha256()
    for name, path in sorted(_sources(package).items()):
        total.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()[:12]


def _sources(package: Path) -> dict[str, Path]:
    sources: dict[str, Path] = {}
    waiting = list((package / "offline").glob("*.py"))
    modules = [paper.rules for paper in papers().values() if paper.rules is not None]
    waiting += [package.parent / f"{module.replace('.', '/')}.py" for module in modules]
    while waiting:
        path = waiting.pop()
        name = path.relative_to(package).as_posix()
        if name not in sources:
            sources[name] = path
            waiting += _imported(path, package)
    return sources


def _imported(path: Path, package: Path) -> Iterator[Path]:
    """The package's files that a module imports, also within functions.

    Found by a pattern: the syntax trees of all modules would take 0.2 s of each start.
    """
    for source, names in IMPORT.findall(re.sub("#.*", "", path.read_text())):
        words = re.findall(r"[\w.]+", names)
        for name in [source, *(f"{source}.{word}" for word in words)] if source else words:
            first, *rest = name.split(".")
            if first == package.name and rest:
                below = package.joinpath(*rest)
                files = below.with_suffix(".py"), below / "__init__.py"
                yield from (file for file in files if file.is_file())


@dataclass(frozen=True)
class Offline:
    """The default model."""

    capabilities: ClassVar[Capabilities] = Capabilities(local=True)
    language: str = ENGLISH
    """Language of the job; the rules know English only and refuse another one before any
    work."""

    @property
    def identity(self) -> str:
        return f"{RULES} {revision()}"

    def check(self, budget_usd: float | None = None) -> None:
        """Raise UserError for a language other than English."""
        if self.language != ENGLISH:
            raise UserError(
                f"language={self.language}: the offline rules write and read English only; set a "
                "model (llm=openai llm.model=...)"
            )

    def open(self) -> Llm:
        return OfflineLlm(self.identity)


@dataclass(frozen=True)
class OfflineLlm:
    """The rules as a model; replies depend only on the request's variables and seed."""

    identity: str

    async def complete(self, request: Request) -> Reply:
        """Raises BadRow for a prompt without a rule."""
        rule = rules().get(request.prompt)
        if rule is None:
            raise BadRow(
                f"the offline model has no rule for prompt {request.prompt!r}; it has rules for "
                f"{', '.join(sorted(rules())) or 'none'}; use llm=openai for this prompt"
            )
        return Reply(text=rule(request), model="offline")
