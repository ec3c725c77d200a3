"""Model calls: admission, sending, retries, batches and usage. `RunContext.llm` connects a model
through them.
"""

__all__ = [
    "admission",
    "batch_route",
    "batches",
    "connection",
    "coordinator",
    "coordinator_actor",
    "coordinator_client",
    "coordinator_handle",
    "endpoint",
    "failover",
    "frames_clip",
    "gateway",
    "helper_quota",
    "liveness",
    "parameters",
    "pipe",
    "reply_bodies",
    "sender",
    "sending",
    "served",
    "trial",
]
