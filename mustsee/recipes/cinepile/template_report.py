"""The output folder of template induction: the reviewed page is guarded, and a summary is printed.

`templates.md` is for a person to edit. `templates.json` records its hash, so that a later run does
not overwrite an edited page.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyarrow import fs

from mustsee.errors import UserError
from mustsee.recipes.cinepile.templates import QuestionCluster, Template, write_templates
from mustsee.store import resolve

REVIEW = "templates.md"
REPORT = "templates.json"


def check_unedited(out: str) -> None:
    """Raise UserError where `out` holds a page that a person has edited since it was written."""
    filesystem, folder = resolve(out)
    try:
        report = json.loads(filesystem.open_input_file(f"{folder}/{REPORT}").read())
        page = filesystem.open_input_file(f"{folder}/{REVIEW}").read()
    except (FileNotFoundError, ValueError):
        return
    if report.get("review") != _sha256(page):
        raise UserError(
            f"{folder}/{REVIEW} was edited since it was written: choose another out=, or delete it"
        )


def write_output(
    out: str,
    templates: Sequence[Template],
    clusters: Sequence[QuestionCluster],
    report: Mapping[str, Any],
) -> None:
    """Write the templates, their page and the report into `out`."""
    filesystem, folder = resolve(out)
    with tempfile.TemporaryDirectory() as local:
        write_templates(templates, local, clusters)
        review = _sha256(Path(local, REVIEW).read_bytes())
        text = json.dumps({**report, "review": review}, indent=2)
        Path(local, REPORT).write_text(text + "\n")
        filesystem.create_dir(folder, recursive=True)
        fs.copy_files(local, folder, fs.LocalFileSystem(), filesystem)


def summary(report: Mapping[str, Any], kept: Sequence[Template]) -> str:
    """The lines that a run prints: each set's clusters, and the number of templates."""
    lines: list[str] = []
    for kind, entry in report["sets"].items():
        sizes = [c["size"] for c in entry["clusters"]]
        silhouettes = [c["silhouette"] for c in entry["clusters"]]
        lines.append(
            f"{kind}: {entry['questions']} questions, {entry['without_names_and_repeats']} without "
            f"names and repeats, {len(sizes)} clusters of {min(sizes)} to {max(sizes)}, inertia "
            f"{entry['inertia']:.3f}, silhouette {entry['silhouette']:.3f} (of the clusters "
            f"{min(silhouettes):.3f} to {max(silhouettes):.3f})"
        )
        for number in entry["one_title"]:
            c = entry["clusters"][number]
            lines.append(f"cluster {number} gives no templates: {c['share']:.0%} of its questions "
                         f"are on {c['title']!r} ({' '.join(c['words'])})")  # fmt: skip
    categories = Counter(t.category for t in kept)
    lines.append(f"{report['templates']} templates, {report['sound']} not over-specific, "
                 f"{len(kept)} distinct: {dict(categories)}")  # fmt: skip
    return "\n".join(lines)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
