"""Model calls: requests and replies, their cost, and the limits of endpoints.

Recipes and filters ask through `llm`. `actors.calls` applies `limits`, `limit_search`, `quota` and
`budget`, writes `call_log` and `restart_log`, and reads what endpoints answer by `endpoint_errors`
and `refusals`. `usage` sums up calls for the run record, and `image_tokens` prices images.
"""

__all__ = [
    "budget",
    "call_log",
    "endpoint_errors",
    "image_tokens",
    "limit_search",
    "limits",
    "llm",
    "quota",
    "refusals",
    "restart_log",
    "usage",
]
