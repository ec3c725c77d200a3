"""MLVU (arXiv 2406.04264): long videos synthesised, cut or labelled, with questions about them."""
