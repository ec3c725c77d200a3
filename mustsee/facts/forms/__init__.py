"""Forms of questions, one module each. A form is named in `conf/ask/facts.yaml`."""

__all__ = [
    "after",
    "at",
    "before",
    "between",
    "both",
    "count",
    "count_before",
    "first",
    "last",
    "longest",
    "next_time",
    "order",
    "part",
    "quarter",
    "spoken",
    "why",
]
