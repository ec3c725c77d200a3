"""What a writer makes of sound questions on drawn videos: kept where it is sound, found where a
fault was planted, through the part `enrich` and the gateway.
"""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.enrich import EnrichBench, EnrichedResult
from benchmarks.enrich_model import CONSEQUENCES, PARAPHRASES, SOUND, TRACES, TWINS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[EnrichedResult]:
    found, calls = EnrichBench(journeys=2, noise=0.05).try_settings(
        tmp_path_factory.mktemp("proving")
    )
    assert calls > 1
    return found


def test_planted_faults_of_twins_are_found(made: list[EnrichedResult]) -> None:
    some = [m for m in made if m.what == "twin"]
    planted = Counter(m.fault for m in some)
    assert planted.keys() <= {SOUND, *TWINS}
    assert len(planted) > 3, planted
    assert not [m for m in some if not m.is_as_known]
    assert sum(m.is_guessed for m in some) <= 0.2 * len(some)
    assert all(m.result and m.result.sibling_of == m.source.question_id for m in some if m.is_kept)


@pytest.mark.parametrize(
    ("what", "faults"), [("paraphrase", PARAPHRASES), ("consequence", CONSEQUENCES)]
)
def test_planted_faults_of_siblings_are_found(
    made: list[EnrichedResult], what: str, faults: tuple[str, ...]
) -> None:
    some = [m for m in made if m.what == what]
    planted = Counter(m.fault for m in some)
    assert set(planted) == {SOUND, *faults}, planted
    assert not [m for m in some if not m.is_as_known]
    assert all(m.result and m.result.group == m.source.question_id for m in some)
    assert all(m.source.group == m.source.question_id for m in some if m.is_kept)


def test_planted_faults_of_traces_are_found(made: list[EnrichedResult]) -> None:
    some = [m for m in made if m.what == "trace"]
    planted = Counter(m.fault for m in some)
    assert set(planted) == {SOUND, *TRACES}, planted
    wrong = [m for m in some if not m.is_as_known]
    assert len(wrong) <= 1, wrong  # noise turns both looks at a step in one of 400
    assert all(m.source.drop is None for m in some)  # the question stays, whatever its trace
