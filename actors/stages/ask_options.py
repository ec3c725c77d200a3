"""`AskOptions`: the fields that every part which asks a model for text has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from actors.part import LlmConfig, RunContext
from mustsee.calls.llm import Asker, Sampling
from mustsee.files.store import keyed_by
from mustsee.prompts import ENGLISH, Prompts
from mustsee.verify.conditions.video_frames import VideoPreparer

SAMPLING = Sampling()


def _if_asking(name: str) -> Callable[[Any], Any]:
    """The key of an option: options of a part without a model do not change its rows."""
    return lambda part: getattr(part, name) if part.prompt_names else None


@dataclass(frozen=True, kw_only=True)
class AskOptions(ABC):
    """What every part that asks a model has in common."""

    prompts: str | None = keyed_by(
        lambda part: part.load_prompts().digest(*part.prompt_names) if part.prompt_names else None,
        default=None,
    )
    """Another folder of prompts; null: the project's own."""
    language: str = keyed_by(_if_asking("language"), default=ENGLISH)
    """Language of the generated text."""
    sampling: Sampling = keyed_by(_if_asking("sampling"), default=SAMPLING)
    tries: int = keyed_by(_if_asking("tries"), default=3)
    """Attempts at one call while replies are unparseable; then the window, look or ranking is
    left out."""

    @property
    @abstractmethod
    def prompt_names(self) -> tuple[str, ...]:
        """The prompts that are rendered, or folders of them; none where no model is asked."""

    def load_prompts(self) -> Prompts:
        """The prompts in `prompts`, in `language`."""
        return prompts_in(self.prompts, self.language)

    def open_asker(
        self, llm: LlmConfig, run: RunContext, watch: VideoPreparer | None = None
    ) -> Asker:
        """A model connected for the run, asked with these options."""
        return Asker(
            llm=run.llm(llm),
            prompts=self.load_prompts(),
            sampling=self.sampling,
            tries=self.tries,
            retries_stored=run.retry_problems,
            watch=watch,
        )


def prompts_in(folder: str | None, language: str) -> Prompts:
    """The prompts in a folder; None: the project's own, wherever this process has it."""
    return Prompts(language=language) if folder is None else Prompts(folder, language)
