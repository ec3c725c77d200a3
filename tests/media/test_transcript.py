"""Transcript lines: ordered, as text, joined and clipped."""

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.media import transcript
from mustsee.media.transcript import with_transcript
from mustsee.records import Line, Video, Word
from tests.support.subtitles import MS, WORDS, cues

STAMP = r"(\d+):(\d\d):(\d\d\.\d\d\d)"
WRITTEN = re.compile(rf"\[{STAMP} - {STAMP}\] (?:<([^<>]+)> )?(.*)")
SPEAKERS = st.none() | st.sampled_from(["Ann", "Mr Smith", "DOC"])


@given(st.lists(st.tuples(MS, MS, WORDS, SPEAKERS), max_size=12))
def test_ordered_lines_do_not_overlap_and_keep_all_words(
    raw: list[tuple[int, int, str, str]],
) -> None:
    lines = [Line(start=a / 1000, end=b / 1000, text=t, speaker=s) for a, b, t, s in raw]
    ordered = transcript.order_lines(lines)
    assert sorted(x.text for x in ordered) == sorted(x.text for x in lines)
    assert all(0 <= x.start <= x.end for x in ordered)
    assert all(a.end <= b.start for a, b in pairwise(ordered))
    assert transcript.order_lines(ordered) == ordered or any(x.start == x.end for x in ordered)


def parse_transcript(text: str) -> tuple[Line, ...]:
    """The lines of a text by `transcript.text`."""
    lines: list[Line] = []
    for row in text.splitlines():
        match = WRITTEN.fullmatch(row)
        assert match, row
        start, end = (
            round(3600 * int(h) + 60 * int(m) + float(s), 3)
            for h, m, s in (match.groups()[:3], match.groups()[3:6])
        )
        lines.append(Line(start=start, end=end, text=match[8], speaker=match[7]))
    return tuple(lines)


@given(st.lists(st.tuples(MS, MS, WORDS, SPEAKERS), max_size=12))
def test_lines_survive_being_written_and_parsed(raw: list[tuple[int, int, str, str]]) -> None:
    lines = transcript.order_lines(
        Line(start=a / 1000, end=b / 1000, text=t, speaker=s) for a, b, t, s in raw
    )
    back = parse_transcript(transcript.text(lines))
    assert [(x.text, x.speaker) for x in back] == [(x.text, x.speaker) for x in lines]
    assert all(
        abs(x.start - y.start) < 0.001 and abs(x.end - y.end) < 0.001
        for x, y in zip(back, lines, strict=True)
    )
    assert parse_transcript(transcript.text(back)) == back


@given(cues(), st.floats(0, 3), st.floats(1, 60))
def test_joining_keeps_words_and_limits(lines: list[Line], gap: float, seconds: float) -> None:
    joined = transcript.join_lines(lines, gap=gap, seconds=seconds, characters=40)
    assert " ".join(x.text for x in joined) == " ".join(x.text for x in lines)
    changed = [x for x in joined if x not in lines]
    assert all(x.end - x.start <= seconds and len(x.text) <= 40 for x in changed)
    ends = {x.end for x in joined}
    assert all(x.end in ends for x in lines if x.text.endswith("?"))


def join_texts(*texts: str, turns: tuple[int, ...] = ()) -> list[str]:
    """The texts of consecutive one-second lines, joined to sentences."""
    lines = [Line(start=n, end=n + 1, text=text, turn=n in turns) for n, text in enumerate(texts)]
    return [x.text for x in transcript.join_lines(lines)]


def test_a_sentence_continues_in_the_next_line_of_the_same_speaker() -> None:
    plain = ("We wait for", "Peter and", "the others.", "They are late.")
    assert join_texts(*plain) == ["We wait for Peter and the others.", "They are late."]
    assert join_texts(*plain, turns=(1,))[:2] == ["We wait for", "Peter and the others."]


def test_without_full_stops_a_capital_begins_a_sentence() -> None:
    bare = ("This is nine, I'm going in", "Good luck, Nadia", "such a lovely place", "Is it empty?")
    assert join_texts(*bare) == [bare[0], f"{bare[1]} {bare[2]}", bare[3]]
    assert join_texts("SO WE WAIT FOR", "PETER AND", "THE OTHERS.") == [
        "SO WE WAIT FOR PETER AND THE OTHERS."
    ]


@given(cues(), MS, MS)
def test_a_clip_keeps_the_lines_inside_it(lines: list[Line], a: int, b: int) -> None:
    start, end = min(a, b) / 1000, max(a, b) / 1000
    clip = transcript.lines_between(lines, start, end)
    assert all(start <= x.start <= x.end <= end for x in clip)
    inside = [x for x in lines if start <= x.start and x.end <= end]
    assert {x.text for x in inside} <= {x.text for x in clip}
    assert transcript.lines_between(lines) == tuple(lines)


def test_words_are_split_into_lines_at_sentences_and_pauses() -> None:
    text = "Mr. Fox came. he sat down then he left."
    times = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 4.0, 4.5, 5.0]
    words = [Word(t, t + 0.5, w, 0.9) for t, w in zip(times, text.split(), strict=True)]
    words[5] = Word(2.5, 4.0, "down", 0.9)  # its time runs over the pause
    lines = list(transcript.sentences(words, [3.4]))
    assert [x.text for x in lines] == ["Mr. Fox came.", "he sat down", "then he left."]
    assert [w for x in lines for w in x.words] == words
    assert (lines[1].start, lines[1].end) == (1.5, 4.0)
    assert [x.text for x in transcript.sentences(words, [])] == [
        "Mr. Fox came.", "he sat down then he left.",
    ]  # fmt: skip
    assert list(transcript.sentences([])) == []
    long = [Word(i, i + 1, "and", 0.9) for i in range(45)]
    assert max(x.end - x.start for x in transcript.sentences(long)) == 20


@pytest.mark.parametrize(
    ("row", "source"),
    [
        ({"has_audio": False, "lineage": {"hear": "k"}}, "no sound"),
        ({"has_audio": True, "lineage": {"hear": "k"}}, "nothing recognised"),
        ({"unheard": "no speech: music", "lineage": {"hear": "k"}}, "no speech: music"),
        ({"language": "de", "lineage": {"hear": "k"}}, "nothing recognised: marked 'de'"),
        ({"transcribed_by": "tiny", "lineage": {"hear": "k"}}, "tiny"),
        ({"transcribed_by": "base", "language": "en"}, "base"),
        ({"transcribed_by": "base", "language": "de"}, "base, de"),
        ({"has_audio": False, "lineage": {"probe": "k"}}, ""),
    ],
)
def test_a_row_names_its_transcriber_or_the_reason_for_no_lines(
    row: dict[str, Any], source: str
) -> None:
    assert Video(video_id="v", uri="v.mp4", **row).transcript_source == source


def test_a_row_without_lines_has_no_language_and_no_transcriber() -> None:
    row = Video(video_id="v", uri="v.mp4")
    silent = with_transcript(row, (), by="whisper", language="en")
    assert (silent.lines, silent.language, silent.transcribed_by) == ((), None, None)
    transcribed = with_transcript(
        row, (Line(start=0, end=1, text="Hi."),), by="whisper", language="en"
    )
    assert (transcribed.language, transcribed.transcribed_by) == ("en", "whisper")
