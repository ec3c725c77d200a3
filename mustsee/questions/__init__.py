"""Questions in models' replies: their forms, checks of their text, ids, and their chance level.

Recipes, `facts` and `verify` use it.
"""
