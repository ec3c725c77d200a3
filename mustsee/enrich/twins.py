"""Open-ended twins: the same question asked without its options.

Options help a model that can exclude the wrong ones: Qwen3-VL-32B fell from 42.5 to 15.9 % right on
the same 1,289 questions without their options. A twin asks for the same as its sibling in words
that need no options. Its answer comes with variants, other ways of saying it.

The writer gets a wording back that needs options, contains its answer, or has a wrong option as its
answer. The judge must be able to grade the twin: a variant that it does not hold equivalent to the
answer is left out, and a twin is dropped if the judge accepts a wrong option. `sight` verifies that
the video shows this answer and no other.
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
SPLITS = ("train", "validation", "test")  # subsets that a twin shares with its sibling
MAX_VARIANTS = 6  # variants kept of an answer
WITHOUT = "questions left without a twin"  # names of counts in run.json
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
    """A question without options, its answer, and the answer's variants."""

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
    """Write the open-ended twin of a multiple-choice question, not yet verified; None if the writer
    finds none. A twin that the judge could not grade has the reason in `drop`. Raises Transient.
    """
    wrong = tuple(o for i, o in enumerate(question.options) if i != question.answer_index)
    try:
        wording = await asker.ask(
            PROMPT,
            twin_form(wrong),
            seed=seed,
            question=question,
            wrong=wrong,
            lines=lines_within(video.lines or (), question.evidence),
            video=video,
        )
        if wording is None:
            raise BadRow("it cannot be asked without options")
    except BadRow:
        count(WITHOUT, 1)
        return None
    good = [v for v in wording.variants if await judge(wording.question, v, (wording.answer,))]
    if rejected := len(wording.variants) - len(good):
        count(UNLIKE, rejected)
    draft = Draft(question=wording.question, answer=wording.answer)
    sibling = replace(
        question,
        question_id=question_id(question.video_id, question.recipe, draft),
        question=wording.question,
        options=(),
        answer_index=None,
        answer=wording.answer,
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
    accepted = [o for o in wrong if await judge(sibling.question, o, sibling.references)]
    drop = f"judge: {accepted[0]!r} is taken for the answer" if accepted else None
    return replace(sibling, drop=drop)


def twin_form(wrong: Sequence[str]) -> Form[Wording | None]:
    """Return the form of a reply with the twin, or NONE. Its `read` raises Unparsed for a faulty
    twin. `wrong`: the sibling's wrong options.
    """

    def make_wording(question: str, answer: str, also_right: Sequence[str]) -> Wording | None:
        if is_none(question):
            return None
        variants = {normal(v): v for v in also_right if normal(v) != normal(answer)}
        kept = tuple(variants.values())[:MAX_VARIANTS]
        wording = Wording(question=question, answer=answer, variants=kept)
        if reason := _fault(wording, wrong):
            raise Unparsed(reason)
        return wording

    def parse_wording(reply: str) -> Wording | None:
        if is_none(reply):
            return None
        labelled = fields(reply, LABELS)
        texts = {f.label: f.text for f in reversed(labelled)}
        for label in ("question", "answer"):
            if not texts.get(label):
                raise Unparsed(f"it has no line of the form '{label.upper()}: ...'")
        variants = [f.text for f in labelled if f.label == "variant" and f.text]
        return make_wording(
            texts["question"], texts["answer"], [v for v in variants if not is_none(v)]
        )

    shape = record(
        make_wording,
        question=words("the question without its options; the word NONE if you write none"),
        answer=words("the answer; empty if you write no question"),
        also_right=list_of(words("the answer said otherwise"), "other ways of saying the answer"),
    )
    return form(text=parse_wording, shape=shape)


def _fault(wording: Wording, wrong: Sequence[str]) -> str | None:
    """Return what is wrong with the text of a twin, in a sentence; None if nothing."""
    if match := _LEANS.search(wording.question):
        return f"the question still leans on options: {match.group()!r}"
    if reason := fault(wording.question, wording.answer, (), count=0):
        return f"the question has a fault: {reason}"
    answer_terms = set(terms(wording.answer))
    if answer_terms and answer_terms <= set(terms(wording.question)):
        return "all words of the answer stand in the question: repeating it would be right"
    if length(wording.answer) > MAX_JUDGED_WORDS:
        return f"the answer has more than {MAX_JUDGED_WORDS} words"
    wrong_texts = {normal(option) for option in wrong}
    for text in (wording.answer, *wording.variants):
        if normal(text) in wrong_texts:
            return f"{text[:60]!r} is one of the wrong answers"
    return None
