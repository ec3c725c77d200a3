"""The benchmark of transcription counts word errors by the standard rules."""

import json
from pathlib import Path

import pytest

from benchmarks.hear import HearBench, Utterance, read_manifest, word_errors
from benchmarks.lines import nearest
from mustsee.errors import UserError
from mustsee.records import Line, Word
from tests.support.hearing import english


def test_word_errors_are_counted() -> None:
    pytest.importorskip("jiwer")
    counted = word_errors(
        ["Awake, ye kings!", "it's a well-known fact", "one two", "three"],
        ["awake the kings", "it is a well known fact", "one two three", ""],
    )
    assert counted.tolist() == [[3, 1, 0, 0], [6, 0, 0, 0], [2, 0, 0, 1], [1, 0, 1, 0]]


def test_manifests_are_read(tmp_path: Path) -> None:
    rows = [
        {"audio_filepath": "a/1.wav", "text": "one"},
        {"audio_filepath": "2.wav", "text": "two"},
    ]
    expected = [
        Utterance(str(tmp_path / "a/1.wav"), "one"),
        Utterance(str(tmp_path / "2.wav"), "two"),
    ]
    file = tmp_path / "manifest.json"
    for text in (json.dumps(rows), "\n".join(map(json.dumps, rows)) + "\n"):
        file.write_text(text)
        assert read_manifest(str(file)) == expected
    file.write_text('{"file": "x"}')
    for path in (str(file), "/no/manifest.json"):
        with pytest.raises(UserError, match=r"manifest='.*audio_filepath"):
            read_manifest(path)


@pytest.mark.slow
@pytest.mark.long
def test_the_benchmark_measures_word_errors_of_speech(tmp_path: Path) -> None:
    pytest.importorskip("jiwer")
    video = Path(__file__).parents[2] / "examples/videos/lighthouse.mkv"
    file = tmp_path / "manifest.json"
    spoken_words = (
        "there is an old tower at the end of the land every night its lamp turns above the dark "
        "water the ships go home and the keeper drinks his tea in the morning only the sea birds "
        "remember the storm"
    )
    file.write_text(json.dumps({"audio_filepath": str(video), "text": spoken_words}))
    figures = HearBench(manifest=str(file), engines={"tiny": english()})()
    (row,) = figures.as_json()["rows"]
    assert 0 < row["WER"] < 0.4
    assert row["silent"] == 0
    assert row["WER"] == pytest.approx(row["sub"] + row["del"] + row["ins"])


def test_words_are_compared_with_the_nearest_subtitle() -> None:
    spans = [(1.0, 2.0, "Awake, ye kings!"), (5.0, 6.0, "No."), (9.0, 10.0, "Never.")]
    written = [Line(start=a, end=b, text=text) for a, b, text in spans]
    spoken_words = [(0.8, "a"), (1.2, " wake"), (1.9, "kings"), (5.1, "no")]
    words = tuple(Word(start=at, end=at + 0.4, word=w, score=1.0) for at, w in spoken_words)
    heard = [
        Line(start=0.8, end=5.6, text="a wake kings no", words=words),
        Line(start=8.0, end=8.6, text="oh never"),
    ]
    assert nearest(written, heard) == ["a wake kings", "no", "oh never"]
    with pytest.raises(UserError, match="subtitles"):
        nearest([], heard)
