"""The configured models, one module for each choice of `llm=`."""

__all__ = ["offline", "openai", "replay", "smollm2", "transformers"]
