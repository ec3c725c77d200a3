"""CAM++ and its features in numpy give what PyTorch and transformers give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mustsee.nn import campplus
from mustsee.nn.fbank import log_mel

GROWTH, HIDDEN = 4, 8  # channels that a layer adds, and within it
RNG = np.random.default_rng(0)


def random_tensors() -> dict[str, np.ndarray]:
    """Tensors under the network's names, with few channels."""
    tensors: dict[str, np.ndarray] = {}

    def conv(name: str, *shape: int, bias: bool = False) -> None:
        tensors[f"{name}.weight"] = RNG.normal(0, np.prod(shape[1:]) ** -0.5, shape)
        if bias:
            tensors[f"{name}.bias"] = RNG.normal(0, 1, shape[0])

    def norm(name: str, channels: int, *, affine: bool = True) -> None:
        tensors[f"{name}.running_mean"] = RNG.normal(0, 1, channels)
        tensors[f"{name}.running_var"] = RNG.uniform(0.5, 2, channels)
        if affine:
            tensors[f"{name}.weight"] = RNG.uniform(0.5, 2, channels)
            tensors[f"{name}.bias"] = RNG.normal(0, 1, channels)

    conv("head.conv1", 2, 1, 3, 3)
    conv("head.conv2", 2, 2, 3, 3)
    for name in ("head.bn1", "head.bn2"):
        norm(name, 2)
    for block in ("layer1.0", "layer1.1", "layer2.0", "layer2.1"):
        for part in "12":
            conv(f"head.{block}.conv{part}", 2, 2, 3, 3)
            norm(f"head.{block}.bn{part}", 2)
        if block.endswith("0"):
            conv(f"head.{block}.shortcut.0", 2, 2, 1, 1)
            norm(f"head.{block}.shortcut.1", 2)
    channels = 6
    conv("xvector.tdnn.linear", channels, 20, 5)
    norm("xvector.tdnn.nonlinear.batchnorm", channels)
    for block, (layers, _) in enumerate(campplus.BLOCKS, 1):
        for layer in range(1, layers + 1):
            name = f"xvector.block{block}.tdnnd{layer}"
            norm(f"{name}.nonlinear1.batchnorm", channels)
            conv(f"{name}.linear1", HIDDEN, channels, 1)
            norm(f"{name}.nonlinear2.batchnorm", HIDDEN)
            conv(f"{name}.cam_layer.linear_local", GROWTH, HIDDEN, 3)
            conv(f"{name}.cam_layer.linear1", HIDDEN // 2, HIDDEN, 1, bias=True)
            conv(f"{name}.cam_layer.linear2", GROWTH, HIDDEN // 2, 1, bias=True)
            channels += GROWTH
        norm(f"xvector.transit{block}.nonlinear.batchnorm", channels)
        conv(f"xvector.transit{block}.linear", channels // 2, channels, 1)
        channels //= 2
    norm("xvector.out_nonlinear.batchnorm", channels)
    conv("xvector.dense.linear", 5, 2 * channels, 1)
    norm("xvector.dense.nonlinear.batchnorm", 5, affine=False)
    return tensors


def by_torch(features: np.ndarray, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The network in PyTorch's operations, in double precision."""
    torch = pytest.importorskip("torch")
    ops = torch.nn.functional
    w = {k: torch.from_numpy(v) for k, v in arrays.items()}

    def norm(x: Any, name: str) -> Any:
        names = (f"{name}.{part}" for part in ("running_mean", "running_var", "weight", "bias"))
        return ops.batch_norm(x, *(w.get(n) for n in names))

    def conv(x: Any, name: str, stride: Any = 1, dilation: int = 1) -> Any:
        weight = w[f"{name}.weight"]
        edge = weight.shape[-1] // 2 * dilation
        if weight.dim() == 4:
            return ops.conv2d(x, weight, stride=(stride, 1), padding=edge)
        return ops.conv1d(
            x, weight, w.get(f"{name}.bias"), stride=stride, padding=edge, dilation=dilation
        )

    def residual(x: Any, name: str, stride: int) -> Any:
        y = norm(conv(x, f"{name}.conv1", stride), f"{name}.bn1").relu()
        y = norm(conv(y, f"{name}.conv2"), f"{name}.bn2")
        if stride == 2:
            x = norm(conv(x, f"{name}.shortcut.0", 2), f"{name}.shortcut.1")
        return (x + y).relu()

    x = norm(conv(torch.from_numpy(features.T)[None, None], "head.conv1"), "head.bn1").relu()
    for layer in (1, 2):
        x = residual(residual(x, f"head.layer{layer}.0", 2), f"head.layer{layer}.1", 1)
    x = norm(conv(x, "head.conv2", 2), "head.bn2").relu().flatten(1, 2)
    x = norm(conv(x, "xvector.tdnn.linear", 2), "xvector.tdnn.nonlinear.batchnorm").relu()
    for block, (layers, dilation) in enumerate(campplus.BLOCKS, 1):
        for layer in range(1, layers + 1):
            name = f"xvector.block{block}.tdnnd{layer}"
            h = conv(norm(x, f"{name}.nonlinear1.batchnorm").relu(), f"{name}.linear1")
            h = norm(h, f"{name}.nonlinear2.batchnorm").relu()
            segments = ops.avg_pool1d(h, 100, 100, ceil_mode=True).repeat_interleave(100, dim=2)
            context = h.mean(2, keepdim=True) + segments[:, :, : h.shape[2]]
            context = conv(context, f"{name}.cam_layer.linear1").relu()
            mask = conv(context, f"{name}.cam_layer.linear2").sigmoid()
            local = conv(h, f"{name}.cam_layer.linear_local", 1, dilation)
            x = torch.cat([x, local * mask], 1)
        x = norm(x, f"xvector.transit{block}.nonlinear.batchnorm").relu()
        x = conv(x, f"xvector.transit{block}.linear")
    x = norm(x, "xvector.out_nonlinear.batchnorm").relu()
    x = torch.cat([x.mean(2), x.std(2, unbiased=True)], 1)[:, :, None]
    x = norm(conv(x, "xvector.dense.linear"), "xvector.dense.nonlinear.batchnorm")
    return x[0, :, 0].numpy()


@pytest.mark.parametrize("frames", [7, 198, 200, 431])  # up to three segments of context
def test_the_network_gives_what_torch_gives(frames: int) -> None:
    tensors = random_tensors()
    features = RNG.normal(0, 1, (frames, 80))
    ours = campplus.VoiceNetwork(tensors)(features.astype(np.float32))
    np.testing.assert_allclose(ours, by_torch(features, tensors), rtol=2e-3, atol=2e-3)


def test_features_are_kaldis() -> None:
    from transformers.audio_utils import mel_filter_bank, spectrogram, window_function

    samples = (RNG.normal(0, 0.1, 8000) + 0.2).astype(np.float32)
    bank = mel_filter_bank(
        num_frequency_bins=257, num_mel_filters=80, min_frequency=20, max_frequency=8000,
        sampling_rate=16_000, mel_scale="kaldi", triangularize_in_mel_space=True,
    )  # fmt: skip
    theirs = spectrogram(
        samples * 32768, window_function(400, "povey", periodic=False), 400, 160, fft_length=512,
        power=2.0, center=False, preemphasis=0.97, mel_filters=bank, log_mel="log",
        mel_floor=1.192092955078125e-07, remove_dc_offset=True,
    )  # fmt: skip
    np.testing.assert_allclose(log_mel(samples, scale=32768), theirs.T, atol=2e-3)
    assert log_mel(samples[:399]).shape == (0, 80)
