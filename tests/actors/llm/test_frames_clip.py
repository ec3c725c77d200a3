"""Frames sent as one clip: each is seen, in order, and named in the text where it was."""

from __future__ import annotations

import asyncio
import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from actors.llm.openai import OpenAI
from loopback.endpoint import Loopback
from loopback.replies import videos
from mustsee.calls.llm import IMAGE_MARK, Message, Request, VideoInput
from mustsee.errors import UserError
from mustsee.media.clips import added_characters
from tests.support.coloured import PALETTE, seconds_in

pytestmark = pytest.mark.usefixtures("key")


def jpeg(number: int, size: tuple[int, int] = (160, 90)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, PALETTE[number]).save(file, "JPEG", quality=95)
    return file.getvalue()


def request(numbers: list[int], *, placed: bool = True) -> Request:
    text = "".join(f"at {n}.5 s: {IMAGE_MARK}\n" for n in numbers) if placed else "What is it?"
    message = Message("user", text, tuple(map(jpeg, numbers)))
    return Request(prompt="p", digest="d", messages=(Message("system", "Look."), message))


def model(url: str, **more: Any) -> OpenAI:
    return OpenAI(model="gemini-3.8-flash", base_url=url, frames_as="clip", **more)


def sent(server: Loopback, numbers: list[int], **more: Any) -> Any:
    placed = more.pop("placed", True)
    asyncio.run(model(server.url, **more).open().complete(request(numbers, placed=placed)))
    return server.payloads[-1]["messages"][-1]["content"]


def test_each_frame_is_a_second_of_the_clip_and_named_in_the_text() -> None:
    with Loopback(payloads=[]) as server:
        clip, text = sent(server, [3, 1, 7, 0])
        (watched,) = videos(server.payloads[-1])
    assert (clip["type"], text["type"]) == ("video_url", "text")
    assert seconds_in(watched.colours) == [3, 1, 7, 0]
    assert watched.seconds == pytest.approx(4.0)
    assert len(watched.times) == 8  # Each frame twice: a model may merge two.
    assert [n for n in range(1, 5) if f".5 s: [picture {n}]" in text["text"]] == [1, 2, 3, 4]
    assert "at 7.5 s: [picture 3]" in text["text"]
    assert IMAGE_MARK not in text["text"]


def test_frames_without_places_come_before_the_text() -> None:
    with Loopback(payloads=[]) as server:
        clip, text = sent(server, [5, 2], placed=False, video=VideoInput(part="image_url"))
    assert clip["type"] == "image_url"
    assert clip["image_url"]["url"].startswith("data:video/mp4")
    assert text["text"].endswith("What is it?")


def test_one_frame_stays_an_image_and_images_are_the_default() -> None:
    with Loopback(payloads=[]) as server:
        kinds = [part["type"] for part in sent(server, [4])]
        assert kinds == ["text", "image_url"]
        plain = replace(model(server.url), frames_as="images")
        asyncio.run(plain.open().complete(request([1, 2])))
        assert [p["type"] for p in server.payloads[-1]["messages"][-1]["content"]] == [
            "text", "image_url", "text", "image_url",
        ]  # fmt: skip
    assert plain.identity != model(server.url).identity
    assert "frames_as" not in plain.identity


def test_a_clip_of_frames_is_cheaper_by_the_rule_of_the_family() -> None:
    llm, asked = model("http://127.0.0.1:9/v1"), request([0, 1, 2, 3])
    message = asked.messages[-1]
    assert llm.frame_tokens(message, clip=False) == 4 * 1120
    assert llm.frame_tokens(message, clip=True) == 4 * 70
    images = replace(llm, frames_as="images").estimate(asked).tokens_in
    added = added_characters(message) / 3.5
    assert images - llm.estimate(asked).tokens_in == pytest.approx(4 * (1120 - 70) - added)
    no_video = replace(llm, model="gpt-6-luna")
    assert no_video.frame_tokens(asked.messages[-1], clip=True) is None
    as_images = replace(no_video, frames_as="images").estimate(asked)
    assert no_video.estimate(asked).tokens_in == pytest.approx(as_images.tokens_in + added)


def test_an_endpoint_that_ignores_the_clip_is_noticed() -> None:
    chat = model("http://127.0.0.1:9/v1").open()
    body = {
        "choices": [{"finish_reason": "stop", "message": {"content": "fine"}}],
        "usage": {"prompt_tokens": 60, "completion_tokens": 2},
    }
    with pytest.raises(UserError, match="seems to ignore the video"):
        chat.read(request([0, 1, 2, 3, 4, 5]), body)
    body["usage"]["prompt_tokens"] = 460
    assert chat.read(request([0, 1, 2, 3, 4, 5]), body).tokens_in == 460


def test_images_of_other_sizes_are_padded_into_the_first() -> None:
    message = Message("user", "t", (jpeg(0), jpeg(6, (90, 160)), jpeg(3, (31, 17))))
    asked = Request(prompt="p", digest="d", messages=(message,))
    with Loopback(payloads=[]) as server:
        asyncio.run(model(server.url).open().complete(asked))
        (watched,) = videos(server.payloads[-1])
    assert len(watched.colours) == 6
    assert np.isfinite(watched.colours).all()
    assert seconds_in(watched.colours[:2]) == [0]


def test_another_form_is_refused() -> None:
    with pytest.raises(UserError, match="choose one of images, clip"):
        OpenAI(model="m", frames_as="film")  # type: ignore[arg-type]
