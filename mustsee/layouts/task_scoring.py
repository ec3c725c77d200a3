"""Ask a question of an exported task, find its video, and score the reply.

This file is copied into every task, into the package `reading` beside the copy of `extract`. A row
has a question's columns with `video` (the video's file name), `start` and `end` (of a clip) and
`source` (the video that a clip is from).

Replies to multiple-choice questions are scored by their letter (`score_reply`). Questions of one
`group` score together, too: those of a set share their options (`relation` is "set"), those of a
pair have opposite answers ("pair"). Replies to open-ended questions are compared with the answer
(`compare_reply`), by words and, where MUSTSEE_JUDGE names a judge, by meaning. Replies to questions
with points are graded by the model that MUSTSEE_GRADER names (`grade_reply`).
"""

import os
import re
import shlex
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mustsee.files.fetch import post_json
from mustsee.replies.extract.choice import extract
from mustsee.replies.overlap import squad_f1
from mustsee.replies.thinking import split_reasoning

Row = Mapping[str, Any]
GROUP_METRICS = {"set": ("set_all_right", "set_squared"), "pair": ("pair_both_right",)}
ENDINGS = ("mp4", "mkv", "webm", "mov", "avi", "m4v", "mpg", "mpeg", "ts", "m2ts", "mts", "wmv",
           "flv", "3gp", "ogv", "vob", "mxf")  # fmt: skip
JUDGE_TIMEOUT_S = 60.0  # seconds for which one request is waited for
GRADER_PROMPT = "facts/grade"
VERDICT_VALUES = {"ENTAILED": 1, "ABSENT": 0, "CONTRADICTED": -1}
CONTRADICTION_WEIGHT = 1  # weight of a wrong statement that an answer makes
WORDS_OF_POINT = 25  # words that an answer may have for each point
GRADER_TIMEOUT_S = 300.0  # seconds for which one request is waited for
GRADER_TRIES = 3  # requests for a reply that can be parsed
_LINE = re.compile(r"^\W*(POINT|STATEMENT) (\d+)\W*(ENTAILED|ABSENT|CONTRADICTED|YES|NO)\b", re.M)


def is_multiple_choice(row: Row) -> bool:
    """Return whether the row is a multiple-choice question with a known answer, not a twin."""
    has_answer = bool(row["options"]) and row["answer_index"] is not None
    return has_answer and not row.get("sibling_of")


def question_text(row: Row) -> str:
    """Return the question with its options by letter."""
    options = zip(string.ascii_uppercase, row["options"], strict=False)
    return "\n".join([row["question"], *(f"{letter}. {option}" for letter, option in options)])


def letter(row: Row) -> str:
    """Return the letter of the right answer."""
    return string.ascii_uppercase[row["answer_index"]]


def video_path(row: Row, beside: Path) -> str:
    """Return the path of the video in the folder MUSTSEE_VIDEOS, else in `beside`/videos.

    Raises FileNotFoundError, for a clip with the command that cuts it.
    """
    folder = Path(os.environ.get("MUSTSEE_VIDEOS") or beside / "videos")
    video_file = row.get("video") or ""
    endings = [*ENDINGS, *map(str.upper, ENDINGS)]
    names = [f"{row['video_id']}.{ending}" for ending in endings]
    clip = row.get("start") is not None
    names = [n for n in names if n != video_file] if clip else [video_file, *names]
    # Names that lead out of the folder are ignored.
    safe_names = [n for n in names if n and not Path(n).is_absolute() and ".." not in Path(n).parts]
    path = next((folder / n for n in safe_names if (folder / n).is_file()), None)
    if path is not None:
        return str(path)
    message = f"no video for {row['video_id']!r} in {str(folder)!r}: set MUSTSEE_VIDEOS"
    if clip and video_file:
        target = f"{row['video_id']}{Path(video_file).suffix}"
        target = target if target != video_file else f"clips/{target}"
        message += (
            f", and cut the clip: ffmpeg -ss {row['start']} -to {row['end']} "
            f"-i {shlex.quote(video_file)} -c copy {shlex.quote(target)}"
        )
    raise FileNotFoundError(message)


def score_reply(row: Row, reply: str) -> dict[str, Any]:
    """Return the reply's row of results."""
    extracted = extract(reply, row["options"])
    return {
        "question_id": row["question_id"],
        "video_id": row.get("source") or row["video_id"],
        "type": row["question_type"],
        "relation": row.get("relation"),
        "group": row.get("group"),
        "right": float(extracted.letter == letter(row)),
        "unparsed": float(extracted.letter is None),
        "letter": extracted.letter,
        "rule": extracted.rule,
    }


def mean(rows: Sequence[Row], key: str) -> float:
    return sum(row[key] for row in rows) / len(rows)


def mean_of_types(rows: Sequence[Row]) -> float:
    """Return the mean over question types of the share of right replies."""
    by_type: dict[str, list[float]] = {}
    for row in rows:
        by_type.setdefault(row["type"], []).append(row["right"])
    return sum(sum(k) / len(k) for k in by_type.values()) / len(by_type)


def group_scores(rows: Sequence[Row]) -> dict[str, float]:
    """Return the scores of sets and pairs by the names of `GROUP_METRICS`; empty without any.

    `set_all_right`, `pair_both_right`: the share of groups whose questions are all right.
    `set_squared`: the mean over sets of the square of the share of right questions.
    """
    groups: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row["group"] is not None and row["relation"] in GROUP_METRICS:
            groups.setdefault((row["relation"], row["group"]), []).append(row["right"])
    scores: dict[str, float] = {}
    for kind, metrics in GROUP_METRICS.items():
        shares = [sum(g) / len(g) for (k, _), g in groups.items() if k == kind and len(g) > 1]
        values = ([float(share == 1) for share in shares], [share**2 for share in shares])
        if shares:
            scores |= {m: sum(v) / len(v) for m, v in zip(metrics, values, strict=False)}
    return scores


def is_open_ended(row: Row) -> bool:
    """Return whether the row is an open-ended question with a known answer and without points,
    twins included; none that asks when, whose answer is a span.
    """
    is_open = not row["options"] and bool(row["answer"]) and not row.get("points")
    return is_open and row.get("form") != "when"


def compare_reply(row: Row, reply: str) -> dict[str, Any]:
    """Return the reply's row of results.

    With a judge, `judged` is its verdict, or null if it gave none. Raises RuntimeError if the judge
    does not answer.
    """
    answer = split_reasoning(reply).reply
    judge_url = os.environ.get("MUSTSEE_JUDGE")
    return {
        "question_id": row["question_id"],
        "video_id": row.get("source") or row["video_id"],
        "type": row["question_type"],
        "f1": squad_f1(answer, row["answer"]),
        **({"judged": _judge_answer(judge_url, row, answer)} if judge_url else {}),
    }


def _judge_answer(judge_url: str, row: Row, answer: str) -> float | None:
    item = {"question": row["question"], "candidate": answer,
            "references": [row["answer"], *(row.get("variants") or ())]}  # fmt: skip
    url = judge_url.rstrip("/") + "/v1/equivalence"
    key = os.environ.get("MUSTSEE_JUDGE_KEY", "")
    try:
        (result,) = post_json(url, {"items": [item]}, key, JUDGE_TIMEOUT_S)["data"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise RuntimeError(
            f"the judge at MUSTSEE_JUDGE={judge_url!r} did not answer ({error}): check that it "
            "runs, and that MUSTSEE_JUDGE_KEY is one of its keys"
        ) from error
    return None if result.get("error") else float(result["equivalent"])


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
        if (kind, int(number)) in found or (verdict in VERDICT_VALUES) != (kind == "POINT"):
            return None
        found[kind, int(number)] = verdict
    wanted = [("POINT", n + 1) for n in range(points)]
    wanted += [("STATEMENT", n + 1) for n in range(statements)]
    if set(found) != set(wanted):
        return None
    verdicts = [VERDICT_VALUES[found[place]] for place in wanted[:points]]
    return verdicts, [found[place] == "YES" for place in wanted[points:]]


def _counted(row: Row) -> list[Row]:
    return [point for point in row["points"] if point["state"] == "counted"]


def _ask_grader(
    question: str, answer: str, points: list[str], statements: list[str]
) -> tuple[list[int], list[bool]] | None:
    from mustsee.prompts import Prompts

    check_grader()
    prompt = Prompts(root=str(Path(__file__).parent / "prompts")).render(
        GRADER_PROMPT, question=question, answer=answer, points=points, statements=statements
    )
    messages = [
        {"role": "system", "content": prompt.system},
        {"role": "user", "content": f"{prompt.user}\n\n{prompt.lines}"},
    ]
    for seed in range(GRADER_TRIES):
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
