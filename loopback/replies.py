"""What the loopback server answers: chat completions, embeddings, transcriptions, as plain data.

What it says is canned, recorded, or any function from a request's payload to a text.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import time
import wave
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from actors.llm.replay import hash_messages, read
from loopback.videos import SECOND, decode_data_url, video_seconds, video_urls
from mustsee.calls.llm import PICTURE as PICTURE_MARK
from mustsee.calls.llm import Message, VideoClip, correction
from mustsee.records import Span

Payload = Mapping[str, Any]
Thinks = Literal["not", "tags", "field"]
DIMENSIONS = 384
PICTURE = 258  # tokens, as Gemini counts a small one
CORRECTION = correction("|").partition("|")[0]


def canned_reply(payload: Payload) -> str:
    """A short sentence that depends on the question."""
    return f"Reply {content_hash(_asked(payload['messages']))[:8]}."


def recorded_replies(
    path: str, otherwise: Callable[[Payload], str] = canned_reply
) -> Callable[[Payload], str]:
    """Replies from a file that `llm=replay` recorded; a question asked again in other words after a
    wrong form gets the reply to the question itself.
    """
    replies = {line["spoken"]: line["reply"]["text"] for line in read(path).values()}

    def reply(payload: Payload) -> str:
        messages = [as_message(m) for m in _asked(payload["messages"])]
        reply = replies.get(hash_messages(messages, payload.get("seed", 0)))
        return otherwise(payload) if reply is None else reply

    return reply


def _asked(messages: Sequence[Payload]) -> Sequence[Payload]:
    """A conversation up to the question itself, without what was said about replies of a wrong
    form.
    """
    while len(messages) > 2 and str(messages[-1]["content"]).startswith(CORRECTION):
        messages = messages[:-2]
    return messages


def as_message(said: Payload) -> Message:
    content = said["content"]
    if isinstance(content, str):
        return Message(said["role"], content)
    videos = video_urls(content)
    text = ""
    for part in content[len(videos) :]:
        text += part["text"] if part["type"] == "text" else PICTURE_MARK if text else ""
    urls = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
    images = tuple(decode_data_url(url) for url in urls if url not in videos)
    return Message(said["role"], text, images, tuple(map(_clip, videos)))


def _clip(url: str) -> VideoClip:
    """A video as it came; one at an address, which nobody fetches, counts as a minute."""
    if not url.startswith("data:"):
        return VideoClip(span=Span(0.0, 60.0), digest="", address=url)
    return VideoClip(span=Span(0.0, video_seconds(url)), digest="", mp4=decode_data_url(url))


def content_hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def bursts(sound: bytes) -> list[tuple[float, float]]:
    """(start, end) in seconds of the loud stretches of a WAV file: what the server hears."""
    with wave.open(io.BytesIO(sound)) as file:
        rate = file.getframerate()
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768
    step = rate // 50
    level = np.abs(samples[: len(samples) // step * step].reshape(-1, step)).max(axis=1)
    loud = np.flatnonzero(level > 0.05)
    pieces = np.split(loud, np.flatnonzero(np.diff(loud) > 5) + 1) if len(loud) else []
    return [(float(p[0]) / 50, float(p[-1] + 1) / 50) for p in pieces]


def words_of(sound: bytes) -> dict[str, Any]:
    """The transcription of a WAV file: every burst is the word "beep"."""
    heard = bursts(sound)
    words = [{"word": "beep", "start": start, "end": end} for start, end in heard]
    segments = [
        {"id": i, "start": start, "end": end, "text": " beep", "avg_logprob": -0.1}
        for i, (start, end) in enumerate(heard)
    ]
    text = " ".join("beep" for _ in heard)
    return {"language": "english", "text": text, "words": words, "segments": segments}


THOUGHT = "Okay, the user wants QUESTION: Is it? ANSWER: B. Wait, let me look at it once more." * 40


def completion(
    payload: Payload,
    reply: Callable[[Payload], str],
    thinks: Thinks = "not",
) -> dict[str, Any]:
    """A chat completion with the usage that four characters a token, `PICTURE` tokens a picture
    and `SECOND` tokens a second of video give; what goes beyond the limit of tokens is cut off.
    """
    text, thought = reply(payload), "" if thinks == "not" else THOUGHT
    limit = payload.get("max_completion_tokens") or payload.get("max_tokens") or 1 << 30
    said = [as_message(m) for m in payload["messages"]]
    tokens_in = sum(len(m.text) // 4 + 1 + PICTURE * len(m.images) for m in said)
    tokens_in += round(sum(SECOND * clip.span.seconds for m in said for clip in m.clips))
    whole = f"<think>{thought}</think>\n{text}" if thinks == "tags" else text
    room = 4 * limit - (len(thought) if thinks == "field" else 0)
    message = {"role": "assistant", "content": whole[: max(0, room)], "refusal": None}
    if thinks == "field":
        message["reasoning_content"] = thought[: 4 * limit]
    tokens_out = min((len(whole) + (len(thought) if thinks == "field" else 0)) // 4 + 1, limit)
    choice: dict[str, Any] = {
        "index": 0,
        "message": message,
        "finish_reason": "length" if len(whole) > room else "stop",
        "logprobs": None,
    }
    if payload.get("logprobs"):
        token = {"token": text, "logprob": -0.1, "bytes": None}
        other = {"token": "other", "logprob": -2.5, "bytes": None}
        choice["logprobs"] = {"content": [{**token, "top_logprobs": [token, other]}]}
    return {
        "id": f"chatcmpl-{content_hash(payload)[:12]}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": payload["model"],
        "choices": [choice],
        "usage": {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
        },
    }


def embeddings(payload: Payload) -> dict[str, Any]:
    """Unit vectors drawn by the text's hash."""
    texts = [payload["input"]] if isinstance(payload["input"], str) else payload["input"]
    data: list[dict[str, Any]] = []
    for i, text in enumerate(texts):
        seed = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
        vector = np.random.default_rng(seed).normal(size=payload.get("dimensions", DIMENSIONS))
        vector = (vector / np.linalg.norm(vector)).astype("<f4")
        packed = payload.get("encoding_format") == "base64"
        value = base64.b64encode(vector.tobytes()).decode() if packed else vector.tolist()
        data.append({"object": "embedding", "index": i, "embedding": value})
    tokens = sum(len(text) // 4 + 1 for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": payload["model"], "data": data, "usage": usage}
