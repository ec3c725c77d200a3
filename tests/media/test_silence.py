"""Sound is cut in quiet places, without losing any."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.media.sound import Sound
from mustsee.media.speech import quiet_cuts


@given(
    loud=st.lists(st.floats(0, 58), max_size=20),
    longest=st.floats(5, 40),
    stretch=st.floats(0.5, 30),
    gap=st.floats(1, 100),
)
def test_chunks_keep_all_sound_and_are_cut_where_it_is_quiet(loud, longest, stretch, gap):
    rate = 200
    samples = np.zeros(60 * rate, np.float32)
    for at in loud:
        samples[round(at * rate) : round((at + 0.3) * rate)] = 0.5
    size = max(1, round(stretch * rate))
    sounds = [Sound(i / rate, samples[i : i + size]) for i in range(0, len(samples), size)]
    later = [Sound(s.start + 60 + gap, s.samples) for s in sounds]
    chunks = list(quiet_cuts([*sounds, *later], rate, longest))
    assert np.array_equal(np.concatenate([s.samples for s in chunks]), np.tile(samples, 2))
    assert all(len(s.samples) <= round(longest * rate) for s in chunks)
    for one, two in pairwise(chunks):
        end = one.start + len(one.samples) / rate
        assert two.start == pytest.approx(end, abs=1e-6) or end == pytest.approx(60.0)
    if len(loud) * 0.3 < longest / 3 / 20:
        cuts = [s for s in chunks if s.start not in (0.0, pytest.approx(60 + gap))]
        assert all(s.samples[0] == 0 for s in cuts)
