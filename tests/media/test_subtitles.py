"""Subtitles of a video: beside it, inside it, and real files."""

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import BadRow
from mustsee.media import subtitles
from mustsee.media.subtitle_cues import lines as cues_of
from mustsee.media.subtitles import decode_text
from mustsee.records import Line
from tests.support.material import material
from tests.support.subtitles import said, srt

SAMPLES = {
    "utf-8": "Où est l'été ? Die Straße führt über die Brücke, señor.",
    "utf-8-sig": "Où est l'été ? Die Straße führt über die Brücke, señor.",
    "utf-16": "Où est l'été ? Die Straße führt über die Brücke, señor.",
    "cp1252": "Il a été très étonné de ne pas être à la fête, où les élèves chantaient déjà.",
    "cp1250": "Nikt nie wiedział, co się stało tamtej nocy, i nikt już o to nie pytał.",
    "cp1251": "Никто не знает, что случилось с пропавшей лодкой, и никто не спросил.",
    "cp1253": "Κανείς δεν ξέρει τι έγινε εκείνη τη νύχτα στο λιμάνι, και κανείς δεν ρώτησε.",
    "gb18030": "没有人知道那天晚上港口里发生了什么，也没有人问过这件事情的经过。",
    "shift_jis": "あの夜に港で何が起きたのか誰も知らないし、誰も聞かなかった。",
}


@pytest.mark.parametrize("encoding", SAMPLES)
def test_subtitles_in_common_encodings_are_decoded(encoding: str) -> None:
    text = SAMPLES[encoding]
    data = srt([Line(start=1, end=2, text=text), Line(start=3, end=4, text=text)]).encode(encoding)
    assert said(decode_text(data)) == [text, text]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_utf_16_and_32_need_no_mark(encoding: str) -> None:
    for text in (*SAMPLES.values(), "Hallo"):
        data = srt([Line(start=1, end=2, text=text)]).encode(encoding)
        assert said(decode_text(data)) == [text]
        assert said(decode_text(data + b"\0")) == [text]  # cut off within a letter
    marked = "\ufeff" + srt([Line(start=1, end=2, text="Hallo")])
    assert said(decode_text(marked.encode(encoding))) == ["Hallo"]


@pytest.mark.parametrize("encoding", ["cp1251", "koi8_r", "cp866", "iso8859_5"])
@pytest.mark.parametrize("language", [None, "ru"])
def test_cyrillic_is_told_by_its_letters(encoding: str, language: str | None) -> None:
    for text in ("Привет, мир!", "ДОБРОЕ УТРО, АННА.", SAMPLES["cp1251"]):
        data = srt([Line(start=1, end=2, text=text)]).encode(encoding)
        assert said(decode_text(data, language)) == [text]
    other = srt([Line(start=1, end=2, text=SAMPLES["cp1252"])])
    assert decode_text(other.encode("cp1252")) == other


def test_chinese_is_told_in_both_of_its_encodings() -> None:
    for encoding, text in (("big5", "你好嗎？我很好。"), ("gb18030", "你好吗？我很好。")):
        assert decode_text(text.encode(encoding), "zh") == text


def test_the_language_decides_between_code_pages() -> None:
    text = "Senki sem tudta, mi történt azon az éjszakán a tükörfúrógéppel, és őt sem kérdezték."
    assert decode_text(text.encode("cp1250"), "hu") == text


def test_a_broken_byte_is_dropped_from_its_file() -> None:
    data = srt([Line(start=1, end=2, text="größer, schöner, weiter " * 9)]).encode()
    (line,) = cues_of(decode_text(data.replace(b"weiter", b"wei\xffter", 1)))
    assert line.text.split() == ["größer,", "schöner,", "weiter"] * 9


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("a/video.en.vtt", "en"),
        ("video.pt-BR.srt", "pt"),
        ("video.eng.cc.srt", "en"),
        ("video.srt", None),
        ("who.is.it.srt", "it"),
        ("video.directors.srt", None),
    ],
)
def test_the_language_is_parsed_from_the_file_name(name: str, language: str | None) -> None:
    assert subtitles.language_of(name) == language


def test_the_best_subtitle_file_beside_the_video_is_found(tmp_path: Path) -> None:
    video = tmp_path / "a video.mp4"
    assert subtitles.find_subtitles(str(video)) is None
    for name in (
        "a video.de.srt", "a video.chapters.vtt", "a video.txt", "a video 2.srt", "other.srt",
    ):  # fmt: skip
        (tmp_path / name).write_text("")
    assert subtitles.find_subtitles(str(video)) == str(tmp_path / "a video.de.srt")
    (tmp_path / "a video.en.vtt").write_text("")
    assert subtitles.find_subtitles(str(video)) == str(tmp_path / "a video.en.vtt")
    assert subtitles.find_subtitles(str(video), prefer="de") == str(tmp_path / "a video.de.srt")
    (tmp_path / "a video.srt").write_text("")
    assert subtitles.find_subtitles(str(video)) == str(tmp_path / "a video.srt")


@pytest.mark.parametrize(
    ("by_people", "by_a_recogniser"),
    [
        ("talk.en.vtt", "talk.en.auto.vtt"),
        ("talk.en.vtt", "talk.en-orig.vtt"),
        ("talk.en.vtt", "talk.asr.en.srt"),
        ("talk.en.vtt", "talk.a.en.srt"),
        ("talk.en.vtt", "talk.auto-generated.vtt"),
        ("talk.en-US.srt", "talk.en_auto.srt"),
        ("talk.srt", "talk.auto.srt"),
        ("talk.en.auto.vtt", "talk.de.vtt"),  # the language first
    ],
)
def test_captions_by_people_come_before_those_of_a_recogniser(
    by_people: str, by_a_recogniser: str, tmp_path: Path
) -> None:
    for name in (by_people, by_a_recogniser):
        (tmp_path / name).write_text("")
    assert subtitles.find_subtitles(str(tmp_path / "talk.mp4")) == str(tmp_path / by_people)
    (tmp_path / by_people).unlink()
    assert subtitles.find_subtitles(str(tmp_path / "talk.mp4")) == str(tmp_path / by_a_recogniser)


@pytest.mark.parametrize("suffix", sorted(subtitles.UNREAD))
def test_a_file_in_another_format_beside_a_video_is_refused(suffix: str, tmp_path: Path) -> None:
    (tmp_path / f"talk.en.{suffix}").write_text("Hi")
    with pytest.raises(BadRow, match=rf"talk\.en\.{suffix}.*convert.*\.srt"):
        subtitles.find_subtitles(str(tmp_path / "talk.mp4"))
    assert subtitles.find_subtitles(str(tmp_path / "other.mp4")) is None
    (tmp_path / "talk.srt").write_text("")
    assert subtitles.find_subtitles(str(tmp_path / "talk.mp4")) == str(tmp_path / "talk.srt")


def test_subtitles_of_a_dvd_are_pictures_and_do_not_count(tmp_path: Path) -> None:
    for suffix in ("sub", "idx"):
        (tmp_path / f"talk.{suffix}").write_bytes(b"")
    assert subtitles.find_subtitles(str(tmp_path / "talk.mp4")) is None


def test_embedded_subtitles_are_read_in_the_preferred_language(tmp_path: Path) -> None:
    path = str(tmp_path / "video.mkv")
    with av.open(path, "w") as out:
        video = out.add_stream("libx264", rate=5)
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        streams = []
        for language in ("ger", "eng"):
            stream = out.add_stream("ass")
            stream.metadata["language"] = language
            stream.codec_context.subtitle_header = b"[Script Info]\nScriptType: v4.00+\n"
            stream.time_base = stream.codec_context.time_base = Fraction(1, 1000)
            streams.append((stream, language))
        for i in range(30):
            frame = av.VideoFrame(64, 48, "yuv420p")
            frame.pts, frame.time_base = i, Fraction(1, 5)
            out.mux(video.encode(frame))
        out.mux(video.encode(None))
        for stream, language in streams:
            for start in (1, 4):
                text = f"{start},0,Default,Ann,0,0,0,,{{\\i1}}{language}{{\\i0}} {start}"
                packet = av.Packet(text.encode())
                packet.stream, packet.time_base = stream, Fraction(1, 1000)
                packet.pts = packet.dts = 1000 * start
                packet.duration = 1500
                out.mux(packet)
    english = subtitles.embedded_subtitles(path)
    assert english is not None
    assert english.language == "en"
    assert [(x.start, x.end, x.speaker, x.text) for x in english.lines] == [
        (1.0, 2.5, "Ann", "eng 1"),
        (4.0, 5.5, "Ann", "eng 4"),
    ]
    german = subtitles.embedded_subtitles(path, prefer="de")
    assert german is not None
    assert (german.language, german.lines[0].text) == ("de", "ger 1")


def test_embedded_subtitles_of_a_real_video_are_read() -> None:
    (path,) = material("video").rglob("nasa_13013.mp4")
    embedded = subtitles.embedded_subtitles(str(path))
    assert embedded is not None
    assert (embedded.language, embedded.lines[0].speaker) == ("en", "NAR")
    assert subtitles.embedded_subtitles("examples/videos/pancakes.mp4") is None


def test_missing_and_binary_files_are_bad_rows_and_an_empty_one_has_no_lines(
    tmp_path: Path,
) -> None:
    path = tmp_path / "video.srt"
    with pytest.raises(BadRow, match=r"video\.srt"):
        subtitles.read(str(path))
    path.write_bytes(bytes(range(256)) * 20)
    with pytest.raises(BadRow, match=r"video\.srt.*\.vtt"):
        subtitles.read(str(path))
    path.write_bytes(b"")
    assert subtitles.read(str(path)).lines == ()


@given(
    st.sampled_from(
        ["", "WEBVTT\n\n", "00:01.000 --> 00:02.000\n", "[Script Info]\n", "[Events]\nDialogue: "]
    ),
    st.text(),
)
def test_any_text_gives_lines_or_a_bad_row(head: str, text: str) -> None:
    try:
        lines = cues_of(head + text)
    except BadRow:
        return
    assert all(x.text.strip() for x in lines)


def test_real_subtitle_files_are_parsed_without_markup() -> None:
    files = 0
    for folder in (material("subtitles_ad"), material("audio")):
        for path in sorted([*folder.rglob("*.vtt"), *folder.rglob("*.srt")]):
            parsed = subtitles.read(str(path))
            assert parsed.lines, path
            assert not any(
                "-->" in x.text or "<" in x.text or "&nbsp" in x.text for x in parsed.lines
            )
            assert all(a.end <= b.start for a, b in pairwise(parsed.lines))
            files += 1
    assert files > 20
    drama = material("audio/PublicisSapient+enable-a11y/audio/audio.vtt")
    assert "Announcer" in {x.speaker for x in subtitles.read(str(drama)).lines}
