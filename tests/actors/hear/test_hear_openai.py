"""Speech over an OpenAI-compatible endpoint, with and without faults."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import pytest

from actors.calls.endpoint import Endpoint
from actors.hear.openai import OpenAIHearing, Transcriptions
from loopback.endpoint import Faults, Loopback
from loopback.replies import bursts, words_of
from mustsee.records import Video
from tests.support.bench import RETRYABLE_FAULTS, Bench

pytestmark = pytest.mark.usefixtures("key")

BEEPS = [1.0, 4.2, 19.9, 21.0, 39.6, 40.3, 59.9, 60.4, 77.0, 93.5]  # some near 20, 40, ...


def sound(path: Path, beeps=BEEPS, seconds: float = 95.0, rate: int = 16_000) -> str:
    """A silent audio file with beeps of 0.25 s."""
    samples = np.random.default_rng(0).normal(size=round(seconds * rate)) * 1e-3
    tone = 0.4 * np.sin(2 * np.pi * 440 * np.arange(rate // 4) / rate)
    for at in beeps:
        samples[round(at * rate) : round(at * rate) + len(tone)] += tone
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((samples * 32767).astype("<i2").tobytes())
    return str(path)


def hearing(server: Loopback, **more) -> OpenAIHearing:
    endpoint = Endpoint(model="whisper-1", base_url=server.url)
    return OpenAIHearing(
        model=Transcriptions(endpoint=endpoint, usd_per_minute=0.006), **{"chunk": 20.0, **more}
    )


def test_word_times_do_not_depend_on_the_chunks(tmp_path):
    row = Video(video_id="v", uri=sound(tmp_path / "a.wav"))
    with Loopback() as server:
        bench = Bench(tmp_path / "s")
        (transcribed,) = bench.run(hearing(server), row)
        assert server.stats["transcriptions"] >= 5
        server.faults = Faults(share=0.5, kinds=RETRYABLE_FAULTS, seed=1)
        (faulty,) = Bench(tmp_path / "f").run(hearing(server, max_bytes=700_000), row)
    times = [word.start for line in transcribed.lines for word in line.words]
    assert times == pytest.approx(BEEPS, abs=0.03)
    assert [word.start for line in faulty.lines for word in line.words] == pytest.approx(
        BEEPS, abs=0.03
    )
    assert all(
        line.start <= word.start <= word.end <= line.end for line in transcribed.lines
        for word in line.words
    )  # fmt: skip
    assert (transcribed.language, transcribed.transcribed_by) == ("en", "openai (whisper-1)")
    assert bench.coordinator.snapshot().llm.summary()["usd"] == pytest.approx(
        0.006 * 95 / 60, rel=0.01
    )


def test_only_the_clip_is_transcribed(tmp_path):
    row = Video(video_id="v", uri=sound(tmp_path / "a.wav"), start=18.0, end=50.0)
    with Loopback() as server:
        (transcribed,) = Bench(tmp_path / "s").run(hearing(server), row)
    assert [line.start for line in transcribed.lines] == pytest.approx(BEEPS[2:6], abs=0.03)


def test_silence_costs_no_call(tmp_path):
    path = tmp_path / "a.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(bytes(2 * 16_000 * 30))
    with Loopback() as server:
        silent, mute = Bench(tmp_path / "s").run(
            hearing(server),
            Video(video_id="a", uri=str(path)),
            Video(video_id="b", uri="none", has_audio=False),
        )
        assert server.stats.get("transcriptions", 0) == 0
    assert (silent.lines, silent.language, mute.lines) == ((), None, ())


@pytest.mark.parametrize("drop", [("segments",), ("words",), ("segments", "words")])
def test_endpoints_without_segments_or_words_still_give_lines(drop, tmp_path):
    def hear(data: bytes):
        return {k: v for k, v in words_of(data).items() if k not in drop}

    row = Video(video_id="v", uri=sound(tmp_path / "a.wav", beeps=[2.0, 3.0], seconds=10.0))
    with Loopback(hear=hear) as server:
        (transcribed,) = Bench(tmp_path / "s").run(hearing(server), row)
    assert " ".join(line.text for line in transcribed.lines) == "beep beep"
    assert all(0.0 <= line.start < line.end <= 10.0 for line in transcribed.lines)


def test_the_test_server_transcribes_the_audio_it_gets(tmp_path):
    beeps = bursts(Path(sound(tmp_path / "a.wav")).read_bytes())
    assert [start for start, _ in beeps] == pytest.approx(BEEPS, abs=0.021)
