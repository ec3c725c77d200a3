"""Make: your videos to questions that need them.

    python -m ray_jobs.make videos=V out=O [llm=openai hear=whisperx ...]

Videos are probed, decoded once and transcribed. A model lists facts of them, each is looked at
once, and code composes questions whose words do not give the answer away (docs/facts.md). With
`prompt=FILE` a model writes the questions that your words ask for (docs/own-questions.md).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

from actors.llm.offline import Offline
from actors.part import Part
from actors.stages.ask import Ask
from actors.stages.facts import AskFacts
from actors.stages.look import Look
from mustsee.audit.guessers import LearnedGuess, record_learned
from mustsee.errors import UserError
from mustsee.recipes.neptune.settings import WholeSettings
from mustsee.records import is_rules
from mustsee.run.inputs import read_videos
from mustsee.verify.filters import VideoFilter, by_stage
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.run import JobSettings


@dataclass(frozen=True, kw_only=True)
class Make:
    run: JobSettings
    videos: str
    prompt: str | None
    probe: Part
    look: Part
    filters: Mapping[str, VideoFilter | None]
    hear: Part
    caption: Part
    embed: Part | None
    ask: Part
    vet: Part
    learned: LearnedGuess

    def __call__(self) -> int:
        if self.prompt is not None and isinstance(getattr(self.ask, "llm", None), Offline):
            raise UserError(
                f"prompt={self.prompt} is for a model, and the rules of llm=offline cannot follow "
                "it: add +experiment=gemini, openai, ollama or vllm, or llm=openai llm.model=..."
            )
        embed = self.embed if self.embed and {*self.embed.writes} & {*self.ask.reads} else None
        if self.embed and embed is None:
            print(
                "mustsee: embed= is not used: ask=facts reads the vectors of keyframes that "
                "embed=efficientnet computes, and nothing else in this job reads vectors",
                file=sys.stderr,
                flush=True,
            )
        filters = by_stage(self.filters, ("probe", "look", "hear", "caption"))
        with self.run.open("make") as run:
            run.read(read_videos(self.videos))
            run.stage("probe", self.probe, filters=filters["probe"])
            run.stage("look", self.used_look(), filters=filters["look"])
            run.stage("hear", self.hear, filters=filters["hear"])
            unread = () if "keyframes" in self.ask.reads else ("keyframes",)
            forget = unread if embed is None else ()
            run.stage("caption", self.caption, filters=filters["caption"], forget=forget)
            if embed is not None:
                run.stage("embed", embed, forget=unread)
            run.stage("ask", self.ask, forget=["keyframes", "frames", "image_vectors"])
            run.stage("vet", self.vet)
            run.together(self.learned)
            return run.publish(extra=record_learned)

    def used_look(self) -> Part:
        """The part `look`, without detectors that nothing reads. Rules list facts by objects and
        faces, and so do models that are given captions; a model that sees the video does not. Any
        filter of videos may read faces.
        """
        look, ask = self.look, self.ask
        sees = (isinstance(ask, AskFacts) and not is_rules(ask.writer.identity)) or (
            isinstance(ask, Ask) and isinstance(ask.settings, WholeSettings)
        )
        if not isinstance(look, Look) or not sees:
            return look
        return replace(
            look,
            objects=look.objects if look.objects and look.objects.always else None,
            faces=look.faces if any(self.filters.values()) else None,
        )


if __name__ == "__main__":
    launch("make")
