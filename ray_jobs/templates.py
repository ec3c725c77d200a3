"""CinePile's template induction: question lists to question templates (2.2).

    python -m ray_jobs.templates questions=Q out=O [llm=openai pronouns=llm]

Names become pronouns, repeats are dropped, and the other questions are clustered by their
embeddings. A model writes four templates from ten random questions of each cluster. Review
O/templates.md; `ray_jobs.cinepile templates=O` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from actors.part import LlmConfig
from mustsee.calls.llm import Asker, Sampling
from mustsee.prompts import Prompts
from mustsee.recipes.cinepile.induction import (
    InducedTemplates,
    Induction,
    check_unedited,
    question_lists,
    summary,
    write_output,
)
from mustsee.recipes.cinepile.question_lists import names_in, read_source
from mustsee.recipes.cinepile.templates import distinct, too_specific
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.heartbeat import show_step
from ray_jobs.runtime.run import JobSettings, RunningJob


@dataclass(frozen=True, kw_only=True)
class Templates:
    """`conf/templates.yaml` explains the fields."""

    run: JobSettings
    questions: str | Sequence[Any]
    llm: LlmConfig
    llms: Mapping[str, LlmConfig]
    encoder: str
    perceptual: str | Sequence[Any] = ()
    pronouns: Literal["rules", "llm"] = "rules"
    k: int = 50
    k_perceptual: int = 20
    sample: int = 10
    each: int = 4
    alike: float = 0.95
    alike_templates: float = 0.88
    least: int = 20
    one_title: float = 0.5

    def __call__(self) -> int:
        sets = {
            "reasoning": (question_lists(self.questions), self.k),
            "perceptual": (question_lists(self.perceptual), self.k_perceptual),
        }
        listed = {
            kind: [q for source in lists for q in read_source(source)]
            for kind, (lists, _) in sets.items()
            if lists
        }
        check_unedited(self.run.out)
        induced: dict[str, InducedTemplates] = {}
        with self.run.open("templates") as running:
            asker = self._asker(running, self.llm)
            namer = self._asker(running, self.llms["namer"]) if self.pronouns == "llm" else None
            # JAX is imported after Ray has started: a fork while its threads run may deadlock.
            from mustsee.nn.bert import Encoder

            embed = Encoder.load(self.encoder).encode
            induction = Induction(
                asker=asker, namer=namer, embed=embed, show_step=show_step, sample=self.sample,
                each=self.each, alike=self.alike, one_title=self.one_title, seed=self.run.seed,
            )  # fmt: skip
            for kind, questions in listed.items():
                induced[kind] = induction.induce(questions, sets[kind][1], kind)
            if self.run.rehearsal.dry_run:
                return running.print_call_estimate()
        names = names_in([q.text for questions in listed.values() for q in questions])
        templates = [t for result in induced.values() for t in result.templates]
        sound = [t for t in templates if too_specific(t, least=self.least, names=names) is None]
        kept = distinct(sound, embed, alike=self.alike_templates)
        report = {
            "sets": {kind: result.report for kind, result in induced.items()},
            "templates": len(templates),
            "sound": len(sound),
            "kept": len(kept),
        }
        clusters = [c for result in induced.values() for c in result.clusters]
        write_output(self.run.out, kept, clusters, report)
        print(summary(report, kept))
        return 0

    def _asker(self, running: RunningJob, llm: LlmConfig) -> Asker:
        return Asker(
            llm=running.model(llm),
            prompts=Prompts(),
            sampling=Sampling(temperature=0.7, max_tokens=2048),
            retries_stored=self.run.retry_problems,
        )


if __name__ == "__main__":
    launch("templates")
