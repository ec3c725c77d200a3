"""Presets name models that live: none stops within 90 days of the table's own date, and no page
names a model that no preset holds.

The table's date is compared, not today's: a checkout whose tests pass today passes them in a year.
`mustsee doctor` and every dry run compare with today.
"""

from __future__ import annotations

import re
from datetime import date
from functools import cache
from pathlib import Path

import pytest

from actors.calls.endpoint import Endpoint
from mustsee.calls.models import SOON_DAYS, find_model, model_table
from ray_jobs.cli.compose import CONF
from ray_jobs.cli.presets import preset_file
from ray_jobs.doctor import (
    WITH_MODELS,
    choice_endpoints,
    last_checked,
    preset_endpoints,
)

ROOT = CONF.parent
OPENAI, GATE = "https://api.openai.com/v1", "https://openrouter.ai/api/v1"
FAMILY = re.compile(  # names of models of providers and of the families that presets use
    r"(?<![\w/.-])((?:[\w-]+/)?(?:gpt-\d|gpt-transcribe|gemini-\d|claude-\w|o\d-mini|whisper-1|"
    r"text-embedding|qwen-?\d[.-]|gemma-?\d)(?:[\w.:-]*\w)?)", re.IGNORECASE,
)  # fmt: skip
# Pages on what was measured or published with models that have ended or will.
HISTORY = ("docs/measured.md", "docs/PAPER.md", "docs/decisions/", "CHANGELOG.md", "examples/")
OTHER_NAMES = {  # names of families, and of weights that users fetch
    "qwen2_5_vl", "Qwen2.5-VL", "Qwen3-VL", "Qwen3-Omni", "Qwen3.5", "GPT-4", "gemma-2-9b-it",
}  # fmt: skip

NAMED = re.compile(r"\bmodel: ([\w./:-]*\w)")
MODELS = {name for file in CONF.rglob("*.yaml") for name in NAMED.findall(file.read_text())}
PRICED_AT = {"README.md": {"gpt-4.1-mini"}}  # the model at whose prices a table was measured


def days_left(shutdown: date | None) -> float:
    return float("inf") if shutdown is None else (shutdown - model_table().taken).days


@cache
def endpoints(preset: str) -> list[Endpoint]:
    return preset_endpoints(preset) if preset in WITH_MODELS else choice_endpoints(preset, "openai")


@pytest.mark.parametrize("preset", [*WITH_MODELS, "hear", "embed", "llm"])
def test_no_model_of_a_preset_stops_soon(preset: str) -> None:
    asked = endpoints(preset)
    assert asked
    for endpoint in asked:
        known = endpoint.table_row
        if endpoint.key_env is not None:  # A server of one's own runs what its owner has.
            assert known is not None, f"{endpoint.model}: the table of models lacks it"
            assert endpoint.known_price is not None
            assert days_left(known.shutdown) > SOON_DAYS, f"{endpoint.model} ends {known.shutdown}"


@pytest.mark.parametrize("preset", WITH_MODELS)
def test_a_preset_has_a_larger_guesser_or_one_that_thinks(preset: str) -> None:
    """As a guesser of the same size that does not think is too kind."""
    text = preset_file(CONF, preset, "make").read_text()
    writer, *guessers = endpoints(preset)
    assert guessers or "thought_tokens" in text.partition("guesser:")[2]
    known = find_model(writer.model, writer.base_url)
    assert known is None or "image" in (known.inputs or {"image"})


@pytest.mark.parametrize("model", sorted(MODELS))
def test_no_model_of_any_file_stops_soon(model: str) -> None:
    """As at OpenAI or, with its maker's name before it, at a gateway."""
    known = find_model(model, GATE if "/" in model else OPENAI)
    assert known is None or days_left(known.shutdown) > SOON_DAYS, f"{model} ends {known.shutdown}"


def test_the_ends_that_are_known_are_noticed() -> None:
    table = model_table()
    assert days_left(table.models["openai/gpt-4.1-mini"].shutdown) <= SOON_DAYS
    assert days_left(table.models["gemini/gemini-2.5-flash"].shutdown) <= SOON_DAYS
    assert days_left(table.models["openai/whisper-1"].shutdown) <= SOON_DAYS


@pytest.mark.parametrize("preset", WITH_MODELS)
def test_a_preset_says_when_it_was_last_checked(preset: str) -> None:
    file = preset_file(CONF, preset, "make")
    assert date.fromisoformat(last_checked(file)) >= date(2026, 11, 28)
    assert "Not verified here" in file.read_text()


def names_on(page: Path) -> set[str]:
    return set(FAMILY.findall(page.read_text()))


def pages() -> list[Path]:
    """The pages that tell a reader what to use now."""
    every = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.txt")]
    return [p for p in every if not str(p.relative_to(ROOT)).startswith(HISTORY)]


@pytest.mark.parametrize("page", pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_page_names_no_model_that_no_preset_holds(page: Path) -> None:
    held = MODELS | OTHER_NAMES | PRICED_AT.get(page.name, set())
    unknown = {name for name in names_on(page) if not {name, name.rpartition("/")[2]} & held}
    assert unknown == set()


def test_names_of_models_are_recognised(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("use gpt-4.1-mini, `google/gemini-2.5-flash`, whisper-1. qwen2.5vl:7b (Gemini)")
    assert names_on(page) == {
        "gpt-4.1-mini", "google/gemini-2.5-flash", "whisper-1", "qwen2.5vl:7b",
    }  # fmt: skip
