"""Tokens of an image equal the figures of OpenAI's pages and of its users' bills."""

from __future__ import annotations

import pytest

from mustsee.calls.image_tokens import ImageTokens

MINI = ImageTokens(base=2833, tile=5667)


@pytest.mark.parametrize(
    ("rule", "size", "tokens"),
    [
        (ImageTokens(), (1024, 1024), 765),
        (ImageTokens(), (2048, 4096), 1105),
        (ImageTokens(), (512, 288), 255),
        (MINI, (512, 288), 2833 + 5667),
        (MINI, (1024, 1024), 2833 + 4 * 5667),
        (ImageTokens(patch=1.62), (1024, 1024), 1658.88),
        (ImageTokens(patch=1.62), (4000, 4000), 1536 * 1.62),
        (ImageTokens(base=0, tile=258, side=768), (512, 288), 258),
    ],
)
def test_tokens_of_an_image(rule: ImageTokens, size: tuple[int, int], tokens: float) -> None:
    assert rule.count(*size) == pytest.approx(tokens)


def test_low_detail_is_the_base_alone() -> None:
    assert ImageTokens().count(2000, 2000, low=True) == 85
    assert MINI.count(2000, 2000, low=True) == 2833
