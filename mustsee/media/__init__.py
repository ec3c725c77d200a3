"""Decoding and measuring media files.

Files and containers (`files`, `frame_times`, `video`, `clips`, `stills`, `sound`, `phase`), frames
as players show them (`shown`) and their measurements (`frames`, `descriptors`, `shots`,
`keyframes`, `colours`, `faces`, `onscreen`, `objects`), speech (`speech`, `silence`,
`doubt`, `unheard`) and transcript lines (`transcript`, `subtitles`, `cues`, `rolling`,
`encodings`). The stages `probe`, `look`, `hear` and `caption` use it, and so do the verifier's
conditions, the metrics of videos and the synthetic videos.
"""
