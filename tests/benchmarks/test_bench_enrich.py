"""The traces that a writer makes of sound questions on drawn videos: kept where they are sound,
found where a fault was planted, through the part `enrich` and the gateway.
"""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.enrich import SOUND, TRACES, EnrichBench, EnrichedResult

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[EnrichedResult]:
    found, calls = EnrichBench(journeys=2, noise=0.05).try_settings(
        tmp_path_factory.mktemp("proving")
    )
    assert calls > 1
    return found


def test_planted_faults_of_traces_are_found(made: list[EnrichedResult]) -> None:
    planted = Counter(m.fault for m in made)
    assert set(planted) == {SOUND, *TRACES}, planted
    wrong = [m for m in made if not m.is_as_known]
    assert len(wrong) <= 1, wrong  # noise turns both looks at a step in one of 400
    assert all(m.question.drop is None for m in made)  # the question stays, whatever its trace
