"""Cues to transcript lines: markup, speakers, sounds, rolling captions."""

from itertools import pairwise

import pytest
from hypothesis import given

from mustsee.errors import BadRow
from mustsee.media.subtitle_cues import lines as cues_of
from mustsee.media.transcript import join_lines
from mustsee.records import Line
from tests.support.subtitles import cues, said, srt


@given(cues())
def test_lines_survive_writing_and_reading(lines: list[Line]) -> None:
    assert cues_of(srt(lines)) == tuple(lines)
    assert cues_of("WEBVTT\n\n" + srt(lines, ".")) == tuple(lines)
    assert cues_of(srt(lines).replace("\n", "\r\n")) == tuple(lines)


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
    lines = cues_of(text)
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
    lines = cues_of(srt)
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
    assert [(x.speaker, x.text) for x in cues_of(vtt)] == [
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
    lines = cues_of(text)
    assert [x.text for x in lines] == ["welcome to the show", "today we", "today we cook"]
    assert [(w.word, w.start, w.end) for w in lines[0].words] == [
        ("welcome", 1.0, 1.4),
        ("to", 1.4, 1.6),
        ("the", 1.6, 1.9),
        ("show", 1.9, 3.0),
    ]


def test_a_refrain_is_not_a_rolling_caption() -> None:
    lines = [Line(start=float(i), end=i + 1.0, text="Row row row your boat") for i in range(4)]
    assert len(said(srt(lines))) == 4


def test_a_refrain_with_other_marks_is_not_a_rolling_caption() -> None:
    shown = ["Stop!", "Stop.", "Stop!!", "Stop...", "Stop?"]
    assert said(captions(*shown)) == shown


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
    lines = cues_of(text)
    assert [(x.start, x.end, x.speaker, x.text) for x in lines] == [
        (1.0, 2.0, "Kay", "Good morning"),
        (2.0, 3.0, None, "Kara"),
    ]


def timed(text: str) -> list[tuple[float, float, str]]:
    return [(round(x.start, 3), round(x.end, 3), x.text) for x in cues_of(text)]


@pytest.mark.parametrize(
    ("times", "start", "end"),
    [
        ("00:00:05:500 --> 00:00:06:500", 5.5, 6.5),
        ("00:00:05.500 --> 00:00:06.500", 5.5, 6.5),
        ("00:00:05 --> 00:00:06", 5.0, 6.0),
        ("0:00:05 --> 0:00:06", 5.0, 6.0),
        ("0:05 --> 0:06", 5.0, 6.0),
        ("0:5 --> 0:6", 5.0, 6.0),
        ("00:05:500 --> 00:06:500", 5.5, 6.5),
        ("00:00:5,5 --> 00:00:6,25", 5.5, 6.25),
        ("1:00:05,000 -> 1:00:06,000", 3605.0, 3606.0),
        ("00:00:05,000 – 00:00:06,000", 5.0, 6.0),
        ("00: 00: 05,000 –> 00: 00: 06,000", 5.0, 6.0),
        ("00：00：05，500 --> 00：00：06，500", 5.5, 6.5),
        ("2 00:00:05,000 --> 00:00:06,000 X1:40 X2:600", 5.0, 6.0),
        ("[00:05.000 --> 00:06.000]", 5.0, 6.0),
        ("0:00:05.000,0:00:06.000", 5.0, 6.0),
        ("-00:00:01,500 --> 00:00:06,000", 0.0, 6.0),
    ],
)
def test_every_form_of_times_is_read_as_times(times: str, start: float, end: float) -> None:
    for text in (f"1\n{times}\nWords\n", f"WEBVTT\n\n{times}\nWords\n", f"{times}\nWords"):
        assert timed(text) == [(start, end, "Words")]


def test_words_may_follow_their_times_in_the_row() -> None:
    assert said("[00:05.000 --> 00:06.000]  Hi there\n0:07.0 --> 0:08.0 again") == [
        "Hi there",
        "again",
    ]
    assert said("WEBVTT\n\n00:05.000 --> 00:06.000 line:63% align:start\nHi") == ["Hi"]


@pytest.mark.parametrize(
    ("row", "said_why"),
    [
        ("00:00:05:12 --> 00:00:06:03", "frames"),
        ("00:00:0x,000 --> 00:00:06,000", "row '00:00:0x"),
        ("00:00:-5,000 --> 00:00:06,000", "row '00:00:-5"),
        ("5.5 --> 6.5", "row '5.5"),
    ],
)
def test_times_that_cannot_be_read_are_refused_and_no_words(row: str, said_why: str) -> None:
    text = f"1\n00:00:01,000 --> 00:00:02,000\nOne\n\n2\n{row}\nTwo\n"
    with pytest.raises(BadRow, match=said_why):
        cues_of(text)


def test_arrows_and_clock_times_within_words_stay() -> None:
    words = ["From A --> B", "it is 5:30 - 6:30 now", "turn 90 --> left"]
    assert said(srt([Line(start=i, end=i + 1, text=w) for i, w in enumerate(words)])) == words


def test_what_was_moved_before_the_start_is_cut_or_left_out() -> None:
    moved = (
        "-00:00:12,500 --> -00:00:10,500\nSponsor.\n\n-00:00:01,500 --> 00:00:00,500\nFirst.\n\n"
    )
    rest = "00:00:12,000 --> 00:00:14,000\nTwelve.\n"
    expected = [(0.0, 0.5, "First."), (12.0, 14.0, "Twelve.")]
    assert timed(moved + rest) == expected
    assert timed("WEBVTT\n\n" + (moved + rest).replace(",", ".")) == expected
    head = "[Script Info]\n\n[Events]\nFormat: Layer, Start, End, Style, Name, Text\n"
    rows = ["-0:00:12.50,-0:00:10.50,D,,Sponsor.", "-0:00:01.50,0:00:00.50,D,,First.",
            "0:00:12.00,0:00:14.00,D,,Twelve."]  # fmt: skip
    assert timed(head + "".join(f"Dialogue: 0,{row}\n" for row in rows)) == expected


CUE = "00:00:0{0},000 --> 00:00:0{0},900\n"


@pytest.mark.parametrize(
    "text",
    [
        "1\n\n{1}One\n\n2\n\n{3}Two\n\n3\n\n{5}Three\n",  # a blank after the number
        "1\n1\n{1}One\n\n2\n2\n{3}Two\n\n3\n\n3\n{5}Three\n",  # doubled
        "1 \n{1}One\n \n 2\t\n\n{3}Two\n\n\n\n\ufeff3\n{5}Three\n\n4\n",  # blanks; one is cut off
        "1\n{1}One\n2\n{3}Two\n3\n{5}Three",  # no blank rows
        "1\n{1}One\n\n2\n\n3\n\n4\n{3}Two\n\n#5.\n{5}Three\n",  # two cues were taken out
        "7\n{1}One\n\n1\n{3}Two\n\n2)\n{5}Three\n",  # joined files
    ],
)
def test_numbers_of_cues_are_no_words(text: str) -> None:
    text = text.format(*map(CUE.format, range(6)))
    assert timed(text) == [(1.0, 1.9, "One"), (3.0, 3.9, "Two"), (5.0, 5.9, "Three")]


def test_numbers_that_are_said_stay() -> None:
    first, second, third = (CUE.format(start) for start in (1, 3, 5))
    said_here = ["Born in 1984", "1985", "3"]
    numbered = f"1\n{first}Born in\n1984\n\n2\n{second}1985\n\n3\n{third}3\n\n\n"
    assert said(numbered + "4") == said_here
    assert said(f"{first}Born in\n1984\n\n{second}1985\n\n{third}3\n") == said_here


def test_readings_in_ruby_are_not_said_twice() -> None:
    rows = [
        "<ruby>東<rt>とう</rt>京<rt>きょう</rt></ruby>へ行く",
        "1998年に<ruby>創業<rp>(</rp><rt>そうぎょう</rt><rp>)</rp></ruby>しました",
        "<ruby.big>漢<rt.small>かん<rb>字<RT>じ</ruby>だ",
        "<ruby>朝\n<rt>あさ</rt></ruby>",
    ]
    expected = ["東京へ行く", "1998年に創業しました", "漢字だ", "朝"]
    lines = [Line(start=2 * i, end=2 * i + 1, text=row) for i, row in enumerate(rows)]
    assert said("WEBVTT\n\n" + srt(lines, ".")) == said(srt(lines)) == expected


def captions(*shown: str, comma: str = ",") -> str:
    """Cues that follow each other without a gap."""
    return srt([Line(start=i, end=i + 1, text=x) for i, x in enumerate(shown)], comma)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (  # letter by letter, in one row
            ["hello", "hello every", "hello everyone and", "hello everyone and welcome",
             "to", "to our", "to our show"],
            ["hello everyone and welcome", "to our show"],
        ),
        (  # row by row
            ["hello everyone", "hello everyone\nand welcome", "and welcome\nto our show"],
            ["hello everyone", "and welcome", "to our show"],
        ),
        (  # three rows
            ["one a", "one a\ntwo b", "one a\ntwo b\nthree c", "two b\nthree c\nfour d"],
            ["one a", "two b", "three c", "four d"],
        ),
        (  # rows that grow while they roll
            ["hello", "hello everyone", "hello everyone\nand", "hello everyone\nand welcome",
             "and welcome\nto", "and welcome\nto our show"],
            ["hello everyone", "and welcome", "to our show"],
        ),
        (  # capitals and what ends a row are corrected
            ["so", "so we", "So we bake.", "So we bake, and then,",
             "So we bake, and then, eat.\nYes?", "So we bake, and then, eat.\nYes. Good."],
            ["so we bake, and then, eat.", "Yes. Good."],
        ),
        (  # a word that moves to the next row once it is too long
            ["hello every one wel", "hello every one\nwelcome", "hello every one\nwelcome to"],
            ["hello every one welcome to"],
        ),
    ],
)  # fmt: skip
def test_captions_that_grow_or_roll_give_each_word_once(
    shown: list[str], expected: list[str]
) -> None:
    lines = cues_of(captions(*shown))
    assert [x.text for x in lines] == expected
    assert [x.text for x in cues_of("WEBVTT\n\n" + captions(*shown, comma="."))] == expected
    assert (lines[0].start, lines[-1].end) == (0.0, len(shown))
    others = [f"Another line, number {i}." for i in range(40)]
    assert said(captions(*others, *shown, *others[:9])) == [*others, *expected, *others[:9]]


def test_text_in_braces_is_no_speech_in_ass_only() -> None:
    texts = [
        r"{check this}Fine, thanks, {\i1}really{\i0}.",
        r"A way into spying.{EN: an entry\N to espionage}",
        r"{\i1 slanted}so \{it\} is",
        r"An open { brace",
    ]
    rows = [f"Dialogue: 0:00:0{i}.00,0:00:0{i}.90,{x}\n" for i, x in enumerate(texts)]
    assert said("[Script Info]\n\n[Events]\nFormat: Start, End, Text\n" + "".join(rows)) == [
        "Fine, thanks, really.", "A way into spying.", "so {it} is", "An open { brace",
    ]  # fmt: skip
    assert said(captions("f{x} is\n{\\an8}even")) == ["f{x} is even"]


@pytest.mark.parametrize(
    "text",
    [
        "", "\ufeff \n", "WEBVTT", "WEBVTT\n\nSTYLE\n::cue { color: red }\n",
        "WEBVTT - talk\nKind: captions\n\nNOTE\n00:01.000 --> 00:02.000\nno",
        "[Script Info]\nScriptType: v4.00+\n\n[Events]\n",
        "WEBVTT\n\n00:01.000 --> 00:02.000\n[Music]\n",
    ],
)  # fmt: skip
def test_a_file_without_speech_has_no_lines(text: str) -> None:
    assert cues_of(text) == ()


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ('<?xml version="1.0"?>\n<tt xmlns="http://www.w3.org/ns/ttml"><body><div>'
         '<p begin="1s" end="2s">Hi</p></div></body></tt>', "TTML"),
        ("<SAMI><BODY><SYNC Start=1000><P Class=ENCC>Hi</SAMI>", "SAMI"),
        ("[ti:Talk]\n[00:12.00]Hi\n[00:15.30]there", "LRC"),
        ('{"wireMagic": "pb3", "events": [{"tStartMs": 0, "segs": [{"utf8": "Hi"}]}]}', "JSON"),
        ("<!DOCTYPE html>\n<html><body><h1>404</h1><!-- 00:01 --></body></html>", "a web page"),
        ("{1}{25}Hi|there\n{30}{60}you", "MicroDVD"),
        ("[10][20]Hi\n[30][40]there", "MPL2"),
        ('<?xml version="1.0"?><timedtext format="3"><body><p t="0">Hi</p></body>', "YouTube"),
        ("00:00:01:Hi\n00:00:03:there", "TMPlayer"),
        ("Scenarist_SCC V1.0\n\n00:00:01:00\t9420 9420", "SCC"),
        ("Hi there.\nWe only talk.", "no times .* 'Hi there. We only talk.'"),
        ("WEBVTT\n\nHi there", "no times"),
        (bytes(range(256)).decode("latin-1"), "not text"),
        (captions("", ""), "2 cues, and no words"),
        ("[Script Info]\n\n[Events]\nFormat: Start, Text\nDialogue: soon,Hi\n", "row 'Dialogue"),
    ],
)  # fmt: skip
def test_another_format_is_refused_by_name(text: str, seen: str) -> None:
    with pytest.raises(BadRow, match=seen):
        cues_of(text)


def test_joined_vtt_files_give_no_headers_as_words() -> None:
    one = "WEBVTT\nKind: captions\n\n00:0{0}.000 --> 00:0{0}.500\n{1}\n\n"
    assert said(one.format(1, "Hi") + one.format(2, "there")) == ["Hi", "there"]
    assert said("WEBVTT\n00:01.000 --> 00:02.000\nWithout a blank row\n") == ["Without a blank row"]
