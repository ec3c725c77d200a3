"""SmolLM2-135M in every place that takes a chat model: that it works, not how good it is.

`runs/real/parses.md` lists the prompts with their share of parseable replies.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from actors.answer.llm import AnswerLlm
from actors.judge.llm import LlmJudge
from actors.llm.transformers import Transformers, TransformersChat
from actors.part import LlmConfig, RunContext
from mustsee.calls.llm import Asker, Llm, Message, Reply, Request, Sampling
from mustsee.errors import BadRow
from mustsee.files.store import Store
from mustsee.judge.prompt import triple
from mustsee.prompts import Prompts
from mustsee.records import Question, Video
from mustsee.verify.conditions.seen import Condition
from tests.real.conftest import FIGURES
from tests.support.every_prompt import CHOICE, OPTIONS, Call, calls
from tests.support.neptune_video import sample_video

Keep = Callable[[str, Any], None]
TOKENS = 128  # of a reply in the table of prompts
ASKED = (
    "What is the capital of France? Answer with one word.",
    "Name three colours.",
    "Write a sentence about a dog that crosses a river on a very old and narrow bridge.",
    "2 + 2 =",
    "Who wrote Hamlet?",
)


def config(folder: Path, **fields: Any) -> Transformers:
    given: dict[str, Any] = {"dtype": "float32", "device": "cpu", **fields}
    return Transformers(model=str(folder), **given)


@pytest.fixture(scope="module")
def chat(smollm2: Path) -> Any:
    return config(smollm2).open()


def request(text: str, **sampling: Any) -> Request:
    return Request(
        prompt="p", digest="d", messages=(Message("user", text),),
        sampling=replace(Sampling(max_tokens=24), **sampling),
    )  # fmt: skip


def together(llm: Llm, requests: Sequence[Request]) -> list[Reply]:
    async def work() -> list[Reply]:
        return await asyncio.gather(*map(llm.complete, requests))

    return asyncio.run(work())


def test_the_chat_template_frames_a_turn_and_its_end_ends_the_reply(chat: TransformersChat) -> None:
    (reply,) = together(chat, [request(ASKED[0])])
    assert "Paris" in reply.text
    assert reply.finish == "stop"
    assert "<|" not in reply.text
    opening = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging"
    framed = f"{opening} Face<|im_end|>\n<|im_start|>user\n{ASKED[0]}<|im_end|>\n"
    ids = chat._tokenizer(f"{framed}<|im_start|>assistant\n", add_special_tokens=False)
    assert reply.tokens_in == len(ids["input_ids"])
    (cut,) = together(chat, [request(ASKED[2], max_tokens=3)])
    assert (cut.finish, cut.tokens_out) == ("length", 3)


def test_a_reply_does_not_depend_on_its_batch(
    chat: TransformersChat, smollm2: Path, figure: Keep
) -> None:
    asked = [request(text) for text in ASKED]
    drawn = [replace(request(ASKED[2], temperature=1.0, top_p=0.9), seed=n) for n in range(3)]
    alone = [together(chat, [one])[0] for one in (*asked, *drawn)]
    assert together(chat, [*asked, *drawn]) == alone
    assert len({reply.text for reply in alone[len(asked) :]}) == 3
    half = config(smollm2, dtype="bfloat16").open()
    pairs = zip(together(half, asked), (together(half, [a])[0] for a in asked), strict=True)
    figure("bfloat16_same_alone_and_in_a_batch", f"{sum(a == b for a, b in pairs)} of {len(asked)}")


def test_logprobs_are_the_models_own(chat: TransformersChat) -> None:
    import torch

    (reply,) = together(chat, [request(ASKED[0], top_logprobs=5)])
    assert reply.logprobs is not None
    assert "".join(max(p, key=lambda t: p[t]) for p in reply.logprobs).strip() == reply.text
    asked = [{"role": "user", "content": ASKED[0]}]
    inputs = chat._tokenizer.apply_chat_template(
        asked, add_generation_prompt=True, return_dict=True, return_tensors="pt"
    )
    with torch.inference_mode():
        first = chat._model(**inputs).logits[0, -1].log_softmax(-1)
    values, ids = first.topk(5)
    for token, value in zip(chat._tokenizer.batch_decode(ids[:, None]), values, strict=True):
        assert reply.logprobs[0][token] == pytest.approx(value.item(), abs=1e-3)
    assert sum(map(math.exp, reply.logprobs[0].values())) <= 1 + 1e-5


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_throughput(dtype: str, smollm2: Path, figure: Keep) -> None:
    """Output tokens per CPU second, prompts included."""
    llm = config(smollm2, dtype=dtype).open()
    together(llm, [request("Hello", max_tokens=2)])
    for size in (1, 8):
        asked = [request(f"Write a long story about {n} dogs.", max_tokens=48) for n in range(size)]
        began = time.process_time()
        tokens = sum(reply.tokens_out for reply in together(llm, asked))
        spent = time.process_time() - began
        figure(f"tokens_per_cpu_second_{dtype}_batch_{size}", round(tokens / spent, 1))


def test_answers_and_their_letters(chat: TransformersChat, smollm2: Path, tmp_path: Path) -> None:
    """answer=transformers, blind: a parseable reply, and a letter by probability."""
    question = Question(
        question_id="q", video_id="video", recipe="neptune", question=CHOICE,
        question_type="Other", options=OPTIONS, answer_index=0, answer=OPTIONS[0],
    )  # fmt: skip

    def connect(config: LlmConfig) -> Llm:
        return chat

    run = RunContext(store=Store(str(tmp_path)), llm=connect, count=lambda name, n: None)
    part = AnswerLlm(
        llm=config(smollm2), see=Condition(condition="transcript"), prompt="evaluate/choice",
        rotations=5, sampling=Sampling(max_tokens=16, top_logprobs=20),
    )  # fmt: skip
    video: Video = replace(sample_video(), questions=(question,))
    done: Video = asyncio.run(part.open(run)(video))  # type: ignore[arg-type]
    (asked,) = done.questions or ()
    assert len(asked.verdicts) == 5
    assert all(v.reply and not (v.detail or "").startswith("failed") for v in asked.verdicts)
    assert any(v.correct is not None for v in asked.verdicts)
    assert any('"choice"' in v.detail for v in asked.verdicts)


@pytest.mark.parametrize("verdict", ["word", "logprobs"])
def test_the_judge(verdict: Any, smollm2: Path, figure: Keep) -> None:
    """judge=llm: each item has a score, or an error that quotes the reply."""
    engine = LlmJudge(llm=config(smollm2), verdict=verdict).open()
    pairs = (("Paris", "Paris"), ("London", "Paris"), ("I do not know", "Paris"))
    asked = [triple("What is the capital of France?", said, right)[0] for said, right in pairs]
    found = engine.score([engine.prepare(one) for one in asked])
    for reading in found:
        assert reading.error or math.isfinite(reading.logit_diff)
        assert not reading.error or "answered" in reading.error
    said = [(r.error or "").rpartition(" answered ")[2] or round(r.logit_diff, 2) for r in found]
    figure(f"judge_{verdict}", said)


@dataclass
class Overheard:
    """The text model, which records its reply to each prompt."""

    llm: Llm
    replies: dict[str, Reply] = field(default_factory=dict[str, Reply])

    @property
    def identity(self) -> str:
        return self.llm.identity

    async def complete(self, request: Request) -> Reply:
        plain = [replace(message, images=()) for message in request.messages]
        reply = await self.llm.complete(replace(request, messages=tuple(plain)))
        self.replies[request.prompt] = reply
        return reply


def test_share_of_parseable_replies_by_prompt(smollm2: Path, figure: Keep) -> None:
    """Each prompt once, short prompts first; the table grows with the replies."""
    overheard = Overheard(config(smollm2, dtype="bfloat16").open())
    asker = Asker(llm=overheard, prompts=Prompts(), sampling=Sampling(max_tokens=TOKENS), tries=1)
    rows: dict[str, tuple[str, str]] = {}

    async def one(call: Call) -> None:
        fault = ""
        try:
            await asker.ask(call.name, call.form, **call.given)
        except BadRow as error:
            fault = str(error).rpartition("the last one: ")[2]
        rows[call.name] = row(call, fault, overheard.replies[call.name])
        FIGURES.mkdir(parents=True, exist_ok=True)
        head = "| prompt | tokens | the reply is | why not | its beginning |\n"
        head += "| --- | --- | --- | --- | --- |\n"
        table = "".join(rows[name][1] for name in sorted(rows))
        (FIGURES / "parses.md").write_text(head + table, encoding="utf-8")

    async def everything(asked: Sequence[Call]) -> None:
        for some in (asked[at : at + 4] for at in range(0, len(asked), 4)):
            await asyncio.gather(*map(one, some))

    asked = sorted(calls().values(), key=lambda call: len(call.text()))
    asyncio.run(everything(asked))
    outcomes = sorted(outcome for outcome, _ in rows.values())
    figure(
        "prompts_of_which_the_reply_is",
        {key: len(list(all_)) for key, all_ in itertools.groupby(outcomes)},
    )
    assert outcomes.count("parsed") >= 5


def row(call: Call, fault: str, reply: Reply) -> tuple[str, str]:
    """Return the outcome of the reply and its row of the table."""
    outcome = "not parsed" if fault else "parsed"
    begins = " ".join(reply.text.split())[:60].replace("|", "/")
    name = f"`{call.name}`" + (" (without its images)" if call.given.get("images") else "")
    return outcome, f"| {name} | {reply.tokens_in} | {outcome} | {fault[:90]} | {begins} |\n"
