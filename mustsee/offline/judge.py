"""The offline model as a judge: TRUE when nearly all the reference's words are in the candidate."""

from __future__ import annotations

from mustsee.judge.lexical import refuses, token_recall
from mustsee.llm import Request


def equivalence(request: Request) -> str:
    candidate, reference = request.variables["candidate"], request.variables["reference"]
    fits = token_recall(candidate, reference) > 0.7 and not refuses(candidate)
    return "TRUE" if fits else "FALSE"


RULES = {"judge/equivalence": equivalence}
