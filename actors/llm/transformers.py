"""llm=transformers: a chat model in the worker's own process, by transformers on torch.

Calls that wait at the same time are generated as one batch. Every reply depends on its own request
only: it is greedy at temperature 0, else sampled with the request's seed by adding Gumbel noise to
the scores (arXiv 1411.0030). Rounding is an exception: in bfloat16 the padding of a batch can
decide a near tie.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from mustsee.calls.llm import Llm, Message, Reply, Request, Sampling
from mustsee.errors import BadRow, UserError, need
from mustsee.files.store import hardware
from mustsee.nn import weights
from mustsee.replies.thinking import ends_in_open_tag, split_reasoning

PROMPT_TAIL_TOKENS = 8  # last tokens of a prompt, where a template may open the reasoning
GATHER_S = 0.005  # seconds for which calls are gathered into one batch


@dataclass(frozen=True, kw_only=True)
class Transformers:
    """Any chat model of `AutoModelForImageTextToText` (with images) or `AutoModelForCausalLM`.

    JSON schemas are not enforced; only the prompt asks for them.
    """

    model: str
    """Folder, or Hugging Face id; fetch it first with `hf download`."""
    revision: str | None = weights.revision_field()
    """Commit or tag; null: the one in the cache."""
    dtype: str = "bfloat16"
    """Numeric type: bfloat16, float16 or float32."""
    device: str = hardware("auto")
    """Device: auto, cuda, cpu (not part of the result's identity)."""
    batch_size: int = hardware(8)
    """Requests generated together (not part of the identity either)."""

    def __post_init__(self) -> None:
        if self.dtype not in weights.DTYPES:
            expected = ", ".join(weights.DTYPES)
            raise UserError(f"llm.dtype={self.dtype!r}: expected one of {expected}")
        if self.batch_size < 1:
            raise UserError(f"llm.batch_size={self.batch_size!r}: expected at least 1")

    @property
    def identity(self) -> str:
        pinned = weights.weights_identity(self.model, self.revision)[:12]
        return f"transformers {self.model}@{pinned} {self.dtype}"

    def check(self, budget_usd: float | None) -> None:
        """Raise UserError if the weights are missing."""
        weights.find_checkpoint(self.model, self.revision, "config.json")

    def open(self) -> Llm:
        return TransformersChat(self)


@dataclass(frozen=True, eq=False)
class PendingRequest:
    """A request and the future of its reply."""

    request: Request
    reply: Future[Reply] = field(default_factory=lambda: Future[Reply]())

    @property
    def kind(self) -> tuple[int, int, bool]:
        """The kind of a request; requests of one kind can be generated together."""
        sampling = self.request.sampling
        images = sum(len(message.images) for message in self.request.messages)
        return sampling.max_tokens, images, sampling.top_logprobs > 0


class TransformersChat:
    """The loaded model. Raises UserError if it cannot be loaded."""

    def __init__(self, config: Transformers) -> None:
        need("llm=transformers", "mustsee[torch]", "torch")
        self._config, self.identity = config, config.identity
        self._sees = takes_images(config)
        self._model, self._reader = weights.load_checkpoint(
            "llm",
            config.model,
            config.revision,
            kind="AutoModelForImageTextToText" if self._sees else "AutoModelForCausalLM",
            reader="AutoProcessor" if self._sees else "AutoTokenizer",
            dtype=config.dtype,
            device=config.device,
        )
        self._tokenizer: Any = getattr(self._reader, "tokenizer", self._reader)
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        settings = self._model.generation_config
        settings.update(temperature=None, top_p=None, top_k=None)
        ends = settings.eos_token_id
        self._ends = {ends} if isinstance(ends, int) else set(ends or ())
        text = self._model.config.get_text_config()
        self._longest: int | None = getattr(text, "max_position_embeddings", None)
        self._pending: deque[PendingRequest] = deque()
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="llm-transformers")

    async def complete(self, request: Request) -> Reply:
        """Raises BadRow for a request that is too long, has unreadable images or images that the
        model does not take, or does not fit the memory by itself.
        """
        pending = PendingRequest(request)
        with self._lock:
            self._pending.append(pending)
        asyncio.get_running_loop().call_later(GATHER_S, self._thread.submit, self._answer_next)
        return await asyncio.wrap_future(pending.reply)

    def _answer_next(self) -> None:
        """Answer the oldest request and others of its kind as one batch."""
        batch = self._next_batch()
        while batch:
            try:
                replies = self._answer([p.request for p in batch])
                for pending, reply in zip(batch, replies, strict=True):
                    pending.reply.set_result(reply)
                return
            except Exception as error:
                if len(batch) == 1:
                    batch[0].reply.set_exception(_plain(error))
                    return
            # One request is at fault, or the batch is too large: it is tried in halves.
            with self._lock:
                self._pending.extendleft(reversed(batch[len(batch) // 2 :]))
            self._thread.submit(self._answer_next)
            batch = batch[: len(batch) // 2]

    def _next_batch(self) -> list[PendingRequest]:
        with self._lock:
            pending = [p for p in self._pending if not p.reply.cancelled()]
            kind = pending[0].kind if pending else None
            batch = [p for p in pending if p.kind == kind][: self._config.batch_size]
            self._pending = deque(p for p in pending if p not in batch)
            return [p for p in batch if p.reply.running() or p.reply.set_running_or_notify_cancel()]

    def _answer(self, requests: Sequence[Request]) -> list[Reply]:
        import torch

        try:
            inputs = self._encode(requests)
        except (ValueError, TypeError, IndexError) as error:  # a processor's refusals
            reason = str(error).strip().splitlines()[0]
            raise BadRow(f"{self._config.model!r} does not take this request: {reason}") from error
        lengths: list[int] = inputs["attention_mask"].sum(dim=1).tolist()
        sampling = requests[0].sampling
        for length in lengths:
            if self._longest is not None and length + sampling.max_tokens > self._longest:
                raise BadRow(
                    f"{length} tokens and {sampling.max_tokens} for the reply are more than the "
                    f"{self._longest} of {self._config.model!r}: show fewer frames, less "
                    "transcript, or ask for less"
                )
        with torch.inference_mode():
            cast = {"dtype": self._model.dtype} if self._sees else {}  # applies to images only
            inputs = inputs.to(self._model.device, **cast)
            output: Any = self._model.generate(
                **inputs,
                max_new_tokens=sampling.max_tokens,
                do_sample=False,
                num_beams=1,
                pad_token_id=self._tokenizer.pad_token_id,
                logits_processor=[TokenSampler(requests)],
                output_logits=sampling.top_logprobs > 0,
                return_dict_in_generate=True,
            )
        rows = output.sequences[:, inputs["input_ids"].shape[1] :].tolist()
        opened = ends_in_open_tag(
            self._tokenizer.decode(inputs["input_ids"][0][-PROMPT_TAIL_TOKENS:])
        )
        return [
            self._reply(request.sampling, lengths[i], rows[i], _row(output.logits, i), opened)
            for i, request in enumerate(requests)
        ]

    def _encode(self, requests: Sequence[Request]) -> Any:
        """The requests as the model's inputs, padded on the left."""
        chats = [self._chat(request.messages_for(schema=False)) for request in requests]
        if getattr(self._reader, "chat_template", None):
            options: dict[str, Any] = {
                "add_generation_prompt": True,
                "tokenize": True,
                "return_dict": True,
                "return_tensors": "pt",
            }
            options |= {"processor_kwargs": {"padding": True}} if self._sees else {"padding": True}
            return apply_chat_template(self._reader, chats, options)
        texts = [self._plain_text(request.messages_for(schema=False)) for request in requests]
        if not self._sees:
            return self._reader(texts, return_tensors="pt", padding=True)
        images = [_images(request.messages) for request in requests]
        options = {"images": images} if any(images) else {}
        return self._reader(text=texts, return_tensors="pt", padding=True, **options)

    def _chat(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """The form of chat templates: text for a tokenizer, a list of parts for a processor."""
        if not self._sees:
            if any(message.images for message in messages):
                raise BadRow(
                    f"{self._config.model!r} takes no images: answer without frames, or set a "
                    "model that does"
                )
            return [{"role": m.role, "content": m.text} for m in messages]
        return [
            {
                "role": message.role,
                "content": [
                    {"type": "image", "image": weights.open_images((part,))[0]}
                    if isinstance(part, bytes)
                    else {"type": "text", "text": part}
                    for part in message.parts
                ],
            }
            for message in messages
        ]

    def _plain_text(self, messages: Sequence[Message]) -> str:
        """The turns joined, for a model without a chat template."""
        place = getattr(self._reader, "image_token", "<image>") if self._sees else ""
        turns = ((p if isinstance(p, str) else place for p in m.parts) for m in messages)
        return "\n\n".join(map("".join, turns))

    def _reply(
        self, sampling: Sampling, length: int, row: list[int], logits: Any, opened: bool
    ) -> Reply:
        end = next((i for i, token in enumerate(row) if token in self._ends), None)
        tokens = row if end is None else row[:end]
        text = self._tokenizer.decode(tokens, skip_special_tokens=True).strip()
        split = split_reasoning(text, opened=opened)
        return Reply(
            text=split.reply,
            model=self._config.model,
            thoughts=split.thoughts,
            tokens_in=length,
            tokens_out=len(row) if end is None else end + 1,
            finish="length" if end is None or split.unfinished else "stop",
            logprobs=self._alternatives(logits[: len(tokens)], sampling.top_logprobs),
        )

    def _alternatives(self, logits: Any, most: int) -> tuple[dict[str, float], ...] | None:
        """Text -> log-probability of the likeliest tokens at each place of the reply. Tokens with
        the same text are one alternative.
        """
        if not most:
            return None
        import numpy as np

        alternatives = list[dict[str, float]]()
        for place in logits:
            values, ids = place.float().log_softmax(dim=-1).topk(min(most, place.shape[-1]))
            texts = self._tokenizer.batch_decode([[token] for token in ids.tolist()])
            merged: dict[str, float] = {}
            for text, value in zip(texts, values.tolist(), strict=True):
                merged[text] = float(np.logaddexp(merged.get(text, -np.inf), value))
            alternatives.append(merged)
        return tuple(alternatives)


class TokenSampler:
    """Turns the greedy choice of each row into a sample for its request: one draw from the `top_p`
    nucleus of the scores at the request's temperature. At temperature 0 it stays greedy.
    """

    def __init__(self, requests: Sequence[Request]) -> None:
        import torch

        self._samplings = [request.sampling for request in requests]
        self._dice = [
            torch.Generator().manual_seed(
                int(hashlib.sha256(request.key("draw").encode()).hexdigest()[:15], 16)
            )
            for request in requests
        ]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        for row, (sampling, dice) in enumerate(zip(self._samplings, self._dice, strict=True)):
            if sampling.temperature <= 0:
                continue
            chances = scores[row].float() / sampling.temperature
            if sampling.top_p < 1:
                shares, order = chances.softmax(dim=-1).sort(descending=True)
                beyond = order[shares.cumsum(0) - shares >= sampling.top_p]
                chances[beyond] = -torch.inf
            even = torch.rand(chances.shape, generator=dice).clamp_(1e-20, 1 - 1e-7)
            scores[row] = chances - (-even.log()).log().to(chances.device)
        return scores


def takes_images(config: Transformers) -> bool:
    """Whether a model takes images. Raises UserError if it is not a model of transformers."""
    folder = weights.find_checkpoint(config.model, config.revision, "config.json")
    from transformers import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING, AutoConfig

    try:
        config_of_model = AutoConfig.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError) as error:
        reason = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        raise UserError(f"llm.model={config.model!r} cannot be loaded: {reason}") from error
    return type(config_of_model) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING


def apply_chat_template(
    reader: Any, chats: list[list[dict[str, Any]]], options: dict[str, Any]
) -> Any:
    """Apply the model's chat template. If it does not support a system turn (Gemma's), the system
    prompt is put before the first user turn.
    """
    from jinja2 import TemplateError

    try:
        return reader.apply_chat_template(chats, **options)
    except TemplateError:
        if not any(chat[0]["role"] == "system" for chat in chats):
            raise
        return reader.apply_chat_template([_without_system(chat) for chat in chats], **options)


def _without_system(chat: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if len(chat) < 2 or chat[0]["role"] != "system":
        return chat
    system, user, *rest = chat
    if isinstance(system["content"], str):
        content: Any = f"{system['content']}\n\n{user['content']}"
    else:
        content = [*system["content"], *user["content"]]
    return [{"role": user["role"], "content": content}, *rest]


def _images(messages: Sequence[Message]) -> list[Any]:
    return [image for m in messages for image in weights.open_images(m.images)]


def _row(logits: Any, row: int) -> list[Any]:
    """The scores of one row at each place of its reply."""
    return [step[row] for step in logits or ()]


def _plain(error: Exception) -> Exception:
    """BadRow for a request that does not fit the memory by itself; any other error as it is."""
    import torch

    if isinstance(error, torch.OutOfMemoryError):
        return BadRow("the request does not fit the GPU's memory: show fewer or smaller frames")
    return error
