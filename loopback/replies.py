"""The loopback server's replies: chat completions, embeddings, transcriptions, as plain data.

The text is canned, recorded, or the result of any function of a request's payload.

The videos of a request can be decoded, so that a reply depends on the clip that arrived: its
length, its frames, its sound.

    Loopback(reply=lambda payload: describe(videos(payload)))
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import time
import wave
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from actors.llm.replay import hash_messages, read
from mustsee.calls.llm import IMAGE_MARK, Message, VideoClip, correction
from mustsee.records import Span

Payload = Mapping[str, Any]
Thinks = Literal["not", "tags", "field"]
DIMENSIONS = 384
IMAGE_TOKENS = 258  # tokens of a small image, as Gemini counts
CORRECTION = correction("|").partition("|")[0]


def canned_reply(payload: Payload) -> str:
    """Return a short sentence that depends on the question."""
    return f"Reply {content_hash(_without_corrections(payload['messages']))[:8]}."


def recorded_replies(
    path: str, otherwise: Callable[[Payload], str] = canned_reply
) -> Callable[[Payload], str]:
    """Return replies from a file that `llm=replay` recorded. A question that is repeated after an
    unparseable reply gets the reply to the question itself.
    """
    replies = {
        spoken: line["reply"]["text"] for line in read(path).lines for spoken in line["spoken"]
    }

    def reply(payload: Payload) -> str:
        messages = [as_message(m) for m in _without_corrections(payload["messages"])]
        reply = replies.get(hash_messages(messages, payload.get("seed", 0)))
        return otherwise(payload) if reply is None else reply

    return reply


def _without_corrections(messages: Sequence[Payload]) -> Sequence[Payload]:
    """Return a conversation up to the question itself, without corrections of replies."""
    while len(messages) > 2 and str(messages[-1]["content"]).startswith(CORRECTION):
        messages = messages[:-2]
    return messages


def as_message(sent: Payload) -> Message:
    """Return a message of a chat payload as the gateway had it."""
    content = sent["content"]
    if isinstance(content, str):
        return Message(sent["role"], content)
    videos = video_urls(content)
    text = ""
    for part in content[len(videos) :]:
        text += part["text"] if part["type"] == "text" else IMAGE_MARK if text else ""
    urls = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
    images = tuple(decode_data_url(url) for url in urls if url not in videos)
    return Message(sent["role"], text, images, tuple(map(_clip, videos)))


def _clip(url: str) -> VideoClip:
    """Return a sent video; one at an address is not fetched and counts as a minute."""
    if not url.startswith("data:"):
        return VideoClip(span=Span(0.0, 60.0), digest="", address=url)
    return VideoClip(span=Span(0.0, video_seconds(url)), digest="", mp4=decode_data_url(url))


def content_hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def bursts(sound: bytes) -> list[tuple[float, float]]:
    """Return (start, end) in seconds of the loud spans of a WAV file."""
    with wave.open(io.BytesIO(sound)) as file:
        rate = file.getframerate()
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768
    step = rate // 50
    level = np.abs(samples[: len(samples) // step * step].reshape(-1, step)).max(axis=1)
    loud = np.flatnonzero(level > 0.05)
    spans = np.split(loud, np.flatnonzero(np.diff(loud) > 5) + 1) if len(loud) else []
    return [(float(p[0]) / 50, float(p[-1] + 1) / 50) for p in spans]


def words_of(sound: bytes) -> dict[str, Any]:
    """Transcribe a WAV file: every burst is the word "beep"."""
    spans = bursts(sound)
    words = [{"word": "beep", "start": start, "end": end} for start, end in spans]
    segments = [
        {"id": i, "start": start, "end": end, "text": " beep", "avg_logprob": -0.1}
        for i, (start, end) in enumerate(spans)
    ]
    text = " ".join("beep" for _ in spans)
    return {"language": "english", "text": text, "words": words, "segments": segments}


THOUGHT = "Okay, the user wants QUESTION: Is it? ANSWER: B. Wait, let me look at it once more." * 40


def completion(
    payload: Payload,
    reply: Callable[[Payload], str],
    thinks: Thinks = "not",
) -> dict[str, Any]:
    """Return a chat completion. Usage counts a token for four characters, `IMAGE_TOKENS` for an
    image and `SECOND` for a second of video; text beyond the token limit is cut off.
    """
    text, thought = reply(payload), "" if thinks == "not" else THOUGHT
    limit = payload.get("max_completion_tokens") or payload.get("max_tokens") or 1 << 30
    messages = [as_message(m) for m in payload["messages"]]
    tokens_in = sum(len(m.text) // 4 + 1 + IMAGE_TOKENS * len(m.images) for m in messages)
    tokens_in += round(sum(SECOND * clip.span.seconds for m in messages for clip in m.clips))
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
    """Return unit vectors drawn by the hash of each text."""
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


SECOND = 290  # tokens of a second of video, frame and sound, as Gemini counts
KINDS = ("video_url", "image_url")


@dataclass(frozen=True, kw_only=True)
class WatchedVideo:
    """A decoded video. `seconds`: from the first frame to the end of the last. `times`: of the
    frames, in seconds. `colours`: their mean red, green and blue, 0 to 255. `loud`: root mean
    square of the sound, 0 to 1; None without sound. `size`: bytes.
    """

    seconds: float
    times: tuple[float, ...]
    colours: tuple[tuple[float, float, float], ...]
    loud: float | None
    size: int


def videos(payload: Mapping[str, Any]) -> list[WatchedVideo]:
    """Return every video of a chat request that was sent as data, in order."""
    urls = [url for message in payload["messages"] for url in video_urls(message["content"])]
    return [watch_video(url) for url in urls if url.startswith("data:")]


def video_urls(content: str | Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the data URLs and addresses of the videos in a message."""
    if isinstance(content, str):
        return []
    parts = ((part["type"], part[part["type"]]["url"]) for part in content if part["type"] in KINDS)
    return [url for kind, url in parts if kind == "video_url" or url.startswith("data:video/")]


def decode_data_url(url: str) -> bytes:
    """Return the file of a data URL."""
    return base64.b64decode(url.partition(",")[2])


@lru_cache(maxsize=256)
def video_seconds(url: str) -> float:
    """Return the length of a video of a data URL, read from its packets without decoding."""
    import av

    with av.open(io.BytesIO(decode_data_url(url)), "r") as container:
        stream = container.streams.video[0]
        packets = [p for p in container.demux(stream) if p.pts is not None]
        times = [(p.pts or 0, (p.pts or 0) + (p.duration or 0)) for p in packets]
        length = max(end for _, end in times) - min(start for start, _ in times)
        return float(length * (stream.time_base or 0))


@lru_cache(maxsize=64)
def watch_video(url: str) -> WatchedVideo:
    """Decode a video of a data URL from its first packet to its last."""
    import av

    content = decode_data_url(url)
    with av.open(io.BytesIO(content), "r") as container:
        times: list[float] = []
        colours: list[tuple[float, float, float]] = []
        end = 0.0
        for frame in container.decode(video=0):
            red, green, blue = frame.to_ndarray(format="rgb24").mean(axis=(0, 1))
            times.append(float(frame.time or 0.0))
            colours.append((float(red), float(green), float(blue)))
            end = times[-1] + float((frame.duration or 0) * (frame.time_base or 0))
    with av.open(io.BytesIO(content), "r") as container:
        loud = None
        if container.streams.audio:
            squares = [np.square(f.to_ndarray()).mean() for f in container.decode(audio=0)]
            loud = float(np.sqrt(np.mean(squares or [0.0])))
    return WatchedVideo(
        seconds=end - times[0], times=tuple(times), colours=tuple(colours), loud=loud,
        size=len(content),
    )  # fmt: skip
