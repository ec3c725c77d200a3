"""EgoSchema (arXiv 2308.09126): narrations to very-long-form questions."""
