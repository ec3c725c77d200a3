"""Neptune (arXiv 2412.09582): long videos to questions that need the video.

    python -m ray_jobs.neptune videos=V out=O [llm=openai hear=whisperx caption=jax ...]

Videos are probed, decoded once, transcribed and captioned. A diverse sample gets questions.
Questions that can be answered without the video, or from the transcript alone, are dropped. See
docs/neptune.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from actors.part import Part, Skippable
from actors.stages.vet import Vet
from mustsee.errors import UserError
from mustsee.files.schemas import dump
from mustsee.recipes.neptune import layout
from mustsee.recipes.neptune.diversity import Diversity, clusters_before_after
from mustsee.recipes.neptune.video_filters import FilterFit, read_labels
from mustsee.run.inputs import read_videos
from mustsee.run.tables import Tables
from mustsee.verify.filters import VideoFilter, by_stage
from mustsee.verify.guess.counts import sweep
from mustsee.verify.guess.filters import BlindGuess
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.run import JobSettings


@dataclass(frozen=True, kw_only=True)
class Neptune:
    run: JobSettings
    videos: str
    probe: Part
    look: Part
    filters: Mapping[str, VideoFilter | None]
    hear: Part
    caption: Part
    people: Part
    embed: Part | None
    diversity: Diversity
    ask: Part
    vet: Part
    enrich: Skippable

    def __call__(self) -> int:
        stages = ("probe", "look", "hear", "caption", *(["embed"] if self.embed else []))
        filters = by_stage(self.filters, stages)
        samples = self.diversity.size is not None
        if self.embed is None and samples:
            raise UserError("diversity.size samples videos by vectors: set embed=minilm")
        videos = read_videos(self.videos)
        fit = FilterFit(filters=self.filters, labels=read_labels(videos, self.filters))
        with self.run.open("neptune") as run:
            run.read(videos)
            run.stage("probe", self.probe, filters=filters["probe"])
            run.stage("look", self.look, filters=filters["look"])
            run.stage("hear", self.hear, filters=filters["hear"])
            if fit.labels:
                run.together(fit)
            run.stage("caption", self.caption, filters=filters["caption"])
            if samples and set(self.people.writes) & set(self.diversity.strata):
                run.stage("people", self.people)
            unread = {"keyframes", "image_vectors"} - {*self.ask.reads}
            if self.embed is not None:
                run.stage("embed", self.embed, filters=filters["embed"], forget=sorted(unread))
            if samples:
                run.together(self.diversity)
            run.stage("ask", self.ask, forget=["keyframes", "frames", "image_vectors"])
            run.stage("vet", self.vet)
            if self.enrich.is_on:
                run.stage("enrich", self.enrich)
            return run.publish(
                layouts={"neptune": layout.write},
                extra=lambda tables: {**self._analysis(tables), **fit.record},
            )

    def _analysis(self, tables: Tables) -> Mapping[str, object]:
        """The questions that each threshold of the guessers would keep (Fig. 11), and the videos of
        each cluster before and after the sampling.
        """
        filters = self.vet.chosen_filters if isinstance(self.vet, Vet) else ()
        guessers = [f.name for f in filters if isinstance(f, BlindGuess)]
        fates = [(row.cluster, row.drop) for row in tables.videos("cluster", "drop")]
        was_sampled = any(cluster is not None for cluster, _ in fates)
        bars = clusters_before_after(*zip(*fates, strict=True)) if was_sampled else ()
        questions = tables.questions("verdicts", "repairs", "drop")
        return {"sweep": sweep(questions, guessers), "diversity": dump(bars)}


if __name__ == "__main__":
    launch("neptune")
