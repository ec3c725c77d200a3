"""The command line: from words such as `llm=openai` to a job that starts.

`command` is `mustsee`; `launch` starts a job for it and for `python -m ray_jobs.NAME`.
"""
