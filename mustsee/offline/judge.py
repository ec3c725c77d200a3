"""The offline model as a judge: right when nearly all of a reference's words are in the answer."""

from __future__ import annotations

from mustsee.calls.llm import Request
from mustsee.judge.lexical import refuses, token_recall


def equivalence(request: Request) -> str:
    return "TRUE" if _fits(request) else "FALSE"


def simpleqa(request: Request) -> str:
    if refuses(request.variables["candidate"]):
        return "NOT_ATTEMPTED"
    return "CORRECT" if _fits(request) else "INCORRECT"


def compass(request: Request) -> str:
    if refuses(request.variables["candidate"]):
        return "C"
    return "A" if _fits(request) else "B"


def _fits(request: Request) -> bool:
    candidate, reference = request.variables["candidate"], request.variables["reference"]
    return token_recall(candidate, reference) > 0.7 and not refuses(candidate)


RULES = {"judge/equivalence": equivalence, "judge/simpleqa": simpleqa, "judge/compass": compass}
