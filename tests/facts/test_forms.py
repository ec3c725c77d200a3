"""What the code knows of forms, it knows by their traits: none is named outside `facts/forms`."""

import ast
from collections.abc import Iterator
from pathlib import Path

from mustsee.facts.forms import DEFAULT_FORMS
from ray_jobs.cli.compose import CONF

ROOT = CONF.parent
FORMS = ROOT / "mustsee/facts/forms"
FILES = [
    path
    for room in ("mustsee", "actors", "ray_jobs", "serve")
    for path in sorted((ROOT / room).rglob("*.py"))
    if FORMS not in path.parents
]
NAMES = {*DEFAULT_FORMS, *(form.name for form in DEFAULT_FORMS.values())}
ALLOWED = {  # file, word -> what else it names there
    ("mustsee/facts/claims.py", "order"): "how an altered version of a claim differs",
    ("mustsee/facts/cases.py", "state"): "a kind of facts",
    ("mustsee/facts/fact_looks.py", "state"): "a kind of facts",
    ("mustsee/facts/parts.py", "part"): "a row of a reply",
    ("mustsee/facts/points.py", "state"): "a kind of facts",
    ("mustsee/facts/settings.py", "state"): "a kind of facts",
    ("mustsee/layouts/task_scoring.py", "when"): "`WHEN` of records, in a copy that imports none",
}


def words_of(node: ast.AST) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value


def is_of_form(node: ast.AST) -> bool:
    """Whether an expression is the form or the key of a question, or a row's."""
    if isinstance(node, ast.Attribute):
        return node.attr in ("form", "forms", "key")
    if isinstance(node, ast.Subscript):
        return "form" in words_of(node.slice) or is_of_form(node.value)
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return called and ("form" in words_of(node) or is_of_form(node.func.value))


def named_forms(path: Path) -> Iterator[str]:
    """Names of forms that a file holds: beside an expression that is a form's; those that are no
    plain English word, anywhere; in what asks about facts, all.
    """
    tree = ast.parse(path.read_text())
    own = path.is_relative_to(ROOT / "mustsee/facts")
    yield from (w for w in words_of(tree) if w in NAMES and (own or "_" in w))
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            parts: list[ast.AST] = [node.left, *node.comparators]
        elif isinstance(node, ast.Subscript | ast.Call):
            parts = [node]
        else:
            continue
        if any(map(is_of_form, parts)):
            yield from (w for part in parts for w in words_of(part) if w in NAMES)


def test_no_form_is_named_outside_its_module() -> None:
    """A new form must need no second place: what is so of it, its traits say."""
    named = {(str(p.relative_to(ROOT)), word) for p in FILES for word in named_forms(p)}
    assert named - ALLOWED.keys() == set()
    assert ALLOWED.keys() <= named, "what is allowed is there"


def test_names_of_forms_are_recognised(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    for code, names in (
        ("if stem.form == 'order': pass", ["order"]),
        ("if stem.form in ('after', 'before'): pass", ["after", "before"]),
        ("a = row.get('form') != 'when'", ["when"]),
        ("a = settings.forms['why']", ["why"]),
        ("a = settings.forms.get('why')", ["why"]),
        ("UNWANTED = ('count_before', 'order')", ["count_before"]),
        ("a = {'after': 1}", []),
        ("raise ValueError('order')", []),
    ):
        file.write_text(code)
        assert sorted(set(named_forms(file))) == names, code
