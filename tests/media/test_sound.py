"""Sound is read completely, in bounded chunks, at its own times."""

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest

from mustsee.errors import BadRow
from mustsee.media import sound as sounds
from mustsee.media.sound import audio_chunks, decode_once, sound_language
from tests.support.sample_videos import cuts, write


def test_chunks_are_complete_bounded_and_in_time(b_frames: Path) -> None:
    chunks = list(audio_chunks(str(b_frames), seconds=0.4))
    assert all(c.samples.dtype == np.float32 and len(c.samples) <= 6400 for c in chunks)
    for before, after in pairwise(chunks):
        assert after.start == pytest.approx(before.start + len(before.samples) / 16_000)
    sound = np.concatenate([c.samples for c in chunks])
    assert len(sound) / 16_000 == pytest.approx(1.5, abs=0.15)  # the codec's own edges
    loud = chunks[0].start + np.argmax(np.abs(sound) > 0.25) / 16_000
    assert loud == pytest.approx(0.5, abs=0.07)
    steady = sound[8000:16_000]
    assert np.abs(np.fft.rfft(steady)).argmax() == 220  # 440 Hz over half a second
    assert np.abs(steady).max() == pytest.approx(0.5, abs=0.1)

    clip = list(audio_chunks(str(b_frames), start=1.0, end=1.25))
    assert clip[0].start == pytest.approx(1.0, abs=1e-3)
    assert sum(len(c.samples) for c in clip) == 4000


def test_sound_is_decoded_once_unless_it_is_long(
    b_frames: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sound.mp4"
    for most, decoded_once in ((600.0, True), (1.0, False)):
        monkeypatch.setattr(sounds, "KEPT_S", most)
        path.write_bytes(b_frames.read_bytes())
        with decode_once():
            before = list(audio_chunks(str(path), seconds=0.4))
            path.unlink()
            if decoded_once:
                again = list(audio_chunks(str(path), seconds=0.4))
                assert [c.start for c in again] == [c.start for c in before]
                assert all(
                    (a.samples == b.samples).all() for a, b in zip(again, before, strict=True)
                )
                with pytest.raises(BadRow):  # other chunks of the same sound are not kept
                    list(audio_chunks(str(path), seconds=0.3))
            else:
                with pytest.raises(BadRow):
                    list(audio_chunks(str(path), seconds=0.4))
        with pytest.raises(BadRow):
            list(audio_chunks(str(path), seconds=0.4))


def test_a_gap_in_the_sound_keeps_its_times(tmp_path: Path) -> None:
    path = tmp_path / "pause.mkv"
    with av.open(str(path), "w") as out:
        stream = out.add_stream("pcm_s16le", rate=8000, layout="stereo")
        for second in (0, 1, 5):
            frame = av.AudioFrame.from_ndarray(
                np.full((1, 16_000), 1000 * (second + 1), np.int16), "s16", "stereo"
            )
            frame.sample_rate, frame.time_base = 8000, Fraction(1, 8000)
            frame.pts = second * 8000
            out.mux(stream.encode(frame))
    chunks = list(audio_chunks(str(path), seconds=10))
    assert [c.start for c in chunks] == pytest.approx([0.0, 5.0], abs=0.01)
    assert [len(c.samples) / 16_000 for c in chunks] == pytest.approx([2.0, 1.0], abs=0.01)
    assert list(audio_chunks(str(write(tmp_path / "mute.mp4", cuts([2]))))) == []


@pytest.mark.parametrize(
    ("tag", "expected"), [("deu", "de"), ("eng", "en"), ("und", None), (None, None)]
)
def test_the_language_comes_from_the_container(
    tmp_path: Path, tag: str | None, expected: str | None
) -> None:
    path = str(tmp_path / "sound.mkv")
    with av.open(path, "w") as out:
        stream = out.add_stream("pcm_s16le", rate=16_000, layout="mono")
        if tag:
            stream.metadata["language"] = tag
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1600), np.int16), "s16", "mono")
        frame.rate, frame.pts, frame.time_base = 16_000, 0, Fraction(1, 16_000)
        out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    assert sound_language(path) == expected
    assert sound_language("examples/videos/seasons.webm") is None


def write_channels(path: Path, channels: np.ndarray, layout: str, form: str) -> str:
    """Write samples, (channels, n) from -1 to 1 at 16 kHz, in blocks of a codec's usual size."""
    codec = {"s16": "pcm_s16le", "u8": "pcm_u8", "flt": "pcm_f32le"}[form]
    scaled = {"s16": channels * 32_767, "u8": channels * 127 + 128, "flt": channels}[form]
    samples = scaled.T.astype({"s16": np.int16, "u8": np.uint8, "flt": np.float32}[form])
    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=16_000, layout=layout)
        for first in range(0, len(samples), 1024):
            block = np.ascontiguousarray(samples[first : first + 1024]).reshape(1, -1)
            frame = av.AudioFrame.from_ndarray(block, form, layout)
            frame.sample_rate, frame.time_base = 16_000, Fraction(1, 16_000)
            frame.pts = first
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return str(path)


def loudness(uri: str, start: float, end: float) -> float:
    return float(np.concatenate([s.samples for s in audio_chunks(uri, start=start, end=end)]).std())


TONE = 0.5 * np.sin(2 * np.pi * 440 * np.arange(3 * 16_000) / 16_000)
NOISE = np.random.default_rng(3).normal(0, 0.1, (6, 3 * 16_000))
LATER = np.where(np.arange(3 * 16_000) < 16_000, 1.0, -1.0)
CANCELLING = {
    "inverted": (np.stack([TONE, -TONE]), "stereo"),
    "inverted, quieter": (np.stack([TONE, -0.6 * TONE]), "stereo"),
    "inverted, with noise": (np.stack([TONE, -TONE]) + NOISE[:2], "stereo"),
    "inverted after a second": (np.stack([TONE, LATER * TONE]), "stereo"),
    "quad": (np.stack([TONE, -TONE, TONE, -TONE]), "quad"),
    "5.1, inverted in front": (np.stack([TONE, -TONE, *0.2 * NOISE[2:]]), "5.1"),
}


@pytest.mark.parametrize("form", ["s16", "u8", "flt"])
@pytest.mark.parametrize("case", CANCELLING)
def test_channels_that_cancel_each_other_are_heard(case: str, form: str, tmp_path: Path) -> None:
    channels, layout = CANCELLING[case]
    uri = write_channels(tmp_path / "phase.mkv", channels, layout, form)
    assert loudness(uri, 0.1, 0.9) > 0.2
    assert loudness(uri, 2.0, 2.9) > 0.2
    assert loudness(uri, 0.0, 3.0) > 0.2


@pytest.mark.parametrize(
    ("channels", "layout"),
    [
        (np.stack([TONE, TONE]), "stereo"),
        (np.stack([TONE, 0 * TONE]), "stereo"),
        (NOISE[:2], "stereo"),
        (np.stack([TONE + NOISE[0], 0.5 * TONE - 0.5 * NOISE[0]]), "stereo"),
        (NOISE, "5.1"),
        (TONE[None], "mono"),
    ],
)
def test_other_sound_is_mixed_as_by_ffmpeg(
    channels: np.ndarray, layout: str, tmp_path: Path
) -> None:
    uri = write_channels(tmp_path / "plain.mkv", channels, layout, "flt")
    mixed = np.concatenate([s.samples for s in audio_chunks(uri)])
    resampler = av.AudioResampler(format="flt", layout="mono", rate=16_000)
    with av.open(uri) as container:
        blocks = [b for f in container.decode(audio=0) for b in resampler.resample(f)]
    expected = np.concatenate([b.to_ndarray().reshape(-1) for b in blocks])
    assert np.array_equal(mixed, np.clip(expected, -1, 1))
