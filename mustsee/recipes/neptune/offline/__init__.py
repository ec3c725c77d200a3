"""Neptune's prompts answered by rules: `rules` is registered, the others make its questions."""
