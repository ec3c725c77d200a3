"""Neptune (arXiv 2412.09582): long videos to questions that need the video."""
