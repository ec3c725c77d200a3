"""Which layout a path is in, by what it holds."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from mustsee.errors import UserError
from mustsee.layouts import cinepile, egoschema, mlvu, neptune, ours
from mustsee.layouts.reading import Reading, rows_of

Reader = Callable[[Path], Reading]
READERS: dict[str, Reader] = {
    "ours": ours.read,
    "neptune": neptune.read,
    "cinepile": cinepile.read,
    "egoschema": egoschema.read,
    "mlvu": mlvu.read,
}

# Options in columns of their own: as open questions they would be misread.
_OPTION = re.compile(
    r"(?:a|option_?|choice_?|answer_)[0-9a-e]|[A-E]|options|choices", re.IGNORECASE
)


def read(path: str | Path, layout: str | None = None) -> Reading:
    """Questions from a file or folder in any of the layouts (`layout` names it where the content
    does not tell). Raises UserError when there is nothing to read.
    """
    place = Path(path)
    if not place.exists():
        raise UserError(f"no such file or folder: {str(place)!r}")
    if layout is not None and layout not in READERS:
        raise UserError(f"layout={layout!r}: expected one of {', '.join(READERS)}")
    return READERS[layout or _layout(place)](place)


def _layout(place: Path) -> str:
    if place.is_dir():
        if (place / "questions.parquet").exists():
            return "ours"
        if any(place.glob("neptune_*.json")):
            return "neptune"
        if (place / "questions.json").exists():
            return "egoschema"
        if any(mlvu.is_list(p.stem) for p in place.rglob("*.json")):
            return "mlvu"
        tables = [*sorted(place.rglob("*.parquet")), *sorted(place.rglob("*.csv"))]
        if not tables:
            raise UserError(f"no questions in {str(place)!r}: none of the known files is there")
        return _layout(tables[0])
    columns = _columns(place)
    if "question_id" in columns and "answer_index" in columns:
        return "ours"
    if any(c.startswith("answer_choice_") for c in columns):
        return "neptune"
    if "answer_key" in columns or "yt_clip_link" in columns:
        return "cinepile"
    if "q_uid" in columns or "video_idx" in columns:
        return "egoschema"
    if {"video", "video_name"} & columns and "question" in columns:
        if elsewhere := sorted(c for c in columns if _OPTION.fullmatch(c)):
            like = " (as in NExT-QA)" if "a0" in elsewhere else ""
            raise UserError(
                f"{str(place)!r} has its options in the columns {elsewhere}{like}, which no known "
                "layout has: put them into one column 'candidates', a list of texts with 'answer' "
                "among them, in a .json, .jsonl or .parquet file (layout mlvu)"
            )
        return "mlvu"
    raise UserError(
        f"{str(place)!r} is in no known layout: its columns are {sorted(columns)}; known are "
        f"{', '.join(READERS)}"
    )


def _columns(place: Path) -> set[str]:
    if place.suffix == ".parquet":
        import pyarrow.parquet as pq

        try:
            return set(pq.read_schema(place).names)
        except (OSError, ValueError) as error:
            raise UserError(f"cannot read questions from {str(place)!r}: {error}") from error
    rows = rows_of(place)
    return {key for row in rows[:20] for key in row}
