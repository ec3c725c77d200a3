"""Workers with long videos and their helpers are together at most `workers.max`."""

from hypothesis import given
from hypothesis import strategies as st

from actors.calls.coordinator import Coordinator

MOST = 5
videos = st.sampled_from("abcdefg"[:MOST])


def test_a_single_video_has_all_helpers_until_another_begins() -> None:
    calls = Coordinator()
    assert calls.acquire_helpers("hear", "long", 9, 4) == 3
    assert calls.acquire_helpers("look", "long", 2, 2) == 1
    assert calls.acquire_helpers("hear", "second", 9, 4) == 0
    assert calls.acquire_helpers("hear", "long", 3, 4) == 2
    assert calls.acquire_helpers("hear", "second", 9, 4) == 0
    calls.release_helpers("hear", "long")
    assert calls.acquire_helpers("hear", "second", 9, 4) == 3
    calls.release_helpers("hear", "never there")


@given(st.lists(st.tuples(videos, st.integers(0, 9), st.booleans()), max_size=40))
def test_helpers_are_within_the_limit_once_every_video_has_asked_again(
    asked: list[tuple[str, int, bool]],
) -> None:
    calls, there = Coordinator(), dict[str, int]()
    for video, wanted, over in asked:
        if over:
            calls.release_helpers("hear", video)
            there.pop(video, None)
        else:
            there[video] = calls.acquire_helpers("hear", video, wanted, MOST)
    there = {
        video: calls.acquire_helpers("hear", video, helpers, MOST)
        for video, helpers in there.items()
    }
    assert sum(1 + helpers for helpers in there.values()) <= MOST
