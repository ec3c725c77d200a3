"""Rules that answer every prompt without a model: one module per area, each with its `RULES`."""
