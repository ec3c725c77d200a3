"""Writes assets/models.json, our table of models, from a wheel of litellm (`make upgrade`).

    python -m deploy.model_snapshot litellm-1.110.2-cp310-abi3-manylinux_2_28_x86_64.whl

litellm (MIT) keeps prices, context lengths, modalities and shutdown dates of a few thousand models,
with the pages that say so. Its package is 44 MB and asks for boto3, so only what we read of that
one file is kept: chat, embedding and transcription models of the hosts in `mustsee.calls.models`.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from mustsee.calls.models import FILE, PROVIDERS
from mustsee.errors import UserError

SOURCE_FILE = "litellm/model_prices_and_context_window_backup.json"
MODES = ("chat", "embedding", "audio_transcription")
MILLION = 1_000_000
LONG_PROMPT = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")
NOTICE = (
    "Prices in USD per million tokens [in, out, in from the cache of prompts, in written to it], "
    "and USD per second of sound. Of litellm (https://github.com/BerriAI/litellm), MIT License, "
    "Copyright (c) 2023 Berri AI."
)


def snapshot(wheel: Path, taken: date) -> dict[str, Any]:
    """Return the content of models.json. Raises UserError for another file than litellm's wheel."""
    match = re.match(r"litellm-([\w.]+)-", wheel.name)
    try:
        with zipfile.ZipFile(wheel) as archive:
            table = json.loads(archive.read(SOURCE_FILE))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise UserError(f"{wheel}: not a wheel of litellm with {SOURCE_FILE}: {error}") from None
    models = {
        _name(key, entry["litellm_provider"]): _row(entry)
        for key, entry in table.items()
        if entry.get("mode") in MODES and entry.get("litellm_provider") in PROVIDERS
    }
    return {
        "source": f"litellm {match[1]}" if match else wheel.name,
        "taken": taken.isoformat(),
        "notice": NOTICE,
        "models": dict(sorted(models.items())),
    }


def _name(key: str, provider: str) -> str:
    return f"{provider}/{key.removeprefix(f'{provider}/')}"


def _row(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that we read; those that litellm does not know are left out."""
    more = {m[1]: m[0] for key in entry if (m := LONG_PROMPT.fullmatch(key))}
    row: dict[str, Any] = {
        "usd": _prices(entry, ""),
        "usd_second": entry.get("input_cost_per_second"),
        "context": entry.get("max_input_tokens"),
        "longest_reply": entry.get("max_output_tokens"),
        "inputs": _inputs(entry),
        "thinks": entry.get("supports_reasoning") or None,
        "shutdown": entry.get("deprecation_date"),
        "successor": entry.get("successor_model"),
    }
    for thousands in sorted(more, key=int)[:1]:
        suffix = f"_above_{thousands}k_tokens"
        row["long"] = [1000 * int(thousands), *(_prices(entry, suffix) or ())]
    return {key: value for key, value in row.items() if value is not None}


def _prices(entry: Mapping[str, Any], suffix: str) -> list[float | None] | None:
    keys = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost",
            "cache_creation_input_token_cost")  # fmt: skip
    prices = [entry.get(key + suffix) for key in keys]
    if prices[0] is None:
        return None
    in_millions = [None if p is None else round(float(p) * MILLION, 6) for p in prices]
    in_millions[1] = in_millions[1] or 0.0
    while in_millions[-1] is None:
        in_millions.pop()
    return in_millions


def _inputs(entry: Mapping[str, Any]) -> list[str] | None:
    """What the model takes besides text."""
    listed: set[str] = set(entry.get("supported_modalities") or ())
    for kind, key in (("image", "vision"), ("video", "video_input"), ("audio", "audio_input")):
        if entry.get(f"supports_{key}"):
            listed.add(kind)
    return sorted(listed & {"image", "video", "audio"}) or None


def write(content: Mapping[str, Any], file: Path) -> None:
    """Write the table with one model a line, so that a change of one shows as one."""
    head = {key: value for key, value in content.items() if key != "models"}
    rows = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in content["models"].items()]
    text = json.dumps(head)[:-1] + ', "models": {\n' + ",\n".join(rows) + "\n}}\n"
    file.write_text(text)


def main(given: list[str]) -> int:
    if len(given) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        content = snapshot(Path(given[0]), datetime.now(UTC).date())
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    write(content, FILE)
    print(f"{FILE}: {len(content['models'])} models of {content['source']}, {content['taken']}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
