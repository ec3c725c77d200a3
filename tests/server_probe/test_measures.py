"""What is counted as seen, misread, missing, heard and wrong."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.calls.usage import Price
from mustsee.errors import Unparsed
from mustsee.server_probe import findings
from mustsee.server_probe.findings import Findings, price_hour
from mustsee.server_probe.record import (
    NumeralsResult,
    ReportedUsage,
    SoundResult,
    TimesResult,
    TokenCounts,
    compare_numerals,
    compare_sounds,
    compare_times,
    compare_tones,
)
from mustsee.server_probe.steps import NUMERALS_FORM, TONES_FORM, times_form
from mustsee.server_probe.stimuli import draw_numerals

SENT = (47, 12, 90, 33, 71, 58, 26, 84)


def result(listed: Sequence[int], sent: Sequence[int] = SENT, **more: Any) -> NumeralsResult:
    frames = compare_numerals(sent, listed)
    return NumeralsResult(
        **{"kind": "images", "count": len(sent), "state": "answered", "frames": frames, **more}
    )


def kinds(listed: Sequence[int], **more: Any) -> list[str]:
    return [fault.kind for fault in findings.numeral_faults(result(listed, **more))]


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        (SENT, []),
        ((47, 12, 90, 33, 71, 58, 26, 48), []),  # the last one is misread
        ((47, 47, 12, 90, 33, 71, 58, 26, 84), []),  # one is listed twice in a row
        ((47, 12, 90, 33, 71, 58, 84, 26), []),  # one slip of two neighbours
        (SENT[:-1], ["frames dropped"]),
        (SENT[::2], ["frames dropped"]),
        ((47, 47, 90, 90, 71, 71, 26, 26), ["frames dropped"]),  # half of them, each twice
        (SENT[::-1], ["shuffled"]),
        ((*SENT[1:], SENT[0]), ["shuffled"]),  # the first one comes last
        ((12, 47, 33, 90, 58, 71, 84, 26), ["shuffled"]),  # neighbours are exchanged
        ((90, 47, 12), ["frames dropped", "shuffled"]),
        ((), ["nothing seen"]),
    ],
)
def test_faults_of_a_list_of_numerals(listed: Sequence[int], expected: list[str]) -> None:
    assert kinds(listed) == expected


def test_a_cap_shows_where_fewer_frames_are_seen_whole() -> None:
    whole = result(SENT)
    sent = draw_numerals(48, random.Random(1))
    (fault,) = findings.numeral_faults(result(sent[:32], sent), [whole])
    assert (fault.kind, fault.share) == ("capped", 16 / 48)
    assert "capped at 32; the last 16 are" in fault.says
    (fault,) = findings.numeral_faults(result(sent[::2], sent), [whole])
    assert "24 evenly spread" in fault.says


def test_a_weak_model_is_not_blamed_on_the_server() -> None:
    """It reads a third wrong, often as a numeral that was sent elsewhere."""
    rng = random.Random(3)
    for _ in range(200):
        sent = draw_numerals(48, rng)
        listed = [rng.choice(range(10, 100)) if rng.random() < 0.33 else n for n in sent]
        assert "shuffled" not in {f.kind for f in findings.numeral_faults(result(listed, sent))}
        assert compare_numerals(sent, listed).missing == 0


@given(st.integers(0, 10**6), st.integers(2, 90))
def test_numbers_add_up(seed: int, count: int) -> None:
    rng = random.Random(seed)
    sent = draw_numerals(count, rng)
    listed = [rng.randrange(1000) if rng.random() < 0.3 else rng.choice(sent) for _ in sent]
    frames = compare_numerals(sent, listed)
    assert frames.seen + frames.misread + frames.missing == count
    assert frames.seen <= len(set(listed))
    assert len(frames.missing_places) == count - frames.seen
    assert frames.in_order is None or 0 <= frames.in_order <= 1


def test_numerals_are_no_sequence_that_could_be_counted() -> None:
    for count in (2, 8, 48, 64, 65, 300, 900):
        numerals = draw_numerals(count, random.Random(count))
        assert len(set(numerals)) == count
        digits = {len(str(n)) for n in numerals}
        assert digits == {2 if count <= 64 else 3}
        assert sum(b == a + 1 for a, b in pairwise(numerals)) < count / 4


def test_times_and_their_scale() -> None:
    shown = {47: 4.0, 12: 8.0, 90: 12.0, 33: 20.0}
    errors = compare_times(shown, {47: 4.5, 12: 8.0, 90: 13.0, 33: -1.0})
    assert (errors.asked, errors.unseen, errors.median, errors.largest) == (4, 1, 0.5, 1.0)

    def named(told: dict[int, float]) -> list[str]:
        compared = TimesResult(seconds=24.0, state="answered", errors=compare_times(shown, told))
        return [fault.kind for fault in findings.time_faults(compared)]

    assert named(shown) == []
    assert named({n: s + 1.5 for n, s in shown.items()}) == []
    assert named({n: 2 * s for n, s in shown.items()}) == ["times wrong"]
    assert named(dict.fromkeys(shown, -1.0)) == []  # nothing is told
    assert named({**dict.fromkeys(shown, -1.0), 47: 20.0, 12: 20.0}) == []  # too few are


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ((4, 0, 9, 9, 1, 7), []),
        ((4, 0, 9, 1, 7), []),
        ((), ["sound dropped"]),
        ((5, 5, 4, 2, 2, 3), ["sound dropped"]),  # guessed
        ((4, 0, 9), ["sound cut"]),
    ],
)
def test_faults_of_the_sound(listed: Sequence[int], expected: list[str]) -> None:
    sounds = compare_sounds((4, 0, 9, 9, 1, 7), listed)
    digits = SoundResult(kind="digits", seconds=9.0, state="answered", sounds=sounds)
    assert [fault.kind for fault in findings.sound_faults(digits, None)] == expected


def test_sound_of_which_only_tones_are_heard_is_not_dropped() -> None:
    sent = ("high", "low", "low", "high")
    tones = SoundResult(
        kind="tones", seconds=6.0, state="answered", sounds=compare_tones(sent, sent)
    )
    digits = SoundResult(
        kind="digits", seconds=9.0, state="answered", sounds=compare_sounds((1, 2, 3, 4), ())
    )
    assert not list(findings.sound_faults(digits, tones))
    assert not compare_tones(sent, ("high", "low", "high", "high")).is_heard


def usage(prompt: int | None, **more: int) -> ReportedUsage:
    return ReportedUsage(prompt=prompt, **more)


@pytest.mark.parametrize(
    ("long", "short", "expected"),
    [
        ([3000] * 3, 20, []),
        ([3000, 3010, 2990], 20, []),
        ([2000] * 3, 20, []),
        ([6000] * 3, 40, ["usage wrong"]),  # doubled
        ([1500] * 3, 10, ["usage wrong"]),  # halved
        ([100] * 3, 100, ["usage wrong"]),  # always the same
        ([3000, 6000, 9000], 20, ["usage wrong"]),  # grows from call to call
        ([None] * 3, None, ["usage missing"]),
    ],
)
def test_counts_of_text(long: list[int | None], short: int | None, expected: list[str]) -> None:
    """Of 12,000 further characters."""
    found = findings.text_usage_faults([usage(n) for n in long], usage(short), 12_000)
    assert [fault.kind for fault in found] == expected


def test_counts_of_a_reply_that_contradict_themselves() -> None:
    def wrong(usage: ReportedUsage) -> int:
        return len(list(findings.reply_usage_faults(usage, 48)))

    assert not wrong(usage(10, reply=12, total=22, cached=4))
    assert not wrong(usage(10, reply=12, total=500))  # with hidden reasoning
    assert not wrong(usage(None))
    assert wrong(usage(10, reply=0))
    assert wrong(usage(10, reply=12, total=12))
    assert wrong(usage(10, reply=12, cached=11))


def test_images_and_videos_that_are_seen_must_be_counted() -> None:
    def images(*tokens: int) -> list[NumeralsResult]:
        pairs = zip((8, 48), tokens, strict=True)
        drawn = [(draw_numerals(n, random.Random(n)), t) for n, t in pairs]
        return [result(numerals, numerals, tokens=t) for numerals, t in drawn]

    assert not list(findings.image_usage_faults(images(8 * 258 + 100, 48 * 258 + 100), 100))
    assert list(findings.image_usage_faults(images(100, 100), 100))
    assert list(findings.image_usage_faults(images(8 * 100 + 100, 48 * 258 + 100), 100))
    assert not list(findings.image_usage_faults(images(100, 100), None))
    video = result(SENT, kind="video", seconds=8.0, tokens=100)
    assert list(findings.video_usage_faults([video], 100))
    assert not list(findings.video_usage_faults([video], 40))


def test_usage_tells_whether_frames_that_are_not_seen_are_counted() -> None:
    sent = draw_numerals(48, random.Random(0))
    whole = result(SENT, tokens=100 + 8 * 50)
    (note,) = findings.counted_notes([whole, result(sent[:32], sent, tokens=100 + 48 * 50)], 100)
    assert "all are counted" in note
    (note,) = findings.counted_notes([whole, result(sent[:32], sent, tokens=100 + 32 * 50)], 100)
    assert "67 % are counted" in note


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("* NUMERALS: 47, 12, 90", (47, 12, 90)),
        ("NUMERALS: [47, 12]", (47, 12)),
        ("**NUMERALS:** 47 12", (47, 12)),
        ("* NUMERALS: NONE", ()),
        ('{"numerals": [47, 12]}', (47, 12)),
        ('```json\n{"numerals": []}\n```', ()),
    ],
)
def test_numerals_of_a_reply(reply: str, expected: tuple[int, ...]) -> None:
    assert NUMERALS_FORM.read(reply) == expected


@pytest.mark.parametrize(
    "reply",
    ["I see 47 and 12.", "* NUMERALS: 47, twelve", "* NUMERALS: 1\n* NUMERALS: 2", "", "47, 12"],
)
def test_a_reply_in_another_form_says_nothing(reply: str) -> None:
    with pytest.raises(Unparsed):
        NUMERALS_FORM.read(reply)


def test_times_and_tones_of_a_reply() -> None:
    told = times_form([47, 12]).read("* NUMERAL 47: 4.5 s\n* NUMERAL 12: 1:02")
    assert told == {47: 4.5, 12: 62.0}
    assert TONES_FORM.read("* TONES: High, low") == ("high", "low")
    with pytest.raises(Unparsed):
        TONES_FORM.read("* TONES: high, middle")
    with pytest.raises(Unparsed):
        times_form([47, 12]).read("* NUMERAL 47: soon\n* NUMERAL 12: 3")


def test_what_is_known_of_the_family_and_what_is_measured() -> None:
    found = Findings(images=[result(SENT, tokens=100 + 8 * 50)], images_base=100)
    unknown = found.count_tokens("m", "auto")
    assert unknown == TokenCounts(image=50)
    known = Findings().count_tokens("gemini-3-flash", "auto")
    assert (known.image, known.image_rule, known.second_rule) == (None, 1120, 70)
    price = price_hour(known, Price(1.0, 2.0), "a table")
    assert (price.images, price.video) == (3600 * 1120 / 1e6, 3600 * 70 / 1e6)
    assert price_hour(unknown, None, "").images is None


def test_the_rate_is_a_least_one_only_if_the_fast_video_is_seen_whole() -> None:
    def video(kind: str, sent: Sequence[int], listed: Sequence[int]) -> NumeralsResult:
        return result(listed, sent, kind=kind, seconds=8.0)

    fast = draw_numerals(16, random.Random(0))
    short = video("video", SENT, SENT)
    assert Findings(videos=[short]).rate == (1.0, True)
    assert Findings(videos=[short, video("fast_video", fast, fast[::2])]).rate == (1.0, False)
    assert Findings(videos=[short, video("fast_video", fast, fast)]).rate == (2.0, True)
    assert Findings(videos=[video("video", SENT, SENT[::2])]).rate == (0.5, False)
