"""Questions in models' replies: their forms, checks of their text, ids, and their chance level.

Recipes, `enrich` and `verify` use it.
"""
