"""Small models, read from checkpoints, all but one in JAX.

`bert` embeds sentences, `siglip` and `siglip_text` embed frames and texts, `efficientnet` frames
(in OpenCV), `gemma` and `paligemma` caption frames, `llama` scores texts; `gguf` and `weights` find
and read their files, and `programs` keeps compiled programs. The stages `caption`, `embed` and
`align`, the judges and the guessers use it.
"""

__all__ = [
    "bert",
    "efficientnet",
    "gemma",
    "gguf",
    "llama",
    "paligemma",
    "programs",
    "siglip",
    "siglip_text",
    "weights",
]
