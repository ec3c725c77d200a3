"""Captions, looks, Whisper and the judge on an accelerator, each beside the plain library.

    python -m benchmarks.bench what=gpu what.caption.model=FOLDER what.looks.model=FOLDER \\
        what.judge.engine.path=FOLDER [+llm@what.servers.vllm=openai what.servers.vllm.base_url=URL]
    python -m benchmarks.gpu [MODEL|URL ...]

Both sides get the same weights, frames, sound and prompts, and take turns after one unmeasured call
each; figures are by median wall seconds of one device. A look is a question about `frames` frames.
Plain is transformers' `generate` (captions, looks) or forward pass (judge), faster-whisper's
`BatchedInferencePipeline`, and for a server, such as vLLM's, the same request bodies sent at once.
The second command names what this machine lacks, before any work: packages, the GPU, models.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import av

from actors.calls.coordinator import Coordinator
from actors.calls.gateway import Gateway
from actors.hear.whisper import Whisper
from actors.judge.gem import Gem
from actors.judge.tokens import settle
from actors.llm.openai import OpenAI, OpenAIChat
from actors.llm.transformers import Transformers
from actors.stages.caption import OpenAICaptioner
from actors.stages.caption_local import TYPED, TransformersCaptioner, sentence
from actors.stages.look import Look
from benchmarks.caption import time_call
from benchmarks.figures import BenchTable, Cell
from benchmarks.harness import NO_CALLS, open_part
from benchmarks.hear import open_engine, word_errors
from benchmarks.judge import questions
from mustsee.calls.llm import Message, Reply, Request, Sampling
from mustsee.errors import MustseeError, UserError, need
from mustsee.files.fetch import fetch
from mustsee.files.store import Store
from mustsee.judge.judge import JudgeConfig
from mustsee.judge.prompt import triple
from mustsee.media.frames import crop_jpeg
from mustsee.media.video import frames_at
from mustsee.nn import weights
from mustsee.prompts import Prompts
from mustsee.records import Video

QUESTION = "What happens here, in a few words?"
PLAIN_BATCH = 32  # prompts of the judge in one plain forward pass
Texts = list[str]
Call = Callable[[], Any]


@dataclass(frozen=True, kw_only=True)
class GpuBench:
    """`servers`: endpoints that take images, by name. `video`: with speech. `questions`: looks, of
    `frames` frames each. `answers`: of the judge.
    """

    caption: TransformersCaptioner
    looks: Transformers
    hear: Whisper
    judge: JudgeConfig
    servers: Mapping[str, OpenAI] = field(default_factory=dict[str, OpenAI])
    video: str
    questions: int = 32
    frames: int = 8
    longest: int = 512
    look_tokens: int = 16
    answers: int = 600
    repeats: int = 3

    def __call__(self) -> BenchTable:
        judge: Any = self.judge.engine
        if not hasattr(judge, "path"):
            raise UserError("what.judge: expected gem or gem_jax, which read a checkpoint")
        lacks = find_missing(
            self.caption.check,
            lambda: self.looks.check(None),
            self.hear.check,
            lambda: settle(judge.path, judge.attention, judge.zero_shot),
            *(partial(ask_models, server.base_url) for server in self.servers.values()),
        )
        if lacks:
            raise UserError("; ".join(lacks))
        video = Video(video_id="bench", uri=self.video, digest=self.video)
        seen: Any = Look().open(NO_CALLS)(video)
        with av.open(self.video) as container:
            seconds = (container.duration or 0) / av.time_base
        requests = self._requests(seconds)
        rows = [
            self._captions(seen, seconds),
            self._looks(requests),
            self._speech(video, seconds),
            self._judge(),
        ]
        for name, server in self.servers.items():
            rows += self._server(name, server, seen, seconds, requests)
        device = device_name()
        return BenchTable(
            title=f"beside the plain library, on {device or 'a CPU (a GPU: not verified here)'}",
            columns=("what", "model", "unit", "ours", "plain", "ratio", "same", "plain is"),
            rows=tuple(rows),
            notes=(
                f"{seconds:.0f} s of video, {len(seen.keyframes)} keyframes, {len(requests)} looks "
                f"of {self.frames} frames and up to {self.look_tokens} tokens, {self.answers} "
                f"answers; medians of {self.repeats}; ratio: ours over plain, more is better",
                "captions: of the keyframes that `look` chose, its own time left out; "
                "same: share of equal captions, replies, words and verdicts",
                *(() if device else ("no GPU, so these are a CPU's: not verified here",)),
                *(() if self.servers else ("no server (VLLM=URL MODEL=ID): not verified here",)),
            ),
        )

    def _captions(self, seen: Any, seconds: float) -> tuple[Cell, ...]:
        config = self.caption
        ours = config.open(NO_CALLS)
        plain = PlainVlm(config.model, config.revision, config.dtype, config.device)
        prompt = config.prompt or Prompts().render(TYPED).user
        images = [(crop_jpeg(keyframe.jpeg),) for keyframe in seen.keyframes]

        def caption() -> Texts:
            result: Any = ours(seen)
            texts = {c.time: c.text for c in result.captions}
            return [texts.get(k.time, "") for k in seen.keyframes]

        def generate() -> Texts:
            replies = plain.generate(prompt, images, config.batch_size, config.max_tokens)
            return [sentence(reply) for reply in replies]

        what = "video hours a GPU hour"
        return self._row("captions", config.model, what, seconds, caption, generate, "transformers")

    def _looks(self, requests: Sequence[Request]) -> tuple[Cell, ...]:
        config = self.looks
        chat = config.open()
        plain = PlainVlm(config.model, config.revision, config.dtype, config.device)
        images = [request.messages[0].images for request in requests]

        async def ask() -> Texts:
            return [r.text for r in await asyncio.gather(*map(chat.complete, requests))]

        def generate() -> Texts:
            replies = plain.generate(QUESTION, images, config.batch_size, self.look_tokens)
            return [reply.strip() for reply in replies]

        return self._row(
            "looks", config.model, "looks/s", len(requests),
            lambda: asyncio.run(ask()), generate, "transformers",
        )  # fmt: skip

    def _speech(self, video: Video, seconds: float) -> tuple[Cell, ...]:
        from faster_whisper import BatchedInferencePipeline, WhisperModel

        config = self.hear
        transcribe = open_engine(config)
        plain = BatchedInferencePipeline(
            WhisperModel(
                str(weights.find(config.model, config.revision)), device=config.device,
                compute_type=config.compute_type, cpu_threads=config.threads, local_files_only=True,
            )
        )  # fmt: skip

        def pipeline() -> str:
            segments, _ = plain.transcribe(
                video.uri, language=config.language, beam_size=config.beam_size,
                batch_size=config.batch_size, word_timestamps=config.word_times,
                max_new_tokens=config.max_new_tokens,
            )  # fmt: skip
            return " ".join(segment.text for segment in segments)

        return self._row(
            "Whisper", config.name or config.model, "times real time", seconds,
            lambda: " ".join(line.text for line in transcribe(video.uri)), pipeline,
            "faster-whisper", same_words,
        )  # fmt: skip

    def _judge(self) -> tuple[Cell, ...]:
        config: Any = self.judge.engine
        engine = config.open()
        plain = PlainJudge(config, engine.tokens)
        triples = [
            triple(i.question, i.candidate, i.references[0])[0] for i in questions(self.answers)
        ]

        def score() -> list[bool]:
            return [p.logit_diff > 0 for p in engine.score([engine.prepare(t) for t in triples])]

        def forward() -> list[bool]:
            return plain.verdicts([engine.prepare(t).payload for t in triples])

        return self._row(
            "judge", config.path, "answers/s", len(triples), score, forward, "transformers"
        )

    def _server(
        self, name: str, server: OpenAI, seen: Any, seconds: float, requests: Sequence[Request]
    ) -> list[tuple[Cell, ...]]:
        async def caption(recorder: RequestRecorder, store: Store) -> None:
            part = OpenAICaptioner(endpoint=server, agree=0)  # without second looks
            await open_part(part, server, recorder, store, Coordinator())(seen)

        async def ask(recorder: RequestRecorder, store: Store) -> None:
            gateway = Gateway(recorder, store, Coordinator(), server)
            await asyncio.gather(*map(gateway.complete, requests))

        plain = f"requests to {name}"
        captions, looks = RecordedWork(server, caption), RecordedWork(server, ask)
        return [
            self._row(f"captions, {name}", server.model, "video hours a GPU hour", seconds,
                      captions.run, captions.repeat, plain),
            self._row(f"looks, {name}", server.model, "looks/s", len(requests),
                      looks.run, looks.repeat, plain),
        ]  # fmt: skip

    def _requests(self, seconds: float) -> list[Request]:
        """Looks at quarters of the video, whose starts are spread evenly."""
        result = list[Request]()
        for number in range(self.questions):
            start, span = 0.75 * seconds * number / self.questions, 0.24 * seconds
            times = [start + span * i / self.frames for i in range(self.frames)]
            frames = tuple(f.jpeg(self.longest, 85) for f in frames_at(self.video, times))
            sampling = Sampling(max_tokens=self.look_tokens)
            message = Message("user", QUESTION, images=frames)
            result.append(
                Request(prompt="bench", digest="", messages=(message,), sampling=sampling)
            )
        return result

    def _row(
        self, what: str, model: str, unit: str, amount: float, ours: Call, plain: Call, name: str,
        same: Callable[[Any, Any], float] | None = None,
    ) -> tuple[Cell, ...]:  # fmt: skip
        """Measure both in turns; `amount`: how much of `unit`'s first word one call does."""
        first, second = ours(), plain()
        times = [(time_call(ours)[0], time_call(plain)[0]) for _ in range(self.repeats)]
        rates = [amount / statistics.median(each) for each in zip(*times, strict=True)]
        share = (same or same_items)(first, second)
        return what, Path(model).name, unit, *rates, rates[0] / rates[1], share, name


class PlainVlm:
    """An image-text model as transformers' documentation runs it."""

    def __init__(self, model: str, revision: str | None, dtype: str, device: str) -> None:
        self._model, self._processor = weights.load_checkpoint(
            "what.caption", model, revision, kind="AutoModelForImageTextToText",
            reader="AutoProcessor", dtype=dtype, device=device,
        )  # fmt: skip

    def generate(
        self, prompt: str, images: Sequence[Sequence[bytes]], batch: int, tokens: int
    ) -> Texts:
        """Return a greedy reply to the prompt about each group of JPEGs."""
        import torch

        texts = list[str]()
        for first in range(0, len(images), batch):
            some = [weights.open_images(group) for group in images[first : first + batch]]
            inputs: Any = self._processor(
                text=[self._text(prompt, len(each)) for each in some], images=some,
                return_tensors="pt", padding=True,
            ).to(self._model.device, dtype=self._model.dtype)  # fmt: skip
            with torch.inference_mode():
                output = self._model.generate(**inputs, max_new_tokens=tokens, do_sample=False)
            replies = output[:, inputs["input_ids"].shape[1] :]
            texts += self._processor.batch_decode(replies, skip_special_tokens=True)
        return texts

    def _text(self, prompt: str, images: int) -> str:
        if not getattr(self._processor, "chat_template", None):
            return getattr(self._processor, "image_token", "<image>") * images + prompt
        content = [*({"type": "image"} for _ in range(images)), {"type": "text", "text": prompt}]
        return self._processor.apply_chat_template(
            [{"role": "user", "content": content}], add_generation_prompt=True
        )


class PlainJudge:
    """The judge's checkpoint by one forward pass of transformers, prompts in their order."""

    def __init__(self, config: Gem, tokens: Any) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        dtype = config.dtype or settle(config.path, config.attention, config.zero_shot).dtype
        device = "cuda" if torch.cuda.is_available() else "cpu"
        model: Any = AutoModelForCausalLM.from_pretrained(
            config.path, dtype=getattr(torch, dtype), local_files_only=True
        )
        self._model, self._tokens = model.to(device).eval(), tokens

    def verdicts(self, prompts: Sequence[Sequence[int]]) -> list[bool]:
        import torch

        verdicts = list[bool]()
        for first in range(0, len(prompts), PLAIN_BATCH):
            some = prompts[first : first + PLAIN_BATCH]
            width = max(map(len, some))
            ids = [[self._tokens.pad] * (width - len(p)) + list(p) for p in some]
            real = [[0] * (width - len(p)) + [1] * len(p) for p in some]
            with torch.inference_mode():
                logits = self._model(
                    input_ids=torch.tensor(ids, device=self._model.device),
                    attention_mask=torch.tensor(real, device=self._model.device),
                    logits_to_keep=1,
                ).logits[:, -1]
            true, false = self._tokens.labels
            verdicts += (logits[:, true] > logits[:, false]).tolist()
        return verdicts


class RequestRecorder:
    """A chat that keeps the bodies of the requests that it completes, and their replies."""

    def __init__(self, chat: OpenAIChat) -> None:
        self._chat, self.identity = chat, chat.identity
        self.bodies, self.texts = list[dict[str, Any]](), dict[int, str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chat, name)

    async def complete(self, request: Request) -> Reply:
        number = len(self.bodies)
        self.bodies.append(self._chat.whole_body(request))
        reply = await self._chat.complete(request)
        self.texts[number] = reply.text.strip()
        return reply


@dataclass
class RecordedWork:
    """Calls to a server without a key, by a run's own gateway (`run`), and the same request bodies
    sent at once by aiohttp alone (`repeat`). Both return the replies in the order of the requests.
    """

    server: OpenAI
    work: Callable[[RequestRecorder, Store], Awaitable[None]]
    bodies: Sequence[Mapping[str, Any]] = ()

    def run(self) -> Texts:
        async def work(folder: str) -> Texts:
            recorder = RequestRecorder(self.server.open())
            await self.work(recorder, Store(folder))
            self.bodies = recorder.bodies
            return [recorder.texts.get(i, "") for i in range(len(self.bodies))]

        with tempfile.TemporaryDirectory() as folder:
            return asyncio.run(work(folder))

    def repeat(self) -> Texts:
        return asyncio.run(self._post_all())

    async def _post_all(self) -> Texts:
        import aiohttp

        url = f"{self.server.base_url}/chat/completions"
        connector = aiohttp.TCPConnector(limit=self.server.max_connections)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(
            connector=connector, timeout=timeout, raise_for_status=True
        ) as session:

            async def post(body: Mapping[str, Any]) -> str:
                async with session.post(url, json=body) as reply:
                    message = (await reply.json())["choices"][0]["message"]
                    return (message["content"] or "").strip()

            return await asyncio.gather(*map(post, self.bodies))


def same_items(ours: Sequence[Any], plain: Sequence[Any]) -> float:
    """The share of equal items of two lists of the same length."""
    return sum(a == b for a, b in zip(ours, plain, strict=True)) / max(1, len(ours))


def same_words(ours: str, plain: str) -> float:
    """One less the word error rate of ours against plain; at least 0."""
    words, *errors = word_errors([plain], [ours]).sum(axis=0).tolist()
    return max(0.0, 1 - sum(errors) / max(1, words))


def device_name() -> str:
    """The name of the GPU that torch sees; "" without one."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else ""


def find_missing(*checks: Call) -> list[str]:
    """What this machine lacks for the benchmark: packages, what the `checks` raise, and a GPU that
    is there but not seen. Nothing is loaded or fetched.
    """
    lacks = list[str]()
    needed = (
        partial(need, "what=gpu", "mustsee[torch]", "torch", "transformers"),
        partial(need, "what=gpu", "mustsee[offline]", "faster_whisper", "ctranslate2"),
        partial(need, "what=gpu", "jiwer", "jiwer"),
    )
    for check in (*needed, *checks):
        try:
            check()
        except MustseeError as error:
            lacks.append(str(error))
    if not lacks and gpu_is_here():
        import ctranslate2

        sees = {
            "torch: install its build for CUDA": device_name() != "",
            "ctranslate2: install CUDA 12 and cuDNN 9": ctranslate2.get_cuda_device_count() > 0,
        }
        lacks += [f"there is a GPU, but not for {name}" for name, seen in sees.items() if not seen]
    return lacks


def gpu_is_here() -> bool:
    """Whether the driver lists a GPU."""
    try:
        return subprocess.run(["nvidia-smi", "-L"], capture_output=True).returncode == 0
    except OSError:
        return False


def ask_models(url: str) -> None:
    """Raise UserError unless a server at `url` lists its models."""
    try:
        status = fetch(f"{url}/models", timeout=10).status
    except (OSError, ValueError) as error:
        raise UserError(f"no answer from {url!r} ({error}): start the server first") from error
    if status != 200:
        raise UserError(f"{url}/models answers with {status}: expected an OpenAI-compatible server")


def main(models: Sequence[str]) -> int:
    """Print what is missing here for these models and servers; 2 if anything is."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # torch needs memory, too
    checks = (partial(ask_models if m.startswith("http") else weights.find, m) for m in models)
    lacks = find_missing(partial(need, "deploy/verify_gpu.sh", "mustsee[offline]", "jax"), *checks)
    if not lacks and (models or gpu_is_here()):
        import jax

        if jax.default_backend() == "cpu":
            lacks.append(
                "there is a GPU, but not for JAX: pip install 'jax[cuda13]'"
                if gpu_is_here()
                else "weights or a server are given, but there is no GPU: without them the script "
                "runs with tiny random weights"
            )
    for line in lacks:
        print(f"mustsee: {line}", file=sys.stderr)
    return 2 if lacks else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
