"""The settings of a training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from omegaconf import MISSING, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from mustsee.errors import UserError


@dataclass(kw_only=True)
class TrainSettings:
    """The settings of a training, each a `key=value`."""

    model: str = MISSING
    """Folder or Hugging Face id of a model of AutoModelForImageTextToText with a chat template."""
    out: str = MISSING
    """Folder of the results."""
    data: str | None = None
    """Chat records; null: the model is asked as it is."""
    videos: str | None = None
    """Where the training videos are, as `videos=` of jobs; null: where the rows say."""
    questions: str = MISSING
    """Held-out questions in any layout that `mustsee evaluate` reads."""
    held_out: str | None = None
    """Where their videos are; null: where the questions say."""
    shared_videos: bool = False
    """Allow questions on videos that are trained on."""
    steps: int = 500
    """Steps; the same number for sets that are compared."""
    batch: int = 16
    """Rows of a step."""
    rate: float = 1e-4
    """Largest step size; it grows over the first 3 % of the steps and falls to 0 as a cosine."""
    rank: int = 16
    """Rank of the adapters."""
    frames: int = 8
    """Frames of a video."""
    longest: int = 384
    """Longer side of a frame, pixels."""
    seed: int = 0
    """Seed of the order of the rows and of the adapters."""
    dtype: str = "auto"
    """Numeric type: bfloat16, float16, float32; auto: bfloat16 on a GPU, else float32."""
    device: str = "auto"
    """Device: auto, cuda, cpu."""
    max_tokens: int = 64
    """Output tokens of an answer, at most."""
    save: int = 50
    """Steps from one checkpoint to the next."""
    readers: int = 4
    """Threads that decode videos ahead."""

    def check(self) -> None:
        """Raise UserError for a value out of range."""
        for key in ("batch", "rank", "frames", "longest", "max_tokens", "save", "readers", "steps"):
            if getattr(self, key) < 1:
                raise UserError(f"{key}={getattr(self, key)!r}: expected at least 1")
        if not self.rate > 0:
            raise UserError(f"rate={self.rate!r}: expected more than 0")


def read_settings(arguments: Sequence[str]) -> TrainSettings:
    """Return the settings of a command line of `key=value`."""
    try:
        given = OmegaConf.from_dotlist(list(arguments))
        settings = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(TrainSettings), given))
    except OmegaConfBaseException as error:
        keys = ", ".join(f.name for f in fields(TrainSettings))
        raise UserError(f"{str(error).splitlines()[0]}; keys: {keys}") from error
    assert isinstance(settings, TrainSettings)
    settings.check()
    return settings
