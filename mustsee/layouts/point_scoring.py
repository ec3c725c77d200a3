"""Grade an answer to a question with points in an exported task, by a model at an endpoint.

Three environment variables name the grader: MUSTSEE_GRADER (the address of an endpoint with chat
completions, such as https://api.openai.com/v1), MUSTSEE_GRADER_MODEL and MUSTSEE_GRADER_KEY. This
file is copied into every task with the prompt that `judge=points` sends; it needs jinja2.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mustsee.files.fetch import post_json
from mustsee.replies.thinking import split_reasoning

Row = Mapping[str, Any]
PROMPT = "facts/grade"
VALUES = {"ENTAILED": 1, "ABSENT": 0, "CONTRADICTED": -1}
CONTRADICTION_WEIGHT = 1  # weight of a wrong statement that an answer makes
WORDS_OF_POINT = 25  # words that an answer may have for each point
GRADER_TIMEOUT_S = 300.0  # seconds for which one request is waited for
TRIES = 3  # requests for a reply that can be parsed
_LINE = re.compile(r"^\W*(POINT|STATEMENT) (\d+)\W*(ENTAILED|ABSENT|CONTRADICTED|YES|NO)\b", re.M)


def has_points(row: Row) -> bool:
    """Return whether the row is a question whose answers are graded by points."""
    return not row["options"] and bool(row.get("points")) and bool(_counted(row))


def answer_words(row: Row) -> int:
    """Return how many words an answer may have."""
    return WORDS_OF_POINT * len(row["points"])


def check_grader() -> None:
    """Raises RuntimeError unless the grader is named, so that no model is asked in vain."""
    names = ("MUSTSEE_GRADER", "MUSTSEE_GRADER_MODEL")
    if missing := [name for name in names if not os.environ.get(name)]:
        raise RuntimeError(
            f"{missing[0]} is not set: answers to these questions are graded point by point by a "
            "model. Set MUSTSEE_GRADER to the address of an endpoint "
            "(https://api.openai.com/v1), MUSTSEE_GRADER_MODEL to its model, and "
            "MUSTSEE_GRADER_KEY to your key"
        )


def grade_reply(row: Row, reply: str) -> dict[str, Any]:
    """Return the reply's row of results.

    `points` is the weight of the points that it states, less that of those that it contradicts and
    one for each wrong statement that it makes, as a share of the weight of all points, 0 to 1; null
    if no reply of the grader could be parsed (`ungraded`). `missed`, `contradicted`, `made`: texts.
    Raises RuntimeError if the grader does not answer.
    """
    answer, counted = split_reasoning(reply).reply, _counted(row)
    statements: list[str] = list(row.get("contradictions") or ())
    graded = (
        _ask_grader(row["question"], answer, [p["text"] for p in counted], statements)
        if any(c.isalnum() for c in answer)
        else ([0] * len(counted), [False] * len(statements))
    )
    result: dict[str, Any] = {
        "question_id": row["question_id"],
        "video_id": row.get("source") or row["video_id"],
        "type": row.get("skill") or row["question_type"],
        "ungraded": float(graded is None),
        "points": None,
    }
    if graded is None:
        return result
    verdicts, made = graded
    weights = [p["weight"] for p in counted]
    total = sum(weight * v for weight, v in zip(weights, verdicts, strict=True))
    total -= CONTRADICTION_WEIGHT * sum(made)
    texts = {
        name: [p["text"] for p, v in zip(counted, verdicts, strict=True) if v == verdict]
        for name, verdict in (("missed", 0), ("contradicted", -1))
    }
    wrong = [text for text, is_made in zip(statements, made, strict=True) if is_made]
    return {**result, "points": max(0.0, total / sum(weights)), **texts, "made": wrong}


def parse_grade(reply: str, points: int, statements: int) -> tuple[list[int], list[bool]] | None:
    """Return a verdict on each point (1, 0, -1) and whether each wrong statement is made; None
    unless each number has exactly one.
    """
    found: dict[tuple[str, int], str] = {}
    for kind, number, verdict in _LINE.findall(reply):
        if (kind, int(number)) in found or (verdict in VALUES) != (kind == "POINT"):
            return None
        found[kind, int(number)] = verdict
    wanted = [("POINT", n + 1) for n in range(points)]
    wanted += [("STATEMENT", n + 1) for n in range(statements)]
    if set(found) != set(wanted):
        return None
    verdicts = [VALUES[found[place]] for place in wanted[:points]]
    return verdicts, [found[place] == "YES" for place in wanted[points:]]


def _counted(row: Row) -> list[Row]:
    return [point for point in row["points"] if point["state"] == "counted"]


def _ask_grader(
    question: str, answer: str, points: list[str], statements: list[str]
) -> tuple[list[int], list[bool]] | None:
    from mustsee.prompts import Prompts

    check_grader()
    prompt = Prompts(root=str(Path(__file__).parent / "prompts")).render(
        PROMPT, question=question, answer=answer, points=points, statements=statements
    )
    messages = [
        {"role": "system", "content": prompt.system},
        {"role": "user", "content": f"{prompt.user}\n\n{prompt.lines}"},
    ]
    for seed in range(TRIES):
        graded = parse_grade(_complete(messages, seed), len(points), len(statements))
        if graded is not None:
            return graded
    return None


def _complete(messages: list[dict[str, str]], seed: int) -> str:
    url = os.environ["MUSTSEE_GRADER"].rstrip("/") + "/chat/completions"
    body = {"model": os.environ["MUSTSEE_GRADER_MODEL"], "messages": messages, "seed": seed}
    key = os.environ.get("MUSTSEE_GRADER_KEY", "")
    try:
        reply = post_json(url, body, key, GRADER_TIMEOUT_S)
        text = reply["choices"][0]["message"]["content"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise RuntimeError(
            f"the grader at MUSTSEE_GRADER={os.environ['MUSTSEE_GRADER']!r} did not answer "
            f"({error}): check the address, MUSTSEE_GRADER_MODEL and MUSTSEE_GRADER_KEY"
        ) from error
    return split_reasoning(text or "").reply
