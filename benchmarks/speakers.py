"""Speakers by voice beside those that subtitles name.

    python -m benchmarks.bench what=speakers what.sound=FILE what.subtitles=FILE

The lines are those of the subtitles, so that only who speaks is judged. Two lines are right if they
have one speaker in both, or different ones in both; a turn is a line and the next one that has a
speaker.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path

from actors.hear.speakers import Speakers
from benchmarks.figures import BenchTable
from mustsee.errors import UserError
from mustsee.media import subtitles
from mustsee.records import Line, Video


@dataclass(frozen=True, kw_only=True)
class SpeakersBench:
    """`subtitles`: a file that names the speaker of each line."""

    sound: str
    subtitles: str
    speakers: Speakers

    def __call__(self) -> BenchTable:
        named = tuple(line for line in subtitles.read(self.subtitles).lines if line.speaker)
        if not named:
            raise UserError(f"what.subtitles={self.subtitles!r}: names no speaker")
        plain = tuple(replace(line, speaker=None) for line in named)
        name = self.speakers.load()
        begun = time.process_time()
        found = name(Video(video_id="sound", uri=self.sound, lines=plain)).lines or ()
        seconds = time.process_time() - begun
        sure = [(a, b) for a, b in zip(named, found, strict=True) if b.speaker]
        turns, pairs = list(pairwise(sure)), list(combinations(sure, 2))
        return BenchTable(
            title=f"speakers of {Path(self.sound).name} beside its subtitles",
            columns=("from", "subtitles", "by voice", "text"),
            rows=tuple(
                (f"{a.start:.1f}", str(a.speaker), b.speaker or "", a.text)
                for a, b in zip(named, found, strict=True)
            ),
            notes=(
                f"{len(sure)} of {len(named)} lines with a sure speaker",
                f"right turns: {_right(turns)} of {len(turns)}",
                f"right pairs of lines: {_right(pairs)} of {len(pairs)}",
                f"{seconds:.2f} s of CPU for {sum(x.end - x.start for x in named):.0f} s of lines",
            ),
        )


Rated = tuple[Line, Line]


def _right(pairs: Sequence[tuple[Rated, Rated]]) -> int:
    """The pairs of lines that have one speaker in both, or different ones in both."""
    return sum((a[0].speaker == b[0].speaker) == (a[1].speaker == b[1].speaker) for a, b in pairs)
