"""How configured models are given videos."""

from __future__ import annotations

from typing import Any

from actors.part import LlmConfig, capabilities_of
from mustsee.files.store import Store, identity
from mustsee.verify.conditions.video_frames import VideoPreparer


def model_identity(llm: LlmConfig) -> list[Any]:
    """What counts in the store's key of a part that may show videos to a model."""
    return [llm.identity, identity(video_input_of(llm))]


def video_input_of(llm: LlmConfig, store: Store | None = None) -> VideoPreparer | None:
    """What prepares videos for a model, keeping recoded clips in `store`; None: it takes none."""
    video = capabilities_of(llm).video
    return VideoPreparer(video, store) if video is not None else None
