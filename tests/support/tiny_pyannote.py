"""A pyannote pipeline that needs no token: the segmentation of whisperx's wheel, random voices."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import yaml

VOICE = 512  # values of a voice


def diarizer(
    folder: Path,
    *,
    segmentation: str = "$model/segmentation",
    clustering: str = "AgglomerativeClustering",
) -> Path:
    """Write a pipeline to a folder, and return it. `segmentation`: another than that of the wheel,
    such as a gated one.
    """
    target = folder / "diarizer"
    target.mkdir(parents=True)
    _segmentation(target / "segmentation")
    _voices(target / "embedding")
    _plda(target / "plda")
    thresholds: dict[str, Any] = {"segmentation": {"threshold": 0.5, "min_duration_off": 0.0}}
    if clustering == "AgglomerativeClustering":
        thresholds["clustering"] = {"method": "centroid", "min_cluster_size": 1, "threshold": 0.7}
    parameters = {
        "segmentation": segmentation,
        "embedding": "$model/embedding",
        "plda": "$model/plda",
        "clustering": clustering,
    }
    name = "pyannote.audio.pipelines.SpeakerDiarization"
    config = {"pipeline": {"name": name, "params": parameters}, "params": thresholds}
    (target / "config.yaml").write_text(yaml.safe_dump(config))
    return target


def _segmentation(folder: Path) -> None:
    folder.mkdir()
    spec = importlib.util.find_spec("whisperx")
    assert spec is not None
    assert spec.origin is not None
    weights = Path(spec.origin).parent / "assets/pytorch_model.bin"
    (folder / "pytorch_model.bin").symlink_to(weights)


def _voices(folder: Path, seed: int = 0) -> None:
    """A random x-vector network as pyannote keeps its models."""
    import torch
    from pyannote.audio.core.task import Problem, Resolution, Specifications
    from pyannote.audio.models.embedding import XVectorMFCC

    folder.mkdir()
    torch.manual_seed(seed)
    model = XVectorMFCC(dimension=VOICE)
    model.specifications = Specifications(
        problem=Problem.REPRESENTATION, resolution=Resolution.CHUNK, duration=5.0, classes=["a"]
    )
    checkpoint = {
        "state_dict": model.state_dict(),
        "hyper_parameters": dict(model.hparams),
        "pytorch-lightning_version": "2.0.0",
    }
    model.on_save_checkpoint(checkpoint)
    torch.save(checkpoint, folder / "pytorch_model.bin")


def _plda(folder: Path, dimension: int = 128) -> None:
    """The tables of a clustering that is not used here, but that the pipeline loads."""
    folder.mkdir()
    np.savez(
        folder / "xvec_transform.npz",
        mean1=np.zeros(VOICE),
        mean2=np.zeros(dimension),
        lda=np.eye(VOICE, dimension),
    )
    scale = np.linspace(1.0, 2.0, dimension)
    np.savez(folder / "plda.npz", mu=np.zeros(dimension), tr=np.eye(dimension), psi=scale)
