"""Speech recognition, from audio to timed lines: one module for each choice of `hear=`, and
`speakers`.
"""
