"""Names and comments say what they are: a function is a verb and its object, or the noun that it
returns; a class has one meaning in the whole package; a comment of the configuration defines its
key instead of going on with it as if it were a sentence.
"""

import ast
import collections
import re
from collections.abc import Iterator
from pathlib import Path

from ray_jobs.running.compose import CONF

ROOT = CONF.parent
FILES = [p for room in ("mustsee", "actors", "ray_jobs", "serve") for p in (ROOT / room).rglob("*.py")]

PARTICIPLE = re.compile(
    r"\w*[^e]ed|\w{2,}ing|\w+(?:tten|oken|ought|own|ept|eld|awn)|told|said|made|left|done|gone|found|heard|seen|"
    r"given|taken|meant|put|read_out|fallen|chosen|risen|lost"
)
PARTICLES = frozenset(
    "about after again alone apart aside before beside between beyond both either else enough most "
    "none once only out over some such then within without wrong".split()
)
WORDS = frozenset("embed string".split())  # a verb and a noun that only look like participles
ALLOWED_FUNCTIONS = {
    "after": "a key of conf/filters: the stage after which a filter looks at a video",
}
ALLOWED_CLASSES: dict[str, str] = {}
CONTINUES = re.compile(
    r"(?:that|which|who|whom|whose|of (?:it|them|these|those|what)|(?:from|by|to|in|at|with) which)\b"
)


def is_bare(name: str) -> bool:
    """Whether the whole name is a participle or a particle."""
    return name not in WORDS and (name in PARTICLES or PARTICIPLE.fullmatch(name) is not None)


def definitions(kind: type[ast.AST] | tuple[type[ast.AST], ...]) -> Iterator[tuple[str, str]]:
    """(name, file:line) of everything public of a kind that the product defines."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(node, "name", "_")
            if isinstance(node, kind) and not name.startswith("_"):
                yield name, f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"


def test_functions_are_verbs_with_an_object_or_nouns() -> None:
    functions = definitions((ast.FunctionDef, ast.AsyncFunctionDef))
    bare = [f"{place} {name}" for name, place in functions if is_bare(name)]
    assert [each for each in bare if each.split()[1] not in ALLOWED_FUNCTIONS] == []


def test_a_class_name_has_one_meaning() -> None:
    places: dict[str, list[str]] = collections.defaultdict(list)
    for name, place in definitions(ast.ClassDef):
        places[name].append(place)
    several = {name: found for name, found in places.items() if len(found) > 1}
    assert {name: several[name] for name in several.keys() - ALLOWED_CLASSES} == {}


def test_what_is_allowed_is_there() -> None:
    functions = {name for name, _ in definitions((ast.FunctionDef, ast.AsyncFunctionDef))}
    assert ALLOWED_FUNCTIONS.keys() <= functions
    assert all(is_bare(name) for name in ALLOWED_FUNCTIONS)


def test_bare_names_are_told_from_verbs_and_nouns() -> None:
    for name in ("asked", "told", "without", "counting", "written", "wrong"):
        assert is_bare(name), name
    for name in ("embed", "speed", "string", "ask", "split_lines", "key", "known_keys", "ring"):
        assert not is_bare(name), name


def test_comments_of_the_configuration_define_their_key() -> None:
    continued: list[str] = []
    for path in sorted(CONF.rglob("*.yaml")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            comment = re.match(r"\s*[\w.]+:[^#]*\s#\s+(.*)", line)
            if comment and CONTINUES.match(comment[1]):
                continued.append(f"{path.relative_to(ROOT)}:{number} {comment[1]}")
    assert continued == []
