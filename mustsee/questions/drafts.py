"""Questions as models write them: read from a reply, checked, given an id, their options shuffled.

All recipes ask for one text form,

    QUESTION 1: (counting) How many eggs are broken into the bowl?
    CORRECT ANSWER: Three
    EVIDENCE: 18.5-22.0
    WRONG ANSWER 1: Two

and models drift from it: bold labels, list numbers, no colon, the tag before the colon, letters
for numbers ("Wrong Answer A :"), several fields on one line, prose before and after. What can be
understood is read; what cannot raises `Unparsed` with the reason, which the model is then told.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from mustsee.errors import Unparsed
from mustsee.questions.checks import fault, normal
from mustsee.records import Provenance, Question, Span

LABELS: Mapping[str, str] = {
    "question": r"question",
    "answer": r"(?:correct|right|true)\s+answer|answer",
    "wrong": r"(?:wrong|incorrect|false)\s+(?:answer|option)|decoy|distractor",
    "evidence": r"evidence",
}
_LOUD = r"(?:correct|CORRECT|Correct|wrong|WRONG|Wrong|incorrect|INCORRECT|Incorrect)\s+(?i:answer)"
_INLINE = re.compile(rf"[ \t]+(?=\**(?:{_LOUD}|EVIDENCE)\s*(?:\d+|[A-Z])?\s*\**\s*:)")
_MARKS = r"[\s>*_#`•\-]*"
_CLOCK = r"(?:(?:(\d+):)?(\d{1,2}):(\d{2}(?:\.\d+)?)|(\d+(?:\.\d+)?))"
_UNIT = r"\s*(?:s|sec|secs|seconds)?\b"
_RANGE = re.compile(rf"{_CLOCK}{_UNIT}\s*(?:-|–|—|to|until|\.\.+)\s*{_CLOCK}{_UNIT}", re.IGNORECASE)
_INSTANT = re.compile(rf"{_CLOCK}{_UNIT}", re.IGNORECASE)
SLACK = 1.0  # seconds by which a model may miss the ends of a film
ALIKE = 0.6  # two wordings of one question share at least this much (difflib ratio)


@dataclass(frozen=True, kw_only=True)
class Field:
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


def plain(text: str) -> str:
    """Text without markdown, paired quotes around it, and doubled spaces."""
    text = re.sub(r"\*\*|__|`", "", text)
    text = re.sub(r"(?<!\w)\*(?=\S)|(?<=\S)\*(?!\w)", "", text)
    text = " ".join(text.split()).strip(" -–—")
    quoted = re.fullmatch(r"[\"“]([^\"“”]+)[\"”]|[‘']([^‘’']+)['’]", text)
    return (quoted[1] or quoted[2]).strip() if quoted else text


def fields(reply: str, labels: Mapping[str, str] = LABELS) -> list[Field]:
    """The labelled fields of a reply, in order. `labels`: name -> pattern.

    A field goes on over the following lines and ends at the next label, or at a blank line once it
    has text; what stands outside of fields is left out.
    """
    names = "|".join(f"(?P<{name}>{pattern})" for name, pattern in labels.items())
    head = re.compile(
        rf"^{_MARKS}(?:\d+\s*[.)]\s*)?{_MARKS}(?:{names})\b[\s*_]*(?:(?:no\.?|number|\#)\s*)?"
        r"(?P<number>\d+|[A-H](?=[\s*_]*(?:[:：(\[]|[-–—.)]\s)))?[\s*_]*"
        r"(?:[(\[](?P<tag>[^)\]]*)[)\]])?[\s*_]*"
        rf"(?P<mark>[:：]|[-–—.)](?=\s))?[\s*_]*(?:is:)?\s*(?P<text>.*)$",
        re.IGNORECASE,
    )
    found: list[Field] = []
    going = False
    for line in _INLINE.sub(_broken, reply).splitlines():
        match = head.match(line)
        begun = _begun(labels, match) if match else None
        if begun is not None:
            found.append(begun)
            going = True
        elif going and line.strip() and not re.fullmatch(r"\s*(?:[-*_=]\s*){3,}", line):
            found[-1] = replace(found[-1], text=f"{found[-1].text} {line.strip()}".strip())
        elif going and found[-1].text:
            going = False
    return [_finished(field) for field in found]


def _broken(match: re.Match[str]) -> str:
    """A new line before a label that follows other text; not between a bullet and its label."""
    before = match.string[match.string.rfind("\n", 0, match.start()) + 1 : match.start()]
    return "\n" if re.search(r"[^\W\d_]{2}", before) else match[0]


def _begun(labels: Mapping[str, str], match: re.Match[str]) -> Field | None:
    """The field that a line begins. A label has a colon, a number or a tag, or is shouted;
    "Question types vary" is prose.
    """
    label = next(name for name in labels if match[name])
    number, text = match["number"] or "", match["text"]
    if not (match["mark"] or number or match["tag"] or match[label].isupper()):
        return None
    if number and not match["mark"] and label in ("answer", "evidence"):
        text, number = match.string[match.start("number") :], ""  # "CORRECT ANSWER 3": no colon
    return Field(label=label, text=text, number=number, tag=match["tag"] or "")


def _finished(field: Field) -> Field:
    text, tag = plain(field.text), field.tag
    if not tag and field.label == "question":
        match = re.match(r"[(\[]([^)\]]{2,40})[)\]]\s*[:\-–]?\s*(.+)", text)
        tag, text = (match[1], match[2]) if match else ("", text)
    if field.label == "wrong":
        text = re.sub(r"^\(?[A-Ha-h]\)\s+", "", text)
    return replace(field, text=plain(text), tag=plain(tag))


def parse_questions(reply: str, most: int | None = None) -> tuple[Draft, ...]:
    """Questions with their answers, at most `most`; none when the reply is the word NONE. One
    without its text or its answer is left out.

    Raises Unparsed when there is no whole question otherwise.
    """
    if is_none(reply):
        return ()
    drafts: list[Draft] = []
    faults: list[str] = []
    for block in blocks(reply):
        draft = drafted(block)
        if not draft.question:
            faults.append(f"QUESTION {block[0].number or len(drafts) + 1} has no text")
        elif not draft.answer:
            faults.append(
                f"the question {draft.question[:60]!r} is not followed by a line "
                "'CORRECT ANSWER: ...'"
            )
        else:
            drafts.append(draft)
    if not drafts:
        raise Unparsed([*faults, "it holds no line of the form 'QUESTION 1: (capability) ...'"][0])
    return tuple(drafts[:most])


def drafted(block: Sequence[Field]) -> Draft:
    """What the fields of one question say; its text or its answer may be missing."""
    return Draft(
        question=block[0].text,
        answer=next((f.text for f in block if f.label == "answer" and f.text), ""),
        tag=block[0].tag,
        evidence=spans(told(block, "evidence")),
        decoys=tuple(f.text for f in block if f.label == "wrong" and f.text),
    )


def told(block: Sequence[Field], label: str) -> str:
    """The text of a block's fields of one label."""
    return " ".join(f.text for f in block if f.label == label)


def is_none(reply: str) -> bool:
    """Whether a reply is the word NONE: there is nothing to ask about."""
    return bool(re.fullmatch(r"[\W_]*none[\W_]*", reply, re.IGNORECASE))


def parse_decoys(reply: str, asked: Sequence[Draft], count: int) -> tuple[Draft, ...]:
    """The questions asked about, in their order, each with `count` decoys from the reply, or with
    none where the reply has too few for it.

    A block of the reply belongs to the question that it repeats, in whatever order; where it
    repeats none clearly, to the one of its number. Raises Unparsed when all have too few.
    """
    done: list[Draft] = []
    faults: list[str] = []
    found = _repeated(asked, blocks(reply))
    for number, (draft, block) in enumerate(zip(asked, found, strict=True), 1):
        decoys = [f.text for f in block if f.label == "wrong" and f.text]
        if len(decoys) < count:
            faults.append(
                f"QUESTION {number} ({draft.question[:60]!r}) has {len(decoys)} lines "
                f"'WRONG ANSWER n: ...' where {count} are wanted"
            )
            decoys = []
        done.append(replace(draft, decoys=tuple(decoys[:count])))
    if asked and len(faults) == len(asked):
        raise Unparsed(faults[0])
    return tuple(done)


def blocks(reply: str) -> list[list[Field]]:
    """Fields by question: each list begins with a "question" field."""
    found: list[list[Field]] = []
    for field in fields(reply):
        if field.label == "question":
            found.append([field])
        elif found:
            found[-1].append(field)
    return found


def _repeated(asked: Sequence[Draft], blocks: Sequence[list[Field]]) -> list[list[Field]]:
    """For each question the block that repeats it. A block repeats the one question that it is most
    like, so that of two questions alike neither takes the other's.
    """
    places = range(1, len(asked) + 1)
    wanted = [normal(draft.question) for draft in asked]
    found: dict[int, tuple[float, list[Field]]] = {}
    for block in blocks:
        text, number = normal(block[0].text), block[0].number
        alike = [SequenceMatcher(None, one, text).ratio() for one in wanted]
        likeness, _, place = max((alike[n - 1], str(n) == number, n) for n in places)
        if likeness < ALIKE:
            place = int(number) if number.isdigit() else 0
        rank = likeness if likeness >= ALIKE else 0.0
        if place not in found or found[place][0] < rank:
            found[place] = (rank, block)
    return [found[n][1] if n in found else [] for n in places]


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


def stretches(text: str, film: Span) -> tuple[Span, ...]:
    """Spans from "12.0-31.5; 1:04-1:10" and nothing else, each of some length and within the film.
    Raises Unparsed for anything else.
    """
    found: list[Span] = []
    for piece in re.split(r"[;,]\s*", text.strip(" .;")):
        match = _RANGE.fullmatch(piece.strip())
        if not match:
            raise Unparsed(f"evidence {piece[:40]!r} is no stretch like 12.0-31.5")
        first, last = _seconds(match.groups()[:4]), _seconds(match.groups()[4:])
        if not film.start - SLACK <= first < last <= film.end + SLACK:
            raise Unparsed(f"evidence {piece[:40]!r} is no stretch of the video")
        found.append(Span(max(first, film.start), min(last, film.end)))
    return tuple(sorted(found, key=lambda s: (s.start, s.end)))


def _seconds(parts: Sequence[str | None]) -> float:
    hours, minutes, seconds, bare = parts
    if bare is not None:
        return float(bare)
    return 3600 * float(hours or 0) + 60 * float(minutes or 0) + float(seconds or 0)


def clipped(found: Sequence[Span], start: float, end: float) -> tuple[Span, ...]:
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


def shuffled(draft: Draft, seed: int, name: str) -> tuple[tuple[str, ...], int]:
    """The options in an order drawn from `seed` and `name`, and the answer's place among them."""
    order = list(range(len(draft.decoys) + 1))
    random.Random(f"{seed}/{name}/options").shuffle(order)
    texts = (draft.answer, *draft.decoys)
    return tuple(texts[i] for i in order), order.index(0)


def finished(
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
    options, index = shuffled(draft, seed, name)
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
