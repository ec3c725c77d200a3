"""An OpenAI-compatible endpoint on this machine with planned faults, for tests and benchmarks."""

__all__ = ["batches", "endpoint", "limits", "replies", "schemas", "videos"]
