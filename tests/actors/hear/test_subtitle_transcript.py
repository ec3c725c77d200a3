"""hear=subtitles: one clock for picture, sound, stream and file; lines after the end."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from actors.hear.auto import SubtitleTranscript
from mustsee.errors import BadRow
from mustsee.media.sound import audio_chunks
from mustsee.media.video import open_video
from mustsee.records import Video

RATE = 8000


def write_video(path: Path, *, picture: float = 0.0, sound: float = 0.0, text: bool = False) -> str:
    """Write 6 s of picture that begins at `picture`, and of sound that begins at `sound`, with a
    beep at 5 s of the container; `text`: with a line at the beep.
    """
    with av.open(str(path), "w") as out:
        video = out.add_stream("mpeg4", rate=10)
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        audio = out.add_stream("pcm_s16le", rate=RATE, layout="mono")
        lines = out.add_stream("ass") if text else None
        if lines is not None:
            lines.codec_context.subtitle_header = b"[Script Info]\nScriptType: v4.00+\n"
            lines.time_base = lines.codec_context.time_base = Fraction(1, 1000)
        for number in range(60):
            frame = av.VideoFrame(64, 48, "yuv420p")
            frame.pts, frame.time_base = number + round(10 * picture), Fraction(1, 10)
            out.mux(video.encode(frame))
            samples = np.zeros((1, RATE // 10), np.int16)
            if number == round(10 * (5 - sound)):
                samples[:] = 20000
            block = av.AudioFrame.from_ndarray(samples, "s16", "mono")
            block.rate, block.time_base = RATE, Fraction(1, RATE)
            block.pts = round(RATE * sound) + number * RATE // 10
            out.mux(audio.encode(block))
        out.mux(video.encode(None))
        if lines is not None:
            packet = av.Packet(b"0,0,Default,,0,0,0,,Beep.")
            packet.stream, packet.time_base = lines, Fraction(1, 1000)
            packet.pts = packet.dts = 5000
            packet.duration = 100
            out.mux(packet)
    return str(path)


def beep(uri: str) -> float:
    """The time of the beep, in seconds of the video."""
    for chunk in audio_chunks(uri, RATE, 30.0):
        loud = np.flatnonzero(chunk.samples > 0.3)
        if len(loud):
            return chunk.start + loud[0] / RATE
    raise AssertionError("no beep")


def hear(uri: str, **fields: Any) -> Video:
    return SubtitleTranscript().hear(Video(video_id="v", uri=uri, **fields))


def starts(row: Video) -> list[float]:
    return [x.start for x in row.lines or ()]


@pytest.mark.parametrize(("picture", "sound"), [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (2.5, 0.5)])
def test_a_file_beside_has_the_clock_of_the_picture(
    picture: float, sound: float, tmp_path: Path
) -> None:
    inside = write_video(tmp_path / "inside.mkv", picture=picture, sound=sound, text=True)
    beside = write_video(tmp_path / "beside.mkv", picture=picture, sound=sound)
    begin = min(picture, sound)  # from which players count
    (tmp_path / "beside.srt").write_text(
        f"1\n00:00:0{5 - begin:.3f} --> 00:00:0{5.1 - begin:.3f}\nBeep.\n"
    )
    heard = beep(beside)
    assert heard == pytest.approx(5 - picture, abs=0.05)
    assert starts(hear(inside)) == pytest.approx([heard], abs=0.05)
    assert starts(hear(beside)) == pytest.approx([heard], abs=0.05)
    with open_video(beside) as video:
        assert [round(f.time, 2) for f in video.frames(heard - 0.15, heard - 0.05)]
    # `start` and `end` of a table are of the same clock.
    assert starts(hear(beside, start=heard - 0.2, end=heard + 0.3)) == pytest.approx(
        [heard], abs=0.05
    )
    assert starts(hear(beside, start=heard + 0.3, end=heard + 0.6)) == []


def test_lines_after_the_end_are_left_out_and_counted(tmp_path: Path) -> None:
    uri = write_video(tmp_path / "talk.mkv")
    cue = "00:00:{0:02}.000 --> 00:00:{0:02}.900\nIt is {0}.\n\n"
    (tmp_path / "talk.srt").write_text("".join(map(cue.format, (1, 3, 5, 40))))
    row = hear(uri)
    assert starts(row) == [1.0, 3.0, 5.0]
    assert row.transcribed_by == "subtitles (file, 1 line after the end left out)"
    (tmp_path / "talk.srt").write_text("".join(map(cue.format, (1, 20, 30, 40))))
    with pytest.raises(BadRow, match=r"talk\.srt.*3 of 4 lines.*after the end"):
        hear(uri)


@pytest.mark.parametrize("name", ["talk.ttml", "talk.srt"])
def test_a_file_that_gives_nothing_is_no_silence(name: str, tmp_path: Path) -> None:
    uri = write_video(tmp_path / "talk.mkv")
    (tmp_path / name).write_text('<tt xmlns="http://www.w3.org/ns/ttml"><body/></tt>')
    for fields in ({}, {"subtitles": name}):
        with pytest.raises(BadRow, match=name.replace(".", r"\.")):
            hear(uri, **fields)
    (tmp_path / name).unlink()
    (tmp_path / "talk.vtt").write_text("WEBVTT\n")
    assert hear(uri).lines == ()
