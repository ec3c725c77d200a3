"""What an answerer is shown of a film for one question: as data, the same wherever it is asked."""
