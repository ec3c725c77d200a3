"""Rules instead of a model (`llm=offline`), for prompts that no paper owns; papers' rules use them.

A module with `RULES` answers prompts: `caption`, `enrich`, `evaluate`, `facts`, `filters`, `judge`,
`sight`, `sight_open`, `traces`. The others are shared: `looking` and `reading` measure frames,
`facts_phrases`, `statements` and `paraphrases` know forms of phrases and questions, `wording`
compares texts.
"""

__all__ = [
    "caption",
    "enrich",
    "evaluate",
    "facts",
    "facts_phrases",
    "filters",
    "judge",
    "looking",
    "paraphrases",
    "reading",
    "sight",
    "sight_open",
    "statements",
    "traces",
    "wording",
]
