"""Steps to the answers of composed questions, and a grade of steps by counting. Each step is a
statement that the verifier can measure (`mustsee.offline.facts_phrases`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mustsee.calls.llm import Request
from mustsee.offline.facts_phrases import make_statement
from mustsee.offline.facts_questions import phrases_of
from mustsee.records import Question, Span, Trace
from mustsee.text import terms
from mustsee.verify.traces import AXES


def trace(request: Request) -> str:
    """Write a step for each phrase of a composed question, or NONE."""
    question: Question = request.variables["question"]
    steps = _steps(question)
    if not 0 < len(steps) <= request.variables["most"]:
        return "NONE"
    lines = [
        f"STEP {n}: {span.start:.2f}-{span.end:.2f}: {text}"
        for n, (span, text) in enumerate(steps, 1)
    ]
    return "\n".join((*lines, f"CONCLUSION: So the answer is: {question.answer}"))


def _steps(question: Question) -> list[tuple[Span, str]]:
    """Return the statements of a question with their spans, in the order of time; none if it is not
    known which span shows which.
    """
    phrases, spans = phrases_of(question.question, question.answer), question.evidence
    statements = [text for phrase in phrases if (text := make_statement(phrase))]
    if len(phrases) == 2 and len(spans) == 3:
        spans = (spans[0], spans[2])  # The stretch between them shows neither.
    if len(spans) == 1:
        spans *= len(statements)
    if not len(phrases) == len(statements) == len(spans):
        return []
    return sorted(zip(spans, statements, strict=True), key=lambda step: step[0].start)


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
