"""The course of a probe: text, images, videos, times, sound, parameters, cache and a ramp.

A request whose reply shows a fault is made once more with other material, and a fault is named only
if both show it. Steps that the server refuses are not faults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from actors.llm.probe_asking import ProbeAsker, ProbeReply, climb
from mustsee.server_probe import findings, steps
from mustsee.server_probe.findings import Findings
from mustsee.server_probe.record import (
    OTHER_NAME,
    Kind,
    NumeralsResult,
    ServerFault,
    SoundResult,
    TimesResult,
    compare_numerals,
    compare_sounds,
    compare_times,
    compare_tones,
)
from mustsee.server_probe.steps import FRUIT, ProbeSettings
from mustsee.server_probe.stimuli import encode_clip

OTHER_PART = {"video_url": "image_url", "image_url": "video_url"}
Show = Callable[[str], AbstractContextManager[None]]


class ServerProbe:
    """Probes one server. `part`: the name under which the model is configured to be sent videos.
    `file`: where a clip is written whose file URL is sent; None: none is sent. `show`: shows the
    step at work.
    """

    def __init__(
        self, asker: ProbeAsker, settings: ProbeSettings, seed: int, *, part: str,
        file: Path | None, show: Show,
    ) -> None:  # fmt: skip
        self._asker, self._settings, self._seed = asker, settings, seed
        self._part, self._file, self._show = part, file, show
        self.found = Findings()

    async def run(self) -> Findings:
        """Ask everything, as far as the server answers and the budget goes."""
        found = self.found
        with self._show("text"):
            if not await self._ask_text():
                return found
        with self._show("images"):
            await self._ask_images()
        with self._show("video"):
            await self._ask_videos()
        if found.part:
            with self._show("times and sound"):
                await self._ask_times()
                await self._ask_sound()
        with self._show("calls at once"):
            await self._climb()
        return found

    async def _ask_text(self) -> bool:
        """The schema, the parameters, the counts of text, the cache. Returns False if the server
        answers nothing.
        """
        found, settings = self.found, self._settings
        fruit = await self._asker.ask(steps.fruit_step())
        if fruit.reply is None:
            found.ended = fruit.why
            return False
        found.structured = judge_structure(fruit)
        tried = await self._asker.ask(steps.word_step(0, settings.parameters))
        if tried.reply is not None:
            found.logprobs = "given" if tried.reply.logprobs else "none"
        else:
            found.notes.append(f"further parameters: {tried.why}")
        short = await self._asker.ask(steps.word_step(0))
        mark = self._asker.new_mark()
        prefix = [
            await self._asker.ask(steps.prefix_step(n, settings.prefix_words), mark)
            for n in range(steps.PREFIX_CALLS)
        ]
        found.prefixes = [each.usage for each in prefix if each.reply is not None]
        if prefix[0].reply is None:
            found.notes.append(f"a prompt of {settings.prefix_words} words: {prefix[0].why}")
        elif short.reply is not None:
            added = self._characters(steps.prefix_step(0, settings.prefix_words))
            added -= self._characters(steps.word_step(0))
            found.faults += findings.text_usage_faults(found.prefixes, short.usage, added)
            first = found.prefixes[0].prompt
            if first is not None and short.usage.prompt is not None and first > short.usage.prompt:
                found.characters = added / (first - short.usage.prompt)
        replies = [each for each in (fruit, tried, short, *prefix) if each.reply is not None]
        wrong = [f for each in replies for f in reply_faults(each)]
        found.faults += wrong[:1]
        return True

    def _characters(self, step: steps.ProbeStep) -> int:
        return sum(len(m.text) for m in self._asker.request(step, "0" * 13).messages)

    async def _ask_images(self) -> None:
        found = self.found
        if not self._settings.images:
            return
        base = await self._asker.ask(steps.images_step(0, 0, self._seed))
        found.images_base = base.usage.prompt
        for count in self._settings.images:
            make = self._image_draw(count)
            result = await self._ask_numerals("images", make, found.images)
            if is_stop(result):
                break
        found.faults += findings.image_usage_faults(found.images, found.images_base)
        found.notes += findings.counted_notes(found.images, found.images_base)

    def _image_draw(self, count: int) -> Callable[[int], steps.ProbeStep]:
        return lambda draw: steps.images_step(count, draw, self._seed)

    async def _ask_numerals(
        self, kind: Kind, make: Callable[[int], steps.ProbeStep], results: list[NumeralsResult]
    ) -> NumeralsResult:
        """Ask for numerals, and if a fault shows or the reply cannot be read for other ones again.
        Returns the result that counts.
        """
        before = [r for r in results if r.frames is not None]
        first = await self._ask_draw(kind, make(0), 0)
        results.append(first)
        return await self._confirm(first, make, results, before)

    async def _confirm(
        self, first: NumeralsResult, make: Callable[[int], steps.ProbeStep],
        results: list[NumeralsResult], before: Sequence[NumeralsResult],
    ) -> NumeralsResult:  # fmt: skip
        named = self._unnamed(findings.numeral_faults(first, before))
        if first.frames is not None and not first.frames.is_legible:
            self.found.notes.append(
                f"{first.frames.misread} of {first.frames.sent} numerals are misread: the model is "
                "weak, or the server shrinks what it gets"
            )
        if not named and first.state != "untold":
            return first
        second = await self._ask_draw(first.kind, make(1), 1)
        results.append(second)
        if first.state == "untold":
            self.found.faults += self._unnamed(findings.numeral_faults(second, before))
            return second
        again = list(findings.numeral_faults(second, before))
        self._keep(named, again, answered=second.state == "answered")
        return first

    def _unnamed(self, shown: Iterable[ServerFault]) -> list[ServerFault]:
        """The faults of which no other request has shown the like."""
        named = {(f.kind, f.about) for f in self.found.faults}
        return [f for f in shown if (f.kind, f.about) not in named]

    def _keep(
        self, first: Sequence[ServerFault], second: Sequence[ServerFault], *, answered: bool
    ) -> None:
        """Add the faults that a second draw confirms; say which ones it does not show."""
        confirmed = findings.confirm(first, second) if answered else [*first]
        self.found.faults += confirmed
        kept = {(f.kind, f.about) for f in confirmed}
        self.found.notes += [
            f"not named as a fault, since a second request did not show it: {f.says}"
            for f in first
            if (f.kind, f.about) not in kept
        ]

    async def _ask_draw(self, kind: Kind, step: steps.ProbeStep, draw: int) -> NumeralsResult:
        answer = await self._asker.ask(step)
        seconds = step.clip.length if step.clip is not None else None
        frames = compare_numerals(step.sent, answer.value) if answer.state == "answered" else None
        return NumeralsResult(
            kind=kind, count=len(step.sent), seconds=seconds, draw=draw, state=answer.state,
            why=answer.why, frames=frames, tokens=answer.usage.prompt,
        )  # fmt: skip

    async def _ask_videos(self) -> None:
        found, settings = self.found, self._settings
        base = await self._asker.ask(steps.video_step(0, 0, self._seed))
        found.videos_base = base.usage.prompt
        first = await self._find_part()
        if first is None:
            return
        for seconds in settings.lengths[1:] if not is_stop(first) else ():
            result = await self._ask_numerals("video", self._video_draw(seconds), found.videos)
            if is_stop(result):
                break
        fast = steps.fast_step(settings.first_seconds, 0, self._seed)
        found.videos.append(await self._ask_draw("fast_video", self._named(fast), 0))
        if self._file is not None:
            await self._ask_by_file(self._file)
        found.faults += findings.video_usage_faults(
            [r for r in found.videos if r.kind != "file_url"], found.videos_base
        )
        found.notes += findings.counted_notes(found.videos, found.videos_base)

    async def _find_part(self) -> NumeralsResult | None:
        """Send the shortest video under the configured name, and if it is refused or not seen,
        under the other one. Returns the result that counts; None if the server takes no video.
        """
        found, seconds = self.found, self._settings.first_seconds
        configured = await self._ask_draw("video", self._video_draw(seconds)(0), 0)
        if is_seen(configured) or configured.state in ("untold", "failed", "unasked"):
            found.part = "" if configured.state in ("failed", "unasked") else self._part
            return await self._keep_first(configured, seconds)
        other = OTHER_PART[self._part]
        step = steps.video_step(seconds, 0, self._seed, other)
        second = await self._ask_draw(_kind_of(other), step, 0)
        if not is_seen(second):
            found.videos += [configured, second]
            if configured.state == "answered":  # it takes the file and shows nothing of it
                found.part = self._part
                found.faults += findings.numeral_faults(configured)
                found.notes.append(f"a video as {other}: {second.why or 'nothing of it is seen'}")
            return None
        found.videos.append(replace(configured, kind=_kind_of(self._part)))
        how = "refused" if configured.state == "refused" else "dropped without a word"
        text = (
            f"a video as {self._part} is {how}; as {other} it is seen: set llm.video.part={other}"
        )
        if configured.state == "answered":
            found.faults.append(
                ServerFault(kind=OTHER_NAME, about="video", says=text, confirmed=None)
            )
        else:
            found.notes.append(text)
        found.part = other
        return await self._keep_first(replace(second, kind="video"), seconds)

    async def _keep_first(self, first: NumeralsResult, seconds: int) -> NumeralsResult:
        """Add the result of the shortest video, and its faults if a second draw confirms them."""
        self.found.videos.append(first)
        return await self._confirm(first, self._video_draw(seconds), self.found.videos, ())

    def _video_draw(self, seconds: int) -> Callable[[int], steps.ProbeStep]:
        return lambda draw: self._named(steps.video_step(seconds, draw, self._seed))

    def _named(self, step: steps.ProbeStep) -> steps.ProbeStep:
        """The step with its video under the name that the server takes."""
        return replace(step, part=self.found.part or self._part)

    async def _ask_by_file(self, file: Path) -> None:
        step = steps.video_step(self._settings.first_seconds, 2, self._seed)
        assert step.clip is not None
        file.write_bytes(encode_clip(step.clip))
        step = self._named(replace(step, address=file.resolve().as_uri()))
        result = await self._ask_draw("file_url", step, 2)
        self.found.videos.append(result)
        self.found.faults += findings.numeral_faults(result)

    async def _ask_times(self) -> None:
        found, results = self.found, list[TimesResult]()
        for draw in (0, 1):
            step = self._named(steps.times_step(draw, self._seed))
            answer = await self._asker.ask(step)
            results.append(time_result(step, answer, draw))
            if not list(findings.time_faults(results[-1])):
                break
        found.times += results
        named, *again = [list(findings.time_faults(r)) for r in results]
        if named:
            self._keep(named, again[0], answered=results[1].state == "answered")

    async def _ask_sound(self) -> None:
        found, count = self.found, self._settings.digits
        digits = await self._ask_sound_step("digits", steps.digits_step(count, 0, self._seed), 0)
        if digits.state in ("refused", "failed", "unasked"):
            return
        silent = steps.digits_step(count, 0, self._seed, silent=True)
        control = await self._ask_sound_step("silent", silent, 0)
        if control.sounds is not None and control.sounds.listed:
            found.notes.append(
                f"{control.sounds.listed} digits are told of a clip without sound: what this model "
                "says it hears may be guessed"
            )
        tones = await self._ask_sound_step("tones", steps.tones_step(count, 0, self._seed), 0)
        named = list(findings.sound_faults(digits, tones))
        if named:
            second = await self._ask_sound_step(
                "digits", steps.digits_step(count, 1, self._seed), 1
            )
            again = list(findings.sound_faults(second, tones))
            self._keep(named, again, answered=second.state == "answered")

    async def _ask_sound_step(self, kind: Any, step: steps.ProbeStep, draw: int) -> SoundResult:
        answer = await self._asker.ask(self._named(step))
        compare = compare_tones if kind == "tones" else compare_sounds
        sounds = compare(step.sent, answer.value) if answer.state == "answered" else None
        assert step.clip is not None
        result = SoundResult(
            kind=kind, seconds=step.clip.length, draw=draw, state=answer.state, why=answer.why,
            sounds=sounds, tokens=answer.usage.prompt,
        )  # fmt: skip
        self.found.sounds.append(result)
        return result

    async def _climb(self) -> None:
        async for step in climb(self._asker, self._settings.levels):
            self.found.ramp.append(step)


def judge_structure(answer: ProbeReply) -> str:
    """Return whether a reply keeps to the schema that was sent with its request."""
    reply = answer.reply
    if reply is None:
        return "untold"
    text = reply.text.strip()
    if answer.state != "answered" or "{" not in text:
        return "ignored"
    if not (text.startswith("{") and text.endswith("}")):
        return "around"
    return "kept" if answer.value == FRUIT else "wrong"


def reply_faults(answer: ProbeReply) -> list[ServerFault]:
    """Return what contradicts itself in the counts of a reply."""
    text = answer.reply.text if answer.reply is not None else ""
    return list(findings.reply_usage_faults(answer.usage, len(text)))


def time_result(step: steps.ProbeStep, answer: ProbeReply, draw: int) -> TimesResult:
    """Compare the times of a reply with those of its clip."""
    assert step.clip is not None
    result = TimesResult(seconds=step.clip.length, draw=draw, state=answer.state, why=answer.why)
    if answer.state != "answered":
        return result
    pairs = [(s, answer.value[n]) for n, s in step.sent.items() if answer.value[n] >= 0]
    squares = sum(s * s for s, _ in pairs)
    scale = sum(s * told for s, told in pairs) / squares if squares else None
    return replace(result, errors=compare_times(step.sent, answer.value), scale=scale)


def is_stop(result: NumeralsResult) -> bool:
    """Whether a longer request is needless: this one was not answered, or not all of it seen."""
    return result.frames is None or result.frames.missing > 0


def is_seen(result: NumeralsResult) -> bool:
    """Whether anything of a video was seen."""
    return result.frames is not None and result.frames.seen + result.frames.misread > 0


def _kind_of(part: str) -> Kind:
    return "video_as_image_url" if part == "image_url" else "video"
