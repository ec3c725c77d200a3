"""What all steps on one video share, and several requests of one step, of which some cannot be
read.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from mustsee.calls.llm import Asker
from mustsee.calls.usage import RequestTally
from mustsee.errors import BadRow
from mustsee.questions.drafts import Draft, question_id
from mustsee.records import Provenance, Question, Span, Video
from mustsee.verify.conditions.seen import Condition, plan, video_span
from mustsee.verify.conditions.video_frames import VideoFrames, show_spans

T = TypeVar("T")
RECIPE = "facts"  # `recipe` of the questions


def divide(items: Sequence[T], parts: int) -> list[Sequence[T]]:
    """Return the items in order, in as many parts of even size."""
    return [items[n * len(items) // parts : (n + 1) * len(items) // parts] for n in range(parts)]


def divide_by(items: Sequence[T], most: int) -> list[Sequence[T]]:
    """Return the items in order, in as few parts of even size as hold at most `most` each."""
    return divide(items, -(-len(items) // most))


@dataclass(frozen=True, kw_only=True)
class Roles:
    """The models. The `writer` lists, words and grades. The `verifier` looks, and edits what the
    writer asks. The `guesser` selects; another should measure. `guesser_2`: of questions whose
    options are claims, beside the `guesser`.
    """

    writer: Asker
    verifier: Asker
    guesser: Asker
    guesser_2: Asker | None = None


@dataclass(frozen=True, kw_only=True)
class VideoWork:
    """The work on one video. `seed`: of its requests. `by`: of its questions. `requests`: counts
    what has no readable reply. `count`: adds to another count of `run.json`.
    """

    video: Video
    frames: VideoFrames
    roles: Roles
    by: Provenance
    seed: int = 0
    requests: RequestTally = field(default_factory=RequestTally)
    count: Callable[[str, int], None] = lambda name, number: None

    @property
    def span(self) -> Span:
        """The span of the video. Raises BadRow if its length is unknown."""
        return video_span(self.video)

    def with_seed(self, more: int) -> VideoWork:
        """Return the work with another seed: so much more than this one."""
        return replace(self, seed=self.seed + more)

    def make_question(
        self, draft: Draft, *, subsets: tuple[str, ...] = ("full",), **fields: Any
    ) -> Question:
        """Return the record of a question of the video, with further fields."""
        return Question(
            question_id=question_id(self.video.video_id, RECIPE, draft),
            video_id=self.video.video_id,
            recipe=RECIPE,
            question=draft.question,
            answer=draft.answer,
            provenance=self.by,
            subsets=subsets,
            **fields,
        )

    async def show(
        self, see: Condition, spans: Sequence[Span]
    ) -> tuple[tuple[float, ...], tuple[bytes, ...]]:
        """Return the times and the JPEGs of what a condition shows of some spans. Raises BadRow for
        a video that is missing or cannot be decoded.
        """
        planned = plan(see, self.span, spans)
        times = planned.times if planned else ()
        return times, await self.frames.jpegs(times, see)

    async def show_spans(
        self, spans: Sequence[Span], see: Condition, *, spoken: float
    ) -> dict[str, Any]:
        """Return what a request shows of some spans, as `show_spans` does."""
        return await show_spans(self.video, spans, see, self.frames, spoken=spoken)

    async def gather_readable(
        self, requests: Sequence[Awaitable[T]], what: str, *, may_lack: bool = False
    ) -> list[T | None]:
        """Return the results of requests in their order, null for each whose replies could not be
        parsed, and count them as requests for `what`. Raises BadRow if all of them are so, unless
        the step `may_lack` them, and any other exception as it is.
        """
        results = await gather(*requests, return_exceptions=True)
        unread = [result for result in results if isinstance(result, BadRow)]
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, BadRow):
                raise result
        self.requests.add_sent(what, len(results))
        if unread:
            self.requests.add_unread(what, unread[-1], len(unread))
        if unread and len(unread) == len(results) and not may_lack:
            raise unread[-1]
        return [None if isinstance(result, BaseException) else result for result in results]
