"""Model calls: requests and replies, their cost, and the limits of endpoints.

Recipes and filters ask through `llm`. `actors.calls` applies `limits`, `limit_search` and `budget`,
reads what endpoints answer by `endpoint_errors` and `refusals`, and writes `call_log`
(`call_log_files`).
`usage` sums up calls for the run record, and `image_tokens` prices images. `models` is the table of
models.
"""
