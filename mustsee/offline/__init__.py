"""Rules instead of a model (`llm=offline`), for prompts that no paper owns; papers' rules use them.

A module with `RULES` answers prompts: `caption`, `evaluate`, `facts`, `filters`, `judge`, `sight`,
`sight_open`, `traces`. The others are shared: `looking`, `reading` and `things` measure frames,
`facts_phrases`, `facts_questions` and `statements` know forms of phrases, questions and statements,
`course` knows how things usually go, `wording` compares texts.
"""
