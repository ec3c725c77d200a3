"""The released layouts of four benchmarks and our own: read from any of them, write to any.

    from mustsee.layouts import read
    reading = read("neptune_full.json")
    reading.questions, reading.videos, reading.findings

What is wrong in a file (an answer that is none of its options, a flag of unknown spelling) is
listed in `findings`; the question itself is kept.
"""

from mustsee.layouts.detect import read
from mustsee.layouts.reading import FileFault, QuestionFile

__all__ = ["FileFault", "QuestionFile", "read"]
