"""Speech recognition, from audio to timed lines: one module for each choice of `hear=`."""

__all__ = ["auto", "openai", "sphinx", "subtitles", "whisper", "whisperx"]
