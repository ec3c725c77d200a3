"""Cues to transcript lines: markup, speakers, sounds, rolling captions."""

from itertools import pairwise

from hypothesis import given

from mustsee.media.cues import lines as cues_of
from mustsee.media.transcript import join_lines
from mustsee.records import Line
from tests.support.subtitles import cues, said, srt


@given(cues())
def test_lines_survive_writing_and_reading(lines: list[Line]) -> None:
    assert cues_of(srt(lines), "srt") == tuple(lines)
    assert cues_of("WEBVTT\n\n" + srt(lines, "."), "vtt") == tuple(lines)
    assert cues_of(srt(lines).replace("\n", "\r\n"), "srt") == tuple(lines)


def test_markup_is_removed_and_words_are_kept() -> None:
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


def test_speakers_are_parsed_from_tags_dashes_and_names() -> None:
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
    lines = cues_of(text, "vtt")
    assert [(x.speaker, x.text) for x in lines] == [
        ("Mary Ann", "Where is it?"),
        (None, "On the shelf."),
        (None, "Which one?"),
        ("DR. WHO", "The left one: it is 5:30."),
        (None, "Note: nothing."),
    ]
    assert lines[1].end == lines[2].start
    assert 2 < lines[1].end < 4


def test_two_speakers_in_one_cue_become_two_lines() -> None:
    """In rows of their own, in one row, with tags, and in SRT as in VTT."""
    srt = """1
00:00:12,700 --> 00:00:15,100
<i>- This is nine, I'm going in</i>
<i>- Good luck, Nadia</i>

2
00:00:15,300 --> 00:00:17,300
- Ready? - Not yet. I can - I think - find
another one.

3
00:00:18,000 --> 00:00:20,000
-Out of the way<br/>-MR. OTT: Never!

4
00:00:21,000 --> 00:00:23,000
- And now, as ever -
the weather.

5
00:00:24,000 --> 00:00:26,000
A well-known man - one of us -
-- who never came back.
"""
    lines = cues_of(srt, "srt")
    assert [(x.speaker, x.turn, x.text) for x in lines] == [
        (None, True, "This is nine, I'm going in"),
        (None, True, "Good luck, Nadia"),
        (None, True, "Ready?"),
        (None, True, "Not yet. I can - I think - find another one."),
        (None, True, "Out of the way"),
        ("MR. OTT", True, "Never!"),
        (None, True, "And now, as ever - the weather."),
        (None, False, "A well-known man - one of us - -- who never came back."),
    ]
    assert [round(x.start, 2) for x in lines[:2]] == [12.7, 14.19]  # 26 of 42 letters, then 16
    assert all(a.end <= b.start for a, b in pairwise(lines))
    assert [x.text for x in join_lines(lines)] == [x.text for x in lines]
    vtt = "WEBVTT\n\n00:01.000 --> 00:03.000\n<v Ann>Wait for</v> <v Bo>No time to"
    vtt += "\n\n00:03.000 --> 00:04.000\n<v Bo>lose.\n"
    assert [(x.speaker, x.text) for x in cues_of(vtt, "vtt")] == [
        ("Ann", "Wait for"),
        ("Bo", "No time to"),
        ("Bo", "lose."),
    ]


def test_sound_descriptions_are_dropped_unless_requested() -> None:
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
    lines = cues_of(text, "vtt")
    assert [x.text for x in lines] == ["welcome to the show", "today we", "today we cook"]
    assert [(w.word, w.start, w.end) for w in lines[0].words] == [
        ("welcome", 1.0, 1.4),
        ("to", 1.4, 1.6),
        ("the", 1.6, 1.9),
        ("show", 1.9, 3.0),
    ]


def test_a_refrain_is_not_a_rolling_caption() -> None:
    lines = [Line(start=float(i), end=i + 1.0, text="Row row row your boat") for i in range(4)]
    assert len(said(srt(lines), "srt")) == 4


def test_duplicate_layers_of_an_ass_file_count_once() -> None:
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
    lines = cues_of(text, "ass")
    assert [(x.start, x.end, x.speaker, x.text) for x in lines] == [
        (1.0, 2.0, "Kay", "Good morning"),
        (2.0, 3.0, None, "Kara"),
    ]
