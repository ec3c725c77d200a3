"""A paper is one folder, readable alone; no recipe imports another."""
