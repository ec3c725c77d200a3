"""Small models in JAX, numpy or OpenCV, read from checkpoints.

`bert` embeds sentences, `siglip` frames and texts, `efficientnet` frames; `gemma` and `paligemma`
caption frames, and `sound_events` detects music. `weights` finds and reads their files and keeps
compiled programs; `vectors` compares what they embed. The stages `hear`, `caption`, `embed` and
`align` and the judges use it.
"""
