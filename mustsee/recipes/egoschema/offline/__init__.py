"""EgoSchema's prompts answered by rules: `rules` is registered, `narrated` reads narrations."""
