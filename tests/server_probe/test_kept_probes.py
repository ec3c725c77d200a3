"""Which evaluations are warned by a probe, and where a probe is found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from actors.answer.llm import AnswerLlm
from actors.llm.offline import Offline
from actors.llm.openai import OpenAI
from mustsee.calls.llm import VideoInput
from mustsee.errors import UserError
from mustsee.files.store import Store
from mustsee.server_probe.record import (
    FILE,
    OTHER_NAME,
    NumeralsResult,
    ProbeRecord,
    SentMaterial,
    ServerFault,
    compare_numerals,
    find_in_store,
    keep_in_store,
    read_probe,
    warn,
)
from mustsee.verify.conditions.seen import Condition
from ray_jobs.evaluate import evaluated_probes, sent_material

URL = "http://127.0.0.1:9/v1"
WHOLE = compare_numerals(tuple(range(10, 42)), tuple(range(10, 42)))
RECORD = ProbeRecord(
    model="m", base_url=URL, taken="2026-11-28T10:00:00+00:00", mustsee="0.1.0", seed=0,
    part="video_url",
    images=[NumeralsResult(kind="images", count=32, state="answered", frames=WHOLE)],
    videos=[NumeralsResult(kind="video", count=32, seconds=32.0, state="answered", frames=WHOLE)],
)  # fmt: skip
FRAMES, VIDEO = SentMaterial(images=48), SentMaterial(video=True, part="video_url")


def warnings(sent: SentMaterial, *faults: tuple[str, str], **changes: Any) -> int:
    named = [ServerFault(kind=kind, about=about, says="It is so.") for about, kind in faults]
    record: Mapping[str, Any] = replace(RECORD, faults=named, **changes).plain()
    return len(list(warn(record, sent)))


def test_a_fault_warns_only_an_evaluation_that_it_concerns() -> None:
    dropped, sound = ("video", "frames dropped"), ("sound", "sound dropped")
    assert warnings(VIDEO, dropped) == 1
    assert warnings(VIDEO, dropped, sound) == 1
    assert warnings(replace(VIDEO, sound=True), dropped, sound) == 2
    assert warnings(FRAMES, dropped, sound) == 0
    assert warnings(FRAMES, ("images", "frames dropped")) == 1
    assert warnings(SentMaterial(), dropped, sound, ("images", "shuffled")) == 0
    assert warnings(VIDEO, ("usage", "usage wrong")) == 0


def test_a_cap_warns_an_evaluation_that_sends_more_images() -> None:
    capped = ("images", "capped")
    assert warnings(SentMaterial(images=48), capped) == 1
    assert warnings(SentMaterial(images=33), capped) == 1
    assert warnings(SentMaterial(images=32), capped) == 0
    assert warnings(SentMaterial(images=1), ("images", "shuffled")) == 0


def test_what_a_server_refuses_warns() -> None:
    refused = NumeralsResult(kind="images", count=48, state="refused", why="at most 32 images")
    images = [*RECORD.images, refused]
    assert warnings(SentMaterial(images=40), images=images) == 1
    assert warnings(SentMaterial(images=16), images=images) == 0
    video = NumeralsResult(kind="video", count=8, seconds=8.0, state="refused", why="no videos")
    assert warnings(VIDEO, videos=[video], part="") == 1
    assert warnings(FRAMES, videos=[video], part="") == 0
    assert warnings(VIDEO, ("video", OTHER_NAME), part="image_url") == 1
    assert warnings(replace(VIDEO, part="image_url"), ("video", OTHER_NAME), part="image_url") == 0


def test_a_probe_is_found_in_the_store_by_model_and_address(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    assert find_in_store(store, "m", URL) is None
    keep_in_store(store, RECORD)
    keep_in_store(store, replace(RECORD, seed=7))
    found = find_in_store(store, "m", URL)
    assert found is not None
    assert found["seed"] == 7
    assert find_in_store(store, "other", URL) is None
    assert find_in_store(store, "m", "http://127.0.0.1:10/v1") is None


def test_a_folder_must_hold_a_probe_of_the_model_that_is_asked(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(RECORD.dump())
    for path in (tmp_path, tmp_path / FILE):
        assert read_probe(str(path), "m", URL)["model"] == "m"
    with pytest.raises(UserError, match="'other'"):
        read_probe(str(tmp_path), "other", URL)
    with pytest.raises(UserError, match="cannot be read"):
        read_probe(str(tmp_path / "nowhere"), "m", URL)
    (tmp_path / FILE).write_text("[1]")
    with pytest.raises(UserError, match="no probe of this version"):
        read_probe(str(tmp_path), "m", URL)


def model(**more: Any) -> OpenAI:
    return OpenAI(model="m", base_url=URL, key_env=None, **more)


@pytest.mark.parametrize(
    ("llm", "see", "expected"),
    [
        (model(), Condition(frames=48), SentMaterial(images=48)),
        (model(), Condition(fps=1.0, most=200), SentMaterial(images=200)),
        (model(), Condition(condition="one_frame", frames=8), SentMaterial(images=1)),
        (model(), Condition(), SentMaterial()),
        (model(watches=True), Condition(frames=48), VIDEO),
        (model(watches=True), Condition(frames=48, transcript=True), replace(VIDEO, sound=True)),
        (model(frames_as="clip"), Condition(frames=48), VIDEO),
        (
            model(watches=True, video=VideoInput(part="image_url")),
            Condition(frames=48),
            replace(VIDEO, part="image_url"),
        ),
    ],
)
def test_what_an_evaluation_sends(llm: OpenAI, see: Condition, expected: SentMaterial) -> None:
    assert sent_material(AnswerLlm(llm=llm, see=see), llm) == expected


def test_probes_of_a_model_and_of_its_fallbacks(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    keep_in_store(store, replace(RECORD, model="spare"))
    answer = AnswerLlm(llm=model(fallback=({"model": "spare"},)), see=Condition(frames=4))
    (spare,) = evaluated_probes(answer, None, str(tmp_path))
    assert spare.record["model"] == "spare"
    keep_in_store(store, RECORD)
    probes = evaluated_probes(answer, None, str(tmp_path))
    assert [p.name for p in probes] == ["probe.json", "probe_2.json"]
    rules = AnswerLlm(llm=Offline(), see=Condition())
    assert evaluated_probes(rules, None, str(tmp_path)) == []
    with pytest.raises(UserError, match="asks no endpoint"):
        evaluated_probes(rules, str(tmp_path), str(tmp_path))
