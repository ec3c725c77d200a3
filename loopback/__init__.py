"""An OpenAI-compatible endpoint and an object store on this machine, with planned faults, for tests
and benchmarks.
"""

__all__ = ["batches", "endpoint", "limits", "refusals", "replies", "s3", "schemas", "videos"]
