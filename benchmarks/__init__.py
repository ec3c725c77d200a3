"""Benchmarks, one module per subject: `python -m benchmarks.bench what=NAME` runs one and prints a
table. For developers; no product code imports them.
"""

__all__ = [
    "align", "audit", "audit_model", "audit_videos", "bench", "caption", "cuts", "end_to_end",
    "enrich", "enrich_model", "facts", "figures", "harness", "hear", "judge", "judges", "large",
    "limits", "lines", "llm", "look", "memory", "peers", "scale", "sight", "sight_model",
    "sight_videos", "speakers",
]  # fmt: skip
