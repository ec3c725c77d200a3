"""caption=transformers: keyframes to sentences by any image-text model of transformers."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from actors.part import Opened, RunContext, hardware
from longshot.errors import BadRow, UserError
from longshot.nn import weights
from longshot.records import Caption, Video

SAFETENSORS = ("model.safetensors", "model.safetensors.index.json")


@dataclass(frozen=True, kw_only=True)
class TransformersCaptioner:
    """A caption for every keyframe that got one, the likeliest words (greedy), so that a caption
    does not depend on its company.

    `model`: what `AutoModelForImageTextToText` loads, by folder or Hugging Face id in the cache;
    code from its repository is never run, pickled weights are never read. `prompt`: what is asked
    of each picture, put into the processor's chat template; without one (PaliGemma) it stands
    behind the picture as it is. `device`: "auto" takes a GPU where there is one.
    """

    version: ClassVar[str] = "1"
    threaded: ClassVar[bool] = True
    reads: ClassVar[tuple[str, ...]] = ("keyframes",)
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("captions",)

    model: str
    revision: str | None = None
    prompt: str = "Describe this picture in one sentence."
    dtype: str = "bfloat16"
    max_tokens: int = 80
    device: str = hardware("auto")
    batch_size: int = hardware(16)

    def __post_init__(self) -> None:
        if self.dtype not in ("bfloat16", "float16", "float32"):
            raise UserError(f"caption.dtype={self.dtype!r}: expected bfloat16, float16 or float32")
        if self.batch_size < 1 or self.max_tokens < 1:
            raise UserError(
                f"caption.batch_size={self.batch_size!r}, caption.max_tokens={self.max_tokens!r}: "
                "expected at least 1"
            )

    def check(self, budget_usd: float | None = None) -> None:
        """Said before any work: the weights are there. Raises UserError."""
        folder = weights.find(self.model, self.revision)
        weights.find_file(folder, "config.json")
        weights.find_file(folder, *SAFETENSORS)

    def open(self, run: RunContext) -> Opened:
        eyes = Eyes(self)

        def caption(video: Video) -> Video:
            keyframes = video.keyframes or ()
            texts = eyes.describe([keyframe.jpeg for keyframe in keyframes])
            captions = zip(keyframes, texts, strict=True)
            return dataclasses.replace(
                video, captions=tuple(Caption(k.time, text) for k, text in captions if text)
            )

        return caption


class Eyes:
    """A loaded model with its processor."""

    def __init__(self, config: TransformersCaptioner) -> None:
        folder = weights.find(config.model, config.revision)
        weights.find_file(folder, "config.json")
        try:
            import torch
            from transformers import AutoModelForImageTextToText, AutoProcessor
        except ImportError as error:
            raise UserError(
                f"caption=transformers needs torch ({error}): pip install 'longshot[torch]', on "
                "the workers too"
            ) from error
        device = config.device
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        here: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        try:
            self._processor: Any = AutoProcessor.from_pretrained(folder, **here)
            model: Any = AutoModelForImageTextToText.from_pretrained(
                folder, dtype=getattr(torch, config.dtype), use_safetensors=True, **here
            )
        except (OSError, ValueError, ImportError, KeyError) as error:
            raise UserError(
                f"caption.model={config.model!r} cannot be loaded: {_first_line(error)}; expected "
                "a model of AutoModelForImageTextToText in safetensors, with its processor"
            ) from error
        self._model = model.to(device).eval()
        self._model.generation_config.update(temperature=None, top_p=None, top_k=None)
        self._processor.tokenizer.padding_side = "left"
        self._config, self._text = config, self._asked(config.prompt)
        self._device = threading.Lock()

    def describe(self, jpegs: Sequence[bytes]) -> list[str]:
        """A text for each picture. Raises BadRow for what is no picture."""
        pictures = _opened(jpegs)
        size = self._config.batch_size
        batches = (pictures[i : i + size] for i in range(0, len(pictures), size))
        return [text for batch in batches for text in self._batch(batch)]

    def _asked(self, prompt: str) -> str:
        """The text that goes with a picture, the picture's place marked in it."""
        if not getattr(self._processor, "chat_template", None):
            return f"{getattr(self._processor, 'image_token', '<image>')}{prompt}"
        content = [{"type": "image"}, {"type": "text", "text": prompt}]
        return self._processor.apply_chat_template(
            [{"role": "user", "content": content}], add_generation_prompt=True
        )

    def _batch(self, pictures: list[Any]) -> list[str]:
        import torch

        asked: Any = self._processor(
            text=[self._text] * len(pictures),
            images=[[picture] for picture in pictures],
            return_tensors="pt",
            padding=True,
        )
        with self._device, torch.inference_mode():
            asked = asked.to(self._model.device, dtype=self._model.dtype)
            found = self._model.generate(
                **asked, max_new_tokens=self._config.max_tokens, do_sample=False, num_beams=1
            )
        answers = found[:, asked["input_ids"].shape[1] :].cpu()
        texts = self._processor.batch_decode(answers, skip_special_tokens=True)
        return [" ".join(text.split()) for text in texts]


def _opened(jpegs: Sequence[bytes]) -> list[Any]:
    import io

    from PIL import Image

    found = list[Any]()
    for index, jpeg in enumerate(jpegs):
        try:
            found.append(Image.open(io.BytesIO(jpeg)).convert("RGB"))
        except OSError as error:
            raise BadRow(f"picture {index} of {len(jpegs)} is not readable: {error}") from error
    return found


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".strip().splitlines()[0]
