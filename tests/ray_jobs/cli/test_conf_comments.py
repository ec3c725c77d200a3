"""The comments of conf/ define their keys in plain words, because `--help` shows them."""

import re
from pathlib import Path

import pytest

from ray_jobs.cli.compose import CONF

COMMENT = re.compile(r"(?:^|\s)#\s*(.+)")
CONTINUES = re.compile(  # the key instead of defining it
    r"(?:that|which|who|whom|whose|of|from|for|by|in|on|at|to|as|and|or|so|not|true|false|null)\b"
)
DIALECT = re.compile(
    r"\b(?:nobody|so many|told|anew|once more|mend\w*|films?|pictures|heard|what is said|"
    r"looked at|wrong answers?|thoughts)\b"
)


@pytest.mark.parametrize(
    "path", sorted(CONF.rglob("*.yaml")), ids=lambda p: str(p.relative_to(CONF))
)
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
