"""The drawing of a question: the right one, with frames of its evidence, or a clear error."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.files.store import Store
from mustsee.records import Keyframe, Question, Span, Verdict, Video
from mustsee.run.best import evidence_frames
from mustsee.run.picture import WIDTH, draw_question

SECONDS = range(0, 100, 5)


def jpeg(shade: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (64, 36), (shade, shade, shade)).save(buffer, "JPEG")
    return buffer.getvalue()


def question(name: str, *evidence: tuple[float, float], drop: str | None = None) -> Question:
    return Question(
        question_id=name, video_id="v", recipe="r", question=f"What about {name}? " * 9,
        question_type="Other", options=("one", "two " * 60), answer_index=1, answer="two",
        evidence=tuple(Span(*e) for e in evidence), drop=drop,
        verdicts=(Verdict(filter="blind", model="m 1", correct=False),),
    )  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A run's files in `tmp_path`, and its store."""
    questions = [
        question("few", (0, 10)),
        question("dropped", (0, 5), (10, 15), (20, 25), drop="blind: right in 3 of 3 runs"),
        question("most", (10, 20), (50, 60), (80, 90)),
        question("too many", *((t, t + 1.0) for t in range(9))),
    ]
    video = Video(video_id="v", uri="v.mp4", duration=100.0, lineage={"look": "key"})
    pq.write_table(schemas.questions_table(questions), tmp_path / "questions.parquet")
    pq.write_table(schemas.table([video], Video), tmp_path / "videos.parquet")
    frames = tuple(Keyframe(time=float(t), shot=t, jpeg=jpeg(2 * t)) for t in SECONDS)
    filled = Store(str(tmp_path / "store"))
    filled.put_table("look", "key", pa.table({"keyframes": schemas.column("keyframes", [frames])}))
    return filled


@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_a_drawing_fits_its_text_and_is_reproducible(
    tmp_path: Path, store: Store, suffix: str
) -> None:
    first, second = (tmp_path / "new" / f"{n}.{suffix}" for n in "ab")
    assert draw_question(tmp_path, store, first) == first
    draw_question(tmp_path, store, second)
    assert first.read_bytes() == second.read_bytes()
    with Image.open(first) as image:
        assert image.width == WIDTH
        assert 400 < image.height < 4000


def test_the_default_is_the_kept_question_with_the_most_evidence_that_fits(
    tmp_path: Path, store: Store
) -> None:
    drawn = {
        name: draw_question(tmp_path, store, tmp_path / f"{number}.png", name).read_bytes()
        for number, name in enumerate(("few", "dropped", "most", "too many"))
    }
    assert len(set(drawn.values())) == 4
    assert draw_question(tmp_path, store, tmp_path / "x.png").read_bytes() == drawn["most"]


def test_frames_are_of_the_evidence_in_order_of_time(tmp_path: Path, store: Store) -> None:
    video = Video(video_id="v", uri="v.mp4", lineage={"look": "key"})
    drawn_question = question("q", (80, 90), (10, 20), (50, 60))
    times = [frame.time for frame in evidence_frames(drawn_question, video, store)]
    assert times == sorted(times)
    assert {15.0, 55.0, 85.0} <= set(times)
    assert len(times) == 4
    assert all(any(s.start <= t <= s.end for s in drawn_question.evidence) for t in times)


def test_a_question_that_cannot_be_drawn_is_an_error(tmp_path: Path, store: Store) -> None:
    with pytest.raises(UserError, match="'unknown'"):
        draw_question(tmp_path, store, tmp_path / "x.png", "unknown")
    with pytest.raises(UserError, match=r"\.png or a \.jpg"):
        draw_question(tmp_path, store, tmp_path / "x.txt")
    with pytest.raises(UserError, match="no frames"):
        draw_question(tmp_path, Store(str(tmp_path / "empty")), tmp_path / "x.png")
    pq.write_table(schemas.questions_table([]), tmp_path / "questions.parquet")
    with pytest.raises(UserError, match="nothing to draw") as raised:
        draw_question(tmp_path, store, tmp_path / "x.png")
    assert str(tmp_path) not in str(raised.value)  # It is a temporary copy.
