"""A function's name is a verb with its object, or the noun that it returns; a class name has one
meaning in the whole package.
"""

import ast
import collections
import re
from collections.abc import Iterator

from ray_jobs.cli.compose import CONF

ROOT = CONF.parent
FILES = [file for room in ("mustsee", "actors", "ray_jobs", "serve", "loopback", "benchmarks")
         for file in sorted((ROOT / room).rglob("*.py"))]  # fmt: skip

PARTICIPLE = re.compile(
    "[a-z]*[^e]ed|[a-z]{2,}ing|[a-z]+(?:tten|oken|ought)|chosen|done|drawn|fallen|found|given|gone|"
    "grown|heard|held|kept|known|left|lost|made|meant|risen|said|seen|shown|taken|told|won|worn"
)
PARTICLES = re.compile(
    "about|after|again|alone|apart|aside|before|beside|between|beyond|both|either|enough|most|none|"
    "once|only|over|some|then|within|without|wrong"
)
WORDS = ("embed", "mapping", "ranking", "sampling", "string", "training")  # a verb, and nouns
ALLOWED = {  # name -> why it stays
    "after": "a key of conf/filters: the stage after which a filter looks at a video",
    "making": "a key of conf/task: how synthetic videos are made",
}


def is_bare(name: str) -> bool:
    """Whether the whole name is a participle or a particle."""
    return name not in WORDS and any(p.fullmatch(name) for p in (PARTICIPLE, PARTICLES))


def definitions(*kinds: type[ast.AST]) -> Iterator[tuple[str, str]]:
    """(name, file:line) of everything public of these kinds that the product defines."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(node, "name", "_")
            if isinstance(node, kinds) and not name.startswith("_"):
                yield name, f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"


def test_functions_are_named_by_verbs_or_nouns() -> None:
    functions = [*definitions(ast.FunctionDef, ast.AsyncFunctionDef)]
    bare = {name: place for name, place in functions if is_bare(name)}
    assert {place: name for name, place in bare.items() if name not in ALLOWED} == {}
    assert ALLOWED.keys() <= bare.keys(), "what is allowed is there"


def test_a_class_name_is_defined_once() -> None:
    places: dict[str, list[str]] = collections.defaultdict(list)
    for name, place in definitions(ast.ClassDef):
        places[name].append(place)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


CONTINUES = re.compile(
    r"_?[A-Z][A-Z0-9_]+(?:: [^=]+)? = .*  # (?:of|on|in|for|by|from|to|with|at|between|before|"
    r"after|that|which|if|where|when|whose|as|around|over|behind|beside|within|without|above|"
    r"below) "
)


def test_a_comment_on_a_constant_does_not_continue_its_name() -> None:
    """`MAX_WORDS = 14  # of a phrase` leaves out what it counts: "words of a phrase, at most"."""
    lines = {
        f"{path.relative_to(ROOT)}:{number}": line
        for path in FILES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if CONTINUES.match(line)
    }
    assert lines == {}


def test_bare_names_are_recognised() -> None:
    for name in ("asked", "told", "without", "counting", "written", "held", "kept", "wrong"):
        assert is_bare(name), name
    for name in ("embed", "string", "speed", "ring", "split_lines", "key", "known_keys", "feed"):
        assert not is_bare(name), name


def test_tests_lie_in_folders_as_the_code() -> None:
    """At the top are those of the flat modules, and of the whole."""
    tests, whole = ROOT / "tests", ("browser", "golden", "real", "support")
    folders = [path.parent.relative_to(tests) for path in tests.rglob("test_*.py")]
    rooms = {folder for folder in folders if folder.parts and folder.parts[0] not in whole}
    assert rooms
    lost = [r for r in rooms if not (ROOT / r).is_dir() and not (ROOT / "mustsee" / r).is_dir()]
    assert not lost, "tests of folders that are not there"
    flat = {path.stem.removeprefix("test_") for path in tests.glob("test_*.py")}
    of_all = {"command", "docs", "extras", "hostile", "names", "package", "pasted"}
    assert [n for n in sorted(flat - of_all) if not (ROOT / "mustsee" / f"{n}.py").is_file()] == []
