"""Longshot: long videos to question-answering datasets that need the video, and models judged on
them.

This package is pure: records in, records out. It imports neither Ray nor Hydra and opens no socket.
"""

__version__ = "0.1.0"
