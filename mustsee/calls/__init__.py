"""Model calls: requests and replies, their cost, and the limits of endpoints.

Recipes and filters ask through `llm`. `actors.calls` applies `limits`, `limit_search`, `quota` and
`budget`, and writes `call_log` and `restart_log`. `usage` sums up calls for the run record, and
`image_tokens` prices images.
"""

__all__ = [
    "budget",
    "call_log",
    "image_tokens",
    "limit_search",
    "limits",
    "llm",
    "quota",
    "request_tally",
    "restart_log",
    "usage",
]
