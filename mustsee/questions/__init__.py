"""Questions in models' replies: their forms, checks of their text, ids, and their chance level.

Recipes, `enrich` and `verify` use it.
"""

__all__ = [
    "balance",
    "chance",
    "checks",
    "course",
    "drafts",
    "fact_funnel",
    "labelled",
    "no_questions",
    "numbered",
    "orders",
    "replies",
    "rows",
]
