"""Neptune's prompts answered by rules: `rules` is registered, the others make its questions."""

__all__ = ["composed", "measured", "quotable", "rules"]
