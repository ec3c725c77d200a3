"""A function's name is a verb with its object, or the noun that it returns; a class name has one
meaning in the whole package.
"""

import ast
import collections
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from ray_jobs.cli.compose import CONF

ROOT = CONF.parent
ROOMS = ("mustsee", "actors", "ray_jobs", "serve", "loopback", "benchmarks", "deploy")
FILES = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))]  # fmt: skip

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


def imported_modules(path: Path) -> set[str]:
    """What a file imports anywhere, `from a import b` as `a` and `a.b`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def room_of(folder: Path) -> Path | None:
    """The folder of the code that a folder of tests is of."""
    return next((r / folder for r in (ROOT, ROOT / "mustsee") if (r / folder).is_dir()), None)


def test_tests_lie_in_folders_as_the_code() -> None:
    """At the top are those of the flat modules, and of the whole."""
    tests, whole = ROOT / "tests", ("browser", "golden", "real", "support")
    files = {path: path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}
    rooms = {folder: room_of(folder) for folder in files.values() if folder.parts}
    rooms = {f: room for f, room in rooms.items() if f.parts[0] not in whole}
    assert rooms
    assert [str(f) for f, room in rooms.items() if room is None] == [], "tests of no folder"
    strangers: list[str] = []
    for path, folder in files.items():
        room = rooms.get(folder)
        # A test of a job may start it as a process; what lies in deploy and examples is no package.
        if room is None or folder == Path("ray_jobs") or not (room / "__init__.py").is_file():
            continue
        package = ".".join(room.relative_to(ROOT).parts)
        # Or what its neighbours made; a test of a contract names its part by its configuration.
        own = (f"{package}.", f"tests.{'.'.join(folder.parts)}.", "tests.support.contract.")
        if not any(f"{m}.".startswith(own) for m in imported_modules(path)):
            strangers.append(f"{path.relative_to(ROOT)} imports nothing of {package}")
    assert strangers == []
    flat = {path.stem.removeprefix("test_") for path in tests.glob("test_*.py")}
    of_all = {"command", "docs", "extras", "hostile", "names", "package", "pasted"}
    assert [n for n in sorted(flat - of_all) if not (ROOT / "mustsee" / f"{n}.py").is_file()] == []


def test_all_lists_the_names_that_a_module_passes_on() -> None:
    """`__all__` marks imports that are there for others; a list of a module's own names would only
    say again what its underscores say.
    """
    lists: dict[str, list[str]] = {}
    for path in FILES:
        body = ast.parse(path.read_text()).body
        imported = {
            alias.asname or alias.name
            for node in [n for top in body for n in ast.walk(top)]
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for node in body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                place = str(path.relative_to(ROOT))
                lists[place] = ast.literal_eval(node.value)
                module = import_module(
                    place.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")
                )
                assert [n for n in lists[place] if not hasattr(module, n)] == [], place
                assert imported & {*lists[place]}, f"{place} lists no name of another module"
    assert "mustsee/__init__.py" in lists
