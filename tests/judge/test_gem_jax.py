"""The Gemma judge in JAX gives the same readings as the one on transformers, in any batch."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from actors.judge.gem_jax import GemJax
from mustsee.errors import UserError
from mustsee.judge.judge import ForwardPass, Judge, Record
from mustsee.judge.prompt import triple
from tests.judge.test_gem import ITEMS, gemma, readings
from tests.support import tiny_gemma

pytestmark = pytest.mark.slow

pytest.importorskip("torch")
TRIPLES = [triple(i.question, i.candidate, i.references[0])[0] for i in ITEMS]


@pytest.fixture(scope="module", params=["2 causal", "2 prefix", "3 causal", "3 prefix"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return gemma(tmp_path_factory.mktemp(request.param.replace(" ", "")), request.param)


def scores(config: GemJax) -> list[ForwardPass]:
    engine = config.open()
    return engine.score([engine.prepare(triple) for triple in TRIPLES])


def test_readings_equal_those_of_transformers(folder: Path) -> None:
    engine = GemJax(path=str(folder), lengths=(128, 512), batches=(1, 4)).open()
    prepared = [engine.prepare(triple) for triple in TRIPLES]
    theirs = readings(folder, ITEMS)
    assert len({round(r.logit_diff, 3) for r in theirs}) == len(ITEMS)
    for ours in (
        engine.score(prepared),
        [engine.score([one])[0] for one in prepared],
        engine.score(prepared[::-1])[::-1],
    ):
        for one, other in zip(ours, theirs, strict=True):
            assert one.p == pytest.approx(other.p, abs=1e-3)
            assert one.logit_diff == pytest.approx(other.logit_diff, abs=1e-3)
            assert one.label_mass == pytest.approx(other.label_mass, abs=1e-3)


def test_every_batch_has_a_listed_shape_within_the_budget(tmp_path: Path) -> None:
    path = str(tiny_gemma.checkpoint(tmp_path / "a"))
    engine = GemJax(
        path=path, limit=300, lengths=(100, 200, 900), batches=(2, 1), budget=300
    ).open()
    assert engine.shapes == [(1, 100), (1, 200), (1, 300), (2, 100)]
    for count in range(1, 6):
        for longest in (40, 100, 101, 299):
            lengths = sorted([30] * (count - 1) + [longest])
            size, length = engine._shape(lengths)
            assert (size, length) in engine.shapes
            assert length >= max(lengths[:size])
    assert engine.score([]) == []


def test_a_record_of_the_other_engine_is_refused(tmp_path: Path) -> None:
    config = GemJax(path=str(tiny_gemma.checkpoint(tmp_path / "a")), lengths=(), batches=(1,))
    engine = config.open()
    record = Record(threshold=0.5, identity=engine.identity, dev="d")
    assert not math.isnan(Judge(engine, record).score(ITEMS[:1])[0].score)
    other = dataclasses.replace(engine.identity, engine="gem")
    with pytest.raises(UserError, match="engine is 'gem_jax', calibrated was 'gem'"):
        Judge(engine, dataclasses.replace(record, identity=other))
    with pytest.raises(UserError, match="dtype 'int8'"):
        scores(dataclasses.replace(config, dtype="int8"))
    with pytest.raises(UserError, match="no checkpoint"):
        scores(dataclasses.replace(config, path=str(tmp_path / "nothing")))


SHARED = """
import json, sys
import jax
from flax import nnx
from tests.judge.test_gem_jax import TRIPLES
from actors.judge.gem_jax import GemJax

engine = GemJax(path=sys.argv[1], lengths=(128,), batches=(1, 4)).open()
read = engine.score([engine.prepare(one) for one in TRIPLES])
bytes_of = {
    path[-1]: [[shard.data.nbytes for shard in leaf[...].addressable_shards], leaf[...].nbytes]
    for path, leaf in nnx.to_flat_state(engine.state)
}
print(json.dumps({
    "devices": jax.device_count(), "bytes": bytes_of,
    "read": [[one.logit_diff, one.label_mass] for one in read],
}))
"""


@pytest.mark.parametrize("devices", [2, 4])
def test_devices_share_the_weights_and_read_as_one_does(devices: int, tmp_path: Path) -> None:
    """Four devices have the keys and values of two heads whole, and share the other matrices."""
    folder = gemma(tmp_path, "2 prefix")
    flags = f"--xla_force_host_platform_device_count={devices}"
    done = subprocess.run(
        [sys.executable, "-c", SHARED, str(folder)],
        env={**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["devices"] == devices
    alone = scores(GemJax(path=str(folder), lengths=(128,), batches=(1, 4)))
    for (difference, mass), one in zip(found["read"], alone, strict=True):
        assert difference == pytest.approx(one.logit_diff, abs=1e-4)
        assert mass == pytest.approx(one.label_mass, abs=1e-4)
    shared = {"query", "out", "gate", "up", "down"} | ({"key", "value"} if devices == 2 else set())
    for name, (shards, whole) in found["bytes"].items():
        if name in shared:
            assert shards == [whole // devices] * devices
        elif name != "embedding":
            assert shards == [whole] * devices
    each = [sum(sizes[i] for sizes, _ in found["bytes"].values()) for i in range(devices)]
    assert max(each) < sum(whole for _, whole in found["bytes"].values())
