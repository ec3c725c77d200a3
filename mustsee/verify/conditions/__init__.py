"""What an answerer is shown of a video for one question: as data, the same wherever it is asked."""
