"""How surely words were read on the screen or heard: which may be quoted, and of which a reader is
to be warned. Subtitles were written down, and are sure.
"""

from __future__ import annotations

from mustsee.records import Line, ScreenText

SURE_READ = 0.95  # of the reader's own score; letters that make no words have 0.6 to 0.9
SURE_HEARD = 0.9  # mean of the words' scores
LEAST_HEARD = 0.5  # of each word in a line that is quoted; below it as a mean, a line is doubtful


def is_surely_read(text: ScreenText) -> bool:
    """Whether a text on the screen may be quoted; of any other a reader is warned."""
    return text.score >= SURE_READ


def is_surely_heard(line: Line) -> bool:
    """Whether a line may be quoted: written down, or recognised with hardly a doubt."""
    scores = [w.score for w in line.words]
    return _mean(line) >= SURE_HEARD and min(scores, default=1.0) >= LEAST_HEARD


def is_doubtful(line: Line) -> bool:
    """Whether a reader is to be warned of a line; so of all of a recogniser without scores (0)."""
    return _mean(line) < LEAST_HEARD


def _mean(line: Line) -> float:
    return sum(w.score for w in line.words) / len(line.words) if line.words else 1.0
