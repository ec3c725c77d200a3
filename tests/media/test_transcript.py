"""Subtitles to lines, whatever real files bring, and lines to text and back."""

from fractions import Fraction
from itertools import pairwise

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import BadRow
from mustsee.media import subtitles, transcript
from mustsee.media.cues import lines as cues_of
from mustsee.records import Line
from tests.support.material import material

MS = st.integers(min_value=0, max_value=7_200_000)
WORDS = st.lists(
    st.from_regex(r"[A-Za-z0-9äéñßЖ中あ',?]{1,9}", fullmatch=True), min_size=1, max_size=6
).map(" ".join)
SPEAKERS = st.none() | st.sampled_from(["Ann", "Mr Smith", "DOC"])


@st.composite
def cues(draw: st.DrawFn) -> list[Line]:
    """Cues in order that do not touch each other."""
    marks = sorted(draw(st.lists(MS, min_size=2, max_size=12, unique=True)))
    pairs = list(zip(marks[::2], marks[1::2], strict=False))
    return [Line(start=a / 1000, end=b / 1000, text=draw(WORDS)) for a, b in pairs]


def srt(lines: list[Line], comma: str = ",") -> str:
    def stamp(seconds: float) -> str:
        ms = round(seconds * 1000)
        return f"{ms // 3600000:02}:{ms // 60000 % 60:02}:{ms // 1000 % 60:02}{comma}{ms % 1000:03}"

    return "".join(
        f"{n}\n{stamp(x.start)} --> {stamp(x.end)}\n{x.text}\n\n" for n, x in enumerate(lines, 1)
    )


def said(text: str, kind: str = "vtt", **options: bool) -> list[str]:
    return [x.text for x in cues_of(text, kind, **options)]


@given(cues())
def test_what_is_written_is_read(lines: list[Line]) -> None:
    assert cues_of(srt(lines), "srt") == tuple(lines)
    assert cues_of("WEBVTT\n\n" + srt(lines, "."), "vtt") == tuple(lines)
    assert cues_of(srt(lines).replace("\n", "\r\n"), "srt") == tuple(lines)


@given(st.lists(st.tuples(MS, MS, WORDS, SPEAKERS), max_size=12))
def test_order_has_no_overlaps_and_loses_no_words(raw: list[tuple[int, int, str, str]]) -> None:
    lines = [Line(start=a / 1000, end=b / 1000, text=t, speaker=s) for a, b, t, s in raw]
    found = transcript.ordered(lines)
    assert sorted(x.text for x in found) == sorted(x.text for x in lines)
    assert all(0 <= x.start <= x.end for x in found)
    assert all(a.end <= b.start for a, b in pairwise(found))
    assert transcript.ordered(found) == found or any(x.start == x.end for x in found)


@given(st.lists(st.tuples(MS, MS, WORDS, SPEAKERS), max_size=12))
def test_text_and_back(raw: list[tuple[int, int, str, str]]) -> None:
    lines = transcript.ordered(
        Line(start=a / 1000, end=b / 1000, text=t, speaker=s) for a, b, t, s in raw
    )
    back = transcript.parse(transcript.text(lines))
    assert [(x.text, x.speaker) for x in back] == [(x.text, x.speaker) for x in lines]
    assert all(
        abs(x.start - y.start) < 0.001 and abs(x.end - y.end) < 0.001
        for x, y in zip(back, lines, strict=True)
    )
    assert transcript.parse(transcript.text(back)) == back


@given(cues(), st.floats(0, 3), st.floats(1, 60))
def test_joining_keeps_words_and_limits(lines: list[Line], gap: float, seconds: float) -> None:
    found = transcript.joined(lines, gap=gap, seconds=seconds, characters=40)
    assert " ".join(x.text for x in found) == " ".join(x.text for x in lines)
    made = [x for x in found if x not in lines]
    assert all(x.end - x.start <= seconds and len(x.text) <= 40 for x in made)
    ends = {x.end for x in found}
    assert all(x.end in ends for x in lines if x.text.endswith("?"))


@given(cues(), MS, MS)
def test_a_clip_holds_what_is_said_in_it(lines: list[Line], a: int, b: int) -> None:
    start, end = min(a, b) / 1000, max(a, b) / 1000
    found = transcript.within(lines, start, end)
    assert all(start <= x.start <= x.end <= end for x in found)
    inside = [x for x in lines if start <= x.start and x.end <= end]
    assert {x.text for x in inside} <= {x.text for x in found}
    assert transcript.within(lines) == tuple(lines)


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
def test_encodings(encoding: str) -> None:
    text = SAMPLES[encoding]
    data = srt([Line(start=1, end=2, text=text), Line(start=3, end=4, text=text)]).encode(encoding)
    assert said(subtitles.decoded(data), "srt") == [text, text]


def test_the_language_decides_between_code_pages() -> None:
    text = "Senki sem tudta, mi történt azon az éjszakán a tükörfúrógéppel, és őt sem kérdezték."
    assert subtitles.decoded(text.encode("cp1250"), "hu") == text


def test_a_broken_byte_does_not_spoil_a_file() -> None:
    data = srt([Line(start=1, end=2, text="größer, schöner, weiter " * 9)]).encode()
    (line,) = cues_of(subtitles.decoded(data.replace(b"weiter", b"wei\xffter", 1)), "srt")
    assert line.text.split() == ["größer,", "schöner,", "weiter"] * 9


def test_markup_goes_and_words_stay() -> None:
    text = """WEBVTT - a title
Kind: captions

STYLE
::cue { color: red }

NOTE by the editor
in two rows

intro
00:01.000 --> 00:02.000 line:63% align:start
<i>Tom &amp; <c.yellow>Jerry</c></i> are <b>3 &lt; 4</b>\u200b {\\an8}

NOTE another

2
00:00:03,000 --> 00:00:04,000
I was born in
1984

00:05.000 --> 00:06.000
"""
    assert said(text) == ["Tom & Jerry are 3 < 4", "I was born in 1984"]


def test_speakers() -> None:
    text = """WEBVTT

00:01.000 --> 00:02.000
<v.loud Mary  Ann>Where is it?</v>

00:02.000 --> 00:04.000
- On the shelf.
- Which one?

00:04.000 --> 00:05.000
>> DR. WHO: The left one:
it is 5:30.

00:05.000 --> 00:06.000
Note: nothing.
"""
    found = cues_of(text, "vtt")
    assert [(x.speaker, x.text) for x in found] == [
        ("Mary Ann", "Where is it?"),
        (None, "On the shelf."),
        (None, "Which one?"),
        ("DR. WHO", "The left one: it is 5:30."),
        (None, "Note: nothing."),
    ]
    assert found[1].end == found[2].start
    assert 2 < found[1].end < 4


def test_sounds_are_left_out_unless_asked_for() -> None:
    text = (
        "WEBVTT\n\n00:01.000 --> 00:02.000\n[Music]\n\n00:03.000 --> 00:04.000\nHush (softly) now\n"
    )
    assert said(text) == ["Hush (softly) now"]
    assert said(text, sounds=True) == ["[Music]", "Hush (softly) now"]


def test_automatic_captions_are_unrolled_with_their_word_times() -> None:
    text = """WEBVTT
Kind: captions
Language: en

00:00:01.000 --> 00:00:03.000 align:start position:0%

welcome<00:00:01.400><c> to</c><00:00:01.600><c> the</c><00:00:01.900><c> show</c>

00:00:03.000 --> 00:00:03.010 align:start position:0%
welcome to the show


00:00:03.010 --> 00:00:05.000 align:start position:0%
welcome to the show
today<00:00:03.500><c> we</c>

00:00:05.000 --> 00:00:05.010 align:start position:0%
today we


00:00:05.010 --> 00:00:07.000 align:start position:0%
today we
today<00:00:05.500><c> we</c><00:00:06.000><c> cook</c>
"""
    found = cues_of(text, "vtt")
    assert [x.text for x in found] == ["welcome to the show", "today we", "today we cook"]
    assert [(w.word, w.start, w.end) for w in found[0].words] == [
        ("welcome", 1.0, 1.4),
        ("to", 1.4, 1.6),
        ("the", 1.6, 1.9),
        ("show", 1.9, 3.0),
    ]


def test_a_refrain_is_no_rolling_caption() -> None:
    lines = [Line(start=float(i), end=i + 1.0, text="Row row row your boat") for i in range(4)]
    assert len(said(srt(lines), "srt")) == 4


def test_layers_of_an_ass_file_count_once() -> None:
    text = """[Script Info]
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname, Fontsize
Style: Default,Arial,20

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Comment: 0,0:00:00.00,0:00:09.00,Default,,0,0,0,,to the translator
Dialogue: 1,0:00:01.00,0:00:02.50,Default,Kay,0,0,0,,{\\pos(1,2)}Good\\Nmorning
Dialogue: 0,0:00:01.00,0:00:02.50,Default,Kay,0,0,0,,{\\blur3}Good\\Nmorning
Dialogue: 0,0:00:01.00,0:00:02.50,Default,,0,0,0,,{\\p1}m 0 0 l 100 0{\\p0}
Dialogue: 0,0:00:02.00,0:00:03.00,Default,,0,0,0,,{\\k20}Ka{\\k30}ra
"""
    found = cues_of(text, "ass")
    assert [(x.start, x.end, x.speaker, x.text) for x in found] == [
        (1.0, 2.0, "Kay", "Good morning"),
        (2.0, 3.0, None, "Kara"),
    ]


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("a/film.en.vtt", "en"),
        ("film.pt-BR.srt", "pt"),
        ("film.eng.cc.srt", "en"),
        ("film.srt", None),
        ("who.is.it.srt", "it"),
        ("film.directors.srt", None),
    ],
)
def test_language_of_a_name(name: str, language: str | None) -> None:
    assert subtitles.language_of(name) == language


def test_the_file_beside_the_video(tmp_path) -> None:
    video = tmp_path / "a film.mp4"
    assert subtitles.beside(str(video)) is None
    for name in (
        "a film.de.srt", "a film.chapters.vtt", "a film.txt", "a film 2.srt", "other.srt",
    ):  # fmt: skip
        (tmp_path / name).write_text("")
    assert subtitles.beside(str(video)) == str(tmp_path / "a film.de.srt")
    (tmp_path / "a film.en.vtt").write_text("")
    assert subtitles.beside(str(video)) == str(tmp_path / "a film.en.vtt")
    assert subtitles.beside(str(video), prefer="de") == str(tmp_path / "a film.de.srt")
    (tmp_path / "a film.srt").write_text("")
    assert subtitles.beside(str(video)) == str(tmp_path / "a film.srt")


def test_embedded_subtitles(tmp_path) -> None:
    path = str(tmp_path / "film.mkv")
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
    found = subtitles.embedded(path)
    assert found is not None
    assert found.language == "en"
    assert [(x.start, x.end, x.speaker, x.text) for x in found.lines] == [
        (1.0, 2.5, "Ann", "eng 1"),
        (4.0, 5.5, "Ann", "eng 4"),
    ]
    german = subtitles.embedded(path, prefer="de")
    assert german is not None
    assert (german.language, german.lines[0].text) == ("de", "ger 1")


def test_subtitles_in_a_real_film() -> None:
    (path,) = material("video").rglob("nasa_13013.mp4")
    found = subtitles.embedded(str(path))
    assert found is not None
    assert (found.language, found.lines[0].speaker) == ("en", "NAR")
    assert subtitles.embedded("examples/videos/pancakes.mp4") is None


def test_what_is_no_subtitle_file(tmp_path) -> None:
    path = tmp_path / "film.srt"
    with pytest.raises(BadRow, match=r"film\.srt"):
        subtitles.read(str(path))
    path.write_bytes(bytes(range(256)) * 20)
    assert subtitles.read(str(path)).lines == ()
    path.write_bytes(b"")
    assert subtitles.read(str(path)).lines == ()


@given(st.text(), st.sampled_from(["srt", "vtt", "ass", "ssa"]))
def test_any_text_gives_lines_or_a_bad_row(text: str, kind: str) -> None:
    try:
        found = cues_of(text, kind)
    except BadRow:
        return
    assert all(x.text.strip() for x in found)


def test_real_files() -> None:
    read = 0
    for folder in (material("subtitles_ad"), material("audio")):
        for path in sorted([*folder.rglob("*.vtt"), *folder.rglob("*.srt")]):
            found = subtitles.read(str(path))
            assert found.lines, path
            assert not any(
                "-->" in x.text or "<" in x.text or "&nbsp" in x.text for x in found.lines
            )
            assert all(a.end <= b.start for a, b in pairwise(found.lines))
            read += 1
    assert read > 20
    drama = material("audio/PublicisSapient+enable-a11y/audio/audio.vtt")
    assert "Announcer" in {x.speaker for x in subtitles.read(str(drama)).lines}
