"""Rules for the judges that ask a model: a dry run of `judge=llm` counts with them.

An answer is right when nearly all words of the reference are in it.
"""

from __future__ import annotations

from mustsee.calls.llm import Request
from mustsee.judge.lexical import refuses, token_recall


def equivalence(request: Request) -> str:
    return "TRUE" if _matches(request) else "FALSE"


def _matches(request: Request) -> bool:
    candidate, reference = request.variables["candidate"], request.variables["reference"]
    return token_recall(candidate, reference) > 0.7 and not refuses(candidate)


RULES = {"judge/equivalence": equivalence}
