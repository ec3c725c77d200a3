"""Resources of stages, and of workers that stages share."""

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


def test_a_single_number_is_a_pool_of_fixed_size() -> None:
    assert (Hardware(workers=3).least, Hardware(workers=3).max_workers) == (3, 3)


@given(kinds, st.integers(1, 64))
def test_rows_of_local_models_get_one_worker_per_core(hard: Hardware, cores: int) -> None:
    single = hard.one_row_per_worker(cores)
    assert single.concurrency == 1
    assert single.least == hard.least
    assert hard.max_workers <= single.max_workers <= max(hard.max_workers, cores)
    assert single.max_workers <= hard.max_workers * hard.concurrency
    assert single.max_workers == min(
        hard.max_workers * hard.concurrency, max(hard.max_workers, cores)
    )


def test_a_pool_of_tpu_workers_keeps_its_size() -> None:
    single = Hardware(workers=2, tpus=4, concurrency=64).one_row_per_worker(112)
    assert (single.least, single.max_workers, single.concurrency) == (2, 2, 1)
    single.check("cluster.stages.grade")


@given(st.lists(kinds, min_size=1, max_size=4))
def test_shared_workers_have_the_greater_of_each_resource(asked: list[Hardware]) -> None:
    shared = functools.reduce(Hardware.merged_with, asked)
    for field in ("least", "max_workers", "cpus", "gpus", "concurrency"):
        assert getattr(shared, field) == max(getattr(each, field) for each in asked)
    shared.check("cluster.stages.look")
