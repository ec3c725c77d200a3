"""The parts of the jobs' stages, one file each; configurations name them as `_target_`."""

__all__ = [
    "absent",
    "align",
    "ask",
    "ask_options",
    "certify",
    "cinepile",
    "enrich",
    "facts",
    "grade",
    "look",
    "people",
    "probe",
    "synthesise",
    "vet",
]
