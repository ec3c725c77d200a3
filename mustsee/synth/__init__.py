"""Synthetic videos whose answers are known by construction.

`insertions` and `plan` plan them, `absence` checks that a background lacks what a probe shows, and
`make` writes the files with `timeline`, `copy`, `encoding` and `sound`. The MLVU recipe and its
stages use it.
"""
