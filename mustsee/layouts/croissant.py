"""`croissant.json`: machine-readable metadata of a dataset folder (Croissant 1.0, with the
responsible-AI fields).

Files are named relative to the folder, with their SHA-256, so that the folder can be moved and
published. The texts on the making of the data are derived from the questions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyarrow import DataType

FILE = "croissant.json"
RAI = "http://mlcommons.org/croissant/RAI/"
CONTEXT = Path(__file__).parents[1] / "assets" / "croissant_context.json"


def write(
    folder: Path,
    tables: Mapping[str, pa.Schema],
    *,
    title: str,
    contents: str,
    licence: str,
    responsible: Mapping[str, Any],
) -> None:
    """Write `croissant.json` for the folder's parquet files `tables` (path -> columns).

    `contents`: sentences on what the rows hold. `responsible`: the responsible-AI fields.
    """
    value: dict[str, Any] = {
        "@context": json.loads(CONTEXT.read_text("utf-8")),
        "@type": "sc:Dataset",
        "name": title,
        "description": f"Questions on videos. {contents} README.md describes them.",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", RAI + "1.0"],
        "license": licence,
        **responsible,
        "distribution": [_file(folder, name) for name in tables],
        "recordSet": [_records(name, columns) for name, columns in tables.items()],
    }
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    (folder / FILE).write_text(text, encoding="utf-8")


def _file(folder: Path, name: str) -> dict[str, Any]:
    with (folder / name).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{(folder / name).stat().st_size} B",
        "encodingFormat": "application/x-parquet",
        "sha256": digest,
    }


def _records(name: str, columns: pa.Schema) -> dict[str, Any]:
    key = Path(name).stem
    return {
        "@type": "cr:RecordSet",
        "@id": key,
        "name": key,
        "field": [_field(name, key, item.name, item.type) for item in columns],
    }


def _field(file: str, parent: str, name: str, kind: DataType, path: str = "") -> dict[str, Any]:
    """Return a column, or with `path` (`column.subfield`) a subfield."""
    repeated = pa.types.is_list(kind)
    inner = kind.value_type if repeated else kind
    column, _, rest = (path or name).partition(".")
    source: dict[str, Any] = {"fileObject": {"@id": file}, "extract": {"column": column}}
    if rest:
        source["transform"] = {"jsonPath": rest}
    field: dict[str, Any] = {"@type": "cr:Field", "@id": f"{parent}/{name}", "name": name}
    if repeated:
        field["repeated"] = True
    if pa.types.is_struct(inner):
        subfields = [(subfield.name, subfield.type) for subfield in inner]
        field["source"] = source
        field["subField"] = [
            _field(file, field["@id"], n, t, f"{path or name}.{n}") for n, t in subfields
        ]
        return field
    return {**field, "dataType": _type(inner), "source": source}


def _type(kind: DataType) -> str:
    if pa.types.is_boolean(kind):
        return "sc:Boolean"
    if pa.types.is_integer(kind):
        return "sc:Integer"
    return "sc:Float" if pa.types.is_floating(kind) else "sc:Text"
