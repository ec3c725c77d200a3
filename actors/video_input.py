"""Which configured models take frames or videos, and how they are given them."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from actors.part import LlmConfig
from mustsee.calls.llm import VideoInput
from mustsee.store import Store, identity
from mustsee.verify.conditions.watch import VideoPreparer


@runtime_checkable
class TakesImages(Protocol):
    """A configured model that says whether it takes pictures; one that does not say so does."""

    @property
    def looks(self) -> bool: ...


@runtime_checkable
class TakesVideo(Protocol):
    """A configured model that says whether it takes videos, and which (`video`); one that does not
    say so takes none.
    """

    @property
    def watches(self) -> bool: ...

    @property
    def video(self) -> VideoInput: ...


def model_identity(llm: LlmConfig) -> list[Any]:
    """What counts in the store's key of a part that may show videos to a model."""
    return [llm.identity, identity(video_input_of(llm))]


def video_input_of(llm: LlmConfig | None, store: Store | None = None) -> VideoPreparer | None:
    """How a model is given videos; None where it takes none."""
    return VideoPreparer(llm.video, store) if isinstance(llm, TakesVideo) and llm.watches else None
