"""Helpers of the rules: likeness, stems and terms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.text import TermVectors, overlap, stem, terms

word = st.text(alphabet="abcdefghij", min_size=3, max_size=8)


@given(st.lists(st.lists(word, min_size=1, max_size=8).map(" ".join), min_size=1, max_size=8))
def test_likeness_is_a_cosine(texts: list[str]) -> None:
    vectors = TermVectors(texts)
    for i, text in enumerate(texts):
        likeness = vectors.likeness(text)
        assert likeness.min() >= 0
        assert likeness.max() <= 1 + 1e-9
        assert not terms(text) or likeness[i] == pytest.approx(1)


def test_stems_and_terms() -> None:
    assert stem("boards") == stem("board")
    assert stem("berries") == stem("berry")
    assert terms("The three eggs are in the bowl") == ["3", "egg", "bowl"]
    assert overlap("three eggs", "break the eggs") == 0.5
