"""The fit of adapters to rows: steps, checkpoints, and what is written of them."""

from __future__ import annotations

import inspect
import json
import math
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from deploy.train_vlm.memory import GB, estimate_memory, free_memory
from deploy.train_vlm.rows import RowReader, Shown, join_answer
from deploy.train_vlm.settings import TrainSettings
from mustsee.errors import BadRow, Transient, UserError
from mustsee.files.folders import write_whole

WARM_UP = 0.03  # share of the steps over which the step size grows
MAX_NORM = 1.0  # greatest norm of the gradient of a step
MAX_UNREADABLE = 0.05  # share of the videos drawn that may turn out unreadable
MEASURED_ROWS = 16  # rows whose tokens are counted before the start
RESERVE = 1.2  # factor of the calculated memory that must be free
SHOWN_STEPS = 10  # steps from one line of progress to the next
NOT_IDENTITY = ("out", "save", "readers", "device", "questions", "held_out", "max_tokens")


@dataclass
class TrainRecord:
    """What a training did, as written to `train.json`. `loss`: by step. `peak_gb`: of the GPU."""

    settings: dict[str, Any] = field(default_factory=dict)
    data_sha256: str = ""
    rows: int = 0
    rows_without_video: int = 0
    steps: int = 0
    rows_drawn: int = 0
    epochs: float = 0.0
    unreadable: dict[str, str] = field(default_factory=dict)
    trained_parameters: int = 0
    memory_gb: dict[str, float] = field(default_factory=dict)
    peak_gb: float | None = None
    loss: list[float] = field(default_factory=list)
    seconds: float = 0.0


def drawn_rows(count: int, seed: int, start: int) -> Iterator[int]:
    """Yield the numbers of rows without end, from the draw `start` on: each epoch has all, in an
    order of its own.
    """
    epoch, skipped = divmod(start, count)
    while True:
        yield from np.random.default_rng([seed, epoch]).permutation(count)[skipped:].tolist()
        epoch, skipped = epoch + 1, 0


def linear_names(model: Any) -> list[str]:
    """Return the names of the linear layers of the language part, without its head."""
    import torch

    own = {id(module) for module in model.get_decoder().modules()}
    head = id(model.get_output_embeddings())
    return [
        name
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear) and id(module) in own and id(module) != head
    ]


class AdapterFit:
    """A model with adapters, and the state of their fit."""

    def __init__(self, model: Any, reader: RowReader, settings: TrainSettings, device: str) -> None:
        import torch
        from peft import LoraConfig, get_peft_model

        self._settings, self._reader, self._device = settings, reader, device
        names = linear_names(model)
        if not names:
            raise UserError(f"model={settings.model!r}: no linear layers of a language part")
        torch.manual_seed(settings.seed)
        adapters = LoraConfig(
            r=settings.rank, lora_alpha=2 * settings.rank, lora_dropout=0.0, target_modules=names
        )
        self.model: Any = get_peft_model(model, adapters)
        self._trained = [p for p in self.model.parameters() if p.requires_grad]
        self.record = TrainRecord(
            settings=asdict(settings), trained_parameters=sum(p.numel() for p in self._trained)
        )
        self._optimizer = torch.optim.AdamW(self._trained, lr=settings.rate, weight_decay=0.0)
        self._counts_scores = "logits_to_keep" in inspect.signature(model.forward).parameters

    @property
    def folder(self) -> Path:
        return Path(self._settings.out)

    @property
    def _checkpoint(self) -> Path:
        return self.folder / "checkpoint.pt"

    @property
    def _identity(self) -> dict[str, Any]:
        kept = {k: v for k, v in self.record.settings.items() if k not in NOT_IDENTITY}
        return {**kept, "data": self.record.data_sha256}

    def say_memory(self, rows: Sequence[Shown]) -> None:
        """Print the memory that the training needs, by the longest of some rows. Raises UserError
        where it is not free.
        """
        longest, answers = 0, 0
        for number in islice(drawn_rows(len(rows), self._settings.seed, 0), MEASURED_ROWS):
            try:
                inputs = self._reader.read(rows[number])
            except (BadRow, Transient):
                continue  # The training counts and names it.
            longest = max(longest, inputs["input_ids"].shape[1] + len(inputs["answer"]))
            answers = max(answers, len(inputs["answer"]))
        if not longest:
            raise UserError(f"none of the first {MEASURED_ROWS} videos can be read")
        trained = self.record.trained_parameters
        needed = estimate_memory(self.model, trained, longest, answers)
        total = RESERVE * sum(needed.values())
        free = free_memory(self._device, needed["weights"])
        self.record.memory_gb = {**needed, "total": total, "free": free}
        parts = ", ".join(f"{name} {value:.2f}" for name, value in needed.items())
        print(
            f"memory: about {total:.1f} GB of {free:.1f} free on {self._device} ({parts}; a fifth "
            f"in reserve), with rows of {longest:,} tokens"
        )
        if total > free:
            raise UserError(
                f"about {total:.1f} GB are needed, and {free:.1f} are free on {self._device}: set "
                "fewer frames=, a smaller longest= or a smaller model="
            )

    def fit(self, rows: Sequence[Shown]) -> None:
        """Make the steps that are left, and save the adapters."""
        self.model.to(self._device).train()
        recompute_activations(self.model, True)
        self._resume()
        settings, record = self._settings, self.record
        if record.steps:
            print(f"goes on after step {record.steps}")
        drawn = drawn_rows(len(rows), settings.seed, record.steps * settings.batch)
        shown, began = record.steps, time.monotonic() - record.seconds
        with ThreadPoolExecutor(settings.readers) as pool:
            ahead: deque[tuple[int, Future[dict[str, Any]]]] = deque()
            while record.steps < settings.steps:
                while len(ahead) < settings.batch + 2 * settings.readers:
                    number = next(drawn)
                    ahead.append((number, pool.submit(self._reader.read, rows[number])))
                batch = [ahead.popleft() for _ in range(settings.batch)]
                loss = self._step(self._read_batch(rows, batch))
                record.steps += 1
                record.rows_drawn += len(batch)
                record.epochs = record.rows_drawn / len(rows)
                record.loss.append(loss)
                record.seconds = time.monotonic() - began
                is_last = record.steps == settings.steps
                if is_last or record.steps - shown >= SHOWN_STEPS:
                    recent = record.loss[shown:]
                    print(
                        f"step {record.steps} of {settings.steps}: loss "
                        f"{sum(recent) / len(recent):.3f}, epoch {record.epochs:.2f}, "
                        f"{record.rows_drawn / record.seconds:.2f} rows a second",
                        flush=True,
                    )
                    shown = record.steps
                if is_last or record.steps % settings.save == 0:
                    self._save()
            for _, reading in ahead:
                reading.cancel()
        self.model.save_pretrained(self.folder / "adapter")

    def _read_batch(
        self, rows: Sequence[Shown], batch: Sequence[tuple[int, Future[dict[str, Any]]]]
    ) -> list[tuple[float, dict[str, Any]]]:
        """Return the weights and tensors of the rows of a batch that can be read; the others are
        counted. Raises UserError where these are too many.
        """
        read: list[tuple[float, dict[str, Any]]] = []
        for number, reading in batch:
            try:
                read.append((rows[number].weight, reading.result()))
            except (BadRow, Transient) as error:
                self.record.unreadable[rows[number].video] = str(error)
        bad, videos = self.record.unreadable, len({row.video for row in rows})
        if not read or len(bad) > max(1, MAX_UNREADABLE * videos):
            video, reason = next(iter(bad.items()))
            raise UserError(
                f"{len(bad)} of {videos} videos cannot be read, such as {video!r}: {reason}"
            )
        return read

    def _step(self, batch: Sequence[tuple[float, dict[str, Any]]]) -> float:
        """Make one step, and return the loss: the mean over rows, by weight, of the mean over the
        tokens of an answer. Rows pass one at a time, so none is padded.
        """
        import torch

        settings, total = self._settings, 0.0
        share = self.record.steps / settings.steps
        grown = min(1.0, (self.record.steps + 1) / max(1.0, WARM_UP * settings.steps))
        for group in self._optimizer.param_groups:
            group["lr"] = settings.rate * grown * (1 + math.cos(math.pi * share)) / 2
        weights = sum(weight for weight, _ in batch)
        for weight, inputs in batch:
            loss = self._loss(inputs) * (weight / weights)
            loss.backward()
            total += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(self._trained, MAX_NORM)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        if not math.isfinite(total):
            raise UserError(f"the loss of step {self.record.steps + 1} is {total}: lower rate=")
        return total

    def _loss(self, inputs: Mapping[str, Any]) -> Any:
        """Return the mean negative log-likelihood of the tokens of an answer."""
        import torch

        joined, answer = join_answer(inputs)
        kept = {"logits_to_keep": len(answer) + 1} if self._counts_scores else {}
        given = move_inputs(joined, self.model, self._device)
        scores = self.model(**given, **kept, use_cache=False).logits
        scores = scores[0, -len(answer) - 1 : -1].float()
        return torch.nn.functional.cross_entropy(scores, answer.to(self._device))

    def _save(self) -> None:
        import torch
        from peft import get_peft_model_state_dict

        if self._device == "cuda":
            self.record.peak_gb = torch.cuda.max_memory_allocated() / GB
        state = {
            "identity": json.dumps(self._identity, sort_keys=True),
            "record": json.dumps(asdict(self.record)),
            "adapters": get_peft_model_state_dict(self.model),
            "optimizer": self._optimizer.state_dict(),
        }
        unfinished = self._checkpoint.with_suffix(".unfinished")
        torch.save(state, unfinished)
        unfinished.replace(self._checkpoint)
        content = json.dumps(asdict(self.record), indent=1, ensure_ascii=False) + "\n"
        write_whole(self.folder / "train.json", content.encode())

    def _resume(self) -> None:
        """Go on with the checkpoint, if there is one. Raises UserError for one of other settings or
        another training set, and for a damaged one.
        """
        import torch
        from peft import set_peft_model_state_dict

        if not self._checkpoint.exists():
            return
        try:
            state = torch.load(self._checkpoint, map_location="cpu", weights_only=True)
            before, own = json.loads(state["identity"]), json.loads(json.dumps(self._identity))
            kept = json.loads(state["record"])
        except Exception as error:  # whatever a damaged file raises
            raise UserError(
                f"{str(self._checkpoint)!r} is damaged ({type(error).__name__}): remove it, and "
                "the training begins anew"
            ) from error
        if other := sorted(k for k in own if before.get(k) != own[k]):
            raise UserError(
                f"{str(self._checkpoint)!r} was made with other {', '.join(other)}: take another "
                "out=, or remove it"
            )
        set_peft_model_state_dict(self.model, state["adapters"])
        self._optimizer.load_state_dict(state["optimizer"])
        now = self.record
        self.record = replace(TrainRecord(**kept), settings=now.settings, memory_gb=now.memory_gb)


def move_inputs(inputs: Mapping[str, Any], model: Any, device: str) -> dict[str, Any]:
    """Return tensors on a device, those of images in the model's type."""
    dtype = model.dtype
    return {
        name: value.to(device, dtype=dtype if value.is_floating_point() else None)
        for name, value in inputs.items()
    }


def recompute_activations(model: Any, on: bool) -> None:
    """Keep the activations of each layer's input alone while training, or end that. Releases of
    transformers differ in the method's name.
    """
    end = "enable" if on else "disable"
    name = f"activation_checkpointing_{end}"
    change = getattr(model, name, None) or getattr(model, f"gradient_checkpointing_{end}")
    change(*([{"use_reentrant": False}] if on else ()))
