"""The training beside `mustsee clean`: same steps, answers alone, resumed, compared."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deploy.train_vlm import fit, train
from deploy.train_vlm.memory import estimate_memory
from deploy.train_vlm.rows import RowReader, join_answer, read_rows, row_frames
from deploy.train_vlm.settings import TrainSettings, read_settings
from mustsee.errors import UserError
from tests.support.train_vlm import write_material

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    # peft asks a name that transformers has renamed.
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning"),
]


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    torch = pytest.importorskip("torch")
    pytest.importorskip("peft")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # Threads for a tiny model would wait for each other.
    yield write_material(tmp_path_factory.mktemp("train_vlm") / "material")
    torch.set_num_threads(threads)


def given(material: Path, out: Path, **more: object) -> list[str]:
    values = {
        "model": material / "model", "data": material / "raw.jsonl", "videos": material / "videos",
        "questions": material / "held.csv", "held_out": material / "held", "out": out, "steps": 6,
        "batch": 3, "frames": 2, "longest": 64, "rate": 0.01, "rank": 8, "save": 2,
        "max_tokens": 8, **more,
    }  # fmt: skip
    return [f"{key}={value}" for key, value in values.items()]


def settings(material: Path, out: Path, **more: object) -> TrainSettings:
    return read_settings(given(material, out, **more))


def record(out: Path) -> dict[str, Any]:
    return json.loads((out / "train.json").read_text())


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def opened(material: Path, out: Path, **more: object) -> tuple[Any, fit.AdapterFit, list[Any]]:
    """Return the model, a training of it, and its rows."""
    own = settings(material, out, **more)
    model, processor = train.weights.load_checkpoint(
        "t", own.model, None, kind="AutoModelForImageTextToText", reader="AutoProcessor",
        dtype="float32", device="cpu",
    )  # fmt: skip
    rows, _ = read_rows(str(own.data), own.videos)
    return model, fit.AdapterFit(model, RowReader(processor, own), own, "cpu"), rows


@pytest.mark.long
@pytest.mark.timeout(900)
def test_three_sets_are_trained_with_the_same_steps_and_compared(
    material: Path, tmp_path: Path
) -> None:
    rows = (material / "raw.jsonl").read_text().splitlines(keepends=True)
    sets = {"raw": rows, "cleaned": rows[:7], "made": rows[4:]}
    for name, own in sets.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(own))
    values = [v for v in given(material, tmp_path, steps=24) if v.partition("=")[0] not in
              ("data", "out")]  # fmt: skip
    command = [
        "sh", str(ROOT / "deploy/train_vlm/compare.sh"), str(tmp_path / "out"),
        *(f"{name}={tmp_path / name}.jsonl" for name in sets), "--", *values,
    ]  # fmt: skip
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {"PYTHON": sys.executable, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for name, own in sets.items():
        made = record(tmp_path / "out" / name)
        assert (made["steps"], made["rows_drawn"], made["rows"]) == (24, 72, len(own))
        loss = made["loss"]
        assert len(loss) == 24
        assert sum(loss[-4:]) < 0.5 * sum(loss[:4])
    for name in ("untrained", *sets):
        answers = lines(tmp_path / "out" / name / "predictions.jsonl")
        assert {row["question_id"] for row in answers} == {f"q{n}" for n in range(6)}
    with (tmp_path / "out/compared/scores.csv").open(newline="") as table:
        scores = {row["row"]: row for row in csv.DictReader(table) if row["kind"] == "model"}
    assert set(scores) == {"untrained", *sets}
    for name, row in scores.items():
        assert row["n"] == "6"
        assert name in done.stdout
        if row["low"]:
            assert float(row["low"]) <= float(row["score"]) <= float(row["high"])
    assert "memory: about" in done.stdout


def test_a_killed_training_goes_on_to_the_same_adapters(
    material: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train.run(settings(material, tmp_path / "whole"))
    step = fit.AdapterFit._step

    def killed(self: fit.AdapterFit, batch: Any) -> float:
        if self.record.steps == 5:
            raise KeyboardInterrupt
        return step(self, batch)

    with monkeypatch.context() as patch:
        patch.setattr(fit.AdapterFit, "_step", killed)
        with pytest.raises(KeyboardInterrupt):
            train.run(settings(material, tmp_path / "killed"))
    assert record(tmp_path / "killed")["steps"] == 4
    train.run(settings(material, tmp_path / "killed"))
    whole, again = (record(tmp_path / name) for name in ("whole", "killed"))
    assert again["loss"] == whole["loss"]
    assert again["rows_drawn"] == whole["rows_drawn"] == 18
    files = [tmp_path / name / "adapter/adapter_model.safetensors" for name in ("whole", "killed")]
    assert files[0].read_bytes() == files[1].read_bytes()
    with pytest.raises(UserError, match=r"other rate"):
        train.run(settings(material, tmp_path / "killed", rate=0.02))
    (tmp_path / "killed/checkpoint.pt").write_bytes(b"PK damaged")
    with pytest.raises(UserError, match="damaged"):
        train.run(settings(material, tmp_path / "killed"))


def test_answers_of_a_killed_run_are_not_asked_again(material: Path, tmp_path: Path) -> None:
    own = settings(material, tmp_path, data="null")
    train.run(own)
    file = tmp_path / "predictions.jsonl"
    first, second, *_ = file.read_text().splitlines(keepends=True)
    marked = json.dumps({**json.loads(first), "reply": "kept"}) + "\n"
    file.write_text(marked + second + '{"question_id": "q2", "rep')
    train.run(own)
    answers = lines(file)
    assert answers[0]["reply"] == "kept"
    assert [row["question_id"] for row in answers] == [f"q{n}" for n in range(6)]
    train.run(settings(material, tmp_path, data="null", frames=1))
    assert lines(file)[0]["reply"] != "kept"


def test_the_loss_is_that_of_the_answers_tokens(material: Path, tmp_path: Path) -> None:
    import torch

    model, training, rows = opened(material, tmp_path)
    reader = training._reader
    inputs = reader.read(rows[0])
    written = reader.tokenizer.decode(inputs["answer"])
    assert written.startswith("(B) red") or written.startswith("(A) red"), written
    assert written.endswith("<end_of_turn>")
    joined, answer = join_answer(inputs)
    prompt = inputs["input_ids"].shape[1]
    assert joined["input_ids"].shape == joined["attention_mask"].shape == (1, prompt + len(answer))
    labels = joined["input_ids"].clone()
    labels[:, :prompt] = -100
    model.eval()
    with torch.no_grad():
        expected = model(**joined, labels=labels).loss
        assert float(training._loss(inputs)) == pytest.approx(float(expected), rel=1e-5)


def test_the_model_is_shown_frames_of_the_rows_video(material: Path, tmp_path: Path) -> None:
    _, training, rows = opened(material, tmp_path, frames=3)
    for row, seen in zip(rows[:2], ((0, 2), (2, 0)), strict=True):
        images = row_frames(row, 3, 32)
        assert [image.size for image in images] == [(32, 24)] * 3
        more, less = (float(np.asarray(images[0])[..., channel].mean()) for channel in seen)
        assert more > less + 100
    one, other = (training._reader.read(row) for row in rows[:2])
    assert len(one["pixel_values"]) == 3
    assert (one["pixel_values"] != other["pixel_values"]).any()


def test_adapters_are_of_the_language_part_alone(material: Path, tmp_path: Path) -> None:
    _, training, _ = opened(material, tmp_path)
    trained = [n for n, p in training.model.named_parameters() if p.requires_grad]
    assert trained
    assert all("lora_" in name and "language_model" in name for name in trained)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("kind", ["Qwen2_5_VL", "SmolVLM"])
def test_models_named_on_the_page_are_trained_in_their_language_part(kind: str) -> None:
    """Their architectures; their processors need packages that are not installed here."""
    import torch
    import transformers
    from peft import LoraConfig, get_peft_model

    text = {
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "vocab_size": 200,
        "num_attention_heads": 4, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1,
        "eos_token_id": 2,
    }  # fmt: skip
    vision = {"hidden_size": 32, "intermediate_size": 48, "image_size": 32, "patch_size": 8,
              "num_hidden_layers": 2, "num_attention_heads": 2}  # fmt: skip
    own: dict[str, Any] = {"vision_config": vision, "scale_factor": 2}
    if kind == "Qwen2_5_VL":
        text["rope_scaling"] = {"type": "mrope", "mrope_section": [1, 1, 2]}
        vision = {"depth": 2, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2,
                  "out_hidden_size": 32, "fullatt_block_indexes": [1]}  # fmt: skip
        own = {"vision_config": vision}
    else:
        text["model_type"] = "llama"
    config = getattr(transformers, f"{kind}Config")(text_config=text, image_token_id=190, **own)
    model = getattr(transformers, f"{kind}ForConditionalGeneration")(config)
    names = fit.linear_names(model)
    assert len(names) == 14  # seven of each layer
    assert not any("vision" in name or "visual" in name for name in names)
    needed = estimate_memory(model, 1000, 100, 10)
    assert all(value > 0 for value in needed.values())
    adapted: Any = get_peft_model(model, LoraConfig(r=4, target_modules=names)).train()
    fit.recompute_activations(adapted, True)
    ids = torch.randint(3, 150, (1, 20))
    given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    scores = adapted(**given, logits_to_keep=5, use_cache=False).logits
    assert scores.shape == (1, 5, 200)
    scores.sum().backward()
    assert all(p.grad is not None for p in adapted.parameters() if p.requires_grad)


def test_rows_come_in_the_order_of_the_seed() -> None:
    drawn = list(islice(fit.drawn_rows(5, 0, 0), 15))
    assert [sorted(drawn[n : n + 5]) for n in (0, 5, 10)] == [list(range(5))] * 3
    assert drawn[:5] != drawn[5:10]
    assert list(islice(fit.drawn_rows(5, 0, 7), 8)) == drawn[7:]
    assert list(islice(fit.drawn_rows(5, 1, 0), 15)) != drawn


def test_weights_of_rows_count(material: Path, tmp_path: Path) -> None:
    _, training, rows = opened(material, tmp_path)
    one, other = (training._reader.read(rows[n]) for n in (0, 1))
    losses = [float(training._loss(inputs).detach()) for inputs in (one, other)]
    expected = (3 * losses[0] + losses[1]) / 4
    assert training._step([(3.0, one), (1.0, other)]) == pytest.approx(expected, rel=1e-5)
    records = [json.loads(line) for line in (material / "raw.jsonl").read_text().splitlines()]
    records[0]["weight"] = 0
    file = tmp_path / "weighed.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in records))
    assert read_rows(str(file), str(material / "videos"))[0][0].id == "r1"


def test_too_little_memory_is_said_before_the_first_step(
    material: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit, "free_memory", lambda device, weights: 1e-4)
    with pytest.raises(UserError, match=r"GB are needed.*fewer frames="):
        train.run(settings(material, tmp_path))
    assert not (tmp_path / "train.json").exists()


def test_unreadable_and_missing_videos_are_counted(material: Path, tmp_path: Path) -> None:
    videos = tmp_path / "videos"
    shutil.copytree(material / "videos", videos)
    (videos / "t3.mp4").write_bytes(b"no video")
    (videos / "t5.mp4").unlink()
    train.run(settings(material, tmp_path / "out", videos=videos))
    made = record(tmp_path / "out")
    assert (made["rows"], made["rows_without_video"], made["steps"]) == (11, 1, 6)
    assert [Path(name).name for name in made["unreadable"]] == ["t3.mp4"]
    for name in ("t0.mp4", "t1.mp4", "t2.mp4"):
        (videos / name).write_bytes(b"no video")
    with pytest.raises(UserError, match="videos cannot be read"):
        train.run(settings(material, tmp_path / "other", videos=videos))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"held_out": "videos", "questions": "shared.csv"}, "trained on and asked about"),
        ({"videos": "held"}, "has no video for any question"),
        ({"data": "held.csv"}, "expected chat records"),
        ({"steps": 0}, "steps=0: expected at least 1"),
        ({"step": 3}, "step"),
        ({"dtype": "int4"}, "dtype='int4'"),
    ],
)
def test_mistakes_are_named(
    material: Path, tmp_path: Path, more: dict[str, object], message: str
) -> None:
    head, row = (material / "held.csv").read_text().splitlines()[:2]
    (material / "shared.csv").write_text(f"{head}\n{row.replace('h0.mp4', 't0.mp4')}\n")
    paths = ("held_out", "questions", "videos", "data")
    values = {k: material / str(v) if k in paths else v for k, v in more.items()}
    with pytest.raises(UserError, match=message):
        train.run(settings(material, tmp_path, **values))
