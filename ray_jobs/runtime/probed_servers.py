"""The probes (`mustsee probe`) of the servers that an evaluation asks, and which of their faults
concern what it sends.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actors.answer.llm import AnswerLlm
from actors.calls.gateway import HasSubstitutes, MeteredModel
from actors.llm.openai import OpenAI
from actors.part import LlmConfig, Part
from mustsee.errors import UserError
from mustsee.files.store import Store
from mustsee.server_probe.keep import SentMaterial, find_in_store, read_probe, warn
from mustsee.server_probe.record import FILE
from mustsee.text import printable


@dataclass(frozen=True, kw_only=True)
class EvaluatedProbe:
    """A probe of a server that an evaluation asks. `warnings`: its faults that concern what the
    evaluation sends. `name`: of its file in the output folder.
    """

    record: Mapping[str, Any]
    warnings: Sequence[str]
    name: str = FILE

    @property
    def lines(self) -> list[str]:
        """A line for each warning."""
        place = f"{self.record['model']} at {self.record['base_url']}"
        taken = self.record["taken"][:10]
        return [printable(f"probe of {place}, {taken}: {warning}") for warning in self.warnings]

    def show_warnings(self) -> None:
        """Print the warnings, before anything is paid for."""
        for line in self.lines:
            print(f"mustsee: warning: {line}", file=sys.stderr, flush=True)

    def write(self, folder: Path) -> dict[str, Any]:
        """Write the probe beside the results, and return what results.json says of it."""
        text = json.dumps(self.record, indent=2, ensure_ascii=False)
        (folder / self.name).write_text(text + "\n", encoding="utf-8")
        about = {key: self.record[key] for key in ("model", "base_url", "taken")}
        return {"file": self.name, **about, "warnings": list(self.warnings)}


def evaluated_probes(answer: Part, given: str | None, store: str) -> list[EvaluatedProbe]:
    """Return the probes of the model under test and of its fallbacks: that of the folder `given`
    for the first, those in the store for the others. Raises UserError for a probe of another model.
    """
    models = _models(answer)
    if given is not None and not models:
        raise UserError(f"server_probe={given!r}: answer= asks no endpoint here; leave it out")
    probes: list[EvaluatedProbe] = []
    for number, model in enumerate(models):
        endpoint = model.endpoint
        record = (
            read_probe(given, endpoint.model, endpoint.base_url)
            if given is not None and number == 0
            else find_in_store(Store(store), endpoint.model, endpoint.base_url)
        )
        if record is not None:
            name = f"probe_{len(probes) + 1}.json" if probes else FILE
            warnings = list(warn(record, sent_material(answer, model)))
            probes.append(EvaluatedProbe(record=record, warnings=warnings, name=name))
    return probes


def _models(answer: Part) -> list[Any]:
    """The endpoints that an answerer asks: its model and the fallbacks."""
    llm: LlmConfig | None = answer.llm if isinstance(answer, AnswerLlm) else None
    if not isinstance(llm, MeteredModel):
        return []
    return list(llm.ways) if isinstance(llm, HasSubstitutes) else [llm]


def sent_material(answer: Part, model: object) -> SentMaterial:
    """Return what an answerer sends to a model of each video."""
    if not isinstance(answer, AnswerLlm) or not answer.looks:
        return SentMaterial()
    see, rag = answer.see, answer.rag
    part = model.video.part if isinstance(model, OpenAI) else ""
    if answer.watches:
        return SentMaterial(video=True, sound=see.listens, part=part)
    if isinstance(model, OpenAI) and model.frames_as == "clip":
        return SentMaterial(video=True, part=part)
    if rag.on:
        return SentMaterial(images=rag.clips * rag.per_clip)
    if see.condition == "one_frame":
        return SentMaterial(images=1)
    return SentMaterial(images=see.frames or see.most)
