"""CinePile (arXiv 2405.08813): movie clips and audio descriptions to templated questions."""
