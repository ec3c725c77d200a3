"""Rules instead of a model (`llm=offline`), for prompts that no paper owns; papers' rules use them.

A module with `RULES` answers prompts: `evaluate`, `facts`, `filters`, `sight`.
The others are shared: `looking` and `things` measure frames, `facts_phrases` and `facts_questions`
know forms of phrases, statements and questions.
"""
