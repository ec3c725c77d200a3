"""Decoding and measuring media files.

Files and containers (`files`, `video`, `clips`, `sound`), measurements of frames (`frames`,
`descriptors`, `shots`, `keyframes`, `colours`, `faces`, `onscreen`, `objects`), speech (`speech`,
`speakers`, `silence`, `doubt`, `unheard`) and transcript lines (`transcript`, `subtitles`, `cues`,
`rolling`, `encodings`).
The stages `probe`, `look`, `hear` and `caption` use it, and so do the verifier's conditions, the
metrics of videos and the synthetic videos.
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
    "frames",
    "gradual",
    "keyframes",
    "languages",
    "lettering",
    "litert",
    "objects",
    "onscreen",
    "pixels",
    "rolling",
    "samples",
    "shots",
    "silence",
    "sound",
    "speakers",
    "speech",
    "subtitles",
    "text_search",
    "transcript",
    "unheard",
    "video",
]
