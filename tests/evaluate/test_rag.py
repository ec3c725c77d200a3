"""Video RAG: the clips that a model is shown, chosen by words and by frames."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from actors.answer.llm import AnswerLlm
from actors.answer.look import FrameAnswerer
from mustsee.calls.llm import Request
from mustsee.errors import BadRow, UserError
from mustsee.evaluate.answers import answers
from mustsee.evaluate.rag import Rag, RetrievedClip, by_words, load, spread, windows, words_in
from mustsee.nn.siglip import TextEncoder
from mustsee.records import Caption, Line, Span, Video
from mustsee.verify.conditions.seen import Condition
from tests.actors.answer.test_answer import Scripted, question, work
from tests.support import sample_videos
from tests.support.tiny_gemma import tokenizer

pytestmark = pytest.mark.slow

LINES = (
    Line(start=1, end=3, text="First we peel the potatoes."),
    Line(start=9, end=12, text="The engine of this old car does not start."),
    Line(start=26, end=28, text="The penguins swim back to the shore."),
)


@pytest.fixture(scope="module")
def siglip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random SigLIP, whole, with a tokenizer."""
    torch = pytest.importorskip("torch")
    from transformers import SiglipConfig, SiglipModel

    folder = tmp_path_factory.mktemp("siglip")
    words = tokenizer(folder)
    layers = {
        "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 2
    }  # fmt: skip
    config = SiglipConfig(
        text_config={**layers, "vocab_size": words, "max_position_embeddings": 12,
                     "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 1},
        vision_config={**layers, "image_size": 32, "patch_size": 8},
    )  # fmt: skip
    torch.manual_seed(0)
    model = SiglipModel(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.25)
    model.save_pretrained(folder)
    return folder


def test_text_vectors_equal_those_of_transformers(siglip: Path) -> None:
    import torch
    from transformers import AutoTokenizer, SiglipModel

    texts = ["who was in the house?", "the red car", "one two three four five " * 9]
    found = TextEncoder.load(str(siglip), dtype="float32").encode(texts)
    ids = AutoTokenizer.from_pretrained(siglip)(
        texts, padding="max_length", truncation=True, max_length=12, return_tensors="pt"
    )["input_ids"]
    with torch.no_grad():
        model = SiglipModel.from_pretrained(siglip).eval()
        theirs = model.text_model(input_ids=ids).pooler_output.numpy()
    expected = theirs / np.linalg.norm(theirs, axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert TextEncoder.load(str(siglip)).encode([]).shape == (0, 24)


def test_a_model_without_a_text_tower_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "siglip_vision_model"}')
    with pytest.raises(UserError, match="not a whole SigLIP"):
        TextEncoder.load(str(tmp_path))


def test_words_of_a_clip_are_its_lines_and_captions() -> None:
    captions = (Caption(11.0, "a rusty car"), Caption(20.0, "a beach"))
    assert words_in(Span(8, 16), LINES, captions) == f"{LINES[1].text} a rusty car"
    assert words_in(Span(3, 9), LINES, captions) == ""


def count_words(texts: list[str]) -> np.ndarray:
    known = ["peel", "potatoes", "engine", "car", "penguins", "swim"]
    vectors = np.array([[float(w in t.lower()) for w in known] for t in texts], np.float32)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def test_the_clip_with_the_questions_words_is_chosen() -> None:
    spans = windows(32, 8)
    texts = [words_in(span, LINES, ()) for span in spans]
    asked = ["Where do the penguins swim?", "What is wrong with the car?"]
    first, second = by_words(texts, asked, spans, 1, count_words)  # type: ignore[arg-type]
    assert first[0].span == Span(24, 32)
    assert second[0].span == Span(8, 16)


def test_clips_without_words_are_spread_evenly_and_have_no_score() -> None:
    spans = windows(80, 8)
    ((*found,),) = by_words([""] * 10, ["?"], spans, 2, count_words)  # type: ignore[arg-type]
    assert found == [RetrievedClip(spans[2], None), RetrievedClip(spans[7], None)]
    assert [c.span for c in spread(spans, 99)] == list(spans)


def sample_video(folder: Path) -> Video:
    path = sample_videos.write(folder / "v.mp4", sample_videos.cuts([4 * sample_videos.FPS] * 8))
    return Video(video_id="v", uri=str(path), duration=32.0, lines=LINES)


def test_each_question_gets_the_frames_of_its_clips(tmp_path: Path) -> None:
    sent: dict[str, Request] = {}

    def reply(request: Request) -> str:
        sent[request.variables["question"]] = request
        return "[A]: so"

    asked = tuple(
        question(name, question=text)
        for name, text in (("p", "Where do the penguins swim?"), ("c", "What of the old car?"))
    )
    video = sample_video(tmp_path)
    video = Video(**{**vars(video), "questions": asked})
    rag = Rag(clips=1, per_clip=3, seconds=8)
    part = AnswerLlm(llm=Scripted(reply), see=Condition(frames=32, longest=64), rag=rag)
    done = work(part, video, tmp_path).questions or ()
    first, second = (sent[q.question].messages[-1] for q in asked)
    assert len(first.images) == len(second.images) == 3
    assert set(first.images).isdisjoint(second.images)
    assert "equal distances" not in first.text
    spans = [json.loads(q.verdicts[-1].detail)["clips"][0] for q in done]
    assert [s[:2] for s in spans] == [[24, 32], [8, 16]]
    assert all(0 < s[2] <= 1 for s in spans)
    assert answers(done[0])[0].model == "scripted 1 clips x 3 frames by words"


def test_the_transcript_of_a_clip_is_in_the_videos_time(tmp_path: Path) -> None:
    """A row that is the second half of a video, with lines spoken there."""
    half = replace(sample_video(tmp_path), start=16.0, end=32.0, duration=16.0)
    asked = [question("p", question="Where do the penguins swim?")]
    (shown,) = FrameAnswerer(Condition(longest=64), Rag(clips=1, per_clip=2, seconds=8))(
        half, asked
    )
    assert [c.span for c in shown.clips] == [Span(8, 16)]  # of the clip; 24 to 32 of the video


def test_the_clips_with_the_nearest_frames_are_shown(siglip: Path, tmp_path: Path) -> None:
    video, rag = sample_video(tmp_path), Rag(clips=2, per_clip=2, seconds=4, model=str(siglip))
    asked = [question("a", question="who was in the house?"), question("b", question="red car")]
    shown = FrameAnswerer(Condition(longest=64), rag)(video, asked)
    encoders = load(rag)
    assert encoders.images is not None
    spans = windows(32, 4)
    whole = FrameAnswerer(
        Condition(longest=64), Rag(clips=8, per_clip=2, seconds=4, model=str(siglip))
    )
    images = whole(video, asked)[0].images  # all clips
    vectors = encoders.images(images).reshape(8, 2, -1).mean(axis=1)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for one, text in zip(shown, encoders.texts([q.question for q in asked]), strict=True):
        best = sorted(np.argsort(-(vectors @ text), kind="stable")[:2])
        assert [c.span for c in one.clips] == [spans[i] for i in best]
        assert one.images == tuple(images[2 * i + k] for i in best for k in (0, 1))


def test_retrieval_without_a_video_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRow, match="no video"):
        FrameAnswerer(Condition(), Rag(clips=1))(Video(video_id="v", uri=""), [question()])


@pytest.mark.parametrize("wrong", [{"clips": -1}, {"per_clip": 0}, {"seconds": 0.0}])
def test_impossible_settings_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UserError, match="rag:"):
        Rag(**wrong)  # type: ignore[arg-type]


def test_a_missing_encoder_is_refused_before_the_job(tmp_path: Path) -> None:
    made: Callable[[str], AnswerLlm] = lambda name: AnswerLlm(  # noqa: E731
        llm=Scripted(lambda _: "A"), rag=Rag(clips=1, model=name)
    )
    with pytest.raises(UserError, match="hf download acme/pairs"):
        made("acme/pairs").check(None)
    with pytest.raises(UserError, match="has no "):
        made(str(tmp_path)).check(None)
    AnswerLlm(llm=Scripted(lambda _: "A"), rag=Rag(model="acme/pairs")).check(None)  # off
