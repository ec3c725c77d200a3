"""Rules instead of a model: one module for each area of prompts."""
