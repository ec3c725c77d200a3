"""Trains the classifier that separates a narrator's sentences from dialogue (CinePile, 2.1).

    python -m ray_jobs.sentences_train sentences=TABLE out=O [+experiment=paper]

The split is by movie; the quality on the held-out movies is printed and written to quality.json.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mustsee.align.sentences import Floats, Quality, Sentence, measure, read_sentences, split
from mustsee.errors import UserError
from ray_jobs.cli.launch import launch

Classifier = Callable[[Sequence[str]], Floats]


@dataclass(frozen=True, kw_only=True)
class SentencesTrain:
    """`classifier(sentences, folder, seed)` writes a classifier to the folder and returns it."""

    classifier: Callable[[Sequence[Sentence], str, int], Classifier]
    sentences: str
    out: str
    text: str = "text"
    label: str = "label"
    movie: str = "movie"
    held_out: float = 0.2
    seed: int = 0

    def __call__(self) -> int:
        if "://" in self.out:
            raise UserError(f"out={self.out!r}: must be a local folder")
        sentences = read_sentences(
            self.sentences, text=self.text, label=self.label, movie=self.movie
        )
        train, test = split(sentences, held_out=self.held_out, seed=self.seed)
        classifier = self.classifier(train, self.out, self.seed)
        quality = measure(test, classifier([s.text for s in test]), seed=self.seed)
        record = {"train": len(train), **dataclasses.asdict(quality)}
        Path(self.out, "quality.json").write_text(json.dumps(record, indent=2) + "\n")
        print(summary(len(train), quality))
        return 0


def summary(train: int, quality: Quality) -> str:
    """The quality as the lines to print."""
    low, high = quality.accuracy_interval
    first, last = quality.f1_interval
    rows = [
        f"{train} sentences to train on, {quality.sentences} held out",
        f"accuracy {quality.accuracy:.3f} [{low:.3f}, {high:.3f}]",
        f"F1 {quality.f1:.3f} [{first:.3f}, {last:.3f}]",
    ]
    for truth, counts in zip(("dialogue", "visual"), quality.confusion, strict=True):
        rows.append(f"{truth}: {counts[0]} classified as dialogue, {counts[1]} as visual")
    return "\n".join(rows)


if __name__ == "__main__":
    launch("sentences_train")
