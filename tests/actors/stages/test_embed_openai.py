"""Embeddings over an OpenAI-compatible endpoint, with and without faults."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.calls.endpoint import Endpoint
from actors.stages.embed import Embeddings, OpenAIEmbedder, split_text
from loopback.endpoint import Faults, Loopback
from mustsee.records import Caption, Line
from tests.support.bench import RETRYABLE_FAULTS, Bench, video

pytestmark = pytest.mark.usefixtures("key")


def embedder(server: Loopback, **more) -> OpenAIEmbedder:
    endpoint = Endpoint(model="e", base_url=server.url, prices={"e": [1.0, 0.0]})
    return OpenAIEmbedder(model=Embeddings(endpoint=endpoint), **more)


def test_the_same_text_gives_the_same_vector_of_length_one(tmp_path):
    lines = tuple(
        Line(start=float(i), end=i + 1.0, text=f"sentence number {i}") for i in range(400)
    )
    row = video(lines=lines, captions=(Caption(0.0, "a red wall"),), title="t")
    with Loopback() as server:
        bench = Bench(tmp_path / "a")
        (embedded,) = bench.run(embedder(server, characters=500, pieces=4), row)
        (repeated,) = Bench(tmp_path / "b").run(embedder(server, characters=500, pieces=100), row)
        server.faults = Faults(share=0.5, kinds=RETRYABLE_FAULTS, seed=1)
        (faulty,) = Bench(tmp_path / "c").run(embedder(server, characters=500, pieces=4), row)
        (other,) = bench.run(embedder(server), video(title="another"))
    assert np.linalg.norm(embedded.embedding) == pytest.approx(1.0)
    assert embedded.embedding == pytest.approx(repeated.embedding, abs=1e-6)
    assert faulty.embedding == embedded.embedding
    assert np.dot(embedded.embedding, other.embedding) < 0.9
    summary = bench.coordinator.snapshot().llm.summary()
    assert summary["tokens_in"] / 1e6 == pytest.approx(summary["usd"])


def test_a_video_without_text_has_no_vector(tmp_path):
    with Loopback() as server:
        (embedded,) = Bench(tmp_path).run(embedder(server), video(lines=(), captions=()))
    assert embedded.embedding == ()


@given(st.lists(st.text(max_size=300), max_size=30), st.integers(20, 200))
def test_split_texts_contain_every_character_and_fit_the_limit(texts, characters):
    lines = tuple(Line(start=0.0, end=1.0, text=text) for text in texts)
    split = split_text(video(lines=lines), characters)
    assert all(0 < len(piece) <= characters for piece in split)
    whole = "".join("".join(text.split()) for text in texts)
    assert "".join("".join(piece.split()) for piece in split) == whole
