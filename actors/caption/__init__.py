"""Captioners, which write a sentence for each keyframe: one module for each choice of
`caption=`.
"""
