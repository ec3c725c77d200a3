"""The services that clients call: the judge, a language model, the rater's page and the report.

`judge` and `llm` run on Ray Serve; `rater` and `report` are Starlette apps that jobs serve.
"""

__all__ = [
    "body",
    "judge",
    "judge_batch",
    "judge_guard",
    "judge_http",
    "judge_local",
    "judge_page",
    "judge_shapes",
    "llm",
    "media",
    "rater",
    "rater_guard",
    "rater_show",
    "rater_video",
    "report",
]
