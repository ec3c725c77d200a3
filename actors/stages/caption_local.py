"""`caption` by a model in the worker: any image-text model of transformers (caption=transformers),
or a PaliGemma in JAX, on TPU, GPU or CPU (caption=jax).
"""

from __future__ import annotations

import dataclasses
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from actors.part import Opened, RunContext
from mustsee.errors import UserError
from mustsee.files.store import hardware, keyed_by
from mustsee.media.frames import crop_jpeg
from mustsee.nn import weights
from mustsee.prompts import Prompts
from mustsee.records import Caption, Video
from mustsee.replies.thinking import split_reasoning

TYPED = "caption/typed"
NO_ANSWER = ("", "no", "none", "nothing", "unanswerable")  # a mixed checkpoint's words for none


@dataclass(frozen=True, kw_only=True)
class TransformersCaptioner:
    """Captions keyframes by greedy decoding, so that a caption does not depend on its batch; empty
    captions are left out.
    """

    version: ClassVar[str] = "3"
    threaded: ClassVar[bool] = True
    reads: ClassVar[tuple[str, ...]] = ("keyframes",)
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("captions",)

    model: str
    """Folder, or Hugging Face id."""
    revision: str | None = weights.revision_field()
    """Commit or tag; null: the one in the cache."""
    prompt: str | None = keyed_by(lambda part: caption_prompt_id(part.prompt), default=None)
    """Question about each frame, for models that cannot follow the default; null: the typed
    questions of prompts/caption/typed.j2. The sentence of its reply after "CAPTION:" is the
    caption, or the whole reply without such a line."""
    dtype: str = "bfloat16"
    """Numeric type: bfloat16, float16 or float32."""
    max_tokens: int = 240
    """Output tokens of a reply, at most; the caption is its last line."""
    device: str = hardware("auto")
    """Device: auto, cuda, cpu (not part of the result's identity)."""
    batch_size: int = hardware(16)
    """Frames processed together (not part of the identity either)."""

    def __post_init__(self) -> None:
        if self.dtype not in weights.DTYPES:
            raise UserError(f"caption.dtype={self.dtype!r}: expected {' or '.join(weights.DTYPES)}")
        if self.batch_size < 1 or self.max_tokens < 1:
            raise UserError(
                f"caption.batch_size={self.batch_size!r}, caption.max_tokens={self.max_tokens!r}: "
                "expected at least 1"
            )

    def check(self, budget_usd: float | None = None) -> None:
        """Raise UserError if the weights are missing."""
        weights.find_checkpoint(self.model, self.revision, "config.json")

    def open(self, run: RunContext) -> Opened:
        model = CaptionModel(self)

        def caption(video: Video) -> Video:
            keyframes = video.keyframes or ()
            texts = model.describe([crop_jpeg(keyframe.jpeg) for keyframe in keyframes])
            captions = zip(keyframes, texts, strict=True)
            return dataclasses.replace(
                video, captions=tuple(Caption(k.time, text) for k, text in captions if text)
            )

        return caption


def caption_prompt_id(prompt: str | None) -> str:
    """The prompt's identity: its text, or the hash of the file with the typed questions."""
    return Prompts().digest(TYPED) if prompt is None else prompt


def sentence(reply: str) -> str:
    """The rest of the line after the last "CAPTION:", or the whole reply without one. Reasoning is
    left out; "" for a reply that never got beyond it.
    """
    reply = split_reasoning(reply).reply
    captions = re.findall(
        r"^\W*caption\W*?[:：][ \t*_]*(\S.*)$", reply, re.IGNORECASE | re.MULTILINE
    )
    return " ".join((captions[-1].rstrip("*_ ") if captions else reply).split())


class CaptionModel:
    """A loaded model with its processor."""

    def __init__(self, config: TransformersCaptioner) -> None:
        self._model, self._processor = weights.load_checkpoint(
            "caption",
            config.model,
            config.revision,
            kind="AutoModelForImageTextToText",
            reader="AutoProcessor",
            dtype=config.dtype,
            device=config.device,
        )
        self._model.generation_config.update(temperature=None, top_p=None, top_k=None)
        self._config = config
        self._text = self._prompt_text(config.prompt or Prompts().render(TYPED).user)
        self._device = threading.Lock()

    def describe(self, jpegs: Sequence[bytes]) -> list[str]:
        """A text for each image. Raises BadRow for data that is not an image."""
        images = weights.open_images(jpegs)
        size = self._config.batch_size
        batches = (images[i : i + size] for i in range(0, len(images), size))
        return [text for batch in batches for text in self._batch(batch)]

    def _prompt_text(self, prompt: str) -> str:
        """The text of a prompt, with a token in the image's place."""
        if not getattr(self._processor, "chat_template", None):
            return f"{getattr(self._processor, 'image_token', '<image>')}{prompt}"
        content = [{"type": "image"}, {"type": "text", "text": prompt}]
        return self._processor.apply_chat_template(
            [{"role": "user", "content": content}], add_generation_prompt=True
        )

    def _batch(self, images: list[Any]) -> list[str]:
        import torch

        inputs: Any = self._processor(
            text=[self._text] * len(images),
            images=[[image] for image in images],
            return_tensors="pt",
            padding=True,
        )
        with self._device, torch.inference_mode():
            inputs = inputs.to(self._model.device, dtype=self._model.dtype)
            tokens = self._model.generate(
                **inputs, max_new_tokens=self._config.max_tokens, do_sample=False, num_beams=1
            )
        answers = tokens[:, inputs["input_ids"].shape[1] :].cpu()
        texts = self._processor.batch_decode(answers, skip_special_tokens=True)
        return [sentence(text) for text in texts]


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
        weights.find_checkpoint(self.model, self.revision, "config.json", "tokenizer.json")

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
