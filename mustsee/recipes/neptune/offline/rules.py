"""Neptune's prompts answered by rules: extracts for captions, templates for questions.

Every text is taken from the video's own captions, transcript and on-screen text, and every decoy
from elsewhere in the video. Questions are about certain measurements only.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence

from mustsee.calls.llm import Request
from mustsee.offline.evaluate import choice_letter
from mustsee.offline.wording import sentence
from mustsee.questions.checks import normal
from mustsee.recipes.neptune.ask import Scene, ScriptPart
from mustsee.recipes.neptune.offline.composed import make_questions, truth_table
from mustsee.recipes.neptune.offline.quotable import lower, one_line, pick, quotable_texts
from mustsee.recipes.neptune.script import Unit
from mustsee.text import nouns, overlap, summary, words

TOPIC_SECONDS = 30.0  # usual length of a topic, in seconds
LONG_TITLE = 6  # words of an on-screen text that becomes a title, at most
MAX_PER_TEXT = 2  # questions about one text, at most
MAX_PER_SPAN = 2  # questions with a single frame as evidence, at most for one frame
COMPARED_UNITS = 2  # units compared on each side of a possible border

_QUOTED = re.compile("“([^”]+)”")


def shots(request: Request) -> str:
    """Give each unit the caption of its first frame, and that of its last one if it differs."""
    lines: list[str] = []
    for number, unit in enumerate(request.variables["units"], 1):
        texts = list(dict.fromkeys(t for c in unit.captions if words(t := one_line(c.text))))
        if texts:
            caption = texts[0] if len(texts) == 1 else f"{texts[0]} At the end: {lower(texts[-1])}"
        elif unit.texts:
            caption = f"Words on the screen: {' / '.join(one_line(t.text) for t in unit.texts)}."
        else:
            caption = "Someone speaks." if unit.lines else "Nothing was described."
        lines.append(f"SHOT {number}: {caption}")
    return "\n".join(lines)


def topics(request: Request) -> str:
    """Divide the units where the words change most, and give each run a title."""
    script: Sequence[Unit] = request.variables["units"]
    borders = _borders(script)
    runs = list(zip([0, *borders], [*borders, len(script)], strict=True))
    titles = _titles([script[first:last] for first, last in runs])
    return "\n".join(
        f"SEGMENT {n}: {first + 1}-{last}: {title}"
        for n, ((first, last), title) in enumerate(zip(runs, titles, strict=True), 1)
    )


def _text(unit: Unit) -> str:
    return ". ".join([*(t.text for t in unit.texts), *(x.text for x in unit.lines)])


def _borders(script: Sequence[Unit]) -> list[int]:
    """Return the units at which a topic begins: where the words before and after differ most.
    Topics have `TOPIC_SECONDS` on average, and at least a third of that.
    """
    seconds = script[-1].end - script[0].start
    count = min(len(script), max(1, round(seconds / TOPIC_SECONDS))) - 1
    texts = [_text(u) for u in script]
    sides = [
        (" ".join(texts[max(0, i - COMPARED_UNITS) : i]), " ".join(texts[i : i + COMPARED_UNITS]))
        for i in range(1, len(script))
    ]
    similarity = [overlap(before, after) for before, after in sides]
    borders: list[int] = []
    candidates = set(range(1, len(script)))
    while candidates and len(borders) < count:
        marks = [script[0].start, script[-1].end, *(script[c].start for c in borders)]
        gaps = {i: min(abs(script[i].start - mark) for mark in marks) for i in candidates}
        candidates = {i for i in candidates if gaps[i] >= TOPIC_SECONDS / 3}
        if candidates:
            borders.append(
                min(candidates, key=lambda i: (round(similarity[i - 1], 1), -gaps[i], i))
            )
            candidates.discard(borders[-1])
    return sorted(borders)


def _titles(runs: Sequence[Sequence[Unit]]) -> list[str]:
    """Return a title for each run that no earlier one has: the on-screen text that stays longest,
    or else the noun phrase in the most lines, at least two, or else its number.
    """
    titles: list[str] = []
    for number, run in enumerate(runs, 1):
        seconds: dict[str, float] = {}
        texts = dict.fromkeys(text for u in run for text in u.texts)  # A text may outlast a unit.
        for text in quotable_texts(list(texts)):
            if len(text.text.split()) <= LONG_TITLE:
                shown = (text.end or text.time) - text.time
                seconds[text.text] = seconds.get(text.text, 0.0) + shown
        longest = sorted(seconds, key=seconds.__getitem__, reverse=True)
        lines = [x.text for u in run for x in u.lines]
        phrases = Counter(
            sentence(phrase) for line in lines for phrase in dict.fromkeys(nouns(line))
        )
        repeated = [phrase for phrase, count in phrases.most_common() if count > 1]
        unused = (x for x in (*longest, *repeated) if x not in titles)
        titles.append(next(unused, f"Part {number}"))
    return titles


def dense(request: Request) -> str:
    """Join captions and transcript of the units; a long scene is summarised by extraction."""
    scene: Scene = request.variables["scene"]
    sentences: list[str] = []
    for unit in scene.units:
        speech = ". ".join(" ".join(x.text.split()).rstrip(".") for x in unit.lines)
        sentences.append(
            f"{unit.caption} Meanwhile it is said: “{speech}.”" if speech else unit.caption
        )
    return (
        " ".join(sentences[i] for i in summary(sentences, request.variables["most"]))
        or scene.topic + "."
    )


def support(request: Request) -> str:
    """Return the captions that share most words with the story, as many as fit, in order."""
    scene: Scene = request.variables["scene"]
    words_left: int = request.variables["most"]
    captions = list(dict.fromkeys(unit.caption for unit in scene.units))
    kept: list[str] = []
    for caption in sorted(captions, key=lambda c: -overlap(c, scene.story)):
        if len(caption.split()) <= words_left:
            kept.append(caption)
            words_left -= len(caption.split())
    return " ".join(c for c in captions if c in kept) or "Nothing was seen."


def questions(request: Request) -> str:
    """Write the best questions of as many kinds as possible, or NONE."""
    chosen = make_questions(request.variables["part"], request.seed)[: request.variables["target"]]
    if not chosen:
        return "NONE"
    return "\n\n".join(
        f"QUESTION {n}: ({m.tag}) {m.question}\nCORRECT ANSWER: {m.answer}\n"
        f"EVIDENCE: {'; '.join(f'{s.start:.1f}-{s.end:.1f}' for s in m.evidence)}"
        for n, m in enumerate(chosen, 1)
    )


def whole(request: Request) -> str:
    """Write the same questions with their decoys, or NONE."""
    part: ScriptPart | None = request.variables["part"]
    chosen = make_questions(part, request.seed)[: request.variables["target"]] if part else ()
    if not chosen:
        return "NONE"
    return "\n\n".join(
        "\n".join((
            f"QUESTION {n}: ({m.tag}) {m.question}", f"CORRECT ANSWER: {m.answer}",
            *(f"WRONG ANSWER {i}: {text}" for i, text in enumerate(m.decoys, 1)),
            f"EVIDENCE: {'; '.join(f'{s.start:.2f}-{s.end:.2f}' for s in m.evidence)}",
        ))
        for n, m in enumerate(chosen, 1)
    )  # fmt: skip


def decoys(request: Request) -> str:
    """Write the decoys of each question: those that the rules made with it, or other texts of the
    video for a question by another author.
    """
    part: ScriptPart = request.variables["part"]
    count: int = request.variables["count"]
    rule_questions = {normal(m.question): m for m in make_questions(part, request.seed)}
    facts = truth_table(part).of_kind("line", "text")
    others = [text for fact in facts for text in _QUOTED.findall(fact.phrase)]
    blocks: list[str] = []
    for number, draft in enumerate(request.variables["drafts"], 1):
        rule_question = rule_questions.get(normal(draft.question))
        rng = random.Random(f"{request.seed}/{draft.question}/decoys")
        decoy_texts = (
            rule_question.decoys
            if rule_question is not None
            else pick(draft.answer, others, rng, count)
        )
        lines = [f"WRONG ANSWER {i}: {text}" for i, text in enumerate(decoy_texts[:count], 1)]
        head = f"QUESTION {number}: ({draft.tag}) {draft.question}"
        blocks.append("\n".join([head, f"CORRECT ANSWER: {draft.answer}", *lines]))
    return "\n\n".join(blocks)


def no_further(request: Request) -> str:
    """Write NONE: all questions were written at once."""
    return "NONE"


def people(request: Request) -> str:
    """Write UNCLEAR: the rules recognise no people."""
    return "AGE: UNCLEAR\nGENDER: UNCLEAR"


def evaluate_choice(request: Request) -> str:
    """Return an option as Neptune's own prompt asks for it."""
    return f"[{choice_letter(request)}]: its words are the nearest."


RULES: dict[str, Callable[[Request], str]] = {
    "neptune/people": people,
    "neptune/shots": shots,
    "neptune/topics": topics,
    "neptune/dense": dense,
    "neptune/support": support,
    "neptune/questions": questions,
    "neptune/whole": whole,
    "neptune/script": whole,
    "neptune/further": no_further,
    "neptune/decoys": decoys,
    "evaluate/neptune": evaluate_choice,
}
