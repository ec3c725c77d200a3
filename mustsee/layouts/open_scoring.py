"""Score an open-ended answer in an exported task: by token F1, and by a judge if there is one.

The environment variable MUSTSEE_JUDGE has the judge's address (`serve run serve.judge:app`),
MUSTSEE_JUDGE_KEY its key. This file is copied into every task, like `asked`.
"""

import os
from collections.abc import Mapping
from typing import Any

from mustsee.files.fetch import post_json
from mustsee.replies.overlap import squad_f1
from mustsee.replies.thinking import split_reasoning

Row = Mapping[str, Any]
JUDGE_TIMEOUT_S = 60.0  # seconds for which one request is waited for


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
