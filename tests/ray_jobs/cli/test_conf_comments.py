"""`--help` shows the comments of conf/ and the texts behind fields of classes, in plain words."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from ray_jobs.cli.class_defaults import read_comments, read_defaults
from ray_jobs.cli.compose import CONF

COMMENT = re.compile(r"(?:^|\s)#\s*(.+)")
CONTINUES = re.compile(  # the key instead of defining it
    r"(?:that|which|who|whom|whose|of|from|for|by|in|on|at|to|as|and|or|so|not|true|false|null)\b"
)
DIALECT = re.compile(
    r"\b(?:nobody|so many|told|anew|once more|mend\w*|films?|pictures|heard|what is said|"
    r"looked at|wrong answers?|thoughts)\b"
)
FILES = sorted(CONF.rglob("*.yaml"))


def name(path: Path) -> str:
    return str(path.relative_to(CONF))


def nodes(path: Path) -> list[dict[str, Any]]:
    """The nodes of a file that name a class."""

    def walk(node: Any) -> Iterator[dict[str, Any]]:
        if isinstance(node, dict):
            if "_target_" in node:
                yield node
            for inner in node.values():
                yield from walk(inner)

    return list(walk(OmegaConf.to_container(OmegaConf.load(path), resolve=False)))


def stated(node: Any) -> Any:
    """A value without the keys in which it repeats its class."""
    if not isinstance(node, dict):
        return node
    known = read_defaults(node)
    inner = {key: stated(value) for key, value in node.items()}
    return {k: v for k, v in inner.items() if k == "_target_" or k not in known or known[k] != v}


@pytest.mark.parametrize("path", FILES, ids=name)
def test_comments_define_their_keys(path: Path) -> None:
    wrong = [
        line.strip()
        for line in path.read_text().splitlines()
        if (found := COMMENT.search(line))
        and (
            (CONTINUES.match(found[1]) and not line.lstrip().startswith("#"))
            or DIALECT.search(found[1])
        )
    ]
    assert wrong == []


@pytest.mark.parametrize("path", FILES, ids=name)
def test_texts_of_classes_define_their_fields(path: Path) -> None:
    texts = {key: text for node in nodes(path) for key, text in read_comments(node).items()}
    wrong = {
        key: text
        for key, text in texts.items()
        if CONTINUES.match(text.lower()) or DIALECT.search(text)
    }
    assert wrong == {}


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_file_does_not_repeat_the_defaults_of_a_class(path: Path) -> None:
    text = path.read_text()
    repeated = [
        f"{node['_target_']}: {key}={value}"
        for node in nodes(path)
        for key, value in node.items()
        if key in read_defaults(node)
        and read_defaults(node)[key] == stated(value)
        and not re.search(rf"\$\{{[^}}]*\.{key}\}}", text)  # Another value refers to it.
    ]
    assert repeated == []
