"""Draws one question as a picture: its text, the frames of its evidence, its options with the
answer, and the results of the filters.

    python -m ray_jobs.report out=O picture=question.png [question=ID]

The font is the one that comes with Pillow, so that the picture is the same everywhere. It has Latin
letters only.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.files.parquet import read_parquet
from mustsee.files.store import Store
from mustsee.records import (
    COUNTED,
    UNTESTED,
    Keyframe,
    Question,
    Video,
    group_pairs,
    is_rules,
    untested_note,
)
from mustsee.run.best import FRAMES_PER_QUESTION, evidence_frames
from mustsee.text import LETTERS, clock

WIDTH, EDGE, GAP = 1200, 48, 16
INK, SOFT, PAPER, LINE = "#1c2430", "#5c6b7e", "#ffffff", "#d5dce4"
GREEN, PALE, RED = "#2f855a", "#e7f4ec", "#c05621"


def draw_question(folder: Path, store: Store, target: Path, question_id: str | None = None) -> Path:
    """Draw one question of the run in `folder` to `target` (.png or .jpg).

    The frames are the keyframes that `look` stored. Without an id, the question is the kept one
    with options or points that is in the most subsets, and among these the one with the most
    evidence spans that the picture has room for.

    Raises UserError for an unknown question, missing frames, or another kind of file.
    """
    if target.suffix.lower() not in (".png", ".jpg", ".jpeg"):
        raise UserError(f"picture={str(target)!r}: expected a .png or a .jpg")
    question = _chosen(folder / "questions.parquet", question_id)
    video = _video(folder / "videos.parquet", question.video_id)
    frames = evidence_frames(question, video, store)
    if not frames:
        raise UserError(f"no frames of {video.video_id!r} in the store: run the job again")
    target.parent.mkdir(parents=True, exist_ok=True)
    _Card(question, video, frames).draw().save(target)
    return target


def _chosen(path: Path, question_id: str | None) -> Question:
    questions = [schemas.load(Question, row) for row in read_parquet(path).to_pylist()]
    if question_id is not None:
        candidates = [q for q in questions if q.question_id == question_id]
    else:
        candidates = [
            q for q in questions if q.drop is None and (q.options or q.points) and q.evidence
        ]
    if not candidates:
        if question_id is None:
            raise UserError(
                "there is nothing to draw: no kept question has options or points, and evidence"
            )
        raise UserError(f"question={question_id!r} is none of the {len(questions)} of this run")
    spans = {
        q.question_id: len(q.evidence) if len(q.evidence) <= FRAMES_PER_QUESTION else 0
        for q in candidates
    }
    return max(candidates, key=lambda q: (len(q.subsets), spans[q.question_id]))


def _video(path: Path, video_id: str) -> Video:
    columns = ["video_id", "uri", "title", "duration", "start", "end", "lineage"]
    rows = read_parquet(path, columns=columns, filters=[("video_id", "=", video_id)])
    return schemas.load(Video, rows.to_pylist()[0])


@dataclass(frozen=True)
class _Card:
    question: Question
    video: Video
    frames: Sequence[Keyframe]

    def draw(self) -> Image.Image:
        image = Image.new("RGB", (WIDTH, 4000), PAPER)
        pen = ImageDraw.Draw(image)
        y = self._head(pen, EDGE - 8)
        y = self._strip(image, pen, y + 20)
        y = self._options(pen, y + 28) if self.question.options else self._points(pen, y + 28)
        y = self._verdicts(pen, y + 16)
        bottom = y + EDGE - 12
        pen.rounded_rectangle((1, 1, WIDTH - 2, bottom - 2), 18, outline=LINE, width=2)
        return image.crop((0, 0, WIDTH, bottom))

    def _head(self, pen: ImageDraw.ImageDraw, y: int) -> int:
        parts = [self.video.title or self.video.video_id, clock(self.video.duration or 0.0)]
        about = "   ·   ".join([*parts, self.question.skill_or_type])
        pen.text((EDGE, y), about, SOFT, _font(26))
        return _paragraph(pen, (EDGE, y + 44), self.question.question, 38, INK, bold=True)

    def _strip(self, image: Image.Image, pen: ImageDraw.ImageDraw, y: int) -> int:
        """Draw the frames with their times, and below them the evidence on the video's timeline."""
        width = (WIDTH - 2 * EDGE - (FRAMES_PER_QUESTION - 1) * GAP) // FRAMES_PER_QUESTION
        begin, length = self.video.start or 0.0, self.video.duration or 1.0
        lowest = y
        tops: list[tuple[int, int, float]] = []
        for number, frame in enumerate(self.frames):
            x = EDGE + number * (width + GAP)
            jpeg = Image.open(io.BytesIO(frame.jpeg)).convert("RGB")
            height = round(width * jpeg.height / jpeg.width)
            resized = jpeg.resize((width, height), Image.Resampling.LANCZOS)
            image.paste(resized, (x, y), _rounded_mask(resized.size))
            pen.text((x + width // 2, y + height + 10), clock(frame.time), INK, _font(26), "mt")
            tops.append((x + width // 2, y + height + 42, frame.time))
            lowest = max(lowest, y + height + 42)
        bar, inner = lowest + 40, WIDTH - 2 * EDGE

        def place(time: float) -> int:
            return EDGE + round(inner * min(1.0, max(0.0, (time - begin) / length)))

        for x, top, time in tops:
            pen.line((x, top, place(time), bar), LINE, 3)
        pen.rounded_rectangle((EDGE, bar, WIDTH - EDGE, bar + 16), 8, LINE)
        for span in self.question.evidence:
            left, right = place(span.start), max(place(span.end), place(span.start) + 6)
            pen.rounded_rectangle((left, bar, right, bar + 16), 8, GREEN)
        return bar + 16

    def _options(self, pen: ImageDraw.ImageDraw, y: int) -> int:
        for number, option in enumerate(self.question.options):
            is_answer = number == self.question.answer_index
            lines = len(_wrapped_lines(pen, option, 30, WIDTH - 2 * EDGE - 130))
            bottom = y + 38 * lines + 16
            if is_answer:
                pen.rounded_rectangle((EDGE - 16, y, WIDTH - EDGE + 16, bottom), 10, PALE)
                _tick(pen, WIDTH - EDGE - 36, y + 16, GREEN)
            ink = GREEN if is_answer else INK
            pen.text((EDGE, y + 10), LETTERS[number], ink if is_answer else SOFT, _font(30))
            _paragraph(pen, (EDGE + 44, y + 10), option, 30, ink, room=130, step=38)
            y = bottom + 4
        return y

    def _points(self, pen: ImageDraw.ImageDraw, y: int) -> int:
        """Draw the points of a full answer with their weights."""
        for point in (p for p in self.question.points if p.state == COUNTED):
            pen.text((EDGE, y + 10), str(point.weight), SOFT, _font(28))
            below = _paragraph(pen, (EDGE + 44, y + 10), point.text, 28, INK, room=44, step=36)
            y = below + 4
        return y + 12

    def _exam(self, pen: ImageDraw.ImageDraw, y: int) -> int:
        """Draw which share of an open question's points who says."""
        who = {"points_seen": "who sees the evidence", "points_in_view": "who sees only questions"}
        for name, reader in who.items():
            if (share := self.question.metrics.get(name)) is not None:
                _tick(pen, EDGE, y + 4, GREEN)
                pen.text((EDGE + 44, y), f"{share:.0%} said by a reader {reader}", INK, _font(26))
                y += 38
        return y

    def _verdicts(self, pen: ImageDraw.ImageDraw, y: int) -> int:
        """Draw the results of each filter: guessers should be wrong, and the verifier right."""
        pen.line((EDGE, y, WIDTH - EDGE, y), LINE, 2)
        y += 18
        y = self._exam(pen, y)
        names = dict.fromkeys(v.filter for v in self.question.verdicts)
        for name in (name for name in names if name != "giveaways"):  # no model
            runs = [v for v in self.question.verdicts if v.filter == name]
            model = "rules" if is_rules(runs[0].model) else runs[0].model.split()[0]
            if name == "sight":  # only its runs with the evidence, not those without it
                runs = [v for v in runs if '"condition": "evidence"' in v.detail] or runs
            should_be_right = name == "sight"
            as_expected = sum(v.correct is should_be_right for v in runs)
            outcome = "right" if should_be_right else "wrong"
            text = f"{name} ({model}): {outcome} in {as_expected} of {len(runs)} runs"
            passed = self.question.filter_results.get(name, True)
            if name in self.question.unverified_by:
                text, passed = f"{name} ({model}): no usable reply", False
            if passed:
                _tick(pen, EDGE, y + 4, GREEN)
            pen.text((EDGE + 44, y), text, INK if passed else RED, _font(26))
            y += 38
        fate = "kept" if self.question.drop is None else f"dropped: {self.question.drop}"
        ink = GREEN if self.question.drop is None else RED
        pen.text((WIDTH - EDGE, y - 38), fate, ink, _font(30), "rt")
        if untested_note(group_pairs((v.filter, v.model) for v in self.question.verdicts)):
            pen.text((EDGE, y + 4), UNTESTED, RED, _font(26))
            y += 42
        return y


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _wrapped_lines(pen: ImageDraw.ImageDraw, text: str, size: int, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".lstrip()
        if lines[-1] and pen.textlength(longer, _font(size)) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _paragraph(
    pen: ImageDraw.ImageDraw,
    at: tuple[int, int],
    text: str,
    size: int,
    ink: str,
    *,
    bold: bool = False,
    room: int = 0,
    step: int = 0,
) -> int:
    """Draw `text` in lines of the card's width less `room`, and return the y of its end."""
    x, y = at
    for line in _wrapped_lines(pen, text, size, WIDTH - 2 * EDGE - room):
        pen.text((x, y), line, ink, _font(size), stroke_width=0.6 if bold else 0)
        y += step or round(size * 1.32)
    return y


def _tick(pen: ImageDraw.ImageDraw, x: int, y: int, ink: str) -> None:
    pen.line((x, y + 12, x + 9, y + 21, x + 26, y + 2), ink, 5, joint="curve")


def _rounded_mask(size: tuple[int, int]) -> Image.Image:
    mask = Image.new("L", size, 0)
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, size[0] - 1, size[1] - 1), 10, 255)
    return mask
