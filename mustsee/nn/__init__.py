"""Small models in JAX, numpy or OpenCV, read from checkpoints.

`bert` embeds sentences, `siglip` and `siglip_text` embed frames and texts, `efficientnet` frames,
`gemma` and `paligemma` caption frames, and `sound_events` detects music in the features of `fbank`;
`weights` finds and reads their files, and `programs` keeps
compiled programs. The stages `hear`, `caption`, `embed` and `align` and the judges use it.
"""
