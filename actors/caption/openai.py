"""caption=openai: keyframes to sentences, by any OpenAI-compatible endpoint that takes pictures.

Each request shows the keyframes before and after as well, small, so that people and things can be
recognised. Where the captions of one shot do not agree, its frames are looked at once more,
together and larger. A model that watches is shown, in place of a keyframe, the stretch of video
that this stands for, and once.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

from actors.part import LlmConfig, Opened, RunContext
from actors.video_input import model_identity, video_input_of
from mustsee.calls.llm import Asker, Sampling
from mustsee.errors import BadRow, UserError
from mustsee.prompts import ENGLISH, Prompts
from mustsee.questions import numbered
from mustsee.records import Caption, Keyframe, Span, Video
from mustsee.store import keyed_by
from mustsee.text import overlap

PROMPT, WATCHED = "caption/frames", "caption/clips"
JPEG_QUALITY = 85  # of the JPEGs made here
MAX_FRAMES_TOGETHER = 6  # frames of a shot in one second look
MAX_CLIPS_IN_MEMORY = 32  # requests whose clips are in memory at once


@dataclass(frozen=True, kw_only=True)
class CaptionContext:
    """Keyframes to be described, with the keyframes before and after them, where there are any, and
    what was written of them before.
    """

    keyframes: tuple[Keyframe, ...]
    before: Keyframe | None = None
    after: Keyframe | None = None
    first: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class OpenAICaptioner:
    """`frames`: keyframes in one request. `title`: whether the model is told the video's title.
    `neighbours`: longer side in pixels of the keyframes before and after, which are shown too; 0:
    they are not. `agree`: captions of one shot that share fewer of their words (0 to 1) are
    doubtful, and the frames are shown once more with `again` pixels; 0: never.

    A frame that the endpoint will not describe (a content filter) is left out; a video of which
    more than half the frames are left out is a bad row. Frames whose second look fails keep their
    captions.
    """

    version: ClassVar[str] = "2"
    needs: ClassVar[tuple[str, ...]] = ("uri", "digest", "duration")
    writes: ClassVar[tuple[str, ...]] = ("captions",)
    endpoint: LlmConfig = keyed_by(lambda part: model_identity(part.endpoint))
    frames: int = 1
    title: bool = False
    neighbours: int = 256
    agree: float = 0.15
    again: int = 1024
    max_tokens: int = 120
    temperature: float = 0.0
    tries: int = 3
    language: str = keyed_by(
        lambda part: part.load_prompts().digest(*part.prompt_names), default=ENGLISH
    )

    @property
    def reads(self) -> tuple[str, ...]:
        return ("keyframes", "title", *(("shots",) if video_input_of(self.endpoint) else ()))

    @property
    def prompt_names(self) -> tuple[str, ...]:
        return (PROMPT, WATCHED) if video_input_of(self.endpoint) else (PROMPT,)

    def load_prompts(self) -> Prompts:
        return Prompts(language=self.language)

    def check(self, budget_usd: float | None = None) -> None:
        """Raises UserError for requests without a frame, and for pictures of no size."""
        for name, least in (("frames", 1), ("neighbours", 0), ("again", 1)):
            if getattr(self, name) < least:
                raise UserError(f"caption.{name}={getattr(self, name)!r}: at least {least}")
        if not 0 <= self.agree <= 1:
            raise UserError(f"caption.agree={self.agree!r}: from 0 (no second look) to 1")

    def open(self, run: RunContext) -> Opened:
        asker = self._asker(run, self.endpoint, self.frames)
        closer = self._asker(run, _close(self.endpoint), MAX_FRAMES_TOGETHER)

        async def caption(video: Video) -> Video:
            title = (video.title or "") if self.title else ""
            watched = await self._watched(asker, video, title)
            left = [k for k in video.keyframes or () if k not in watched]
            found = await self._first(asker, left, title)
            left_out = [error for error in found.values() if isinstance(error, BadRow)]
            run.count("frames not captioned", len(left_out))
            if len(left_out) > len(video.keyframes or ()) / 2:
                frames = len(video.keyframes or ())
                raise BadRow(f"{len(left_out)} of {frames} frames were refused: {left_out[0]}")
            told = {k: text for k, text in found.items() if isinstance(text, str)}
            doubtful = [
                CaptionContext(keyframes=s, first=tuple(told[k] for k in s))
                for s in doubts(told, self.agree)
            ]
            looks = await asyncio.gather(*(self._again(closer, video, s, title) for s in doubtful))
            again = {k: text for look in looks for k, text in look.items()}
            run.count("frames looked at again", len(again))
            said = watched | told | again
            captions = tuple(Caption(k.time, said[k]) for k in video.keyframes or () if k in said)
            return dataclasses.replace(video, captions=captions)

        return caption

    def _asker(self, run: RunContext, endpoint: LlmConfig, frames: int) -> Asker:
        sampling = Sampling(temperature=self.temperature, max_tokens=self.max_tokens * frames)
        return Asker(
            llm=run.llm(endpoint),
            prompts=self.load_prompts(),
            sampling=sampling,
            tries=self.tries,
            watch=video_input_of(endpoint, run.store),
        )

    async def _watched(self, asker: Asker, video: Video, title: str) -> dict[Keyframe, str]:
        """A sentence for the stretch of each keyframe; without those that are more video than the
        model takes, or that it will not describe.
        """
        watch, spans = asker.watch, stretches(video)
        if watch is None:
            return {}
        room = asyncio.Semaphore(MAX_CLIPS_IN_MEMORY)

        async def describe(keyframes: Sequence[Keyframe]) -> Mapping[Keyframe, str]:
            wanted = [spans[keyframe] for keyframe in keyframes]
            cut = partial(watch.clips, video, wanted, sound=False, exact=False)
            try:
                async with room:
                    clips = await asyncio.to_thread(cut)
                    if not clips:
                        return {}
                    texts = await asker.ask(
                        WATCHED,
                        numbered.sentences(len(clips)),
                        clips=clips,
                        watched=[clip.span for clip in clips],
                        title=title,
                    )
            except BadRow:
                return {}
            return dict(zip(keyframes, texts, strict=True))

        frames = tuple(spans)
        some = [frames[i : i + self.frames] for i in range(0, len(frames), self.frames)]
        done = await asyncio.gather(*map(describe, some))
        return {keyframe: text for found in done for keyframe, text in found.items()}

    async def _first(
        self, asker: Asker, keyframes: Sequence[Keyframe], title: str
    ) -> dict[Keyframe, str | BadRow]:
        """A sentence for each keyframe, or why there is none."""
        batches = [
            CaptionContext(
                keyframes=tuple(keyframes[i : i + self.frames]),
                before=keyframes[i - 1] if i else None,
                after=keyframes[i + self.frames] if i + self.frames < len(keyframes) else None,
            )
            for i in range(0, len(keyframes), self.frames)
        ]
        done = await asyncio.gather(*(self._batch(asker, batch, title) for batch in batches))
        texts = [text for texts in done for text in texts]
        return dict(zip(keyframes, texts, strict=True))

    async def _batch(self, asker: Asker, shown: CaptionContext, title: str) -> list[str | BadRow]:
        """A sentence for each keyframe; refused together, they are asked about one by one."""
        try:
            return list(await self._ask(asker, shown, [k.jpeg for k in shown.keyframes], title))
        except BadRow as error:
            if len(shown.keyframes) == 1:
                if shown.before is None and shown.after is None:
                    return [error]
                return await self._batch(asker, CaptionContext(keyframes=shown.keyframes), title)
            each = [
                self._batch(asker, CaptionContext(keyframes=(k,)), title) for k in shown.keyframes
            ]
            return [text for texts in await asyncio.gather(*each) for text in texts]

    async def _again(
        self, asker: Asker, video: Video, shown: CaptionContext, title: str
    ) -> Mapping[Keyframe, str]:
        """What a second look says of frames of one shot; nothing where it fails."""
        try:
            times = [keyframe.time for keyframe in shown.keyframes]
            pictures = await asyncio.to_thread(_large, video.uri, times, self.again)
            texts = await self._ask(asker, shown, pictures, title)
        except BadRow:
            return {}
        return dict(zip(shown.keyframes, texts, strict=True))

    async def _ask(
        self, asker: Asker, shown: CaptionContext, pictures: Sequence[bytes], title: str
    ) -> tuple[str, ...]:
        before, after = (self._small(keyframe) for keyframe in (shown.before, shown.after))
        return await asker.ask(
            PROMPT,
            numbered.sentences(len(pictures)),
            images=[*before, *pictures, *after],
            times=[keyframe.time for keyframe in shown.keyframes],
            before=shown.before.time if shown.before and before else None,
            after=shown.after.time if shown.after and after else None,
            first=shown.first,
            title=title,
        )

    def _small(self, keyframe: Keyframe | None) -> list[bytes]:
        """A neighbour's picture; none where there is none, or where it is damaged."""
        if keyframe is None or not self.neighbours:
            return []
        import cv2
        import numpy as np

        from mustsee.media.pictures import encode, shrunk

        image: Any = cv2.imdecode(np.frombuffer(keyframe.jpeg, np.uint8), cv2.IMREAD_COLOR)
        return [] if image is None else [encode(shrunk(image, self.neighbours), JPEG_QUALITY)]


def stretches(video: Video) -> dict[Keyframe, Span]:
    """What each keyframe stands for: its shot, up to halfway to the shot's keyframes before and
    after it; of a video without shots, all of it in this way.
    """
    shots, found = video.shots or (), dict[Keyframe, Span]()
    begin = video.start or 0.0
    whole = Span(begin, begin + (video.duration or 0.0))
    around = (None, *(video.keyframes or ()), None)
    for before, keyframe, after in zip(around, around[1:], around[2:], strict=False):
        if keyframe is None:
            continue
        shot = shots[keyframe.shot] if keyframe.shot < len(shots) else whole
        low, high = shot.start, max(shot.end, keyframe.time)
        if before is not None and before.shot == keyframe.shot:
            low = (before.time + keyframe.time) / 2
        if after is not None and after.shot == keyframe.shot:
            high = (keyframe.time + after.time) / 2
        found[keyframe] = Span(low, high)
    return found


def doubts(told: Mapping[Keyframe, str], agree: float) -> list[tuple[Keyframe, ...]]:
    """The frames of each shot in which captions of neighbours share fewer than `agree` of their
    words (of the shorter caption's). At most `MAX_FRAMES_TOGETHER` at once.
    """
    shots: dict[int, list[Keyframe]] = {}
    for keyframe in told:
        shots.setdefault(keyframe.shot, []).append(keyframe)
    doubtful = [
        shot
        for shot in shots.values()
        if any(overlap(told[one], told[other]) < agree for one, other in pairwise(shot))
    ]
    return [
        tuple(shot[i : i + MAX_FRAMES_TOGETHER])
        for shot in doubtful
        for i in range(0, len(shot), MAX_FRAMES_TOGETHER)
    ]


def _close(endpoint: Any) -> LlmConfig:
    """The endpoint, looking closely at pictures where that can be told it."""
    return dataclasses.replace(endpoint, detail="high") if hasattr(endpoint, "detail") else endpoint


def _large(uri: str, times: Sequence[float], longest: int) -> list[bytes]:
    from mustsee.media.video import frames_at

    return [picture.jpeg(longest, JPEG_QUALITY) for picture in frames_at(uri, times)]
