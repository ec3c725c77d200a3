"""The verifier without a model for composed questions without options: all on-screen texts, lines
and states that it is shown are the candidates. Several that fit make the answer "several", and
questions of other forms stay unverified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mustsee.calls.llm import Request
from mustsee.errors import BadRow
from mustsee.offline.facts_phrases import states_of
from mustsee.offline.facts_questions import OptionFits, decide
from mustsee.offline.looking import Evidence, read_all
from mustsee.offline.sight import evidence_shown, named_spans
from mustsee.offline.wording import likeness
from mustsee.questions.checks import words
from mustsee.verify.look_replies import HOLDS

SAME_READING = 0.85  # likeness from which two readings are the same text


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
    if question.startswith("Which words are seen"):
        readings = (line for frame in read_all(evidence.frames) for line in frame.lines)
        return tuple(f"the words “{text}”" for text in _once(readings))
    if question.startswith("What is said"):
        return tuple(f"“{text}”" for text in _once(line.text for line in evidence.lines))
    if question.startswith("Which of these is so"):
        return tuple(states_of(evidence.frames))
    raise BadRow("the rules cannot answer this question in words; vet/verifier=openai can")


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct readings."""
    distinct: list[str] = []
    for text in texts:
        if words(text) and all(likeness(text, other) < SAME_READING for other in distinct):
            distinct.append(text)
    return tuple(distinct)


RULES: dict[str, Callable[[Request], str]] = {"filters/sight_open": in_words}
