"""The chosen clips are the best set, and obey the rules on real narrations."""

import math
import time
from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from mustsee.recipes.egoschema import clips, narrations
from mustsee.recipes.egoschema.clips import ClipGrid
from mustsee.recipes.egoschema.narrations import NarrationColumns
from mustsee.records import Line, Video
from tests.support.material import material

EPIC = "narrations/epic-kitchens+epic-kitchens-55-annotations/"
small = st.builds(
    ClipGrid,
    seconds=st.sampled_from([20.0, 30.0, 45.0, 50.0]),
    grid=st.sampled_from([10.0, 15.0]),
    least=st.integers(0, 6),
)
times = st.lists(st.floats(0, 170), max_size=40).map(sorted)
lengths = st.integers(60_000, 170_000).map(lambda milliseconds: milliseconds / 1000)


def brute(moments, duration, cut):
    """Every set of viable windows without overlap: most windows, most narrations, earliest."""
    starts = [i * cut.grid for i in range(100) if i * cut.grid + cut.seconds <= duration]
    counts = {s: sum(s <= t < s + cut.seconds for t in moments) for s in starts}
    open_ = [s for s in starts if counts[s] >= cut.least]
    best = (0, 0, ())
    for size in range(len(open_) + 1):
        for windows in combinations(open_, size):
            if all(b - a >= cut.seconds for a, b in pairwise(windows)):
                key = (size, sum(counts[s] for s in windows), tuple(-s for s in windows))
                best = max(best, key)
    return [-s for s in best[2]], best[0]


@given(times, lengths, small)
def test_chosen_windows_equal_those_of_brute_force(moments, duration, cut) -> None:
    expected, count = brute(moments, duration, cut)
    chosen = clips.choose(moments, duration, cut)
    assert [w.start for w in chosen] == expected
    assert (
        clips._most(
            clips.viable_windows(
                moments, duration, ClipGrid(seconds=cut.seconds, grid=cut.grid, least=0)
            ),
            cut.least,
            -int(-cut.seconds // cut.grid),
        )
        == count
    )


def test_a_video_short_by_a_rounding_error_keeps_its_last_window() -> None:
    cut = ClipGrid(seconds=20.0, grid=10.0, least=0)
    assert clips.choose([], math.nextafter(60.0, 0.0), cut) == clips.choose([], 60.0, cut)
    assert clips.choose([], 59.999, cut)[-1].end < 60.0


@given(times, st.floats(0, 200), small)
def test_windows_are_dense_on_the_grid_and_do_not_overlap(moments, duration, cut) -> None:
    chosen = clips.choose(moments, duration, cut)
    for window in chosen:
        assert window.seconds == cut.seconds
        assert window.start % cut.grid == 0
        assert window.start >= 0
        assert window.end <= duration + 1e-6
        assert sum(window.start <= t < window.end for t in moments) >= cut.least
    assert all(b.start >= a.end for a, b in pairwise(chosen))


@given(times, st.floats(30, 170))
def test_rows_have_their_narrations_in_the_time_of_the_video(moments, duration) -> None:
    lines = [Line(start=t, end=t + 3, text=f"at {t!r}") for t in moments]
    cut = ClipGrid(seconds=30, grid=10, least=1)
    rows = clips.clip_rows(Video(video_id="v", uri="v.mp4", duration=duration), lines, cut)
    assert len({row.video_id for row in rows}) == len(rows)
    for row in rows:
        assert row.source == "v"
        assert row.duration == 30
        assert row.lines
        for line in row.lines:
            assert row.start <= line.start <= line.end <= row.end
            assert line.start == float(line.text[3:])


def test_an_unknown_length_is_the_end_of_the_last_narration() -> None:
    lines = [Line(start=t, end=t + 1, text="x") for t in range(29)]
    row = Video(video_id="v", uri="v")
    assert clips.clip_rows(row, lines, ClipGrid(seconds=30, grid=10, least=1)) == []
    assert (
        len(
            clips.clip_rows(
                row, [*lines, Line(start=29, end=30, text="y")], ClipGrid(seconds=30, grid=10)
            )
        )
        == 1
    )


def test_real_epic_clips_and_heat_map(tmp_path) -> None:
    read = narrations.read(
        str(material(EPIC + "EPIC_train_action_narrations.csv")),
        NarrationColumns(time="start_timestamp", end="stop_timestamp", text="narration"),
    )
    lengths = narrations.durations(str(material(EPIC + "EPIC_video_info.csv")), video="video")
    began = time.process_time()
    rows = clips.clips(read.lines, lengths, [ClipGrid()])
    heat = clips.heat_map(read.lines, lengths)
    assert time.process_time() - began < 30
    assert heat.counts[heat.lengths.index(180)][heat.densities.index(10)] == len(rows)
    for row in heat.counts:
        assert list(row) == sorted(row, reverse=True)
    assert all(len(row.lines) >= 30 for row in rows)
    assert len(rows) > 200
    clips.draw(heat).savefig(tmp_path / "heat.png")
    assert (tmp_path / "heat.png").read_bytes().startswith(b"\x89PNG")


def test_several_lengths_give_several_sets() -> None:
    lines = {"v": [Line(start=t, end=t, text="x") for t in range(0, 600, 2)]}
    cuts = [ClipGrid(seconds=s, least=clips.per_minute(10, s)) for s in (180.0, 360.0, 600.0)]
    rows = clips.clips(lines, {"v": 600}, cuts)
    assert [row.duration for row in rows] == [180, 180, 180, 360, 600]
