"""The parts that stages run, and the models that they ask. Jobs (`ray_jobs`) put them together."""

__all__ = [
    "answer",
    "calls",
    "caption",
    "checkpoint",
    "classifier",
    "embed",
    "engine",
    "gguf",
    "hear",
    "judge",
    "llm",
    "part",
    "stages",
    "video_input",
]
