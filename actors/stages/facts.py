"""`ask` by facts: lists facts, verifies them, and composes questions of them (`mustsee.facts`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from actors.part import AskOptions, LlmConfig, Opened, RunContext
from mustsee.facts.recipe import ask_facts
from mustsee.facts.settings import FactSettings
from mustsee.facts.work import Roles
from mustsee.files.store import keyed_by
from mustsee.nn.weights import MINILM
from mustsee.records import Video, is_rules


@dataclass(frozen=True, kw_only=True)
class AskFacts(AskOptions):
    """Writes the row's facts, claims and questions, or the reason why there are none."""

    version: ClassVar[str] = "5"
    needs: ClassVar[tuple[str, ...]] = ("uri", "duration")
    writes: ClassVar[tuple[str, ...]] = (
        "facts", "listed", "claims", "questions", "forms", "missing", "unasked",
    )  # fmt: skip

    settings: FactSettings
    writer: LlmConfig
    """Model that lists facts."""
    verifier: LlmConfig
    """Vision model that looks at them."""
    guesser: LlmConfig
    """Model that ranks answers without the video; vet.guesser measures."""
    guesser_2: LlmConfig | None = keyed_by(
        lambda part: part.roles["guesser_2"].identity if "guesser_2" in part.roles else None,
        default=None,
    )
    """Second model that guesses questions whose options are claims, where deep.choices is on;
    another one than guesser."""
    encoder: str = MINILM
    """Sentence model, a folder or `package:NAME/FOLDER`."""

    @property
    def reads(self) -> tuple[str, ...]:
        return self.settings.reads

    @property
    def roles(self) -> dict[str, LlmConfig]:
        roles = {"writer": self.writer, "verifier": self.verifier, "guesser": self.guesser}
        deep = self.settings.deep
        if self.guesser_2 is not None and deep is not None and deep.choices is not None:
            roles["guesser_2"] = self.guesser_2
        return roles

    @property
    def prompt_names(self) -> tuple[str, ...]:
        return (self.settings.area,)

    def for_rows(self, names: Sequence[str]) -> AskFacts:
        """The part for a run of some rows: it spreads numbers of questions in all over them."""
        return replace(self, settings=self.settings.for_videos(names))

    def open(self, run: RunContext) -> Opened:
        from mustsee.nn.bert import Encoder

        roles = {role: self.open_asker(llm, run) for role, llm in self.roles.items()}
        model, lock = Encoder.load(self.encoder), Lock()
        crop = not is_rules(self.verifier.identity)  # Rules measure bars.

        def encode(texts: Sequence[str]) -> NDArray[np.float32]:
            places = {text: n for n, text in enumerate(dict.fromkeys(texts))}
            with lock:  # A fact of a long video is named in each of its moments.
                vectors = model.encode(list(places))
            return vectors[[places[text] for text in texts]]

        async def ask(video: Video) -> Video:
            own = {role: asker.with_provenance() for role, asker in roles.items()}
            frames = run.frames(video, crop=crop)
            return await ask_facts(video, Roles(**own), frames, encode, self.settings, run.count)

        return ask
