"""Tokens of images equal the figures of the families' documents and of bills."""

from __future__ import annotations

import pytest

from mustsee.calls.image_tokens import UNKNOWN, Detail, Patches, image_rule, video_second

# OpenAI, Claude and Gemma: worked examples of their pages. GPT-6 from 256 pixels to 12 megapixels,
# and Claude: bills in https://huggingface.co/datasets/JOHNISKING/image-token-cost, whose tokens of
# Claude have some 70 of the prompt. Gemini: the table on its page of media resolution.
IMAGES = [
    ("gpt-6-luna", (256, 256), "auto", 77),
    ("gpt-6.1-sol", (512, 512), "auto", 308),
    ("openai/gpt-6-luna", (1280, 720), "auto", 1104),
    ("gpt-5.6-luna", (4032, 3024), "auto", 14_364),
    ("gpt-6-luna", (1920, 1080), "low", 173),
    ("gpt-5.4", (1024, 1024), "high", 1229),
    ("gpt-5.4", (2048, 2048), "high", 3000),
    ("gpt-6-luna", (2048, 2048), "high", 3000),
    ("gpt-4.1-mini", (1024, 1024), "auto", 1659),
    ("gpt-4.1", (1024, 1024), "high", 765),
    ("gpt-4o", (2048, 4096), "high", 1105),
    ("gpt-4o", (2048, 4096), "low", 85),
    ("gpt-4o-mini", (512, 288), "auto", 2833 + 5667),
    ("gpt-5.1", (512, 288), "auto", 70 + 140),
    ("gemini-3.8-flash", (512, 288), "auto", 1120),
    ("gemini-4-argon", (4032, 3024), "medium", 560),
    ("gemini-flash-latest", (512, 288), "low", 280),
    ("gemini-2.5-flash", (512, 288), "auto", 258),
    ("claude-opus-5-5", (1512, 982), "auto", 54 * 36),
    ("claude-haiku-4-5", (512, 512), "auto", 361),
    ("Qwen/Qwen3.5-9B", (1024, 1024), "auto", 1024),
    ("qwen3.5:9b", (512, 288), "auto", 144),
    ("Qwen/Qwen3-VL-4B-Instruct", (128, 128), "auto", 64),
    ("Qwen/Qwen2.5-VL-7B-Instruct", (1120, 560), "auto", 800),
    ("google/gemma-4-31b-it:free", (1024, 1024), "auto", 256),
]


@pytest.mark.parametrize(("model", "size", "detail", "tokens"), IMAGES)
def test_tokens_of_an_image(
    model: str, size: tuple[int, int], detail: Detail, tokens: float
) -> None:
    assert image_rule(model).image(*size, detail) == tokens


@pytest.mark.parametrize("width", range(640, 6000, 373))
@pytest.mark.parametrize("height", [360, 1081, 2999])
def test_a_scaled_image_has_no_more_patches_than_the_budget(width: int, height: int) -> None:
    rule = Patches(longest=2048, most=2500)
    tokens = rule.image(width, height, "high")
    assert 0.9 * min(2500, (width // 32) * (height // 32) * 0.11) <= tokens <= 2500
    assert rule.image(width, height, "high") == rule.image(height, width, "high")


def test_a_model_of_no_known_family_counts_as_open_models_do() -> None:
    assert image_rule("my-own/vision") is UNKNOWN
    assert UNKNOWN.image(280, 280, "auto") == 100


def test_a_frame_of_a_video_costs_less_than_an_image() -> None:
    """Gemini 3: 70 a frame and 32 for the sound; two frames of Qwen share their tokens; Gemma 4
    has a budget of 70. OpenAI's models and Claude take no video.
    """
    assert image_rule("gemini-3.8-flash").frame(512, 288, "auto") == 70
    assert image_rule("gemini-3.8-flash").frame(512, 288, "high") == 280
    assert image_rule("Qwen/Qwen3.5-9B").frame(512, 288, "auto") == 72
    assert image_rule("google/gemma-4-26b-a4b-it").frame(512, 512, "auto") == 64
    assert image_rule("gpt-6-luna").frame(512, 288, "auto") is None
    assert video_second("gemini-3.5-flash-lite", 512, "auto") == 102
    assert video_second("qwen3.5:9b", 512, "auto") == 144
    assert video_second("claude-opus-5-5", 512, "auto") is None
