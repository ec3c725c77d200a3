"""How an exported task scores an answer in words: beside the known ones by their words, and by the
judge whose address MUSTSEE_JUDGE holds (`serve run serve.judge:app`), its key in MUSTSEE_JUDGE_KEY.

This file is copied into every task that has open-ended questions, as `asked` is.
"""

import json
import os
import urllib.request
from collections.abc import Mapping
from typing import Any

from mustsee.replies.squad import squad_f1
from mustsee.replies.thinking import split_reasoning

Row = Mapping[str, Any]
JUDGE_TIMEOUT_S = 60.0  # seconds


def is_open_ended(row: Row) -> bool:
    """Whether it is an open-ended question with a known answer, also one made from another."""
    return not row["options"] and bool(row["answer"])


def compare_reply(row: Row, reply: str) -> dict[str, Any]:
    """The reply as a row of results. `judged` is there where a judge is, and null where it could
    not tell. Raises RuntimeError where it does not answer.
    """
    said = split_reasoning(reply).reply
    judge = os.environ.get("MUSTSEE_JUDGE")
    return {
        "question_id": row["question_id"],
        "video_id": row.get("source") or row["video_id"],
        "type": row["question_type"],
        "f1": squad_f1(said, row["answer"]),
        **({"judged": _judged(judge, row, said)} if judge else {}),
    }


def _judged(judge: str, row: Row, said: str) -> float | None:
    item = {"question": row["question"], "candidate": said,
            "references": [row["answer"], *(row.get("variants") or ())]}  # fmt: skip
    request = urllib.request.Request(
        judge.rstrip("/") + "/v1/equivalence",
        json.dumps({"items": [item]}).encode(),
        {"Content-Type": "application/json",
         "Authorization": f"Bearer {os.environ.get('MUSTSEE_JUDGE_KEY', '')}"},
    )  # fmt: skip
    try:
        with urllib.request.urlopen(request, timeout=JUDGE_TIMEOUT_S) as reply:
            (found,) = json.load(reply)["data"]
    except (OSError, ValueError) as error:
        raise RuntimeError(
            f"the judge at MUSTSEE_JUDGE={judge!r} did not answer: {error}; is it up, and "
            "MUSTSEE_JUDGE_KEY one of its keys?"
        ) from error
    return None if found.get("error") else float(found["equivalent"])
