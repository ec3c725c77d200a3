"""A training set of tiny videos of one colour, held-out questions on others, and a tiny model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tests.support import sample_videos, tiny_llava

COLOURS = {"red": (200, 30, 30), "blue": (30, 30, 200)}
ASKED = "what colour is it"


def write_material(folder: Path) -> Path:
    """Write `model`, `videos` with `raw.jsonl`, and `held` with `held.csv` to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tiny_llava.llava(folder / "model")
    (folder / "videos").mkdir()
    (folder / "held").mkdir()
    rows = [write_row(folder, number) for number in range(12)]
    (folder / "raw.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = ["video,question_id,question,option_a,option_b,answer"]
    for number in range(6):
        name, options, right = draw_question(number)
        write_video(folder / "held" / f"h{number}.mp4", name, 100 + number)
        table.append(f"h{number}.mp4,q{number},{ASKED},{','.join(options)},{'AB'[right]}")
    (folder / "held.csv").write_text("\n".join(table) + "\n")
    return folder


def draw_question(number: int) -> tuple[str, tuple[str, str], int]:
    """Return a video's colour, two options, and the number of the right one."""
    name = ("red", "blue")[number % 2]
    options = ("red", "blue") if number % 3 else ("blue", "red")
    return name, options, options.index(name)


def write_row(folder: Path, number: int) -> dict[str, object]:
    """Write a video, and return a chat record as that of `mustsee clean`."""
    name, options, right = draw_question(number)
    write_video(folder / "videos" / f"t{number}.mp4", name, number)
    listed = "".join(f"\n({letter}) {option}" for letter, option in zip("AB", options, strict=True))
    text = f"{ASKED}{listed}\nAnswer with the letter and the text of the best option."
    content = [{"type": "video"}, {"type": "text", "text": text}]
    answer = [{"type": "text", "text": f"({'AB'[right]}) {name}"}]
    return {
        "id": f"r{number}", "video": f"t{number}", "weight": 1.0,
        "messages": [
            {"role": "user", "content": content}, {"role": "assistant", "content": answer}
        ],
    }  # fmt: skip


def write_video(path: Path, name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    noise = rng.integers(-25, 25, (8, 48, 64, 3))
    images = np.clip(np.array(COLOURS[name]) + noise, 0, 255).astype(np.uint8)
    sample_videos.write(path, list(images))
