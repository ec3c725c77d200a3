"""Steps to the answers of the rules' own forms of question, and a grade of steps by counting. Each
step is a statement that the verifier can measure (`mustsee.offline.statements`). Questions for the
next text have no steps, because no statement excludes texts in between.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from mustsee.calls.llm import Request
from mustsee.enrich.traces import AXES
from mustsee.offline.sight import QUOTE
from mustsee.offline.statements import LARGE, READ, SAID, SMALL
from mustsee.records import Question, Span, Trace
from mustsee.text import terms

Steps = list[tuple[Span, str]]
Rule = Callable[[re.Match[str], str, tuple[Span, ...]], Steps | None]


def trace(request: Request) -> str:
    """Write the steps for a known form of question, or NONE."""
    question: Question = request.variables["question"]
    for pattern, rule in FORMS:
        if match := pattern.search(question.question):
            steps = rule(match, question.answer, question.evidence)
            if not steps or len(steps) > request.variables["most"]:
                return "NONE"
            lines = [
                f"STEP {n}: {span.start:.2f}-{span.end:.2f}: {text}"
                for n, (span, text) in enumerate(steps, 1)
            ]
            return "\n".join((*lines, f"CONCLUSION: So the answer is: {question.answer}"))
    return "NONE"


def _ordered(form: str) -> Rule:
    """Return a rule for things in order, each with a span of its own."""

    def steps(match: re.Match[str], answer: str, evidence: tuple[Span, ...]) -> Steps | None:
        things = [thing.strip(' “”"') for thing in answer.split(";")]
        if len(things) != len(evidence):
            return None
        return [(span, form.format(t)) for span, t in zip(evidence, things, strict=True)]

    return steps


def _both(first: str, second: str) -> Rule:
    """Return a rule for the question's quote and then the answer, in one or two spans."""

    def steps(match: re.Match[str], answer: str, evidence: tuple[Span, ...]) -> Steps | None:
        if not 1 <= len(evidence) <= 2:
            return None
        return [(evidence[0], first.format(match[1])), (evidence[-1], second.format(answer))]

    return steps


def _before(match: re.Match[str], answer: str, evidence: tuple[Span, ...]) -> Steps | None:
    if not 1 <= len(evidence) <= 2:
        return None
    return [(evidence[0], SAID.format(answer)), (evidence[-1], SAID.format(match[1]))]


def _at_once(first: str, second: str) -> Rule:
    """Return a rule for the question's quote and the answer in a single span."""

    def steps(match: re.Match[str], answer: str, evidence: tuple[Span, ...]) -> Steps | None:
        if len(evidence) != 1:
            return None
        return [(evidence[0], first.format(match[1])), (evidence[0], second.format(answer))]

    return steps


def _passing(match: re.Match[str], answer: str, evidence: tuple[Span, ...]) -> Steps | None:
    if len(evidence) != 2:
        return None
    large = 1 if match[1] == "end" else 0
    forms = (SMALL, LARGE) if large else (LARGE, SMALL)
    return [(s, f.format(answer.lower())) for s, f in zip(evidence, forms, strict=True)]


FORMS: tuple[tuple[re.Pattern[str], Rule], ...] = tuple(
    (re.compile(pattern), rule)
    for pattern, rule in (
        (r"^In what order do these words come up on the screen:", _ordered(READ)),
        (r"^In what order are these things said:", _ordered(SAID)),
        (r"^In what order do these colours first fill a large part", _ordered(LARGE)),
        (rf"^Which (?:of these )?words are on the screen together with {QUOTE}\?$",
         _at_once(READ, READ)),
        (rf"^Which words come up on the screen at about the time of {QUOTE}\?$",
         _at_once(SAID, READ)),
        (rf"^What is said in the part in which {QUOTE} comes up on the screen\?$",
         _at_once(READ, SAID)),
        (rf"^What is said right after {QUOTE}\?$", _both(SAID, SAID)),
        (rf"^What is said right before {QUOTE}\?$", _before),
        (rf"^What is the reason given for this: {QUOTE}\?$", _at_once(SAID, SAID)),
        (r"^Which colour fills a large part of the picture at the (beginning|end) of", _passing),
    )
)  # fmt: skip


def rubric(request: Request) -> str:
    """Grade a trace by counting: steps within the evidence, evidence with a step, and the answer's
    words in the steps. The verifier has checked each step already.
    """
    question: Question = request.variables["question"]
    graded: Trace = request.variables["trace"]
    spans = [Span(step.start, step.end) for step in graded.steps]
    inside = sum(_touch(span, question.evidence) for span in spans)
    covered = sum(_touch(span, spans) for span in question.evidence)
    words_of_steps = {t for step in graded.steps for t in terms(step.text)}
    has_answer = set(terms(question.answer)) <= words_of_steps
    levels = (2, 2 if inside == len(spans) else int(inside > 0), 2 * int(has_answer),
              2 if covered == len(question.evidence) else int(covered > 0))  # fmt: skip
    reasons = ("the verifier found each step", f"{inside} of {len(spans)} lie in the evidence",
               f"the steps {'hold' if has_answer else 'lack'} the answer's words",
               f"{covered} of {len(question.evidence)} stretches have a step")  # fmt: skip
    lines = zip(AXES, reasons, levels, strict=True)
    return "\n".join(f"* {a.upper()} REASON: {r}\n* {a.upper()}: {level}" for a, r, level in lines)


def _touch(span: Span, others: Sequence[Span]) -> bool:
    return any(span.start <= o.end and o.start <= span.end for o in others)


RULES: dict[str, Callable[[Request], str]] = {"enrich/trace": trace, "enrich/rubric": rubric}
