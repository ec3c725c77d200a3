"""`caption`: a sentence for each keyframe, by an endpoint (caption=openai) or from measurements
(caption=pixels). `actors.stages.caption_local` has the models that run here.

Each request to an OpenAI-compatible endpoint that takes images also shows the keyframes before and
after, small, so that people and things can be recognised. If the captions of frames that look alike
do not agree, these are shown again, together and larger. Frames are shown without their black bars.
A model that takes videos is shown the clip that a keyframe stands for, once.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

from actors.part import LlmConfig, Opened, RunContext, model_identity, video_input_of
from mustsee.calls.llm import Asker, Sampling
from mustsee.calls.usage import RequestTally
from mustsee.errors import BadRow, UserError
from mustsee.files.store import keyed_by
from mustsee.media.changes import looks_alike
from mustsee.media.frames import crop_jpeg, decode, encode, jpeg_thumbnail, shrunk
from mustsee.media.pixels import captions
from mustsee.media.transcript_quality import is_surely_read
from mustsee.prompts import ENGLISH, Prompts
from mustsee.questions.rows import numbered_texts
from mustsee.records import Caption, Keyframe, Span, Video
from mustsee.text import overlap

PROMPT, WATCHED = "caption/frames", "caption/clips"
WEARER, WEARER_WATCHED = "caption/wearer", "caption/wearer_clips"
FRAMES = "captions of frames"  # `what` of the requests
AGAIN = "second looks at frames"
JPEG_QUALITY = 85  # quality of the JPEGs made here, 0 to 100
MAX_FRAMES_TOGETHER = 6  # frames of a shot in one request of the second look
MAX_CLIPS_IN_MEMORY = 32  # requests whose clips are in memory at once


@dataclass(frozen=True, kw_only=True)
class CaptionContext:
    """Keyframes to be captioned, the keyframes before and after them, if any, and their first
    captions.
    """

    keyframes: tuple[Keyframe, ...]
    before: Keyframe | None = None
    after: Keyframe | None = None
    first: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class OpenAICaptioner:
    """Captions by an endpoint.

    A frame that it refuses (a content filter) has no caption; a video with more than half of its
    frames refused is a bad row. Frames whose second look fails keep their captions.
    """

    version: ClassVar[str] = "3"
    needs: ClassVar[tuple[str, ...]] = ("uri", "digest", "duration")
    writes: ClassVar[tuple[str, ...]] = ("captions",)
    endpoint: LlmConfig = keyed_by(lambda part: model_identity(part.endpoint))
    frames: int = 1
    """Keyframes in one request; several cost fewer tokens and describe less."""
    wearer: bool = False
    """Whether the captions say what the wearer of a camera, C, does in a first-person video, as the
    narrations of Ego4D that EgoSchema asks about."""
    title: bool = False
    """Show the model the video's title."""
    neighbours: int = 256
    """Longer side of the previous and next keyframe, which are shown too, pixels; 0: not
    shown."""
    agree: float = 0.15
    """Share of common words below which captions of frames that look alike are doubtful and
    made again from larger frames; 0: never."""
    again: int = 1024
    """Longer side of the frames of that second request, read from the video itself, pixels."""
    max_tokens: int = 120
    """Output tokens of a caption, at most."""
    temperature: float = 0
    """Sampling temperature; 0: always the most probable token."""
    tries: int = 3
    """Attempts at one call while replies are unparseable."""
    language: str = keyed_by(
        lambda part: part.load_prompts().digest(*part.prompt_names), default=ENGLISH
    )
    """Language of the captions."""

    @property
    def reads(self) -> tuple[str, ...]:
        return ("keyframes", "title", *(("shots",) if video_input_of(self.endpoint) else ()))

    @property
    def prompt_names(self) -> tuple[str, ...]:
        of_frames, of_clips = (WEARER, WEARER_WATCHED) if self.wearer else (PROMPT, WATCHED)
        return (of_frames, of_clips) if video_input_of(self.endpoint) else (of_frames,)

    def load_prompts(self) -> Prompts:
        return Prompts(language=self.language)

    def check(self, budget_usd: float | None = None) -> None:
        """Raise UserError for impossible numbers."""
        for name, least in (("frames", 1), ("neighbours", 0), ("again", 1)):
            if getattr(self, name) < least:
                raise UserError(f"caption.{name}={getattr(self, name)!r}: must be at least {least}")
        if not 0 <= self.agree <= 1:
            raise UserError(f"caption.agree={self.agree!r}: must be from 0 (no second look) to 1")

    def open(self, run: RunContext) -> Opened:
        asker = self._asker(run, self.endpoint, self.frames)
        closer = self._asker(run, _close(self.endpoint), MAX_FRAMES_TOGETHER)

        async def caption(video: Video) -> Video:
            title = (video.title or "") if self.title else ""
            from_clips = await self._caption_clips(asker, video, title)
            rest = [k for k in video.keyframes or () if k not in from_clips]
            results = await self._caption_frames(asker, rest, title)
            refused = [error for error in results.values() if isinstance(error, BadRow)]
            requests = RequestTally()
            requests.add_sent(FRAMES, len(video.keyframes or ()))
            if refused:
                requests.add_unread(FRAMES, refused[-1], len(refused))
            if len(refused) > len(video.keyframes or ()) / 2:
                frames = len(video.keyframes or ())
                raise BadRow(f"{len(refused)} of {frames} frames were refused: {refused[0]}")
            first = {k: text for k, text in results.items() if isinstance(text, str)}
            doubtful = [
                CaptionContext(keyframes=s, first=tuple(first[k] for k in s))
                for s in await asyncio.to_thread(doubts, first, self.agree)
            ]
            looks = await asyncio.gather(
                *(self._look_again(closer, video, s, title, requests) for s in doubtful)
            )
            second = {k: text for look in looks for k, text in look.items()}
            run.count("frames looked at again", len(second))
            texts = from_clips | first | second
            captions = tuple(Caption(k.time, texts[k]) for k in video.keyframes or () if k in texts)
            return dataclasses.replace(video, captions=captions, requests=requests.counts)

        return caption

    def _asker(self, run: RunContext, endpoint: LlmConfig, frames: int) -> Asker:
        sampling = Sampling(temperature=self.temperature, max_tokens=self.max_tokens * frames)
        return Asker(
            llm=run.llm(endpoint),
            prompts=self.load_prompts(),
            sampling=sampling,
            tries=self.tries,
            retries_stored=run.retry_problems,
            watch=video_input_of(endpoint, run.store),
        )

    async def _caption_clips(self, asker: Asker, video: Video, title: str) -> dict[Keyframe, str]:
        """A caption from the clip of each keyframe, except clips that are too long for the model or
        that it refuses.
        """
        watch, spans = asker.watch, keyframe_spans(video)
        if watch is None:
            return {}
        room = asyncio.Semaphore(MAX_CLIPS_IN_MEMORY)

        async def describe(keyframes: Sequence[Keyframe]) -> Mapping[Keyframe, str]:
            clip_spans = [spans[keyframe] for keyframe in keyframes]
            prepare = partial(watch.clips, video, clip_spans, sound=False, exact=False)
            try:
                async with room:
                    clips = await asyncio.to_thread(prepare)
                    if not clips:
                        return {}
                    texts = await asker.ask(
                        self.prompt_names[1],
                        numbered_texts(len(clips)),
                        clips=clips,
                        watched=[clip.span for clip in clips],
                        title=title,
                    )
            except BadRow:
                return {}
            return dict(zip(keyframes, texts, strict=True))

        frames = tuple(spans)
        groups = [frames[i : i + self.frames] for i in range(0, len(frames), self.frames)]
        done = await asyncio.gather(*map(describe, groups))
        return {keyframe: text for texts in done for keyframe, text in texts.items()}

    async def _caption_frames(
        self, asker: Asker, keyframes: Sequence[Keyframe], title: str
    ) -> dict[Keyframe, str | BadRow]:
        """A caption of each keyframe, or the error of its refusal."""
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

    async def _batch(self, asker: Asker, context: CaptionContext, title: str) -> list[str | BadRow]:
        """A caption of each keyframe; keyframes that are refused together are tried one by one."""
        try:
            frames = await asyncio.to_thread(lambda: [crop_jpeg(k.jpeg) for k in context.keyframes])
            return list(await self._ask(asker, context, frames, title))
        except BadRow as error:
            if len(context.keyframes) == 1:
                if context.before is None and context.after is None:
                    return [error]
                return await self._batch(asker, CaptionContext(keyframes=context.keyframes), title)
            each = [
                self._batch(asker, CaptionContext(keyframes=(k,)), title) for k in context.keyframes
            ]
            return [text for texts in await asyncio.gather(*each) for text in texts]

    async def _look_again(
        self,
        asker: Asker,
        video: Video,
        context: CaptionContext,
        title: str,
        requests: RequestTally,
    ) -> Mapping[Keyframe, str]:
        """Captions of frames of one shot, shown together and larger; none if that fails."""
        requests.add_sent(AGAIN)
        try:
            times = [keyframe.time for keyframe in context.keyframes]
            frames = await asyncio.to_thread(_large, video.uri, times, self.again)
            texts = await self._ask(asker, context, frames, title)
        except BadRow as error:
            requests.add_unread(AGAIN, error)
            return {}
        return dict(zip(context.keyframes, texts, strict=True))

    async def _ask(
        self, asker: Asker, context: CaptionContext, frames: Sequence[bytes], title: str
    ) -> tuple[str, ...]:
        before, after = (self._small(keyframe) for keyframe in (context.before, context.after))
        return await asker.ask(
            self.prompt_names[0],
            numbered_texts(len(frames)),
            images=[*before, *frames, *after],
            times=[keyframe.time for keyframe in context.keyframes],
            before=context.before.time if context.before and before else None,
            after=context.after.time if context.after and after else None,
            first=context.first,
            title=title,
        )

    def _small(self, keyframe: Keyframe | None) -> list[bytes]:
        """A neighbour, shrunk; empty if there is no neighbour or its JPEG is damaged."""
        if keyframe is None or not self.neighbours:
            return []
        image = decode(crop_jpeg(keyframe.jpeg))
        return [] if image is None else [encode(shrunk(image, self.neighbours), JPEG_QUALITY)]


def keyframe_spans(video: Video) -> dict[Keyframe, Span]:
    """The span that each keyframe stands for: its shot, up to halfway to the keyframes before and
    after it in the shot. A video without shots counts as one shot.
    """
    shots, spans = video.shots or (), dict[Keyframe, Span]()
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
        spans[keyframe] = Span(low, high)
    return spans


def doubts(captions: Mapping[Keyframe, str], agree: float) -> list[tuple[Keyframe, ...]]:
    """Neighbouring frames of a shot that look alike although their captions share less than `agree`
    of the words of the shorter one, in groups of at most `MAX_FRAMES_TOGETHER`.
    """
    groups: list[list[Keyframe]] = []
    for one, other in pairwise(captions):
        disagree = one.shot == other.shot and overlap(captions[one], captions[other]) < agree
        if not disagree or not _look_alike(one, other):
            continue
        if groups and groups[-1][-1] is one and len(groups[-1]) < MAX_FRAMES_TOGETHER:
            groups[-1].append(other)
        else:
            groups.append([one, other])
    return [tuple(group) for group in groups]


def _look_alike(one: Keyframe, other: Keyframe) -> bool:
    before, after = jpeg_thumbnail(one.jpeg), jpeg_thumbnail(other.jpeg)
    return before is not None and after is not None and looks_alike(before, after)


def _close(endpoint: Any) -> LlmConfig:
    """The endpoint with detail "high", if it has that setting."""
    return dataclasses.replace(endpoint, detail="high") if hasattr(endpoint, "detail") else endpoint


def _large(uri: str, times: Sequence[float], longest: int) -> list[bytes]:
    from mustsee.media.video import frames_at

    return [frame.jpeg(longest, JPEG_QUALITY, crop=True) for frame in frames_at(uri, times)]


@dataclass(frozen=True, kw_only=True)
class Pixels:
    """Describes each keyframe by its people and things (with `look=objects`), light, colours and
    their places, motion, faces, and on-screen text that was read with certainty.
    """

    version: ClassVar[str] = "5"
    reads: ClassVar[tuple[str, ...]] = ("keyframes", "frames", "texts", "shots", "objects")
    needs: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("captions",)
    roles: ClassVar[Mapping[str, LlmConfig]] = {}

    def open(self, run: RunContext) -> Opened:
        def caption(video: Video) -> Video:
            lines = [text for text in video.texts or () if is_surely_read(text)]
            timed = captions(
                video.keyframes or (),
                video.frames or (),
                lines,
                video.shots or (),
                video.objects or (),
            )
            return dataclasses.replace(
                video, captions=tuple(Caption(time, text) for time, text in timed)
            )

        return caption
