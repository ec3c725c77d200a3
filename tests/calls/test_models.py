"""The table of models: what it says, where it applies, and how it is written."""

from __future__ import annotations

import json
import zipfile
from datetime import date, timedelta
from pathlib import Path

import pytest

from deploy import model_snapshot
from mustsee.calls.models import end_note, find_model, find_price, model_table
from mustsee.errors import UserError

OPENAI = "https://api.openai.com/v1"
GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai"
OPENROUTER = "https://openrouter.ai/api/v1"
OWN = "http://127.0.0.1:8000/v1"


def test_a_name_is_looked_up_at_the_provider_of_its_address() -> None:
    names = [
        ("gpt-6-luna", OPENAI), ("models/gemini-3.8-flash", GEMINI), ("gpt-6-luna", OWN),
        ("openai/gpt-6-luna", OPENROUTER), ("google/gemini-3.8-flash", "https://gate.example/v1"),
        ("gpt-6-luna", "https://mine.openai.azure.com/openai/v1"), ("gpt-6-luna", GEMINI),
        ("gpt-6-luna", "https://api.openai.com.evil.example/v1"), ("Qwen/Qwen3.5-9B", OWN),
        ("nobody/gpt-6-luna", OPENROUTER), ("no-such", OPENAI),
    ]  # fmt: skip
    found = [known.name if (known := find_model(*name)) else None for name in names]
    assert found == [
        "openai/gpt-6-luna", "gemini/gemini-3.8-flash", "openai/gpt-6-luna",
        "openai/gpt-6-luna", "gemini/gemini-3.8-flash", "azure/gpt-6-luna", None,
        "openai/gpt-6-luna", None, None, None,
    ]  # fmt: skip


def test_a_price_is_the_users_or_that_of_the_table() -> None:
    table = find_price({}, "gpt-6-luna", OPENAI)
    assert table is not None
    assert (table.tokens_in, table.tokens_out, table.tokens_cached) == (0.1, 0.5, 0.01)
    given = find_price({"gpt-6-luna": [3, 4]}, "gpt-6-luna", OPENAI)
    assert given is not None
    assert (given.tokens_in, given.long) == (3, None)
    assert find_price({}, "mine", OPENAI) is None
    assert find_price({}, "mine", OWN, paid=False) is not None  # no key, no bill
    # A proxy without a key may still call a paid model.
    assert find_price({}, "gpt-6-luna", OWN, paid=False) == table


def test_long_prompts_and_writes_to_the_cache_have_their_own_price() -> None:
    luna = find_price({}, "gpt-6-luna", OPENAI)
    assert luna is not None
    assert luna.usd(272_000, 1000) == pytest.approx(0.0272 + 0.0005)
    assert luna.usd(272_001, 1000) == pytest.approx(0.0544002 + 0.00075)
    assert luna.usd(1000, 0, 400, 600) == pytest.approx((400 * 0.01 + 600 * 0.125) / 1e6)


def test_a_free_model_of_openrouter_is_free_and_has_no_end_of_its_maker() -> None:
    known = find_model("google/gemma-4-26b-a4b-it:free", OPENROUTER)
    assert known is not None
    assert known.price is not None
    assert (known.price.tokens_in, known.shutdown) == (0, None)
    assert find_model("who/knows:free", OPENROUTER) is not None
    assert find_model("google/gemma-4-26b-a4b-it:free", OWN) is None


def test_every_row_can_be_used() -> None:
    table = model_table()
    assert len(table.models) > 1000
    for name, known in table.models.items():
        if known.price is not None:
            assert known.price.usd(1e6, 1e6) >= 0, name
        assert known.shutdown is None or known.shutdown > date(2023, 1, 1), name
    assert "image" in (table.models["openai/gpt-6-luna"].inputs or ())
    assert table.models["openai/whisper-1"].usd_second == 0.0001


@pytest.mark.parametrize(
    ("days", "says"),
    [(400, ""), (90, "stops in 90 days"), (1, "stops in 1 day ("), (0, "has stopped"), (-9, "has")],
)
def test_a_near_end_is_said(days: int, says: str) -> None:
    today = date(2026, 11, 28)
    said = end_note(today + timedelta(days=days), "gpt-6-luna", today)
    assert said.startswith(says)
    assert bool(said) == ("gpt-6-luna in its place" in said) == bool(says)
    assert end_note(None, "x", today) == ""


ENTRY = {
    "litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 2e-6,
    "output_cost_per_token": 8e-6, "supports_vision": True, "deprecation_date": "2027-01-14",
    "input_cost_per_token_above_272k_tokens": 4e-6, "output_cost_per_token_above_272k_tokens": 1e-5,
    "max_input_tokens": 1000,
}  # fmt: skip


def test_a_snapshot_keeps_what_is_read_of_the_wheel(tmp_path: Path) -> None:
    wheel = tmp_path / "litellm-9.8.7-py3-none-any.whl"
    entries = {
        "gpt-x": ENTRY,
        "gemini/gem": {**ENTRY, "litellm_provider": "gemini"},
        "drawn": {**ENTRY, "mode": "image_generation"},
        "far": {**ENTRY, "litellm_provider": "far_away"},
        "sample_spec": {"mode": "one of: chat"},
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(model_snapshot.SOURCE_FILE, json.dumps(entries))
    content = model_snapshot.snapshot(wheel, date(2026, 1, 2))
    assert (content["source"], content["taken"]) == ("litellm 9.8.7", "2026-01-02")
    assert list(content["models"]) == ["gemini/gem", "openai/gpt-x"]
    assert content["models"]["openai/gpt-x"] == {
        "usd": [2.0, 8.0], "context": 1000, "inputs": ["image"], "shutdown": "2027-01-14",
        "long": [272_000, 4.0, 10.0],
    }  # fmt: skip
    model_snapshot.write(content, tmp_path / "m.json")
    assert json.loads((tmp_path / "m.json").read_text()) == content
    with pytest.raises(UserError, match="not a wheel of litellm"):
        model_snapshot.snapshot(tmp_path / "m.json", date(2026, 1, 2))
