"""caption=openai: keyframes to sentences, by any OpenAI-compatible endpoint that takes pictures."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from actors.part import LlmConfig, Opened, RunContext
from mustsee.errors import BadRow, UserError
from mustsee.llm import Asker, Sampling
from mustsee.prompts import Prompts
from mustsee.questions import numbered
from mustsee.records import Caption, Keyframe, Video

PROMPT = "caption/frames"


@dataclass(frozen=True, kw_only=True)
class OpenAICaptioner:
    """`frames`: keyframes in one request. `title`: whether the model is told the video's title.

    A frame that the endpoint will not describe (a content filter) is left out; a video of which
    more than half the frames are left out is a bad row.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("keyframes", "title")
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("captions",)
    endpoint: LlmConfig
    frames: int = 1
    title: bool = False
    max_tokens: int = 120
    temperature: float = 0.0
    tries: int = 3

    @property
    def identity(self) -> dict[str, Any]:
        """The fields, the model, and the prompt's text."""
        plain = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        plain |= {"endpoint": self.endpoint.identity, "prompt": Prompts().digest(PROMPT)}
        return {"class": type(self).__name__, "version": self.version, **plain}

    def check(self, budget_usd: float | None = None) -> None:
        """Raises UserError for requests without a frame."""
        if self.frames < 1:
            raise UserError(f"caption.frames={self.frames!r}: at least 1")

    def open(self, run: RunContext) -> Opened:
        sampling = Sampling(temperature=self.temperature, max_tokens=self.max_tokens * self.frames)
        llm = run.llm(self.endpoint)
        asker = Asker(llm=llm, prompts=Prompts(), sampling=sampling, tries=self.tries)

        async def caption(video: Video) -> Video:
            keyframes = video.keyframes or ()
            title = (video.title or "") if self.title else ""
            starts = range(0, len(keyframes), self.frames)
            batches = [self._batch(asker, keyframes[i : i + self.frames], title) for i in starts]
            found = [text for texts in await asyncio.gather(*batches) for text in texts]
            left_out = [error for error in found if isinstance(error, BadRow)]
            run.count("frames not captioned", len(left_out))
            if len(left_out) > len(found) / 2:
                raise BadRow(f"{len(left_out)} of {len(found)} frames were refused: {left_out[0]}")
            captions = tuple(
                Caption(keyframe.time, text)
                for keyframe, text in zip(keyframes, found, strict=True)
                if isinstance(text, str)
            )
            return dataclasses.replace(video, captions=captions)

        return caption

    async def _batch(
        self, asker: Asker, keyframes: Sequence[Keyframe], title: str
    ) -> list[str | BadRow]:
        """A sentence for each keyframe, or why there is none; refused together, they are asked
        about one by one.
        """
        try:
            texts = await asker.ask(
                PROMPT,
                lambda reply: numbered.parse(reply, len(keyframes)),
                images=[keyframe.jpeg for keyframe in keyframes],
                times=[keyframe.time for keyframe in keyframes],
                title=title,
            )
            return list(texts)
        except BadRow as error:
            if len(keyframes) == 1:
                return [error]
            alone = await asyncio.gather(*(self._batch(asker, [k], title) for k in keyframes))
            return [text for texts in alone for text in texts]
