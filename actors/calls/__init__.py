"""Model calls: admission, sending, retries, batches and usage. `RunContext.llm` connects a model
through them.
"""
