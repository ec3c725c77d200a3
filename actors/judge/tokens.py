"""Token ids of a Gemma prompt for a triple, the same for training and for every engine.

Control tokens are set by id, and text is encoded without them, so a candidate cannot open a turn.
The sequence begins with exactly one BOS. Each of the two labels must be one token of its own after
the prompt, or the engine does not start.

A trained judge is a checkpoint folder with a `judge.json` beside the weights: its attention, the
prompt that it was trained on, and the precision in which it was evaluated.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mustsee.errors import UserError
from mustsee.judge.judge import PreparedTriple, hash_files
from mustsee.judge.prompt import LABELS, OPENING, Triple, prompt_hash, render

METADATA = "judge.json"
ATTENTION = ("causal", "prefix")


@dataclass(frozen=True, kw_only=True)
class JudgeMetadata:
    """`judge.json`. `attention`: "causal", or "prefix" (every token of the prompt sees every other,
    as in prefix-LM tuning). `training`: settings and figures of the training.
    """

    attention: str
    prompt: str
    dtype: str
    training: dict[str, Any] | None = None

    def write(self, folder: str | Path) -> None:
        """Write `judge.json` into a folder."""
        text = json.dumps(asdict(self), indent=2, sort_keys=True) + "\n"
        Path(folder, METADATA).write_text(text, encoding="utf-8")

    @staticmethod
    def read(folder: str | Path) -> JudgeMetadata | None:
        """The metadata of a folder; None for a plain checkpoint."""
        path = Path(folder, METADATA)
        if not path.exists():
            return None
        try:
            return JudgeMetadata(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise UserError(f"{str(path)!r} is not a judge's metadata: {error}") from None


def settle(folder: str, attention: str | None, zero_shot: bool) -> JudgeMetadata:
    """The metadata of a checkpoint, checked against the configuration.

    Raises UserError if attention or prompt differ, or for a plain checkpoint without `zero_shot`.
    """
    if not Path(folder, "config.json").exists():
        raise UserError(
            f"no checkpoint at {folder!r} (config.json is missing): path= is the folder of a judge "
            "made by `python -m ray_jobs.judge_train`, or of a Gemma with zero_shot=true"
        )
    if attention not in (None, *ATTENTION):
        raise UserError(f"attention {attention!r}: choose one of {', '.join(ATTENTION)}")
    metadata = JudgeMetadata.read(folder)
    if metadata is None:
        if not zero_shot:
            raise UserError(
                f"{folder!r} has no {METADATA}: it was not trained as a judge; "
                "train one, or set zero_shot=true to use a plain instruction-tuned model"
            )
        return JudgeMetadata(
            attention=attention or "causal", prompt=prompt_hash(), dtype="bfloat16"
        )
    if attention not in (None, metadata.attention):
        raise UserError(
            f"{folder!r} was trained with {metadata.attention} attention and would be run with "
            f"{attention}, which makes it another judge; leave attention out"
        )
    if metadata.prompt != prompt_hash():
        raise UserError(
            f"{folder!r} was trained on prompt {metadata.prompt[:16]}, but this version uses "
            f"{prompt_hash()[:16]}: train it again, or use the version of the project that made it"
        )
    return metadata


def weights_hash(folder: str | Path) -> str:
    """SHA-256 of the weights and the tokenizer."""
    names = ("*.safetensors", "config.json", "tokenizer.json", "tokenizer.model")
    files = [path for name in names for path in Path(folder).glob(name)]
    if not any(path.suffix == ".safetensors" for path in files):
        raise UserError(f"{str(folder)!r} has no *.safetensors weights")
    return hash_files(files)


class GemTokens:
    """The tokenizer of a Gemma checkpoint. `labels`: the ids of TRUE and FALSE.

    Raises UserError if each label is not one token of its own.
    """

    def __init__(self, folder: str) -> None:
        from transformers import AutoTokenizer

        self.folder = folder
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self._bos = self._control("<bos>")
        self._open = self._control("<start_of_turn>")
        close = self._control("<end_of_turn>")
        turn = f"model\n{OPENING}"
        self._after = (close, *self._encode("\n"), self._open, *self._encode(turn))
        self.labels = self._labels(turn)
        self.pad = int(self._tokenizer.pad_token_id or 0)

    def prepare(self, triple: Triple) -> PreparedTriple:
        """The ids of the whole prompt as payload; the next token is the verdict."""
        body = self._encode(f"user\n{render(triple)}")
        ids = (self._bos, self._open, *body, *self._after)
        return PreparedTriple(triple, len(ids), ids)

    def prefix_ids(self) -> tuple[int, ...]:
        """The ids of the instructions, with which every prompt begins."""
        one = self.prepare(Triple("a", "a", "a")).payload
        two = self.prepare(Triple("?", "b", "b")).payload
        same = next(i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b)
        return one[: same - 1]  # one less, for a token that may reach beyond the instructions

    def _control(self, text: str) -> int:
        token = self._tokenizer.convert_tokens_to_ids(text)
        if token is None or token == self._tokenizer.unk_token_id:
            raise UserError(f"the tokenizer of {self.folder!r} has no {text!r}: not one of Gemma's")
        return int(token)

    def _encode(self, text: str) -> list[int]:
        ids = self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
        return [int(i) for i in ids]

    def _labels(self, turn: str) -> tuple[int, int]:
        before, label_ids = self._encode(turn), list[int]()
        for label in LABELS:
            ids = self._encode(turn + label)
            if ids[:-1] != before:
                raise UserError(
                    f"the label {label!r} is not one token of {self.folder!r} after the prompt but "
                    f"{len(ids) - len(before)}, so its probability cannot be read"
                )
            label_ids.append(ids[-1])
        true, false = label_ids
        if true == false:
            raise UserError(f"TRUE and FALSE are the same token {true} in {self.folder!r}")
        return true, false
