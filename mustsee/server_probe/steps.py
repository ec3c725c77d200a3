"""The requests of a probe: how much it sends, what is sent in each, and the form of its reply.

    step = video_step(16, draw=0, seed=0)
    step.request(mark="3f2a91c0-007", sampling=Sampling())

Every draw of a step has other numerals, digits and tones, so that a second one can confirm what the
first one shows. What does not fit a form is "could not be told", never a fault.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from mustsee.calls.llm import Message, Request, Sampling
from mustsee.errors import Unparsed, UserError
from mustsee.prompts import Prompts
from mustsee.replies.forms import (
    Form,
    Shape,
    form,
    free,
    list_of,
    number,
    object_with,
    one_of,
    record,
    whole,
)
from mustsee.server_probe.stimuli import (
    NumeralClip,
    Tone,
    draw_card,
    draw_numerals,
    play_tones,
    speak_digits,
)

T = TypeVar("T")
TONES: tuple[Tone, ...] = ("high", "low")
COLOURS = ("red", "green", "blue")
NOT_SHOWN = -1.0  # a time that says that the numeral is not shown
# The right reply of `FRUIT_FORM`.
FRUIT = {"colour": "green", "count": 7, "sizes": ["small", "large"]}


def _read_line(label: str) -> Callable[[str], str]:
    """Return a parser of the one line `LABEL: ...`, which raises Unparsed without it."""
    name = label.replace(" ", r"[\s_]+")
    line = re.compile(rf"^[\s>*_#`•-]*{name}[\s*_]*[:=][\s*_]*(.*?)[\s*_.`]*$", re.I | re.M)

    def read(reply: str) -> str:
        values = line.findall(reply)
        if len(values) != 1:
            raise Unparsed(f"it has {len(values)} lines '* {label}: ...'; write one")
        return values[0]

    return read


def _read_items(label: str, make: Callable[[str], T]) -> Callable[[str], tuple[T, ...]]:
    """Return a parser of a line with items between commas, or NONE."""
    read_line = _read_line(label)

    def read(reply: str) -> tuple[T, ...]:
        value = read_line(reply)
        if value.strip("[] ").casefold() in ("none", ""):
            return ()
        items = re.split(r"\s*[,;>]\s*|\s+", value.strip("[] "))
        return tuple(make(item) for item in items if item)

    return read


def _whole_number(item: str) -> int:
    if not re.fullmatch(r"\d{1,4}", item):
        raise Unparsed(f"{item[:20]!r} is not a numeral")
    return int(item)


def _tone(item: str) -> Tone:
    for tone in TONES:
        if item.casefold() == tone:
            return tone
    raise Unparsed(f"{item[:20]!r} is neither high nor low")


def _list_form(
    label: str, make: Callable[[str], T], item: Shape[Any], about: str
) -> Form[tuple[T, ...]]:
    """Return the form of a list of items, each as `item` or, in words, as `make` reads it."""
    shape = object_with(label.lower(), list_of(item, about))
    return form(text=_read_items(label, make), shape=shape)


NUMERALS_FORM: Form[tuple[int, ...]] = _list_form(
    "NUMERALS", _whole_number, whole("a numeral"),
    "every numeral that is shown, in order; empty if none is",
)  # fmt: skip
DIGITS_FORM: Form[tuple[int, ...]] = _list_form(
    "DIGITS", _whole_number, whole("a digit"),
    "every digit that is spoken, in order; empty if none is heard",
)  # fmt: skip
TONES_FORM: Form[tuple[str, ...]] = _list_form(
    "TONES", _tone, one_of(TONES, "a tone"), "every tone in order; empty if none is heard"
)


def times_form(numerals: Sequence[int]) -> Form[dict[int, float]]:
    """Return the form of the second at which each numeral is shown first."""
    names = {f"numeral_{n}": n for n in numerals}

    def by_numeral(**seconds: float) -> dict[int, float]:
        return {names[name]: second for name, second in seconds.items()}

    def read_words(reply: str) -> dict[int, float]:
        return {n: _seconds(_read_line(f"NUMERAL {n}")(reply)) for n in numerals}

    about = f"second at which it is shown first; {NOT_SHOWN:g} if it is not shown"
    return form(
        text=read_words, shape=record(by_numeral, **{name: number(about) for name in names})
    )


def _seconds(value: str) -> float:
    """Return seconds from "12", "12.5 s" or "0:12"."""
    if clock := re.fullmatch(r"(\d{1,2}):(\d{2}(?:\.\d+)?)", value):
        return 60 * int(clock[1]) + float(clock[2])
    plain = re.fullmatch(r"(-?\d+(?:\.\d+)?)\s*(?:s|sec|seconds?)?", value, re.IGNORECASE)
    if plain is None:
        raise Unparsed(f"{value[:20]!r} is not a number of seconds")
    return float(plain[1])


def _fruit_words(reply: str) -> dict[str, Any]:
    return {
        "colour": _read_line("COLOUR")(reply),
        "count": _whole_number(_read_line("COUNT")(reply)),
        "sizes": list(_read_items("SIZES", str)(reply)),
    }


def _fruit(colour: str, count: int, sizes: tuple[str, ...]) -> dict[str, Any]:
    return {"colour": colour, "count": count, "sizes": list(sizes)}


FRUIT_FORM: Form[dict[str, Any]] = form(
    text=_fruit_words,
    shape=record(
        _fruit,
        colour=one_of(COLOURS, "colour of the apples"),
        count=whole("number of the apples"),
        sizes=list_of(one_of(("small", "large"), "a size"), "sizes, in the order of the text"),
    ),
)


MOST_NUMERALS = 900  # numerals of three digits that there are


@dataclass(frozen=True, kw_only=True)
class ProbeSettings:
    """`images`: numbers of images in one request, rising. `first_seconds`: length of the shortest
    video; it is doubled up to `longest_seconds`. `digits`: spoken digits, and tones, of the clips
    with sound. `file_urls`: whether a video is also sent by its file URL. `prefix_words`: words of
    the text that several requests share. `parameters`: sent once besides those of every request.
    `in_flight`: calls at once in the ramp, which doubles from one; 0: no ramp. `max_tokens`: of one
    reply, and more where it lists many numerals. `failures`: failures of one call before it is
    given up. `patience`: seconds, as of any endpoint.
    """

    images: Sequence[int] = (8, 48)
    first_seconds: int = 8
    longest_seconds: int = 128
    digits: int = 6
    file_urls: bool = False
    prefix_words: int = 2400
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    in_flight: int = 16
    max_tokens: int = 1500
    failures: int = 2
    patience: float = 90.0

    def __post_init__(self) -> None:
        if list(self.images) != sorted(set(self.images)) or not all(
            1 <= n <= MOST_NUMERALS for n in self.images
        ):
            raise UserError(
                f"images={list(self.images)!r}: rising numbers from 1 to {MOST_NUMERALS}, or []"
            )
        if not 4 <= self.first_seconds <= self.longest_seconds <= MOST_NUMERALS:
            raise UserError(
                f"first_seconds={self.first_seconds!r}, longest_seconds={self.longest_seconds!r}: "
                f"4 <= first_seconds <= longest_seconds <= {MOST_NUMERALS}"
            )
        if not 4 <= self.digits <= 20:
            raise UserError(f"digits={self.digits!r}: from 4 to 20")
        if self.in_flight < 0 or self.prefix_words < 200 or self.max_tokens < 64:
            raise UserError(
                f"in_flight={self.in_flight!r}, prefix_words={self.prefix_words!r}, "
                f"max_tokens={self.max_tokens!r}: at least 0, 200 and 64"
            )

    @property
    def lengths(self) -> tuple[int, ...]:
        """Lengths of the videos, in seconds."""
        lengths = [self.first_seconds]
        while lengths[-1] < self.longest_seconds:
            lengths.append(min(2 * lengths[-1], self.longest_seconds))
        return tuple(lengths)

    @property
    def levels(self) -> tuple[int, ...]:
        """Calls at once in each step of the ramp."""
        levels = [1] if self.in_flight else []
        while levels and levels[-1] < self.in_flight:
            levels.append(min(2 * levels[-1], self.in_flight))
        return tuple(levels)


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
