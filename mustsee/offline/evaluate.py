"""Rules for the prompts that answer, grade and judge: a baseline for models.

With a transcript, they choose the option that is most similar to the lines near the question's
words. Without one, they choose the option that is most similar to all others, because decoys are
variations of the answer. An answer is right when nearly all words of the reference are in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mustsee.calls.llm import Request
from mustsee.judge.lexical import refuses, token_recall
from mustsee.text import LETTERS, TermVectors, terms

NEEDS_VIDEO = "The answer needs the video."
MAX_SUMMARY_WORDS = 112  # words of an answer; the average of MLVU's summaries


def equivalence(request: Request) -> str:
    return "TRUE" if _matches(request) else "FALSE"


def _matches(request: Request) -> bool:
    candidate, reference = request.variables["candidate"], request.variables["reference"]
    return token_recall(candidate, reference) > 0.7 and not refuses(candidate)


def best_option(question: str, options: Sequence[str], transcript: str | None) -> int:
    """Return the index of the most probable option; of equals, the first."""
    lines = _lines_of(transcript)
    likeness_to_others = TermVectors(options).cosines.sum(axis=1)
    if not lines:
        return max(range(len(options)), key=lambda i: (likeness_to_others[i], -i))
    vectors = TermVectors(lines)
    question_scores = vectors.likeness(question)
    scores = [
        float((vectors.likeness(option) * (0.2 + question_scores)).sum()) for option in options
    ]
    return max(range(len(options)), key=lambda i: (scores[i], likeness_to_others[i], -i))


def _lines_of(transcript: str | None) -> list[str]:
    """Return the lines of a transcript that have words."""
    return [line for line in (transcript or "").splitlines() if terms(line)]


def choice_letter(request: Request) -> str:
    """Return the letter of the best option."""
    question, options = request.variables["question"], request.variables["options"]
    return LETTERS[best_option(question, options, request.variables["transcript"])]


def choice_with_reason(request: Request) -> str:
    """Return the letter of the best option, and a reason, as Neptune's prompt asks."""
    return f"[{choice_letter(request)}]: its words are the nearest."


def nearest_line(request: Request) -> str:
    """Answer with the transcript line that is most similar to the question."""
    line = _find_nearest(request)
    if line is None:
        return NEEDS_VIDEO
    return " ".join(line.split("] ")[-1].split()[: request.variables["words"]])


def nearest_times(request: Request) -> str:
    """Answer with the times of the transcript line that is most similar to the question."""
    line = _find_nearest(request)
    return NEEDS_VIDEO if line is None else f"{line.partition(']')[0].lstrip('[')} s"


def _find_nearest(request: Request) -> str | None:
    lines = _lines_of(request.variables["transcript"])
    if not lines:
        return None
    scores = TermVectors(lines).likeness(request.variables["question"])
    return lines[max(range(len(lines)), key=lambda i: (scores[i], -i))]


def _covered(candidate: str, wanted: str) -> float:
    """Return the share of the wanted words that the candidate has."""
    present, needed = set(terms(candidate)), set(terms(wanted))
    return len(present & needed) / len(needed) if needed else 0.0


def retell_lines(request: Request) -> str:
    """Answer with transcript lines in their order, up to `MAX_SUMMARY_WORDS` words: those similar
    to the question, or else evenly spread ones.
    """
    variables = request.variables
    lines = [line.split("] ")[-1] for line in _lines_of(variables["transcript"])]
    if not lines:
        return NEEDS_VIDEO
    scores = TermVectors(lines).likeness(variables["question"])
    rank = sorted(range(len(lines)), key=lambda i: (-scores[i], i))
    if not scores.max():
        rank = [i for start in range(8) for i in range(start, len(lines), 8)]
    kept, words_left = list[int](), MAX_SUMMARY_WORDS
    for i in rank:
        words_left -= len(lines[i].split())
        if words_left < 0 and kept:
            break
        kept.append(i)
    return " ".join(lines[i] for i in sorted(kept))


def _level(share: float) -> int:
    """Return a share from 0 to 1 as a level from 1 to 5."""
    return 1 + min(4, int(5 * share))


def scene(request: Request) -> str:
    variables: Any = request.variables
    lines: list[str] = []
    for n, point in enumerate(variables["points"], 1):
        share = _covered(variables["candidate"], point)
        lines += [f"POINT {n} REASON: {share:.0%} of its words are there",
                  f"POINT {n}: {5 if share > 0.66 else 3 if share > 0.33 else 1}"]  # fmt: skip
    share = _covered(
        " ".join([variables["question"], *variables["points"]]), variables["candidate"]
    )
    lines += [f"RELEVANCE REASON: {share:.0%} of its words are asked for",
              f"RELEVANCE: {_level(share)}"]  # fmt: skip
    return "\n".join(lines)


def summary(request: Request) -> str:
    variables = request.variables
    completeness = _covered(variables["candidate"], variables["reference"])
    reliability = _covered(variables["reference"], variables["candidate"])
    return (
        f"COMPLETENESS REASON: {completeness:.0%} of the reference's words are there\n"
        f"COMPLETENESS: {_level(completeness)}\n"
        f"RELIABILITY REASON: {reliability:.0%} of its words are in the reference\n"
        f"RELIABILITY: {_level(reliability)}"
    )


def choice_without_question(request: Request) -> str:
    """Return the letter of the option that is most similar to the others."""
    options = request.variables["options"]
    return LETTERS[best_option("", options, request.variables["transcript"])]


def yes_or_no(request: Request) -> str:
    """Say "Yes" where a line of the transcript holds the words of the proposed answer."""
    lines = _lines_of(request.variables["transcript"])
    wanted = set(terms(request.variables["option"]))
    return "Yes" if wanted and any(wanted <= set(terms(line)) for line in lines) else "No"


RULES: dict[str, Callable[[Request], str]] = {
    "judge/equivalence": equivalence,
    "evaluate/choice": choice_letter,
    "evaluate/neptune": choice_with_reason,
    "evaluate/options_alone": choice_without_question,
    "evaluate/yes": yes_or_no,
    "evaluate/choice_evidence": choice_letter,
    "evaluate/when": nearest_times,
    "evaluate/open": nearest_line,
    "evaluate/mlvu_open": retell_lines,
    "evaluate/scene": scene,
    "evaluate/summary": summary,
}
