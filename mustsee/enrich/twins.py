"""Open-ended twins: the same question asked without its options.

A choice among five flatters a model that can rule four of them out: Qwen3-VL-32B fell from 42.5 to
15.9 % right on the same 1,289 questions once the options were gone. A twin asks for what its
sibling asks for, in words that need no options; its answer comes with the other ways of saying it.
A wording that leans on options, gives its answer away or takes a wrong option for the answer is
sent back. What the judge then cannot tell from the answer is left out: a variant that it does not
take for it, a twin of which it takes a wrong option for it. Whether the video shows the answer, and
no other, is for `sight` to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mustsee.calls.llm import Asker
from mustsee.errors import BadRow, Unparsed
from mustsee.questions.checks import fault, normal
from mustsee.questions.drafts import Draft, fields, question_id
from mustsee.questions.replies import is_none
from mustsee.records import OPEN, Provenance, Question, Video
from mustsee.replies.forms import Form, form, list_of, record, words
from mustsee.text import length, terms
from mustsee.verify.conditions.seen import lines_within
from mustsee.verify.vetting import MAX_JUDGED_WORDS, Judges

PROMPT = "enrich/twin"
PROMPTS = (PROMPT, "filters/_sight")
SPLITS = ("train", "validation", "test")  # the subsets that it shares with its sibling
MAX_VARIANTS = 6  # other ways of saying an answer
WITHOUT = "questions left without a twin"  # how run.json counts them
UNLIKE = "variants that the judge does not take for the answer"
LABELS = {
    "question": r"question",
    "answer": r"(?:correct|reference)\s+answer|answer",
    "variant": r"also\s+right",
}
_LEANS = re.compile(
    r"\b(?:which|what|who|whom|where|when) (?:one )?of (?:these|those|the (?:following|options))\b|"
    r"\b(?:the following|these (?:options|choices|answers)|the (?:options|choices))\b|"
    r"\b(?:listed|named|given|shown) (?:below|above)\b|\bbelow\W*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Wording:
    """A question without options, its answer, and other ways of saying that."""

    question: str
    answer: str
    variants: tuple[str, ...] = ()


async def twin(
    question: Question,
    video: Video,
    asker: Asker,
    judge: Judges,
    *,
    seed: int = 0,
    count: Callable[[str, int], None],
) -> Question | None:
    """The open-ended twin of a multiple-choice question, not yet looked at; null where it has none.
    One that the judge could not grade has the reason in `drop`. Raises Transient.
    """
    wrong = tuple(o for i, o in enumerate(question.options) if i != question.answer_index)
    try:
        found = await asker.ask(
            PROMPT,
            twin_form(wrong),
            seed=seed,
            question=question,
            wrong=wrong,
            lines=lines_within(video.lines or (), question.evidence),
            video=video,
        )
        if found is None:
            raise BadRow("it cannot be asked without options")
    except BadRow:
        count(WITHOUT, 1)
        return None
    good = [v for v in found.variants if await judge(found.question, v, (found.answer,))]
    if left := len(found.variants) - len(good):
        count(UNLIKE, left)
    draft = Draft(question=found.question, answer=found.answer)
    made = replace(
        question,
        question_id=question_id(question.video_id, question.recipe, draft),
        question=found.question,
        options=(),
        answer_index=None,
        answer=found.answer,
        variants=tuple(good),
        rationale=None,
        verdicts=(),
        metrics={k: v for k, v in question.metrics.items() if k == "reach_seconds"},
        provenance=Provenance(llm=asker.llm.identity, prompts=asker.prompts.digest(PROMPT)),
        repairs=(),
        subsets=tuple(s for s in question.subsets if s in SPLITS),
        sibling_of=question.question_id,
        relation=OPEN,
    )
    taken = [o for o in wrong if await judge(made.question, o, made.references)]
    return replace(made, drop=f"judge: {taken[0]!r} is taken for the answer" if taken else None)


def twin_form(wrong: Sequence[str]) -> Form[Wording | None]:
    """A reply with the twin, or NONE. Unparsed for a twin at fault. `wrong`: its sibling's wrong
    options.
    """

    def make_wording(question: str, answer: str, also_right: Sequence[str]) -> Wording | None:
        if is_none(question):
            return None
        variants = {normal(v): v for v in also_right if normal(v) != normal(answer)}
        several = tuple(variants.values())[:MAX_VARIANTS]
        found = Wording(question=question, answer=answer, variants=several)
        if said := _fault(found, wrong):
            raise Unparsed(said)
        return found

    def parse_wording(reply: str) -> Wording | None:
        if is_none(reply):
            return None
        given = fields(reply, LABELS)
        told = {f.label: f.text for f in reversed(given)}
        for label in ("question", "answer"):
            if not told.get(label):
                raise Unparsed(f"it has no line of the form '{label.upper()}: ...'")
        variants = [f.text for f in given if f.label == "variant" and f.text]
        return make_wording(
            told["question"], told["answer"], [v for v in variants if not is_none(v)]
        )

    shape = record(
        make_wording,
        question=words("the question, which needs no options; NONE where there is none"),
        answer=words("the answer"),
        also_right=list_of(words("the answer said otherwise"), "other ways of saying the answer"),
    )
    return form(text=parse_wording, shape=shape)


def _fault(found: Wording, wrong: Sequence[str]) -> str | None:
    """What is wrong with the text of a twin, in a sentence."""
    if match := _LEANS.search(found.question):
        return f"the question still leans on options: {match.group()!r}"
    if said := fault(found.question, found.answer, (), count=0):
        return f"the question has a fault: {said}"
    if (told := set(terms(found.answer))) and told <= set(terms(found.question)):
        return "all words of the answer stand in the question: repeating it would be right"
    if length(found.answer) > MAX_JUDGED_WORDS:
        return f"the answer has more than {MAX_JUDGED_WORDS} words"
    known = {normal(option) for option in wrong}
    for text in (found.answer, *found.variants):
        if normal(text) in known:
            return f"{text[:60]!r} is one of the wrong answers"
    return None
