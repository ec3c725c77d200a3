"""Questions in models' text replies: parsed from labelled fields, checked, given an id, shuffled.

All recipes ask for one text form,

    QUESTION 1: (counting) How many eggs are broken into the bowl?
    CORRECT ANSWER: Three
    EVIDENCE: 18.5-22.0
    WRONG ANSWER 1: Two

and models deviate from it: bold labels, list numbers, no colon, the tag before the colon, letters
in place of numbers ("Wrong Answer A :"), "WRONG ANSWERS:" over a list, several fields on one line,
prose before and after. All these are parsed. Anything else raises `Unparsed` with the reason, which
is sent to the model. The JSON form is in `mustsee.questions.replies`.
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
_CLOCK = (  # bounded lengths: a long run of digits would be tried again from each of its digits
    r"(?<!\d)(?<!\d\.)(?:(?:(\d{1,6}):)?(\d{1,2}):(\d{2}(?:\.\d{1,20})?)"
    r"|(\d{1,9}(?:\.\d{1,20})?))(?!\.?\d)"
)
# The same without groups, as part of other patterns.
TIME = r"(?:(?:\d{1,6}:)?\d{1,2}:\d{2}(?:\.\d{1,20})?|\d{1,9}(?:\.\d{1,20})?)"
_UNIT = r"\s*(?:s|sec|secs|seconds)?\b"
_RANGE = re.compile(rf"{_CLOCK}{_UNIT}\s*(?:-|–|—|to|until|\.\.+)\s*{_CLOCK}{_UNIT}", re.IGNORECASE)
_INSTANT = re.compile(rf"{_CLOCK}{_UNIT}", re.IGNORECASE)
_LISTED = re.compile(r"^\s*(?:[-*•]|[*_]*\(?(?:\d{1,2}|[A-Ha-h])[.):：][*_]*)\s+(.*)$")
END_TOLERANCE_S = 1.0  # seconds by which a model may miss the ends of a video


@dataclass(frozen=True, kw_only=True)
class LabelledField:
    """One labelled field of a reply.

    `QUESTION 2: (counting) How many?` has the label "question", the number "2", the tag "counting"
    and the text "How many?".
    """

    label: str
    text: str
    number: str = ""
    tag: str = ""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A question and its answer as a model wrote them. `tag`: the text in brackets. `evidence`: the
    spans that show the answer, if the model named any.
    """

    question: str
    answer: str
    tag: str = ""
    evidence: tuple[Span, ...] = ()
    decoys: tuple[str, ...] = ()


_PAIRED = re.compile(r"(?<!\w)(\*{1,3}|_{1,3})(?=\S)(.+?)(?<=\S)\1(?!\w)|`([^`]+)`")
_HALF = re.compile(r"(?<!\w)(?:\*+|`+|__+)(?=\S)|(?<=\S)(?:\*+|`+|__+)(?!\w)")


# Stars that belong to the text: four or more ("**** off"), those within a word, and those of a
# quotation that are no pair of two ("*gasp*").
_QUOTATION = re.compile(r"“[^“”]*”|\"[^\"]*\"")
_BOLD = re.compile(r"(?<![\w*])\*\*(?=[^\s*])([^*]+)(?<=[^\s*])\*\*(?![\w*])")
_STARS = re.compile(r"\*{4,}|(?<=\w)\*+(?=\w)")
_KEPT_STAR = "\ue02a"  # stands for a star of the text while emphasis is removed


def _keep_stars(match: re.Match[str]) -> str:
    return _BOLD.sub(r"\1", match[0]).replace("*", _KEPT_STAR)


def plain(text: str) -> str:
    """Return text without markdown emphasis, quotes around it, and repeated spaces. Single emphasis
    marks are removed too: a label may have taken the other one of a pair. Stars within quotation
    marks stay.
    """
    text = " ".join(text.split())
    text = _STARS.sub(_keep_stars, _QUOTATION.sub(_keep_stars, text))
    while (bare := _PAIRED.sub(lambda m: m[2] or m[3], text)) != text:
        text = bare
    text = _HALF.sub("", text).strip(" -–—").replace(_KEPT_STAR, "*")
    quoted = re.fullmatch(r"[\"“]([^\"“”]+)[\"”]|[‘']([^‘’']+)['’]", text)
    return (quoted[1] or quoted[2]).strip() if quoted else text


def fields(reply: str, labels: Mapping[str, str] = LABELS) -> list[LabelledField]:
    """Return the labelled fields of a reply, in order. `labels`: name -> pattern.

    A field continues over the following lines until the next label, or until a blank line after its
    text. Text outside of fields is ignored.
    """
    names = "|".join(f"(?P<{name}>{pattern})" for name, pattern in labels.items())
    head = re.compile(
        rf"^{_MARKS}(?:\d+\s*[.)]\s*)?{_MARKS}(?:{names})\b[\s*_]*(?:(?:no\.?|number|\#)\s*)?"
        r"(?P<number>\d{1,6}|[A-H](?=[\s*_]*(?:[:：(\[]|[-–—.)]\s)))?[\s*_]*"
        r"(?:[(\[](?P<tag>[^)\]]*)[)\]])?[\s*_]*"
        rf"(?P<mark>[:：]|[-–—.)](?=\s))?[\s*_]*(?:is:)?\s*(?P<text>.*)$",
        re.IGNORECASE,
    )
    parsed: list[LabelledField] = []
    in_field = in_list = False  # `in_list`: below a heading such as "WRONG ANSWERS:"
    for line in _INLINE.sub(_break_before_label, reply).splitlines():
        match = head.match(line)
        field = _first_line(labels, match) if match else None
        item = _LISTED.match(line) if in_list and field is None else None
        if field is not None:
            parsed.append(field)
            in_field, in_list = True, _is_list_heading(labels, match)
        elif item is not None:
            parsed.append(replace(parsed[-1], text=item[1], number=""))
            in_field = True
        elif in_field and line.strip() and not re.fullmatch(r"\s*(?:[-*_=]\s*){3,}", line):
            parsed[-1] = replace(parsed[-1], text=f"{parsed[-1].text} {line.strip()}".strip())
        elif in_field and parsed[-1].text:
            in_field = False
    return [_clean_field(field) for field in parsed]


def _is_list_heading(labels: Mapping[str, str], match: re.Match[str] | None) -> bool:
    """Whether a line heads a list: it is a label in the plural without text after it."""
    label = next((match[name] for name in labels if match[name]), "") if match else ""
    return bool(match) and label.lower().endswith("s") and not match["text"].strip(" *_")


def _break_before_label(match: re.Match[str]) -> str:
    """Put a line end before a label after other text, but not between a bullet and its label."""
    before = match.string[match.string.rfind("\n", 0, match.start()) + 1 : match.start()]
    return "\n" if re.search(r"[^\W\d_]{2}", before) else match[0]


def _first_line(labels: Mapping[str, str], match: re.Match[str]) -> LabelledField | None:
    """Return the field that a line begins, or None. A label has a colon, a number or a tag, or is
    in capitals; "Question types vary" is prose.
    """
    label = next(name for name in labels if match[name])
    number, text = match["number"] or "", match["text"]
    if not (match["mark"] or number or match["tag"] or match[label].isupper()):
        return None
    if number and not match["mark"] and label in ("answer", "evidence"):
        text, number = match.string[match.start("number") :], ""  # "CORRECT ANSWER 3" means "3"
    return LabelledField(label=label, text=text, number=number, tag=match["tag"] or "")


def _clean_field(field: LabelledField) -> LabelledField:
    text, tag = plain(field.text), field.tag
    bare = text
    if not tag and field.label == "question":
        match = re.match(r"[(\[]([^)\]]{2,40})[)\]]\s*[:\-–]?\s*(.+)", text)
        tag, bare = (match[1], match[2]) if match else ("", text)
    if field.label == "wrong":
        bare = re.sub(r"^\(?[A-Ha-h]\)\s+", "", text)
    return replace(field, text=text if bare == text else plain(bare), tag=plain(tag))


def spans(text: str) -> tuple[Span, ...]:
    """Parse time spans such as "12.0-31.5; 1:04 to 1:10". A single time is a span of length 0."""
    parsed: list[Span] = []
    rest = text
    for match in _RANGE.finditer(text):
        first, last = _seconds(match.groups()[:4]), _seconds(match.groups()[4:])
        parsed.append(Span(min(first, last), max(first, last)))
        rest = rest.replace(match.group(), " ", 1)
    if not parsed:
        for match in _INSTANT.finditer(rest):
            time = _seconds(match.groups())
            parsed.append(Span(time, time))
    return tuple(sorted(parsed, key=lambda s: (s.start, s.end)))


def split_ranges(text: str) -> tuple[list[tuple[float, float]], str]:
    """Return the starts and ends, in seconds, of the stretches that a text names, such as "12 to
    15.5 s" or "0:12-0:18", and the text without them.
    """
    ranges = [(_seconds(m.groups()[:4]), _seconds(m.groups()[4:])) for m in _RANGE.finditer(text)]
    return ranges, _RANGE.sub(" ", text)


def read_time(text: str) -> float | None:
    """Return the seconds of a time such as "75.5 s" or "1:15.5"; None for any other text."""
    match = _INSTANT.fullmatch(text.strip())
    return None if match is None else _seconds(match.groups())


def exact_spans(text: str, video: Span) -> tuple[Span, ...]:
    """Parse spans such as "12.0-31.5; 1:04-1:10". Raises Unparsed for any other text, and as
    `check_spans` does.
    """
    parsed: list[Span] = []
    for entry in re.split(r"[;,]\s*", text.strip(" .;")):
        match = _RANGE.fullmatch(entry.strip())
        if not match:
            raise Unparsed(f"evidence {entry[:40]!r} is not a stretch like 12.0-31.5")
        parsed.append(Span(_seconds(match.groups()[:4]), _seconds(match.groups()[4:])))
    return check_spans(parsed, video)


def check_spans(evidence: Sequence[Span], video: Span) -> tuple[Span, ...]:
    """Return spans in order, clipped to the video.

    Raises Unparsed if there are none, or for one of length 0 or more than `END_TOLERANCE_S` outside
    of the video.
    """
    earliest, latest = video.start - END_TOLERANCE_S, video.end + END_TOLERANCE_S
    for span in evidence:
        if not earliest <= span.start < span.end <= latest:
            raise Unparsed(f"evidence '{span.start:g}-{span.end:g}' is not a stretch of the video")
    if not evidence:
        raise Unparsed("it names no evidence")
    clipped = clip_spans(evidence, video.start, video.end)
    return tuple(sorted(clipped, key=lambda s: (s.start, s.end)))


def _seconds(groups: Sequence[str | None]) -> float:
    """Return the seconds of a match of _CLOCK: hours, minutes and seconds, or seconds alone."""
    hours, minutes, seconds, bare = groups
    if bare is not None:
        return float(bare)
    return 3600 * float(hours or 0) + 60 * float(minutes or 0) + float(seconds or 0)


def clip_spans(spans: Sequence[Span], start: float, end: float) -> tuple[Span, ...]:
    """Return spans clipped to `start`..`end` seconds, without those outside."""
    inside = [Span(max(s.start, start), min(s.end, end)) for s in spans]
    return tuple(s for s in inside if s.start <= s.end)


def reach(evidence: Sequence[Span]) -> float:
    """Return the seconds from the end of the first evidence span to the start of the last. 0 for
    one span, and for overlapping ones.
    """
    return max(0.0, max(s.start for s in evidence) - min(s.end for s in evidence))


def needed_seconds(evidence: Sequence[Span]) -> float:
    """Return the seconds that evidence spans take in sum; what overlaps counts once."""
    total, end = 0.0, 0.0
    for span in sorted(evidence, key=lambda s: s.start):
        total += max(0.0, span.end - max(span.start, end))
        end = max(end, span.end)
    return total


def evidence_metrics(evidence: Sequence[Span]) -> dict[str, float]:
    """Return what is measured of evidence: `reach_seconds`, that one must see in sum, and
    `apart_seconds`, between the first and the last span; nothing without evidence.
    """
    if not evidence:
        return {}
    return {
        "reach_seconds": round(needed_seconds(evidence), 3),
        "apart_seconds": round(reach(evidence), 3),
    }


def question_id(video_id: str, recipe: str, draft: Draft) -> str:
    """Return the hash (16 hex digits) of a question with its options in any order."""
    content = [recipe, video_id, draft.question, draft.answer, sorted(draft.decoys)]
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def shuffle_options(draft: Draft, seed: int, name: str) -> tuple[tuple[str, ...], int]:
    """Return the options in an order drawn from `seed` and `name`, and the answer's index."""
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
    """Return the record of a draft: checked, with shuffled options and its reach. A faulty question
    has the reason in `drop`.
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
        metrics=evidence_metrics(draft.evidence),
        drop=f"check: {reason}" if reason else None,
        provenance=provenance,
    )
