"""The requests of a probe: what is sent in each, and the form of its reply.

    step = video_step(16, draw=0, seed=0)
    step.request(mark="3f2a91c0-007", sampling=Sampling())

Every draw of a step has other numerals, digits and tones, so that a second one can confirm what the
first one shows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mustsee.calls.llm import Message, Request, Sampling
from mustsee.prompts import Prompts
from mustsee.replies.forms import Form, free
from mustsee.server_probe.cards import draw_card, draw_numerals
from mustsee.server_probe.clips import NumeralClip
from mustsee.server_probe.forms import (
    DIGITS_FORM,
    FRUIT_FORM,
    NUMERALS_FORM,
    TONES,
    TONES_FORM,
    times_form,
)
from mustsee.server_probe.settings import ProbeSettings
from mustsee.server_probe.sound import Tone, play_tones, speak_digits

FOLDER = "server_probe"  # folder of the prompts
WORD_FORM: Form[str] = free(str.strip)
ITEM_TOKENS = 8  # tokens of a reply for each item that it lists, at most
ROOM_TOKENS = 200  # tokens of a reply besides its items
FAST_PER_SECOND = 2  # numerals a second of the clip that measures the frame rate
TIMED_NUMERALS = 12  # numerals of the clip whose times are asked for
TIMED_ASKED = 4  # numerals among them that are asked for
TIMED_SECONDS = (1.0, 1.5, 2.0, 3.0)  # seconds for which the numerals are shown
SOUND_EVERY_S = 1.5  # seconds from one digit or tone to the next
WORDS = ("ready", "table", "river", "window", "garden", "silver")
FILLER = (
    "the morning train left the small station before the sun was over the hills and the people on "
    "the platform went home along the old road by the river where the water was high after a week "
    "of rain some of them stopped at the market to buy bread and apples while others talked about "
    "the new bridge that the town had been waiting for since the last winter"
)


@dataclass(frozen=True, kw_only=True)
class ProbeStep:
    """One request. `sent`: what a server that sees and hears all of it lists. `clip`: a video.
    `address`: where the server finds its file; "": it is sent. `numerals`: shown as images.
    `logprobs`: alternatives per token that are asked for. `part`: the name under which a video is
    sent; "": as the model is configured. `parameters`: sent besides those of every request.
    """

    prompt: str
    form: Form[Any]
    sent: Any = None
    numerals: tuple[int, ...] = ()
    clip: NumeralClip | None = None
    address: str = ""
    part: str = ""
    logprobs: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    variables: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def request(
        self, prompts: Prompts, mark: str, sampling: Sampling, *, encoded: bool = True
    ) -> Request:
        """Return the request. `mark`: makes it differ from those of other probes. `encoded`: False
        leaves the video's file out, for an estimate.
        """
        name = f"{FOLDER}/{self.prompt}"
        rendered = prompts.render(name, mark=mark, **self.variables)
        address = self.address or ("" if encoded else "not encoded")
        clips = () if self.clip is None else (self.clip.for_model(address),)
        images = tuple(map(draw_card, self.numerals))
        listed = len(self.sent) if isinstance(self.sent, tuple) else 0
        room = max(sampling.max_tokens, ROOM_TOKENS + ITEM_TOKENS * listed)
        return Request(
            prompt=name,
            digest=rendered.digest,
            messages=(Message("user", rendered.user, images, clips, rendered.lines),),
            variables={
                "mark": mark, "part": self.part, "parameters": self.parameters, **self.variables,
            },
            sampling=replace(sampling, top_logprobs=self.logprobs, max_tokens=room),
            form=self.form.schema,
        )  # fmt: skip


def make_rng(seed: int, *names: object) -> random.Random:
    """Return the random numbers of one draw of one step."""
    return random.Random(f"{seed}/{'/'.join(map(str, names))}")


def images_step(count: int, draw: int, seed: int) -> ProbeStep:
    """Return a request with `count` images, or with none: the same words alone."""
    numerals = draw_numerals(count, make_rng(seed, "images", count, draw))
    return ProbeStep(prompt="images", form=NUMERALS_FORM, sent=numerals, numerals=numerals)


def video_step(seconds: int, draw: int, seed: int, part: str = "") -> ProbeStep:
    """Return a request with a video of a numeral a second, or with none."""
    numerals = draw_numerals(seconds, make_rng(seed, "video", seconds, draw, part))
    clip = NumeralClip.steady(numerals, 1.0) if numerals else None
    return ProbeStep(prompt="video", form=NUMERALS_FORM, sent=numerals, clip=clip, part=part)


def fast_step(seconds: int, draw: int, seed: int) -> ProbeStep:
    """Return a request with a video of several numerals a second."""
    numerals = draw_numerals(FAST_PER_SECOND * seconds, make_rng(seed, "fast", draw))
    clip = NumeralClip.steady(numerals, 1 / FAST_PER_SECOND)
    return ProbeStep(prompt="video", form=NUMERALS_FORM, sent=numerals, clip=clip)


def times_step(draw: int, seed: int) -> ProbeStep:
    """Return a request for the times of some numerals, which are shown for unequal times."""
    rng = make_rng(seed, "times", draw)
    numerals = draw_numerals(TIMED_NUMERALS, rng)
    lengths = tuple(rng.choice(TIMED_SECONDS) for _ in numerals)
    clip = NumeralClip(numerals=numerals, seconds=lengths)
    starts = dict(zip(numerals, clip.starts, strict=True))
    asked = sorted(rng.sample(numerals[2:], TIMED_ASKED))
    return ProbeStep(
        prompt="times",
        form=times_form(asked),
        sent={n: starts[n] for n in asked},
        clip=clip,
        variables={"numerals": asked},
    )


def digits_step(count: int, draw: int, seed: int, *, silent: bool = False) -> ProbeStep:
    """Return a request for spoken digits. `silent`: the same clip without sound."""
    rng = make_rng(seed, "digits", draw)
    digits = tuple(rng.randrange(10) for _ in range(count))
    numerals = draw_numerals(round(SOUND_EVERY_S * count), rng)
    sound = None if silent else speak_digits(digits, SOUND_EVERY_S)
    clip = NumeralClip.steady(numerals, 1.0, sound)
    return ProbeStep(prompt="digits", form=DIGITS_FORM, sent=() if silent else digits, clip=clip)


def tones_step(count: int, draw: int, seed: int) -> ProbeStep:
    """Return a request for high and low tones, of each at least one."""
    rng = make_rng(seed, "tones", draw)
    tones: list[Tone] = [*TONES, *(rng.choice(TONES) for _ in range(count - len(TONES)))]
    rng.shuffle(tones)
    numerals = draw_numerals(round(SOUND_EVERY_S * count), rng)
    clip = NumeralClip.steady(numerals, 1.0, play_tones(tones, SOUND_EVERY_S))
    return ProbeStep(prompt="tones", form=TONES_FORM, sent=tuple(tones), clip=clip)


def fruit_step() -> ProbeStep:
    """Return a request whose reply has a schema."""
    return ProbeStep(prompt="fruit", form=FRUIT_FORM)


def word_step(number: int, parameters: Mapping[str, Any] | None = None) -> ProbeStep:
    """Return a short request. `parameters`: tried with it, and log-probabilities."""
    word = WORDS[number % len(WORDS)]
    return ProbeStep(
        prompt="word", form=WORD_FORM, sent=word, variables={"word": word},
        parameters=parameters or {}, logprobs=2 if parameters is not None else 0,
    )  # fmt: skip


def prefix_step(number: int, words: int) -> ProbeStep:
    """Return a request that shares a long text with others and ends in a word of its own."""
    word = WORDS[number % len(WORDS)]
    known = FILLER.split()
    filler = " ".join(known[n % len(known)] for n in range(words))
    return ProbeStep(
        prompt="prefix", form=WORD_FORM, sent=word, variables={"word": word, "filler": filler}
    )


PREFIX_CALLS = 3  # calls that share a prefix


def planned_steps(settings: ProbeSettings, seed: int) -> Iterator[tuple[ProbeStep, int]]:
    """Yield every step, and how often it is asked at most: a second time to confirm a fault."""
    yield fruit_step(), 1
    yield word_step(0, settings.parameters), 1
    yield word_step(0), 1 + sum(settings.levels)
    yield prefix_step(0, settings.prefix_words), PREFIX_CALLS
    yield images_step(0, 0, seed), 1
    for count in settings.images:
        yield images_step(count, 0, seed), 2
    yield video_step(0, 0, seed), 1
    for seconds in settings.lengths:  # the first one under both names of a video
        yield video_step(seconds, 0, seed), 3 if seconds == settings.first_seconds else 2
    yield fast_step(settings.first_seconds, 0, seed), 1
    yield times_step(0, seed), 2
    yield digits_step(settings.digits, 0, seed), 2
    yield digits_step(settings.digits, 0, seed, silent=True), 1
    yield tones_step(settings.digits, 0, seed), 1
    if settings.file_urls:
        yield video_step(settings.first_seconds, 0, seed), 1
