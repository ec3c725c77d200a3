"""Additions to questions that passed every filter: open-ended twins, siblings on the same fact, and
reasoning traces. Each is verified before it counts. The stage `enrich` runs them.
"""

__all__ = ["groups", "traces", "twins"]
