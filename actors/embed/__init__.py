"""Embedders of text or frames: the classes behind `embed=`."""

__all__ = ["jax", "openai", "siglip"]
