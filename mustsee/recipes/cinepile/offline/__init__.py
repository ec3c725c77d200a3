"""CinePile's prompts answered by rules: `rules` is registered, the others hold them."""
