"""Numbered replies are parsed in any common form, and others are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import Unparsed
from mustsee.questions.rows import numbered_texts

WORDS = st.text(st.characters(categories=["L", "Zs"]), min_size=1).filter(str.strip)


@given(
    st.lists(WORDS, min_size=1, max_size=12),
    st.sampled_from(["{}: {}", "{}. {}", "**{}:** {}", "- Frame {}: {}", "{}) {}"]),
    st.sampled_from(["", "Here are the captions:\n\n"]),
    st.randoms(use_true_random=False),
)
def test_numbered_lines_in_common_forms_are_parsed(texts, form, prose, random):
    lines = [form.format(i, text) for i, text in enumerate(texts, 1)]
    random.shuffle(lines)
    wanted = tuple(" ".join(text.split()) for text in texts)
    assert numbered_texts(len(texts)).read(prose + "\n".join(lines)) == wanted


@pytest.mark.parametrize("reply", ["", "1: a", "1: a\n1: b", "1: a\n3: b", "1: a\n2: ...", "a\nb"])
def test_other_replies_are_refused(reply):
    with pytest.raises(Unparsed):
        numbered_texts(2).read(reply)
