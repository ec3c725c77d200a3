"""Decoding and measuring media files.

Files and containers (`files`, `frame_times`, `video`, `clips`, `stills`, `sound`, `phase`), frames
as players show them (`shown`) and their measurements (`frames`, `descriptors`, `shots`,
`keyframes`, `colours`, `faces`, `onscreen`, `objects`), speech (`speech`, `speakers`, `silence`,
`doubt`, `unheard`) and transcript lines (`transcript`, `subtitles`, `cues`, `rolling`,
`encodings`). The stages `probe`, `look`, `hear` and `caption` use it, and so do the verifier's
conditions, the metrics of videos and the synthetic videos.
"""

__all__ = [
    "certainty",
    "changes",
    "clips",
    "colours",
    "contact_sheet",
    "cues",
    "descriptors",
    "doubt",
    "encodings",
    "faces",
    "files",
    "frame_times",
    "frames",
    "gradual",
    "keyframes",
    "languages",
    "lettering",
    "litert",
    "objects",
    "onscreen",
    "phase",
    "pixels",
    "rolling",
    "samples",
    "shots",
    "shown",
    "silence",
    "sound",
    "speakers",
    "speech",
    "stills",
    "subtitles",
    "text_search",
    "transcript",
    "unheard",
    "video",
]
