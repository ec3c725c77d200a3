"""A transcript beside the subtitles of the same video, line by line.

    python -m benchmarks.bench what=lines what.video=FILE what.subtitles=FILE
    [hear@what.engine=base]

Each transcribed word stands beside the subtitle that is nearest in time. The word error rate is
that of the whole video, so a word that slipped into the next line is not an error. Subtitles
shorten speech, so a counted error need not be one; the lines show it.
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
    """`subtitles`: a subtitle file; empty: the one beside the video."""

    video: str
    engine: Part
    subtitles: str = ""

    def __call__(self) -> BenchTable:
        file = self.subtitles or subtitles.find_subtitles(self.video)
        if not file:
            raise UserError(
                f"no subtitles beside what.video={self.video!r}: give what.subtitles=FILE"
            )
        subtitle_lines = subtitles.read(file).lines
        texts = nearest(subtitle_lines, open_engine(self.engine)(self.video))
        errors = word_errors([" ".join(x.text for x in subtitle_lines)], [" ".join(texts)])[
            0
        ].tolist()
        words, changed, missed, added = errors
        rate = (changed + missed + added) / max(1, words)
        pairs = zip(subtitle_lines, texts, strict=True)
        return BenchTable(
            title=f"transcript of {Path(self.video).name} beside its subtitles",
            columns=("from", "subtitles", "transcribed"),
            rows=tuple((f"{line.start:.1f}", line.text, text) for line, text in pairs),
            notes=(
                f"word error rate {rate:.3f} of {words} words: {changed} changed, {missed} missed, "
                f"{added} added",
            ),
        )


def nearest(subtitle_lines: Sequence[Line], transcript: Sequence[Line]) -> list[str]:
    """Return for each subtitle the transcribed words whose middle is nearest to it in time."""
    if not subtitle_lines:
        raise UserError("what.subtitles: no spoken lines in the file")
    words: list[list[str]] = [[] for _ in subtitle_lines]
    for line in transcript:
        timed = [(word.start, word.end, word.word) for word in line.words]
        for start, end, text in timed or [(line.start, line.end, line.text)]:
            middle = (start + end) / 2
            gaps = [max(x.start - middle, middle - x.end, 0.0) for x in subtitle_lines]
            words[gaps.index(min(gaps))].append(text.strip())
    return [" ".join(texts) for texts in words]
