"""The papers' released parsers behave as published, mistakes included."""

import pytest

from mustsee.replies.extract import official


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("B", True), ("b", True), ("Answer: B", True), ("Answer: B) foo", True),
        ("**Answer:** B", True), ("foo", True), ("B)", False), ("B) foo", False),
        ("The answer is B", False), ("Answer: B) bar", False), ("Answer: B because foo", False),
    ],
)  # fmt: skip
def test_cinepiles_released_parser(reply: str, right: bool) -> None:
    assert official.cinepile(reply, ["bar", "foo", "x", "y", "z"], 1) is right


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("A", True), ("A)", True), ("(A) foo", True), ("The answer is (A)", True),
        ("A.", False), ("a", False), (") x", False), ("Answer: A", False), ("B) not A)", False),
    ],
)  # fmt: skip
def test_mlvus_released_parser(reply: str, right: bool) -> None:
    assert official.mlvu(reply, 0) is right
    assert not official.mlvu(reply, None)
