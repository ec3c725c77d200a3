"""The verifier and the captioner without a model. The verifier decides questions whose phrases it
can measure in the frames that it is shown, and statements; other questions stay unverified.

One fitting option is the answer. None, or frames with doubtful measurements, make the question
undecidable, and several make it ambiguous. For composed questions without options all on-screen
texts, lines and states that it is shown are the candidates. Several that fit make the answer
"several", and questions of other forms stay unverified.

Captions say the light and colours of each frame, as the pixel captioner writes them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import numpy as np

from mustsee.calls.llm import Request, VideoClip
from mustsee.errors import BadRow
from mustsee.media.frames import encode
from mustsee.media.pixels import captions
from mustsee.offline.facts_phrases import check_statement, states_of
from mustsee.offline.facts_questions import OptionFits, asked_kind, decide
from mustsee.offline.filters import giveaway, ranking_of
from mustsee.offline.looking import Evidence, images_of, likeness, read_all, sort_frames
from mustsee.questions.checks import words
from mustsee.records import Keyframe, Span
from mustsee.verify.conditions.seen import merge_spans
from mustsee.verify.look_replies import HOLDS, OPEN, RIGHT, WRONG, OptionVerdict, say

QUALITY = 85  # JPEG quality of a clip's frame, 0 to 100
MOMENT_REACH_S = 1.0  # seconds before and after a time that are named as evidence with it
GLIMPSE_GAP_S = 3.0  # seconds between frames whose times are not known
SAME_READING = 0.85  # likeness from which two readings are the same text


def look(request: Request) -> str:
    """Write a verdict on each option, with the spans around the measured times.

    Raises BadRow for a question of an unknown form.
    """
    options = tuple(request.variables["options"])
    shown = evidence_shown(request)
    fitting = OptionFits()
    if shown.frames:
        fitting = _answer(request.variables["question"], options, shown)
    measured = named_spans(fitting.times)
    if fitting.fits and not measured:  # All that is shown decides that something is absent.
        measured = (Span(shown.start, shown.end),)
    other = OptionVerdict(WRONG) if fitting.fits else OptionVerdict(OPEN, measured)
    verdicts = [
        OptionVerdict(RIGHT, measured) if i in fitting.fits else other for i in range(len(options))
    ]
    return say(verdicts, _why(len(fitting.fits)))


def evidence_shown(request: Request) -> Evidence:
    """Return the frames and lines of a look and of the earlier ones in its chat."""
    variables = request.variables
    times = (*variables["earlier_frames"], *variables["frames"])
    lines = sorted(
        (*variables["earlier_lines"], *variables["lines"]), key=lambda x: (x.start, x.end)
    )
    extent = variables.get("video")
    return Evidence(
        frames=sort_frames(times, images_of(request)), lines=tuple(lines), extent=extent
    )


def _answer(question: str, options: tuple[str, ...], evidence: Evidence) -> OptionFits:
    if (statement := check_statement(question, evidence)) is not None:
        return OptionFits(
            fits=(options.index("Yes" if statement[0] else "No"),), times=tuple(statement[1])
        )
    return decide(question, options, evidence)


def _why(count: int) -> str:
    if count == 1:
        return "It is the only option that fits what was measured."
    return "Several options fit what was measured." if count else "Nothing measured decides it."


def named_spans(times: Sequence[float]) -> tuple[Span, ...]:
    """Return the joined spans around times."""
    around = [Span(max(0.0, time - MOMENT_REACH_S), time + MOMENT_REACH_S) for time in times]
    return merge_spans(around, Span(0.0, float("inf")))


def glimpse(request: Request) -> str:
    """Rank the options of each question of which the few frames decide one, in the order in which
    they are shown: this one first, the others by their words. NONE for the other questions.
    """
    jpegs = images_of(request)
    times = [GLIMPSE_GAP_S * n for n in range(len(jpegs))]
    extent = Span(0.0, times[-1] + GLIMPSE_GAP_S) if len(times) > 1 else None
    shown = Evidence(frames=sort_frames(times, jpegs), lines=(), extent=extent)
    ranked: list[str] = []
    for number, one in enumerate(request.variables["asked"], 1):
        question, options = one["question"], tuple(one["options"])
        try:
            fits = decide(question, options, shown).fits
        except BadRow:
            fits = ()
        if len(fits) == 1:
            scores = giveaway(question, options, request.seed)
            scores[fits[0]] = scores.max() + 1
            ranked.append(f"QUESTION {number}: {ranking_of(scores)} | what the pictures show")
        else:
            ranked.append(f"QUESTION {number}: NONE | {_why(len(fits))}")
    return "\n".join(ranked)


def in_words(request: Request) -> str:
    """Write `* ANSWER: the words “EGGS”`, SEVERAL or CANNOT BE TOLD, with spans as the verifier
    with options does. Raises BadRow for a question of an unknown form.
    """
    shown, asked = evidence_shown(request), request.variables["question"]
    candidates = _candidates(asked, shown)
    fitting = decide(asked, candidates, shown) if shown.frames else OptionFits()
    answers = [candidates[n] for n in fitting.fits]
    answer = "SEVERAL" if len(answers) > 1 else next(iter(answers), "CANNOT BE TOLD")
    spans = "; ".join(f"{s.start:.1f}-{s.end:.1f}" for s in named_spans(fitting.times)) or "NONE"
    evidence, to_look_at = (spans, "NONE") if answers else ("NONE", spans)
    reason = "Several answers fit" if len(answers) > 1 else f"{answer} is all that fits"
    return (
        f"* SEEN: {reason if answers else 'Nothing measured decides it'}.\n"
        f"* PREMISE: {HOLDS}\n* EVIDENCE: {evidence}\n* LOOK: {to_look_at}\n* ANSWER: {answer}"
    )


def _candidates(question: str, evidence: Evidence) -> tuple[str, ...]:
    """Return the phrases of the kind that a question asks for. Raises BadRow for another kind."""
    kind = asked_kind(question)
    if kind == "text":
        readings = (line for frame in read_all(evidence.frames) for line in frame.lines)
        return tuple(f"the words “{text}”" for text in _once(readings))
    if kind == "line":
        return tuple(f"“{text}”" for text in _once(line.text for line in evidence.lines))
    if kind == "state":
        return tuple(states_of(evidence.frames))
    raise BadRow("the rules cannot answer this question in words; vet/verifier=openai can")


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct readings."""
    distinct: list[str] = []
    for text in texts:
        if words(text) and all(likeness(text, other) < SAME_READING for other in distinct):
            distinct.append(text)
    return tuple(distinct)


def frames(request: Request) -> str:
    """Write a numbered sentence for each frame to describe, without its neighbours."""
    variables = request.variables
    first = 0 if variables["before"] is None else 1
    described = images_of(request)[first : first + len(variables["times"])]
    return "\n".join(f"{i}: {text}" for i, text in enumerate(_sentences(described), 1))


def clips(request: Request) -> str:
    """Write a numbered sentence for the middle frame of each clip."""
    middles = [_middle(clip) for message in request.messages for clip in message.clips]
    return "\n".join(f"{i}: {text}" for i, text in enumerate(_sentences(middles), 1))


def caption_by_type(request: Request) -> str:
    """Describe light and colours of the first image; the rules recognise no people."""
    (text, *_) = _sentences(images_of(request)[:1]) or ["nothing"]
    return f"PEOPLE: none\nMOOD: none\nCAPTION: {text}"


def _sentences(jpegs: Sequence[bytes]) -> list[str]:
    keyframes = [Keyframe(time=float(i), shot=0, jpeg=jpeg) for i, jpeg in enumerate(jpegs)]
    return [text for _, text in captions(keyframes, (), ())]


def _middle(clip: VideoClip) -> bytes:
    import av
    from av.error import FFmpegError

    try:
        with av.open(io.BytesIO(clip.mp4), "r") as video:
            count = sum(1 for _ in video.decode(video=0))
        with av.open(io.BytesIO(clip.mp4), "r") as video:
            frame = next(islice(video.decode(video=0), count // 2, None))
    except FFmpegError:
        return b""  # The captioner treats this as a damaged frame.
    return encode(frame.to_ndarray(format="bgr24").astype(np.uint8, copy=False), QUALITY)


RULES: dict[str, Callable[[Request], str]] = {
    "filters/sight": look,
    "filters/sight_open": in_words,
    "filters/glimpse": glimpse,
    "caption/frames": frames,
    "caption/clips": clips,
    "caption/typed": caption_by_type,
    "caption/wearer": frames,
    "caption/wearer_clips": clips,
}
