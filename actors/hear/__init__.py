"""Speech recognition, from audio to timed lines: one module for each choice of `hear=`, and
`speakers`.
"""

__all__ = [
    "auto",
    "openai",
    "parakeet",
    "replay",
    "speakers",
    "sphinx",
    "subtitles",
    "whisper",
    "whisperx",
]
