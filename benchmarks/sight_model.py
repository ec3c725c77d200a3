"""A model by script for the proving set: it decides from the pictures and lines that it is sent.

As a verifier it decodes the JPEGs and videos, measures the shape in each picture, reads the lines,
and says what they show; as a guesser it knows what lemons are like, and else guesses; as a writer
it mends what it can see. It knows nothing of the videos but what forms and colours are. A share of
its replies is noise, drawn from the content of the request: another letter, prose, a refusal.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from typing import Any

import numpy as np

from benchmarks import sight_videos
from loopback.videos import decode_data_url, video_urls
from mustsee.prompts import fenced_texts

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
FPS = 2.0  # pictures of a video that are looked at in a second
TONES = {**sight_videos.COLOURS, **sight_videos.GREYS}
_LINE = re.compile(r"^\[(\d+\.\d)-(\d+\.\d)\] (.*)$", re.MULTILINE)
_PICTURE = re.compile(r"^picture \d+, at (\d+\.\d) s", re.MULTILINE)
_CLIP = re.compile(r"^clip \d+ shows (\d+\.\d)-", re.MULTILINE)
_OPTION = re.compile(r"^([A-Z])\. (.*)$", re.MULTILINE)
_REFERENCE = re.compile(
    rf"\bat ([A-Z][a-z]+)|\bthe ({'|'.join(sight_videos.RARE)})\b|\b(bar) along"
)
_SEEN = re.compile(r"\bI see (.+?) at \d")


@dataclass(frozen=True, kw_only=True)
class FrameFacts:
    """What one picture shows, as measured."""

    form: str
    colour: str
    place: str
    bar: str


Shot = tuple[float, FrameFacts]  # and when, in seconds of the video


@dataclass(frozen=True, kw_only=True)
class SeenValue:
    """A value that was seen, from `start` to `end` seconds."""

    value: str
    start: float
    end: float


@dataclass(frozen=True, kw_only=True)
class ShownValues:
    """What a request shows of its question: for every thing that is asked about, the values seen;
    and, where a line or nothing says so, where one would have to look.
    """

    seen: tuple[tuple[SeenValue, ...], ...]
    leads: tuple[tuple[float, float], ...]

    def fitting_options(self, options: Sequence[str]) -> list[int]:
        return [i for i, option in enumerate(options) if option in self.values]

    @property
    def values(self) -> set[str]:
        return {", then ".join(s.value for s in each) for each in product(*self.seen)}


@dataclass(frozen=True)
class Scripted:
    """Replies to chat payloads, a share of `noise` of them spoilt."""

    noise: float = 0.1

    def __call__(self, payload: Mapping[str, Any]) -> str:
        told = {name: payload[name] for name in payload if name != "response_format"}
        content = json.dumps(told, sort_keys=True)
        rng = random.Random(hashlib.sha256(content.encode()).hexdigest())
        asked: Any = next(m["content"] for m in payload["messages"] if m["role"] == "user")
        parts: Any = [{"type": "text", "text": asked}] if isinstance(asked, str) else asked
        text = "\n".join(p["text"] for p in parts if p["type"] == "text")
        shots = frames_shown(parts, text)
        noisy = rng.random() < self.noise
        if noisy and rng.random() < 0.5:
            return rng.choice(("It depends on how one sees it.", "I'm sorry, I can't help."))
        if "Rank all" in text:
            return guess_reply(text, rng, noisy=noisy)
        if "Give the answer that is most probably right." in text:
            return in_words(text, rng)
        if "\nMend it." in text:
            return repair_reply(text, shots, rng, noisy=noisy)
        return look_reply(text, shots, rng, noisy=noisy)


def guess_reply(text: str, rng: random.Random, *, noisy: bool) -> str:
    """A ranking: what is like lemons is yellow; else any order."""
    options = dict(_OPTION.findall(text))
    letters = list(options)
    rng.shuffle(letters)
    like = re.search(r"the same as ([^?]+)\?", text)
    if like and not noisy:
        letters.sort(key=lambda x: sight_videos.LIKE.get(options[x]) != like[1])
    why = f"As {like[1]} are." if like else "A guess."
    return f"* ANSWER: {' > '.join(letters)}\n* EXPLANATION: {why}"


def in_words(text: str, rng: random.Random) -> str:
    """A guess, as good as any."""
    question = fenced_texts(text)[0].splitlines()[0]
    values = vocabulary(question, (", then " if "later, at" in question else "",))
    return f"* ANSWER: {rng.choice(values)}\n* EXPLANATION: A guess."


def look_reply(text: str, shots: Sequence[Shot], rng: random.Random, *, noisy: bool) -> str:
    """A look: which options the pictures and lines show, and where."""
    head, _, tail = text.partition("A question on the video")
    question = fenced_texts(tail)[0].splitlines()[0]
    options = [option for _, option in _OPTION.findall(tail)][:-2]
    finding = find_things(question, head, shots)
    if in_words := not options:
        options = sorted(finding.values)
    fits = finding.fitting_options(options)
    choice = fits[0] if len(fits) == 1 else len(options) + (len(fits) > 1)
    if noisy:
        choice = rng.choice([i for i in range(len(options) + 2) if i != choice])
    shown = {
        (s.start, s.end): s
        for each in product(*finding.seen)
        if ", then ".join(s.value for s in each) in {options[i] for i in fits}
        for s in each
    }
    named = [
        "; ".join(f"{a:.1f}-{b:.1f}" for a, b in some) or "NONE"
        for some in ((sorted(shown), ()) if fits else ((), finding.leads))
    ]
    answer = [*options, "CANNOT BE TOLD", "SEVERAL"][choice] if in_words else LETTERS[choice]
    told = "; ".join(f"I see {s.value} at {s.start:.1f} s" for s in shown.values())
    return (
        f"* SEEN: {told or 'What decides it is not shown'}.\n"
        f"* EVIDENCE: {named[0]}\n* LOOK: {named[1]}\n* ANSWER: {answer}"
    )


def repair_reply(text: str, shots: Sequence[Shot], rng: random.Random, *, noisy: bool) -> str:
    """The question as a sensible writer mends it, by what is seen and what was explained."""
    head, _, rest = text.partition("The question as it is now")
    block, _, found_out = rest.partition("What was found:")
    question = re.findall(r"^QUESTION 1: \(\w+\) (.*)$", block, re.MULTILINE)[0]
    answer = re.findall(r"^CORRECT ANSWER: (.*)$", block, re.MULTILINE)[0]
    wrong = re.findall(r"^WRONG ANSWER \d+: (.*)$", block, re.MULTILINE)
    evidence = re.findall(r"^EVIDENCE: (.*)$", block, re.MULTILINE)[0]
    reason, _, replies = found_out.partition("Those who tried this version explained:")
    pool = vocabulary(question, (answer, *wrong))
    finding = find_things(question, head, shots)
    seen = {pool[i] for i in finding.fitting_options(pool)} | (
        set(_SEEN.findall(replies)) & set(pool)
    )
    if "more than one option fits" in reason:
        wrong = fresh([w for w in wrong if w not in seen], len(wrong), pool, {answer, *seen}, rng)
    elif "answer disputed" in reason and len(seen) == 1:
        true = seen.pop()
        wrong = [w for w in (answer, *wrong) if w != true][: len(wrong)]
        answer = true
    elif "picked out without the video" in found_out:
        question = re.sub(r", the same as [^?]+\?", "?", question)
        wrong = fresh([], len(wrong), pool, {answer, *seen}, rng)
    else:
        return "NONE"
    if noisy:
        answer, wrong[0] = wrong[0], answer
    lines = [f"WRONG ANSWER {n}: {w}" for n, w in enumerate(wrong, 1)]
    return "\n".join(
        (f"QUESTION 1: (kind) {question}", f"CORRECT ANSWER: {answer}", *lines,
         f"EVIDENCE: {evidence}")
    )  # fmt: skip


def fresh(
    kept: Sequence[str], count: int, pool: Sequence[str], not_these: set[str], rng: random.Random
) -> list[str]:
    """`kept`, filled up from the pool."""
    left = [v for v in pool if v not in not_these and v not in kept]
    rng.shuffle(left)
    return [*kept, *left][:count]


def vocabulary(question: str, options: Sequence[str]) -> list[str]:
    """Everything that could be an option of the question."""
    if question.startswith("Where"):
        values = list(sight_videos.PLACES)
    elif question.startswith("Of which form"):
        values = [*sight_videos.COMMON, *sight_videos.RARE]
    else:
        values = list(
            sight_videos.GREYS if question.startswith("How bright") else sight_videos.COLOURS
        )
    if ", then " in options[0]:
        return [f"{a}, then {b}" for a in values for b in values if a != b]
    return values


def find_things(question: str, text: str, shots: Sequence[Shot]) -> ShownValues:
    """What pictures and lines show of the things that a question asks about."""
    lines = [(float(a), float(b), said) for a, b, said in _LINE.findall(text)]
    shots = sorted(shots, key=lambda shot: shot[0])
    attribute = (
        "place" if question.startswith("Where")
        else "form" if question.startswith("Of which form")
        else "colour"
    )  # fmt: skip
    seen: list[tuple[SeenValue, ...]] = []
    leads: list[tuple[float, float]] = []
    for stop, form, bar in _REFERENCE.findall(question):
        sightings: list[SeenValue] = []
        if bar:
            sightings = [SeenValue(value=p.bar, start=t, end=t) for t, p in shots[:1]]
        elif form:
            sightings = runs([(t, p) for t, p in shots], form, attribute)
        for start, end, said in lines if stop else ():
            if stop not in re.findall(r"\w+", said):
                continue
            leads.append((start, end))
            values = {vars(p)[attribute] for t, p in shots if start <= t <= end}
            if len(values) == 1:
                sightings.append(SeenValue(value=values.pop(), start=start, end=end))
        seen.append(tuple(sightings))
    return ShownValues(seen=tuple(seen), leads=tuple(leads))


def runs(shots: Sequence[tuple[float, FrameFacts]], form: str, attribute: str) -> list[SeenValue]:
    """The stretches of pictures one after another that show one shape of a form."""
    found: list[SeenValue] = []
    for (_, before), (time, now) in pairwise([(0.0, None), *shots]):
        if now is None or now.form != form:
            continue
        start = found.pop().start if before == now else time
        found.append(SeenValue(value=str(vars(now)[attribute]), start=start, end=time))
    return found


def frames_shown(parts: Sequence[Mapping[str, Any]], text: str) -> list[Shot]:
    """What each picture shows, at its time as the text says it; of videos, pictures twice a second,
    from where the text says that the clip begins.
    """
    urls = video_urls(parts)
    pictures = [p["image_url"]["url"] for p in parts if p["type"] == "image_url"]
    times = [float(t) for t in _PICTURE.findall(text)]
    shots = list(zip(times, map(measure_frame, pictures), strict=True))
    for start, url in zip(map(float, _CLIP.findall(text)), urls, strict=True):
        shots += [(start + time, shown) for time, shown in watch_video(url)]
    return shots


@lru_cache(maxsize=256)
def watch_video(url: str) -> tuple[Shot, ...]:
    """A video's pictures, on its own clock."""
    import av

    found: list[Shot] = []
    with av.open(io.BytesIO(decode_data_url(url)), "r") as container:
        for frame in container.decode(video=0):
            time = float(frame.time or 0.0)
            if time + 0.001 >= len(found) / FPS:
                found.append((time, shape(frame.to_ndarray(format="rgb24"))))
    return tuple(found)


@lru_cache(maxsize=1 << 16)
def measure_frame(url: str) -> FrameFacts:
    """What a JPEG shows."""
    from PIL import Image

    image = Image.open(io.BytesIO(decode_data_url(url))).convert("RGB")
    return shape(np.asarray(image))


def shape(image: np.ndarray) -> FrameFacts:
    """Measure the shape in an RGB image [h, w, 3] of bytes: compare what differs from the grey
    ground with every form.
    """
    upper = image[: -sight_videos.BAR - 2]
    red, green, blue = (upper[..., channel].astype(np.int16) for channel in range(3))
    light = red + green + blue  # three times the brightness
    high = np.maximum(np.maximum(red, green), blue)
    low = np.minimum(np.minimum(red, green), blue)
    mask = (high - low > 60) | (light < 3 * 82) | (light > 3 * 162)
    rows, columns = np.flatnonzero(mask.sum(1) > 3), np.flatnonzero(mask.sum(0) > 3)
    if not len(rows) or not len(columns):
        return FrameFacts(
            form="none", colour="none", place="none", bar=color_name(image[-sight_videos.BAR // 2])
        )
    top, bottom, left, right = rows[0], rows[-1], columns[0], columns[-1]
    cut = mask[top : bottom + 1, left : right + 1]
    forms = (*sight_videos.COMMON, *sight_videos.RARE)
    form = max(forms, key=lambda name: np.count_nonzero(form_mask(name, *cut.shape) == cut))
    middle = np.array([(left + right) / 2, (top + bottom) / 2])
    place = min(
        sight_videos.PLACES, key=lambda name: float(np.hypot(*(middle - sight_videos.PLACES[name])))
    )
    return FrameFacts(
        form=form,
        colour=color_name(upper[mask]),
        place=place,
        bar=color_name(image[-sight_videos.BAR // 2]),
    )


@lru_cache(maxsize=1 << 12)
def form_mask(form: str, height: int, width: int) -> np.ndarray:
    """Return a form that fills a box of this size [height, width], as booleans."""
    y = np.linspace(-1, 1, height)[:, None] * np.ones(width)
    x = np.linspace(-1, 1, width) * np.ones(height)[:, None]
    return sight_videos.inside(form, x, y)


def color_name(pixels: np.ndarray) -> str:
    """The nearest of the colours that have names."""
    middle = np.median(pixels.reshape(-1, 3), axis=0)
    return min(TONES, key=lambda name: float(np.abs(middle - TONES[name]).sum()))
