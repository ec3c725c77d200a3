"""Writes docs/llms.txt, the index of the documentation for language models (https://llmstxt.org):
one line for each page of mkdocs.yml, with the page's first sentence.

    python deploy/write_llms.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs" / "llms.txt"
MAX_CHARACTERS = 200


def pages(nav: list[Any]) -> Iterator[tuple[str, str]]:
    """Yield (title, file) of a navigation, in order; a section as (title, "")."""
    for entry in nav:
        ((title, target),) = entry.items()
        if isinstance(target, str):
            yield title, target
        else:
            yield title, ""
            yield from pages(target)


def first_sentence(page: Path) -> str:
    """Return the first sentence of a page's prose, without its markup; else its first heading."""
    text = re.sub(r"^(?:```.*?^```|(?: {4}|\||#|!\[|- |\d+\. |<).*?)$", "", page.read_text(),
                  flags=re.DOTALL | re.MULTILINE)  # fmt: skip
    for paragraph in re.split(r"\n\s*\n", text):
        plain = " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph).split())
        if plain:
            return re.split(r"(?<=[.:!?])\s", plain)[0].rstrip(":")[:MAX_CHARACTERS]
    return page.read_text().partition("\n")[0].lstrip("# ")


def render() -> str:
    """Return the content of llms.txt."""
    site: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    lines = [f"# {site['site_name']}", "", f"> {site['site_description']}", "", "## Start"]
    for title, file in pages(site["nav"]):
        if file:
            lines.append(f"- [{title}]({file}): {first_sentence(ROOT / 'docs' / file)}")
        else:
            lines += ["", f"## {title}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(render())
    print(FILE)
