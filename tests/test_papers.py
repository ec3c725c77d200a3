"""A paper is found by its folder, and looking for papers imports none of their code."""

import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import mustsee.recipes
from mustsee.layouts.detect import readers
from mustsee.papers import RECIPES, Paper, papers
from mustsee.prompts import ROOT

NAMES = sorted(path.parent.name for path in RECIPES.glob("*/__init__.py"))


def test_every_folder_of_a_recipe_is_a_paper() -> None:
    assert Path(mustsee.recipes.__path__[0]) == RECIPES
    assert list(papers()) == NAMES
    assert set(NAMES) <= set(readers())


def test_papers_are_found_without_importing_their_code() -> None:
    code = (
        "import sys; from mustsee.papers import papers; papers(); "
        "heavy = [m for m in sys.modules if m.count('.') > 2 and m.startswith('mustsee.recipes.')];"
        "assert not heavy, heavy; assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", NAMES)
def test_everything_that_a_paper_registers_exists(name: str) -> None:
    paper = papers()[name]
    layout = paper.load_layout()
    assert all(callable(getattr(layout, f)) for f in ("read", "write", "is_folder", "is_table"))
    assert Path(ROOT, f"{paper.choice_prompt}.j2").is_file()
    paper.load_clean()
    room = import_module(f"mustsee.recipes.{name}")
    for module in pkgutil.iter_modules(room.__path__):
        import_module(f"{room.__name__}.{module.name}")


def test_a_paper_may_register_nothing() -> None:
    paper = Paper()
    assert paper.load_rules() == {}
    assert paper.load_clean() is None
    with pytest.raises(LookupError):
        paper.load_layout()
