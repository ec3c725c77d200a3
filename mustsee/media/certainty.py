"""Which transcript lines and on-screen texts may be quoted, and which need a warning.

A line without word scores comes from subtitles and counts as sure.
"""

from __future__ import annotations

from mustsee.records import Line, ScreenText

SURE_TEXT_SCORE = (
    0.95  # score of the text recogniser, 0-1; letters that form no words score 0.6 to 0.9
)
SURE_LINE_SCORE = 0.9  # mean word score of a line, 0-1
# word score, 0-1: the least in a quoted line; a line with a lower mean is doubtful
MIN_WORD_SCORE = 0.5


def is_surely_read(text: ScreenText) -> bool:
    """Whether an on-screen text is sure enough to be quoted without a warning."""
    return text.score >= SURE_TEXT_SCORE


def is_surely_heard(line: Line) -> bool:
    """Whether a line is sure enough to be quoted; a line from subtitles always is."""
    scores = [w.score for w in line.words]
    return _mean(line) >= SURE_LINE_SCORE and min(scores, default=1.0) >= MIN_WORD_SCORE


def is_doubtful(line: Line) -> bool:
    """Whether a line needs a warning; all lines of a recogniser without scores (0) do."""
    return _mean(line) < MIN_WORD_SCORE


def _mean(line: Line) -> float:
    return sum(w.score for w in line.words) / len(line.words) if line.words else 1.0
