"""Keyframes to sentences: one module for each choice of `caption=`."""
