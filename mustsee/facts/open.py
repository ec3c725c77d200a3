"""Composed questions asked without their options.

    sibling = open_sibling(question, stem.traits)   # or None

Options help whoever can exclude some of them. A question whose form has an answer that one can say
in words, and whose wording names no options, is asked again without them. Its options are known to
be wrong, but what else is true there is not known: `sight` and a judge decide on written answers.
"""

from __future__ import annotations

import re
from dataclasses import replace

from mustsee.facts.stem import FormTraits
from mustsee.questions.checks import fault
from mustsee.questions.drafts import Draft, evidence_metrics, question_id
from mustsee.records import OPEN, Question
from mustsee.text import length, terms
from mustsee.verify.vetting import MAX_JUDGED_WORDS

_NEEDS_OPTIONS = re.compile(
    r"\bof (?:these|those|the (?:following|options))\b|\b(?:the following|these options)\b|"
    r"^what is seen\b",
    re.IGNORECASE,
)
_WORDS = re.compile(r"^the words “(.+)”$")


def open_sibling(question: Question, traits: FormTraits) -> Question | None:
    """Return the question without its options, as a sibling of it that is in no set; None where its
    form, of these `traits`, or its wording needs options, or it holds the words of its answer.
    """
    if traits.needs_options or _NEEDS_OPTIONS.search(question.question):
        return None
    answer_terms = set(terms(question.answer))
    if answer_terms and answer_terms <= set(terms(question.question)):
        return None
    too_long = length(question.answer) > MAX_JUDGED_WORDS
    if too_long or fault(question.question, question.answer, (), count=0):
        return None
    draft = Draft(question=question.question, answer=question.answer)
    words = _WORDS.match(question.answer)
    return replace(
        question,
        question_id=question_id(question.video_id, question.recipe, draft),
        options=(),
        answer_index=None,
        variants=(words[1],) if words else (),
        verdicts=(),
        metrics=evidence_metrics(question.evidence),
        sibling_of=question.question_id,
        relation=OPEN,
        group=None,
    )
