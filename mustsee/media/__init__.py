"""Decoding and measuring media files.

Files and containers (`files`, `frame_times`, `video`, `clips`, `sound`), frames as players show
them (`shown`) and their measurements (`frames`, `descriptors`, `shots`, `keyframes`, `colours`,
`faces`, `onscreen`, `objects`), speech (`speech`) and transcript lines (`transcript`,
`transcript_quality`, `subtitles`, `subtitle_cues`, `rolling`). The stages `probe`, `look`, `hear`
and `caption` use it, and so do the verifier's conditions, the metrics of videos and the synthetic
videos.
"""
