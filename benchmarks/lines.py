"""What is heard in a video beside its subtitles, line by line.

    python -m benchmarks.bench what=lines what.video=FILE what.subtitles=FILE
    [hear@what.engine=sphinx]

Every word that was heard stands beside the subtitle that is nearest in time. The word error rate
is that of the whole video: a word that slipped into the next line is no error of it. Subtitles
shorten what is said, so what counts as an error need not be one; the lines show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from actors.part import Part
from benchmarks.figures import BenchTable
from benchmarks.hear import open_engine, word_errors
from mustsee.errors import UserError
from mustsee.media import subtitles
from mustsee.records import Line


@dataclass(frozen=True, kw_only=True)
class LinesBench:
    """`subtitles`: their file; empty: the one beside the video."""

    video: str
    engine: Part
    subtitles: str = ""

    def __call__(self) -> BenchTable:
        file = self.subtitles or subtitles.find_subtitles(self.video)
        if not file:
            raise UserError(
                f"no subtitles beside what.video={self.video!r}: give what.subtitles=FILE"
            )
        written = subtitles.read(file).lines
        heard = nearest(written, open_engine(self.engine)(self.video))
        errors = word_errors([" ".join(x.text for x in written)], [" ".join(heard)])[0].tolist()
        words, changed, missed, added = errors
        rate = (changed + missed + added) / max(1, words)
        pairs = zip(written, heard, strict=True)
        return BenchTable(
            title=f"heard in {Path(self.video).name}, beside its subtitles",
            columns=("from", "subtitles", "heard"),
            rows=tuple((f"{line.start:.1f}", line.text, text) for line, text in pairs),
            notes=(
                f"word error rate {rate:.3f} of {words} words: {changed} changed, {missed} missed, "
                f"{added} added",
            ),
        )


def nearest(written: Sequence[Line], heard: Sequence[Line]) -> list[str]:
    """The words heard, each with the written line that is nearest to its middle."""
    if not written:
        raise UserError("what.subtitles: a file with lines that are spoken")
    found: list[list[str]] = [[] for _ in written]
    for line in heard:
        parts = [(word.start, word.end, word.word) for word in line.words]
        for start, end, text in parts or [(line.start, line.end, line.text)]:
            middle = (start + end) / 2
            gaps = [max(x.start - middle, middle - x.end, 0.0) for x in written]
            found[gaps.index(min(gaps))].append(text.strip())
    return [" ".join(words) for words in found]
