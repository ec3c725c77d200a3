"""`AskOptions`: the fields that every part which asks a model for text has in common."""

from __future__ import annotations

from dataclasses import dataclass

from actors.part import LlmConfig, RunContext
from mustsee.calls.llm import Asker, Sampling
from mustsee.prompts import ENGLISH, Prompts
from mustsee.verify.conditions.watch import VideoPreparer

SAMPLING = Sampling()


@dataclass(frozen=True, kw_only=True)
class AskOptions:
    """`prompts`: another folder of prompts; null: the project's own. `language`: language of the
    generated text. `tries`: attempts at one prompt while replies are unparseable.
    """

    prompts: str | None = None
    language: str = ENGLISH
    sampling: Sampling = SAMPLING
    tries: int = 3

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
            watch=watch,
        )


def prompts_in(folder: str | None, language: str) -> Prompts:
    """The prompts in a folder; None: the project's own, wherever this process has it."""
    return Prompts(language=language) if folder is None else Prompts(folder, language)
