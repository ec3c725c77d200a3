"""Random subtitles for tests."""

from hypothesis import strategies as st

from mustsee.media.subtitle_cues import lines as cues_of
from mustsee.records import Line

MS = st.integers(min_value=0, max_value=7_200_000)
WORDS = st.lists(
    st.from_regex(r"[A-Za-z0-9äéñßЖ中あ',?]{1,9}", fullmatch=True), min_size=1, max_size=6
).map(" ".join)


@st.composite
def cues(draw: st.DrawFn) -> list[Line]:
    """Draw cues in order that do not overlap."""
    marks = sorted(draw(st.lists(MS, min_size=2, max_size=12, unique=True)))
    pairs = list(zip(marks[::2], marks[1::2], strict=False))
    return [Line(start=a / 1000, end=b / 1000, text=draw(WORDS)) for a, b in pairs]


def srt(lines: list[Line], comma: str = ",") -> str:
    def stamp(seconds: float) -> str:
        ms = round(seconds * 1000)
        return f"{ms // 3600000:02}:{ms // 60000 % 60:02}:{ms // 1000 % 60:02}{comma}{ms % 1000:03}"

    return "".join(
        f"{n}\n{stamp(x.start)} --> {stamp(x.end)}\n{x.text}\n\n" for n, x in enumerate(lines, 1)
    )


def said(text: str, **options: bool) -> list[str]:
    return [x.text for x in cues_of(text, **options)]
