"""Read and write question files: our own layout, those of released benchmarks, and exports.

    from mustsee.layouts import read
    reading = read("neptune_full.json")
    reading.questions, reading.videos, reading.findings

Faults in a file (an answer that is not one of its options, an unknown flag) are listed in
`findings`; the question itself is kept. Used by the jobs that read questions or export them, and by
the audit. Writers are named in `conf/layout/`.
"""

from mustsee.layouts.detect import read
from mustsee.layouts.reading import FileFault, QuestionFile

__all__ = ["FileFault", "QuestionFile", "read"]
