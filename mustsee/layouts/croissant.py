"""`croissant.json`: machine-readable metadata of a dataset folder (Croissant 1.0, with the
responsible-AI fields).

Files are named relative to the folder, with their SHA-256, so that the folder can be moved and
published. The texts on the making of the data are derived from the questions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyarrow import DataType

FILE = "croissant.json"
_RAI = "http://mlcommons.org/croissant/RAI/"
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": _RAI,
    "prov": "http://www.w3.org/ns/prov#",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


@dataclass(frozen=True, kw_only=True)
class ResponsibleAiFields:
    """Texts on the making, use and limits of the data; `sources` are the videos' addresses.
    `synthetic`: whether models or rules are known to have written questions.
    """

    collection: str
    models: tuple[str, ...]
    synthetic: bool
    annotation: str
    biases: str
    limits: str
    uses: str
    sensitive: str
    impact: str
    sources: tuple[str, ...] = ()


def write(
    folder: Path,
    tables: Mapping[str, pa.Schema],
    *,
    title: str,
    contents: str,
    licence: str,
    responsible: ResponsibleAiFields,
) -> None:
    """Write `croissant.json` for the folder's parquet files `tables` (path -> columns).

    `contents`: sentences on what the rows hold.
    """
    value: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": title,
        "description": f"Questions on videos. {contents} README.md describes them.",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", _RAI + "1.0"],
        "license": licence,
        **_responsible(responsible),
        "distribution": [_file(folder, name) for name in tables],
        "recordSet": [_records(name, columns) for name, columns in tables.items()],
    }
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    (folder / FILE).write_text(text, encoding="utf-8")


def _responsible(fields: ResponsibleAiFields) -> dict[str, Any]:
    return {
        "rai:dataCollection": fields.collection,
        "rai:dataCollectionType": "Others",
        "rai:dataAnnotationProtocol": fields.annotation,
        "rai:machineAnnotationTools": list(fields.models) or ["Not recorded."],
        "rai:dataBiases": fields.biases,
        "rai:dataLimitations": fields.limits,
        "rai:dataUseCases": fields.uses,
        "rai:dataSocialImpact": fields.impact,
        "rai:personalSensitiveInformation": fields.sensitive,
        **({"rai:hasSyntheticData": True} if fields.synthetic else {}),
        **({"prov:wasDerivedFrom": list(fields.sources)} if fields.sources else {}),
    }


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
