"""Embedders of text or frames: the classes behind `embed=`."""

__all__ = ["efficientnet", "jax", "openai", "siglip"]
