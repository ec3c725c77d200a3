"""Workers that stages share have the more of what each asks for."""

import functools

from hypothesis import given
from hypothesis import strategies as st

from actors.engine.hardware import Hardware

sizes = st.one_of(
    st.integers(1, 9),
    st.tuples(st.integers(1, 9), st.integers(0, 9)).map(lambda p: {"min": p[0], "max": sum(p)}),
)
kinds = st.builds(
    Hardware,
    workers=sizes,
    cpus=st.floats(0, 4),
    gpus=st.sampled_from([0.0, 0.5, 1.0]),
    concurrency=st.integers(1, 64),
)


def test_a_number_is_a_pool_that_stays() -> None:
    assert (Hardware(workers=3).least, Hardware(workers=3).max_workers) == (3, 3)


@given(kinds, st.integers(1, 64))
def test_rows_that_compute_are_apart_as_far_as_there_are_cores(hard: Hardware, cores: int) -> None:
    apart = hard.one_row_per_worker(cores)
    assert apart.concurrency == 1
    assert apart.least == hard.least
    assert hard.max_workers <= apart.max_workers <= max(hard.max_workers, cores)
    assert apart.max_workers <= hard.max_workers * hard.concurrency
    assert apart.max_workers == min(
        hard.max_workers * hard.concurrency, max(hard.max_workers, cores)
    )


@given(st.lists(kinds, min_size=1, max_size=4))
def test_no_stage_has_less_than_it_asked_for(asked: list[Hardware]) -> None:
    shared = functools.reduce(Hardware.merged_with, asked)
    for field in ("least", "max_workers", "cpus", "gpus", "concurrency"):
        assert getattr(shared, field) == max(getattr(each, field) for each in asked)
    shared.check("cluster.stages.look")
