"""Trains a small open model that takes images on a training set, and asks it held-out questions.

    python -m deploy.train_vlm.train model=M data=chat.jsonl videos=V questions=Q held_out=W out=O

`deploy/train_vlm/compare.sh` does so for several sets and compares them. A row is a chat record of
`mustsee clean` (`chat.jsonl`) or of `mustsee export layout=sft`; it is shown with frames of its
video, spread evenly. LoRA adapters of the language part are trained (Hu et al. 2021, arXiv
2106.09685); the loss is that of the answer's tokens alone, times the row's `weight`. The order of
the rows depends on the seed alone. The same command goes on where it was killed.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from deploy.train_vlm.fit import AdapterFit, move_inputs, recompute_activations
from deploy.train_vlm.rows import RowReader, Shown, read_questions, read_rows, refuse_shared
from deploy.train_vlm.settings import TrainSettings, read_settings
from mustsee.errors import BadRow, MustseeError, Transient, UserError, need
from mustsee.files.folders import write_whole
from mustsee.nn import weights


def run(settings: TrainSettings) -> None:
    """Train where there is a training set, and ask the questions."""
    need("a training", "mustsee[torch]", "torch", "peft")
    import torch

    device = settings.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = settings.dtype
    if dtype == "auto":
        dtype = "bfloat16" if device == "cuda" else "float32"
    if dtype not in weights.DTYPES:
        raise UserError(f"dtype={dtype!r}: expected auto, {', '.join(weights.DTYPES)}")
    questions = read_questions(settings.questions, settings.held_out)
    rows, missing = read_rows(settings.data, settings.videos) if settings.data else ([], 0)
    if not settings.shared_videos:
        refuse_shared(rows, questions)
    folder = Path(settings.out)
    folder.mkdir(parents=True, exist_ok=True)
    print(
        f"{len(rows)} rows to train on, {missing} more without a video; {len(questions)} questions"
    )
    # Weights go through the machine's memory, so that what a GPU lacks is said before it is filled.
    model, processor = weights.load_checkpoint(
        "train_vlm", settings.model, None, kind="AutoModelForImageTextToText",
        reader="AutoProcessor", dtype=dtype, device="cpu",
    )  # fmt: skip
    model.generation_config.update(temperature=None, top_p=None, top_k=None)
    reader = RowReader(processor, settings)
    if settings.data:
        training = AdapterFit(model, reader, settings, device)
        training.record.rows, training.record.rows_without_video = len(rows), missing
        training.record.data_sha256 = hashlib.sha256(Path(settings.data).read_bytes()).hexdigest()
        training.say_memory(rows)
        training.fit(rows)
        model = training.model
        recompute_activations(model, False)
        if bad := training.record.unreadable:
            print(f"{len(bad)} videos cannot be read: {', '.join(sorted(bad)[:3])}")
    unreadable = predict(model.to(device), reader, questions, settings)
    print(f"{folder / 'predictions.jsonl'}: {len(questions) - unreadable} of {len(questions)}")


def predict(
    model: Any, reader: RowReader, questions: Sequence[Shown], settings: TrainSettings
) -> int:
    """Write the model's answers to `predictions.jsonl`, each as it comes, and return the number of
    questions whose video cannot be read. What is there already is not asked again.
    """
    import torch

    file, asked = Path(settings.out) / "predictions.jsonl", Path(settings.out) / "asked.json"
    own = {k: v for k, v in asdict(settings).items() if k not in ("out", "save", "readers")}
    if asked.exists() and json.loads(asked.read_bytes()) != own:
        file.unlink(missing_ok=True)
        print("asks anew: the settings are others")
    write_whole(asked, json.dumps(own).encode())
    answered = read_predicted(file)
    kept = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in answered)
    write_whole(file, kept.encode())
    done, unreadable = {row["question_id"] for row in answered}, 0
    device = next(model.parameters()).device
    ends = end_tokens(model, reader)
    model.eval()
    with file.open("a", encoding="utf-8") as out, torch.inference_mode():
        for number, question in enumerate(questions, 1):
            if question.id in done:
                continue
            try:
                inputs = move_inputs(reader.read(question), model, str(device))
            except (BadRow, Transient) as error:
                unreadable += 1
                print(f"not asked, {question.id}: {error}")
                continue
            tokens = model.generate(
                **inputs, max_new_tokens=settings.max_tokens, do_sample=False, num_beams=1,
                eos_token_id=ends,
            )  # fmt: skip
            answer = tokens[0, inputs["input_ids"].shape[1] :]
            reply = reader.tokenizer.decode(answer, skip_special_tokens=True).strip()
            row = {"question_id": question.id, "reply": reply}
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
            out.flush()
            if number % 50 == 0:
                print(f"asked {number} of {len(questions)}", flush=True)
    return unreadable


def end_tokens(model: Any, reader: RowReader) -> list[int]:
    """Return the tokens that end an answer: the model's, and that of its chat template."""
    given = model.generation_config.eos_token_id
    ends = [given] if isinstance(given, int) else list(given or ())
    return [*ends, *(n for n in reader.turn_end() if n not in ends)]


def read_predicted(file: Path) -> list[dict[str, str]]:
    """Return the rows that a killed run left; the last line may be torn."""
    rows: list[dict[str, str]] = []
    for line in file.read_text("utf-8").splitlines() if file.exists() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
    return rows


def main() -> int:
    try:
        run(read_settings(sys.argv[1:]))
    except MustseeError as error:
        print(f"train_vlm: {error}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
