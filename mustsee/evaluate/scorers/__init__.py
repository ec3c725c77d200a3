"""The rules by which other tools read and count the replies to multiple-choice questions.

Each module has the rules of one scorer by benchmark, written from the behaviour of the version that
a rule names; "" is the rule for any other benchmark. `mustsee.evaluate.rescore` applies them.
"""

from collections.abc import Mapping

from mustsee.evaluate.scorers import lmms_eval, official, vlmevalkit
from mustsee.evaluate.scorers.official import ScoringRule

SCORERS: Mapping[str, Mapping[str, ScoringRule]] = {
    "ours": official.OUR_RULES,
    "lmms_eval": lmms_eval.RULES,
    "vlmevalkit": vlmevalkit.RULES,
    "vlmevalkit_draw": vlmevalkit.RANDOM_RULES,
    "official": official.RULES,
}
BENCHMARKS = tuple(sorted({name for rules in SCORERS.values() for name in rules if name}))
