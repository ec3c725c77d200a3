"""A language model on Ray Serve behind an OpenAI route; `llm=serve` calls it.

    serve run serve.llm:app model=Qwen/Qwen3.5-9B
    serve run serve.llm:app model=/models/gemma name=mustsee-llm gpus=2 replicas=2
    serve run serve.llm:app model=Qwen/Qwen3.5-9B text_only=true          (a guesser)

It is Ray Serve LLM with vLLM. It needs GPUs and `pip install 'ray[llm]'` (which pins vLLM) on every
node, best in an environment of its own. Only the arguments for Ray are tested, not vLLM itself.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from ray.serve import Application

from mustsee.errors import UserError, need


class LlmServeSettings(BaseModel):
    """The settings of `serve run serve.llm:app key=value` and of the `args` of a Serve config.

    `model`: a folder or Hugging Face id. `name`: the name that clients use (`llm.model`).
    `gpus`: GPUs of one replica (tensor parallel). `accelerator`: a GPU type as Ray names it
    ("A100", "L4"); null takes any. `length`: the longest prompt with its reply, in tokens.
    `queue`: requests that one replica works on at once, before the next replica or 429.
    `text_only`: leave out the vision tower; a guesser needs none, and models such as Qwen3.5 keep
    prompts in the cache only without it. `engine`: further arguments of vLLM, as JSON. Code from
    the model's repository is never run.
    """

    model_config = ConfigDict(extra="forbid")
    model: str
    name: str = "mustsee-llm"
    revision: str | None = None
    replicas: int = Field(default=1, ge=1)
    max_replicas: int | None = None
    gpus: int = Field(default=1, ge=1)
    accelerator: str | None = None
    dtype: str = "auto"
    length: int = 32768
    memory: float = Field(default=0.9, gt=0, le=1)
    queue: int = 256
    text_only: bool = False
    engine: str = "{}"


def arguments(settings: LlmServeSettings) -> dict[str, Any]:
    """The one entry of Ray Serve LLM's `llm_configs`. Raises UserError."""
    try:
        more = json.loads(settings.engine)
    except ValueError as error:
        raise UserError(f"engine={settings.engine!r} is not a JSON object: {error}") from None
    if not isinstance(more, dict) or more.get("trust_remote_code"):
        raise UserError(
            f"engine={settings.engine!r}: expected a JSON object without trust_remote_code; code "
            "from a model's repository is never run"
        )
    max_replicas = settings.max_replicas or settings.replicas
    if max_replicas < settings.replicas:
        raise UserError(f"max_replicas={max_replicas} is less than replicas={settings.replicas}")
    engine = {
        "tensor_parallel_size": settings.gpus,
        "max_model_len": settings.length,
        "gpu_memory_utilization": settings.memory,
        "dtype": settings.dtype,
        "revision": settings.revision,
        "trust_remote_code": False,
        "enable_prefix_caching": True,  # off by default for models that mix attention with others
        "language_model_only": settings.text_only or None,
        **more,
    }
    return {
        "model_loading_config": {"model_id": settings.name, "model_source": settings.model},
        "engine_kwargs": {key: value for key, value in engine.items() if value is not None},
        "accelerator_type": settings.accelerator,
        "deployment_config": {
            "autoscaling_config": {"min_replicas": settings.replicas, "max_replicas": max_replicas},
            "max_ongoing_requests": settings.queue,
        },
    }


def app(settings: LlmServeSettings) -> Application:
    """The application for `serve run` and `serve deploy`. Raises UserError without vLLM."""
    need("serve.llm (llm=openai asks an endpoint instead)", "ray[llm]", "vllm", "ray.serve.llm")
    from ray.serve.llm import LLMConfig, build_openai_app

    return build_openai_app({"llm_configs": [LLMConfig(**arguments(settings))]})
