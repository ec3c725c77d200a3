"""The scripted model of the proving set: it decides from the frames and lines that it receives.

As a verifier it decodes the JPEGs and videos, measures the shape in each frame, reads the lines,
and reports them. As a guesser it knows which colour lemons have, and otherwise guesses. As a writer
it repairs what it can see. It knows only forms and colours. A share of its replies is noise, drawn
from the content of the request: another letter, prose, a refusal.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from typing import Any

import numpy as np

from benchmarks import sight_videos
from benchmarks.harness import user_content
from loopback.replies import decode_data_url, video_urls
from mustsee.prompts import fenced_texts
from mustsee.records import Span
from mustsee.verify.look_replies import HOLDS, OPEN, RIGHT, WRONG, OptionVerdict, say

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
FPS = 2.0  # frames per second that are measured of a video
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
    """The measured content of one frame."""

    form: str
    colour: str
    place: str
    bar: str


Shot = tuple[float, FrameFacts]  # time in seconds of the video, and content


@dataclass(frozen=True, kw_only=True)
class SeenValue:
    """A value seen from `start` to `end` seconds."""

    value: str
    start: float
    end: float


@dataclass(frozen=True, kw_only=True)
class ShownValues:
    """What a request shows of the things that its question is about. `seen`: for each thing the
    values. `leads`: the spans in which the transcript names it.
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
    """Reply to chat payloads; a share `noise` of the replies is spoilt."""

    noise: float = 0.1

    def __call__(self, payload: Mapping[str, Any]) -> str:
        limits = ("response_format", "max_tokens", "max_completion_tokens")
        request = {name: payload[name] for name in payload if name not in limits}
        content = json.dumps(request, sort_keys=True)
        rng = random.Random(hashlib.sha256(content.encode()).hexdigest())
        parts, text = user_content(payload)
        shots = frames_shown(parts, text)
        noisy = rng.random() < self.noise
        if noisy and rng.random() < 0.5:
            return rng.choice(("It depends on how one sees it.", "I'm sorry, I can't help."))
        if "For each question rank all" in text:
            return guess_replies(text, rng, noisy=noisy)
        if "Rank all" in text:
            return guess_reply(text, rng, noisy=noisy)
        if "Give the answer that is most probably right." in text:
            return in_words(text, rng)
        if "\nMend it." in text:
            return repair_reply(text, shots, rng, noisy=noisy)
        return look_reply(text, shots, rng, noisy=noisy)


def guess_reply(text: str, rng: random.Random, *, noisy: bool) -> str:
    """Rank the options: the one that the comparison names first, otherwise in any order."""
    options = dict(_OPTION.findall(text))
    letters = list(options)
    rng.shuffle(letters)
    like = re.search(r"the same as ([^?]+)\?", text)
    if like and not noisy:
        letters.sort(key=lambda x: sight_videos.LIKE.get(options[x]) != like[1])
    why = f"As {like[1]} are." if like else "A guess."
    return f"* ANSWER: {' > '.join(letters)}\n* EXPLANATION: {why}"


def guess_replies(text: str, rng: random.Random, *, noisy: bool) -> str:
    """Rank the options of each of several questions."""
    blocks = re.split(r"^QUESTION (\d+)", fenced_texts(text)[-1], flags=re.MULTILINE)[1:]
    lines: list[str] = []
    for number, block in zip(blocks[::2], blocks[1::2], strict=True):
        ranked, why = guess_reply(block, rng, noisy=noisy).split("\n")
        lines.append(f"QUESTION {number}: {ranked.partition(': ')[2]} | {why.partition(': ')[2]}")
    return "\n".join(lines)


def in_words(text: str, rng: random.Random) -> str:
    """Guess an answer in words at random."""
    question = fenced_texts(text)[0].splitlines()[0]
    values = vocabulary(question, (", then " if "later, at" in question else "",))
    return f"* ANSWER: {rng.choice(values)}\n* EXPLANATION: A guess."


def look_reply(text: str, shots: Sequence[Shot], rng: random.Random, *, noisy: bool) -> str:
    """Report which options the frames and lines show, and where."""
    head, _, tail = text.rpartition("A question on the video")
    question = fenced_texts(tail)[0].splitlines()[0]
    options = [option for _, option in _OPTION.findall(fenced_texts(tail)[0])]
    finding = find_things(question, head, shots)
    if in_words := not options:
        options = sorted(finding.values)
    fits = finding.fitting_options(options)
    choice = fits[0] if len(fits) == 1 else len(options) + (len(fits) > 1)
    if noisy:
        choice = rng.choice([i for i in range(len(options) + 2) if i != choice])
    sighted = {
        option: {s for each in product(*finding.seen) for s in each
                 if ", then ".join(s.value for s in each) == option}
        for option in (options[i] for i in fits)
    }  # fmt: skip
    every = sorted(set().union(*sighted.values()), key=lambda s: s.start)
    seen = "; ".join(f"I see {s.value} at {s.start:.1f} s" for s in every)
    seen = f"{seen or 'What decides it is not shown'}."
    leads = tuple(Span(*lead) for lead in finding.leads)
    if in_words:
        spans = [_written(Span(s.start, s.end) for s in every), _written(() if fits else leads)]
        answer = [*options, "CANNOT BE TOLD", "SEVERAL"][choice]
        return (
            f"* SEEN: {seen}\n* PREMISE: {HOLDS}\n* EVIDENCE: {spans[0]}\n* LOOK: {spans[1]}\n"
            f"* ANSWER: {answer}"
        )
    verdicts: list[OptionVerdict] = []
    for number, option in enumerate(options):
        if choice == len(options) and finding.values and not noisy:
            verdicts.append(OptionVerdict(WRONG))
        elif choice == len(options):
            verdicts.append(OptionVerdict(OPEN, leads))
        elif choice in (number, len(options) + 1):
            where = sorted((s.start, s.end) for s in sighted.get(option, ()))
            where = where or [(t, t + 1) for t, _ in rng.sample(list(shots), min(1, len(shots)))]
            fits_here = number in fits or noisy
            verdicts.append(
                OptionVerdict(RIGHT if fits_here else WRONG, tuple(Span(*w) for w in where))
            )
        else:
            verdicts.append(OptionVerdict(WRONG))
    return say(verdicts, seen)


def _written(spans: Iterable[Span]) -> str:
    return "; ".join(f"{s.start:.1f}-{s.end:.1f}" for s in spans) or "NONE"


def repair_reply(text: str, shots: Sequence[Shot], rng: random.Random, *, noisy: bool) -> str:
    """Repair the question from the frames and the explanations, as a sensible writer would."""
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
        if len(seen) == 1 and answer not in seen:
            answer = next(iter(seen))
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
    """Return `kept`, filled up to `count` from the pool."""
    left = [v for v in pool if v not in not_these and v not in kept]
    rng.shuffle(left)
    return [*kept, *left][:count]


def vocabulary(question: str, options: Sequence[str]) -> list[str]:
    """Return every value that could be an option of the question."""
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
    """Return the values that frames and lines show of the things in a question."""
    lines = [(float(a), float(b), spoken) for a, b, spoken in _LINE.findall(text)]
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
        for start, end, spoken in lines if stop else ():
            if stop not in re.findall(r"\w+", spoken):
                continue
            leads.append((start, end))
            values = {vars(p)[attribute] for t, p in shots if start <= t <= end}
            if len(values) == 1:
                sightings.append(SeenValue(value=values.pop(), start=start, end=end))
        seen.append(tuple(sightings))
    return ShownValues(seen=tuple(seen), leads=tuple(leads))


def runs(shots: Sequence[tuple[float, FrameFacts]], form: str, attribute: str) -> list[SeenValue]:
    """Return the spans of consecutive frames that show the same shape of a form."""
    spans: list[SeenValue] = []
    for (_, before), (time, now) in pairwise([(0.0, None), *shots]):
        if now is None or now.form != form:
            continue
        start = spans.pop().start if before == now else time
        spans.append(SeenValue(value=str(vars(now)[attribute]), start=start, end=time))
    return spans


def frames_shown(parts: Sequence[Mapping[str, Any]], text: str) -> list[Shot]:
    """Return the content of each image at the time that the text gives, and of each clip the
    content of its frames twice a second.
    """
    urls = video_urls(parts)
    images = [p["image_url"]["url"] for p in parts if p["type"] == "image_url"]
    times = [float(t) for t in _PICTURE.findall(text)]
    shots = list(zip(times, map(measure_frame, images), strict=True))
    for start, url in zip(map(float, _CLIP.findall(text)), urls, strict=True):
        shots += [(start + time, shape) for time, shape in watch_video(url)]
    return shots


@lru_cache(maxsize=256)
def watch_video(url: str) -> tuple[Shot, ...]:
    """Return the content of a video's frames, at times from its beginning."""
    import av

    shots: list[Shot] = []
    with av.open(io.BytesIO(decode_data_url(url)), "r") as container:
        for frame in container.decode(video=0):
            time = float(frame.time or 0.0)
            if time + 0.001 >= len(shots) / FPS:
                shots.append((time, shape(frame.to_ndarray(format="rgb24"))))
    return tuple(shots)


@lru_cache(maxsize=1 << 16)
def measure_frame(url: str) -> FrameFacts:
    """Return the content of a JPEG."""
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
    """Return the nearest of the named colours."""
    middle = np.median(pixels.reshape(-1, 3), axis=0)
    return min(TONES, key=lambda name: float(np.abs(middle - TONES[name]).sum()))
