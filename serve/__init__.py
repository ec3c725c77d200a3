"""The services that clients call: the judge, a language model, the rater's page and the report.

`judge` and `llm` run on Ray Serve; `rater` and `report` are Starlette apps that jobs serve.
"""
