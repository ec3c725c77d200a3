"""What the folders of `mustsee/recipes` register: a paper is found by its folder, in no list.

from mustsee.papers import papers
papers()["neptune"].load_layout().read(path)
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

RECIPES = Path(__file__).parent / "recipes"


@dataclass(frozen=True, kw_only=True)
class Paper:
    """The `PAPER` of `mustsee/recipes/NAME/__init__.py`. Modules and functions are named, not
    imported: `import mustsee.recipes.NAME` stays light.
    """

    # module of the released layout: read(path), write(questions, path, videos),
    # is_folder(path) and is_table(column names), by which files without a named layout are detected
    layout: str | None = None
    # whether other layouts may have the same signs: it is then tried after all others
    shares_signs: bool = False
    # "module:function" that writes an audit's `clean/` from (questions, folder, videos, source);
    # null: the layout's `write`
    clean: str | None = None
    # module of the offline rules: RULES maps the name of a prompt to its rule; prompts without one
    # need a model
    rules: str | None = None
    # what the rules need of a video to ask about it, for messages
    rules_need: str = "more than there is"
    # prompt of a multiple-choice question in an evaluation
    choice_prompt: str = "evaluate/choice"

    def load_layout(self) -> Any:
        """Import the module of the layout. Raises LookupError where the paper has none."""
        if self.layout is None:
            raise LookupError("the paper has no layout of its own")
        return importlib.import_module(self.layout)

    def load_clean(self) -> Callable[..., object] | None:
        """Import the function that writes `clean/`; null where the layout's `write` does."""
        if self.clean is None:
            return None
        module, _, name = self.clean.partition(":")
        return getattr(importlib.import_module(module), name)

    def load_rules(self) -> dict[str, Any]:
        """Import the offline rules, by prompt; none where the paper has none."""
        return {} if self.rules is None else dict(importlib.import_module(self.rules).RULES)


@cache
def papers() -> dict[str, Paper]:
    """Return the paper of every folder in `mustsee/recipes`, by name, in alphabetical order."""
    names = sorted(m.name for m in pkgutil.iter_modules([str(RECIPES)]) if m.ispkg)
    return {name: importlib.import_module(f"mustsee.recipes.{name}").PAPER for name in names}
