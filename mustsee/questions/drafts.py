"""Questions as models write them: their labelled fields, checked, given an id, options shuffled.

All recipes ask for one text form,

    QUESTION 1: (counting) How many eggs are broken into the bowl?
    CORRECT ANSWER: Three
    EVIDENCE: 18.5-22.0
    WRONG ANSWER 1: Two

and models drift from it: bold labels, list numbers, no colon, the tag before the colon, letters
for numbers ("Wrong Answer A :"), "WRONG ANSWERS:" over a list, several fields on one line, prose
before and after. What can be understood is read (`mustsee.questions.replies`, where the JSON form
is); what cannot raises `Unparsed` with the reason, which the model is then told.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mustsee.errors import Unparsed
from mustsee.questions.checks import fault
from mustsee.records import Provenance, Question, Span

LABELS: Mapping[str, str] = {
    "question": r"question",
    "answer": r"(?:correct|right|true)\s+answer|answer",
    "wrong": r"(?:wrong|incorrect|false)\s+(?:answer|option)s?|decoys?|distractors?",
    "evidence": r"evidence",
}
_LOUD = (
    r"(?:correct|CORRECT|Correct|wrong|WRONG|Wrong|incorrect|INCORRECT|Incorrect)\s+(?i:answers?)"
)
_INLINE = re.compile(rf"[ \t]+(?=\**(?:{_LOUD}|EVIDENCE)\s*(?:\d+|[A-Z])?\s*\**\s*:)")
_MARKS = r"[\s>*_#`•\-]*"
_CLOCK = (  # of bounded length: a row of digits is no time, and would be tried from each of them
    r"(?<!\d)(?<!\d\.)(?:(?:(\d{1,6}):)?(\d{1,2}):(\d{2}(?:\.\d{1,20})?)"
    r"|(\d{1,9}(?:\.\d{1,20})?))(?!\.?\d)"
)
_UNIT = r"\s*(?:s|sec|secs|seconds)?\b"
_RANGE = re.compile(rf"{_CLOCK}{_UNIT}\s*(?:-|–|—|to|until|\.\.+)\s*{_CLOCK}{_UNIT}", re.IGNORECASE)
_INSTANT = re.compile(rf"{_CLOCK}{_UNIT}", re.IGNORECASE)
_LISTED = re.compile(r"^\s*(?:[-*•]|[*_]*\(?(?:\d{1,2}|[A-Ha-h])[.):：][*_]*)\s+(.*)$")
END_TOLERANCE_S = 1.0  # seconds by which a model may miss the ends of a video


@dataclass(frozen=True, kw_only=True)
class LabelledField:
    """One labelled field of a reply: `QUESTION 2: (counting) How many?` has the label "question",
    the number "2", the tag "counting" and the text "How many?".
    """

    label: str
    text: str
    number: str = ""
    tag: str = ""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A question and its answer as a model gave them. `evidence`: where in the video the answer
    shows, as far as the model said.
    """

    question: str
    answer: str
    tag: str = ""
    evidence: tuple[Span, ...] = ()
    decoys: tuple[str, ...] = ()


_PAIRED = re.compile(r"(?<!\w)(\*{1,3}|_{1,3})(?=\S)(.+?)(?<=\S)\1(?!\w)|`([^`]+)`")
_HALF = re.compile(r"(?<!\w)(?:\*+|`+|__+)(?=\S)|(?<=\S)(?:\*+|`+|__+)(?!\w)")


def plain(text: str) -> str:
    """Text without markdown, paired quotes around it, and doubled spaces. Emphasis goes in pairs;
    a half is left where a label has taken the other.
    """
    text = " ".join(text.split())
    while (bare := _PAIRED.sub(lambda m: m[2] or m[3], text)) != text:
        text = bare
    text = _HALF.sub("", text).strip(" -–—")
    quoted = re.fullmatch(r"[\"“]([^\"“”]+)[\"”]|[‘']([^‘’']+)['’]", text)
    return (quoted[1] or quoted[2]).strip() if quoted else text


def fields(reply: str, labels: Mapping[str, str] = LABELS) -> list[LabelledField]:
    """The labelled fields of a reply, in order. `labels`: name -> pattern.

    A field goes on over the following lines and ends at the next label, or at a blank line once it
    has text; what stands outside of fields is left out.
    """
    names = "|".join(f"(?P<{name}>{pattern})" for name, pattern in labels.items())
    head = re.compile(
        rf"^{_MARKS}(?:\d+\s*[.)]\s*)?{_MARKS}(?:{names})\b[\s*_]*(?:(?:no\.?|number|\#)\s*)?"
        r"(?P<number>\d{1,6}|[A-H](?=[\s*_]*(?:[:：(\[]|[-–—.)]\s)))?[\s*_]*"
        r"(?:[(\[](?P<tag>[^)\]]*)[)\]])?[\s*_]*"
        rf"(?P<mark>[:：]|[-–—.)](?=\s))?[\s*_]*(?:is:)?\s*(?P<text>.*)$",
        re.IGNORECASE,
    )
    found: list[LabelledField] = []
    going = listing = False  # in a field; in the list below a heading such as "WRONG ANSWERS:"
    for line in _INLINE.sub(_broken, reply).splitlines():
        match = head.match(line)
        begun = _begun(labels, match) if match else None
        item = _LISTED.match(line) if listing and begun is None else None
        if begun is not None:
            found.append(begun)
            going, listing = True, _heads(labels, match)
        elif item is not None:
            found.append(replace(found[-1], text=item[1], number=""))
            going = True
        elif going and line.strip() and not re.fullmatch(r"\s*(?:[-*_=]\s*){3,}", line):
            found[-1] = replace(found[-1], text=f"{found[-1].text} {line.strip()}".strip())
        elif going and found[-1].text:
            going = False
    return [_finished(field) for field in found]


def _heads(labels: Mapping[str, str], match: re.Match[str] | None) -> bool:
    """Whether a line heads a list: a label in the plural, and nothing after it."""
    label = next((match[name] for name in labels if match[name]), "") if match else ""
    return bool(match) and label.lower().endswith("s") and not match["text"].strip(" *_")


def _broken(match: re.Match[str]) -> str:
    """A new line before a label that follows other text; not between a bullet and its label."""
    before = match.string[match.string.rfind("\n", 0, match.start()) + 1 : match.start()]
    return "\n" if re.search(r"[^\W\d_]{2}", before) else match[0]


def _begun(labels: Mapping[str, str], match: re.Match[str]) -> LabelledField | None:
    """The field that a line begins. A label has a colon, a number or a tag, or is shouted;
    "Question types vary" is prose.
    """
    label = next(name for name in labels if match[name])
    number, text = match["number"] or "", match["text"]
    if not (match["mark"] or number or match["tag"] or match[label].isupper()):
        return None
    if number and not match["mark"] and label in ("answer", "evidence"):
        text, number = match.string[match.start("number") :], ""  # "CORRECT ANSWER 3": no colon
    return LabelledField(label=label, text=text, number=number, tag=match["tag"] or "")


def _finished(field: LabelledField) -> LabelledField:
    text, tag = plain(field.text), field.tag
    if not tag and field.label == "question":
        match = re.match(r"[(\[]([^)\]]{2,40})[)\]]\s*[:\-–]?\s*(.+)", text)
        tag, text = (match[1], match[2]) if match else ("", text)
    if field.label == "wrong":
        text = re.sub(r"^\(?[A-Ha-h]\)\s+", "", text)
    return replace(field, text=plain(text), tag=plain(tag))


def spans(text: str) -> tuple[Span, ...]:
    """Time spans from "12.0-31.5; 1:04 to 1:10"; a single time is a span without length."""
    found: list[Span] = []
    rest = text
    for match in _RANGE.finditer(text):
        first, last = _seconds(match.groups()[:4]), _seconds(match.groups()[4:])
        found.append(Span(min(first, last), max(first, last)))
        rest = rest.replace(match.group(), " ", 1)
    if not found:
        for match in _INSTANT.finditer(rest):
            moment = _seconds(match.groups())
            found.append(Span(moment, moment))
    return tuple(sorted(found, key=lambda s: (s.start, s.end)))


def exact_spans(text: str, video: Span) -> tuple[Span, ...]:
    """Spans from "12.0-31.5; 1:04-1:10" and nothing else, each of some length and within the video.
    Raises Unparsed for anything else.
    """
    found: list[Span] = []
    for piece in re.split(r"[;,]\s*", text.strip(" .;")):
        match = _RANGE.fullmatch(piece.strip())
        if not match:
            raise Unparsed(f"evidence {piece[:40]!r} is no stretch like 12.0-31.5")
        found.append(Span(_seconds(match.groups()[:4]), _seconds(match.groups()[4:])))
    return check_spans(found, video)


def check_spans(found: Sequence[Span], video: Span) -> tuple[Span, ...]:
    """Spans in order, each of some length and within the video, or just over its ends. Raises
    Unparsed for others, and where there are none.
    """
    for span in found:
        if (
            not video.start - END_TOLERANCE_S
            <= span.start
            < span.end
            <= video.end + END_TOLERANCE_S
        ):
            raise Unparsed(f"evidence '{span.start:g}-{span.end:g}' is no stretch of the video")
    if not found:
        raise Unparsed("it names no evidence")
    return tuple(sorted(clip_spans(found, video.start, video.end), key=lambda s: (s.start, s.end)))


def _seconds(parts: Sequence[str | None]) -> float:
    hours, minutes, seconds, bare = parts
    if bare is not None:
        return float(bare)
    return 3600 * float(hours or 0) + 60 * float(minutes or 0) + float(seconds or 0)


def clip_spans(found: Sequence[Span], start: float, end: float) -> tuple[Span, ...]:
    """Spans cut to a stretch of the video; those outside of it are left out."""
    inside = [Span(max(s.start, start), min(s.end, end)) for s in found]
    return tuple(s for s in inside if s.start <= s.end)


def reach(evidence: Sequence[Span]) -> float:
    """Seconds between the moments that a question joins: from where the first of them ends to where
    the last begins. 0 for one moment, or for moments that overlap.
    """
    return max(0.0, max(s.start for s in evidence) - min(s.end for s in evidence))


def question_id(video_id: str, recipe: str, draft: Draft) -> str:
    """Content hash of a question with its options, whatever their order (16 hex digits)."""
    parts = [recipe, video_id, draft.question, draft.answer, sorted(draft.decoys)]
    text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def shuffle_options(draft: Draft, seed: int, name: str) -> tuple[tuple[str, ...], int]:
    """The options in an order drawn from `seed` and `name`, and the answer's place among them."""
    order = list(range(len(draft.decoys) + 1))
    random.Random(f"{seed}/{name}/options").shuffle(order)
    texts = (draft.answer, *draft.decoys)
    return tuple(texts[i] for i in order), order.index(0)


def finish_question(
    draft: Draft,
    *,
    video_id: str,
    recipe: str,
    question_type: str,
    seed: int,
    decoys: int = 4,
    provenance: Provenance | None = None,
) -> Question:
    """The record of a draft: checked, its options shuffled, its reach measured. A question at fault
    is kept, with the reason in `drop`.
    """
    name = question_id(video_id, recipe, draft)
    options, index = shuffle_options(draft, seed, name)
    reason = fault(draft.question, draft.answer, draft.decoys, count=decoys)
    return Question(
        question_id=name,
        video_id=video_id,
        recipe=recipe,
        question=draft.question,
        question_type=question_type,
        options=options,
        answer_index=index,
        answer=draft.answer,
        evidence=draft.evidence,
        metrics={"reach_seconds": round(reach(draft.evidence), 3)} if draft.evidence else {},
        drop=f"check: {reason}" if reason else None,
        provenance=provenance,
    )
