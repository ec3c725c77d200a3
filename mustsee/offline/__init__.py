"""Rules instead of a model (`llm=offline`), for prompts that no paper owns; papers' rules use them.

A module with `RULES` answers prompts: `caption`, `evaluate`, `filters`, `judge`, `sight`,
`sight_open`, `traces`. The others are shared: `looking` and `reading` measure frames, `statements`
knows forms of statement, `wording` compares texts.
"""

__all__ = [
    "caption",
    "evaluate",
    "filters",
    "judge",
    "looking",
    "reading",
    "sight",
    "sight_open",
    "statements",
    "traces",
    "wording",
]
