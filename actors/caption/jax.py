"""caption=jax: captions of keyframes by a PaliGemma in JAX, on TPU, GPU or CPU."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from actors import checkpoint
from actors.part import Opened, RunContext
from mustsee.errors import UserError
from mustsee.files.store import hardware
from mustsee.media.frames import crop_jpeg
from mustsee.nn import weights
from mustsee.records import Caption, Video

NO_ANSWER = ("", "no", "none", "nothing", "unanswerable")  # a mixed checkpoint's words for none


@dataclass(frozen=True, kw_only=True)
class JaxCaptioner:
    """Captions the keyframes of a video together; empty captions are left out."""

    version: ClassVar[str] = "3"
    threaded: ClassVar[bool] = True
    reads: ClassVar[tuple[str, ...]] = ("keyframes",)
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("captions",)

    model: str
    """Folder, or Hugging Face id: any PaliGemma or PaliGemma 2."""
    revision: str | None = weights.revision_field()
    """Commit or tag; null: the one in the cache."""
    prompt: str = "caption en"
    """Task that the model was tuned on: caption en, describe en, ocr."""
    also: Mapping[str, str | None] | None = None
    """The typed questions, by label, one short pass each; a task of null is left out, also:
    null leaves out all; only "mix" checkpoints answer them."""
    dtype: str = "bfloat16"
    """Numeric type: bfloat16 or float32."""
    max_tokens: int = 48
    """Output tokens of a caption, at most."""
    temperature: float = 0.0
    """Sampling temperature; 0: always the most probable token."""
    seed: int = 0
    """Seed of the sampling."""
    batches: tuple[int, ...] = hardware((1, 8, 32))
    """Frames processed together; a program is compiled for each size (not part of the result's
    identity)."""

    def __post_init__(self) -> None:
        if self.dtype not in ("bfloat16", "float32"):
            raise UserError(f"caption.dtype={self.dtype!r}: expected bfloat16 or float32")
        if not self.batches or min(self.batches) < 1 or self.max_tokens < 1:
            raise UserError(
                f"caption.batches={list(self.batches)!r}, caption.max_tokens={self.max_tokens!r}: "
                "expected at least one batch size, all of them at least 1"
            )

    def check(self, budget_usd: float | None = None) -> None:
        """Raise UserError if the weights are missing."""
        checkpoint.find(self.model, self.revision, "config.json", "tokenizer.json")

    @property
    def tasks(self) -> dict[str, str]:
        """The tasks of `also` that are not null."""
        return {label: task for label, task in (self.also or {}).items() if task}

    def _join(self, caption: str, *answers: str) -> str:
        """The caption and the answers under their labels, as in "a man walks; place: a street"."""
        told = (f"{label}: {answer}" for label, answer in zip(self.tasks, answers, strict=True)
                if answer.strip(" .").lower() not in NO_ANSWER)  # fmt: skip
        return "; ".join(filter(None, (caption, *told)))

    def open(self, run: RunContext) -> Opened:
        from mustsee.nn.paligemma import Captioner, Decoding
        from mustsee.nn.siglip import pixels

        captioner = Captioner.load(
            self.model, revision=self.revision, dtype=self.dtype, batches=self.batches
        )
        prompts = [captioner.tokens(text) for text in (self.prompt, *self.tasks.values())]
        decoding = Decoding(
            max_tokens=self.max_tokens, temperature=self.temperature, seed=self.seed
        )
        device = threading.Lock()  # rows are on threads: one decodes JPEGs while another computes

        def caption(video: Video) -> Video:
            keyframes = video.keyframes or ()
            images = pixels([crop_jpeg(keyframe.jpeg) for keyframe in keyframes], captioner.size)
            with device:
                before = captioner.compiled
                replies = [
                    captioner.texts(captioner.generate(images, prompt, decoding))
                    for prompt in prompts
                ]
                run.count("caption programs compiled", captioner.compiled - before)
            texts = (self._join(*each) for each in zip(*replies, strict=True))
            captions = zip(keyframes, texts, strict=True)
            return dataclasses.replace(
                video, captions=tuple(Caption(k.time, text) for k, text in captions if text)
            )

        return caption
