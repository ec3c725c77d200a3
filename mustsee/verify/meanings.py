"""What the names of filters, subsets and stages mean, in words that reports print beside them."""

from __future__ import annotations

from mustsee.verify.guess.counts import SEES

FILTERS = {
    **{name: f"answered right {sees}" for name, sees in SEES.items()},
    "giveaways": "guessed by form: the longest option, the one most like the others, an echo",
    "match": "answers of its set matched to the questions without the video",
    "match_asr": "answers of its set matched to the questions from the transcript alone",
    "sight": "a look at the video finds another answer, or none",
    "course": "words of a recipe or a tutorial, whose order many know",
    "learned": "answered right by a text model fitted on the other videos",
    "check": "malformed: leaks, repeats, times",
    "duplicate": "repeats another question, on its video or on another one",
    "video": "the video was dropped, or failed after its questions were written",
}
SUBSETS = {"mma": "answered only with the video"}
STAGES = {
    "read": "the list of videos",
    "probe": "length, size and sound",
    "look": "shots, words on the screen, objects",
    "hear": "transcript",
    "caption": "captions of frames",
    "embed": "vectors",
    "ask": "questions",
    "vet": "filters test the questions",
    "decide": "compares all videos",
}


def name_with_meaning(name: str, meanings: dict[str, str]) -> str:
    """Return a name with its meaning in brackets, if it has one."""
    return f"{name} ({meanings[name]})" if name in meanings else name
