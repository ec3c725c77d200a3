"""One folder for each paper: its recipe, settings, filters, layout and offline rules.

Jobs import these modules; everything else finds a paper through `mustsee.papers`. No recipe imports
another. There is no `__all__`: a new folder changes no list.
"""
