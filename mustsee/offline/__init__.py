"""Rules instead of a model (`llm=offline`), for prompts that no paper owns; papers' rules use them.

A module with `RULES` answers prompts: `caption`, `enrich`, `evaluate`, `filters`, `sight`,
`sight_open`, `traces`. The others are shared: `looking` and `reading` measure frames, `statements`
and `paraphrases` know forms of question, `wording` compares texts.
"""

__all__ = [
    "caption",
    "enrich",
    "evaluate",
    "filters",
    "looking",
    "paraphrases",
    "reading",
    "sight",
    "sight_open",
    "statements",
    "traces",
    "wording",
]
