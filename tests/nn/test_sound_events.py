"""The sound event network does what its layers say, and refuses other files."""

import struct

import numpy as np
import pytest

from mustsee.errors import UserError
from mustsee.nn.sound_events import HALF_FLOATS, EventNetwork, log_mel

RNG = np.random.default_rng(0)
DENSE, BARE, MEMORY = "dense", "bare", "memory"


def layers() -> list[tuple[str, list[np.ndarray]]]:
    """Random layers in the file's order."""

    def dense(outputs: int, inputs: int) -> list[np.ndarray]:
        return [RNG.normal(0, inputs**-0.5, (outputs, inputs)), RNG.normal(0, 0.3, outputs)]

    def memory() -> tuple[str, list[np.ndarray]]:
        return MEMORY, [RNG.normal(0, 0.1, (128, 20)) for _ in range(2)]

    made = [(DENSE, dense(256, 80)), (DENSE, dense(128, 256)), memory()]
    for _ in range(7):
        made += [(DENSE, dense(256, 128)), (BARE, dense(128, 256)[:1]), memory()]
    return [*made, (DENSE, dense(256, 128)), (DENSE, dense(3, 256))]


def written(
    made: list[tuple[str, list[np.ndarray]]], means: np.ndarray, spreads: np.ndarray
) -> bytes:
    """A file of the layers: the matrices in 16 bits, all else in 32."""
    body = b""
    for kind, arrays in made:
        for array in arrays:
            is_half = array.ndim == 2 and kind != MEMORY
            values = array.astype("<f2" if is_half else "<f4").tobytes()
            body += struct.pack("<I", HALF_FLOATS if is_half else 0) + values
            body += bytes(-len(values) % 4)
    tail = [x.astype("<f4").tobytes() for x in (means, 1 / spreads)]
    header = struct.pack("<4s5I", b"OVAD", 1, 5, len(body), *map(len, tail))
    return header + b"graph" + body + b"".join(tail)


def by_frames(x: np.ndarray, made: list[tuple[str, list[np.ndarray]]]) -> np.ndarray:
    """The network frame by frame, in double precision."""

    def remember(x: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        y = x.copy()
        for t in range(len(x)):
            for tap in range(20):
                if t - 19 + tap >= 0:
                    y[t] += before[:, tap] * x[t - 19 + tap]
                if t + 1 + tap < len(x):
                    y[t] += after[:, tap] * x[t + 1 + tap]
        return y

    def dense(x: np.ndarray, weights: list[np.ndarray]) -> np.ndarray:
        return x @ weights[0].T + (weights[1] if len(weights) > 1 else 0)

    arrays = [a for _, a in made]
    x = np.maximum(dense(np.maximum(dense(x, arrays[0]), 0), arrays[1]), 0)
    x = remember(x, *arrays[2])
    for at in range(3, 24, 3):
        x = x + remember(
            dense(np.maximum(dense(x, arrays[at]), 0), arrays[at + 1]), *arrays[at + 2]
        )
    out = dense(np.maximum(dense(x, arrays[24]), 0), arrays[25])
    return 1 / (1 + np.exp(-out))


def test_the_network_is_that_of_its_file() -> None:
    made = layers()
    means, spreads = RNG.normal(10, 1, 80), RNG.uniform(2, 4, 80)
    content = written(made, means, spreads)
    samples = RNG.normal(0, 0.1, 160 * 60 + 240).astype(np.float32)
    features = (log_mel(samples) - means) / spreads
    ours = EventNetwork(content)(samples)
    assert ours.shape == (60, 3)
    np.testing.assert_allclose(ours, by_frames(features, made), atol=0.02)  # of 16 bits
    assert np.ptp(ours) > 0.1
    assert EventNetwork(content)(samples[:100]).shape == (0, 3)


@pytest.mark.parametrize("extra", [b"", b"1234"])
def test_a_file_of_another_size_is_refused(extra: bytes) -> None:
    content = written(layers(), np.zeros(80), np.ones(80))
    with pytest.raises((UserError, ValueError, struct.error)):
        EventNetwork(content[: len(content) - 4] if not extra else content + extra)
