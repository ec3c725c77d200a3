"""Drawings shared by the scenes of the sample videos: backgrounds, signs, recurring objects."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from PIL import ImageDraw, ImageFont

WIDTH, HEIGHT = 864, 480
Pen = ImageDraw.ImageDraw


@cache
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    dejavu = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf")
    return (
        ImageFont.truetype(str(dejavu), size) if dejavu.exists() else ImageFont.load_default(size)
    )


def back(pen: Pen, wall: str, floor: str, horizon: int = 330) -> None:
    pen.rectangle((0, 0, WIDTH, horizon), fill=wall)
    pen.rectangle((0, horizon, WIDTH, HEIGHT), fill=floor)


def disc(pen: Pen, x: float, y: float, rx: float, ry: float, fill: str, line: str = "") -> None:
    pen.ellipse((x - rx, y - ry, x + rx, y + ry), fill=fill, outline=line or None, width=3)


def sign(pen: Pen, text: str, y: int = 44, fill: str = "white", ink: str = "black") -> None:
    """Draw a line of on-screen text on a plate."""
    half = pen.textlength(text, font(38)) / 2 + 22
    pen.rectangle((WIDTH / 2 - half, y - 28, WIDTH / 2 + half, y + 28), fill=fill)
    pen.text((WIDTH / 2, y), text, ink, font(38), anchor="mm")


def face(pen: Pen, x: float, y: float, r: float, mouth: float, hair: str, skin: str) -> None:
    """Draw a frontal face: `r` is half its width, `mouth` 0 (shut) to 1 (open)."""
    disc(pen, x, y - 0.30 * r, 1.12 * r, 1.20 * r, hair)
    pen.rectangle((x - 0.35 * r, y + r, x + 0.35 * r, y + 1.9 * r), fill=skin)
    disc(pen, x, y, r, 1.28 * r, skin)
    pen.chord((x - r, y - 1.34 * r, x + r, y - 0.10 * r), 180, 360, fill=hair)
    for side in (-1, 1):
        eye = x + side * 0.40 * r
        shade = (eye - 0.26 * r, y - 0.34 * r, eye + 0.26 * r, y + 0.02 * r)
        pen.ellipse(shade, fill="#a9744f")
        disc(pen, eye, y - 0.14 * r, 0.20 * r, 0.11 * r, "white")
        disc(pen, eye, y - 0.14 * r, 0.10 * r, 0.10 * r, "#20140c")
        pen.line(
            (eye - 0.25 * r, y - 0.36 * r, eye + 0.25 * r, y - 0.36 * r),
            fill="#2a1a10",
            width=max(3, int(0.09 * r)),
        )
    pen.polygon(
        [(x, y - 0.10 * r), (x - 0.16 * r, y + 0.36 * r), (x + 0.16 * r, y + 0.36 * r)],
        fill="#b98560",
    )
    disc(pen, x, y + 0.72 * r, 0.36 * r, (0.08 + 0.14 * mouth) * r, "#7a2020")


def egg(pen: Pen, x: float, y: float) -> None:
    disc(pen, x, y, 26, 34, "#f4e2c6", "#b09570")


def bowl(pen: Pen, inside: str, x: int = 432, y: int = 330) -> None:
    pen.pieslice((x - 170, y - 150, x + 170, y + 150), 0, 180, fill="#2f6fd0")
    disc(pen, x, y, 170, 42, "#7fb0f0")
    disc(pen, x, y, 150, 32, inside)


def pan(pen: Pen, wall: str) -> None:
    back(pen, wall, "#202020", 300)
    pen.rectangle((560, 292, 820, 318), fill="#5d4037")
    disc(pen, 400, 310, 210, 74, "#424242", "#000000")
    disc(pen, 400, 306, 186, 58, "#616161")
    for i in range(9):
        pen.polygon([(300 + 25 * i, 430), (310 + 25 * i, 395), (320 + 25 * i, 430)], fill="#2196f3")


def plate(pen: Pen, count: float, wall: str, berries: int = 0, honey: float = 0.0) -> None:
    back(pen, wall, "#a1672f")
    disc(pen, 432, 385, 230, 50, "#43a047", "#1b5e20")
    for i in range(int(count)):
        disc(pen, 432, 372 - 26 * i, 140, 30, "#b5651d", "#7b4214")
    top = 372 - 26 * int(count)
    if honey:
        disc(pen, 432, top + 22, 110 * honey, 20 * honey, "#ffb300")
        pen.rectangle((420, 60, 432, top + 20), fill="#ffb300")
        disc(pen, 432, 60, 46, 30, "#6d4c41")
    for i in range(berries):
        disc(pen, 351 + 30 * i, top + 12 + 6 * (i % 2), 15, 14, "#c2185b", "#6a0d37")


def bench(pen: Pen, wall: str) -> None:
    back(pen, wall, "#9c6b3c", 350)
    for x in range(0, WIDTH, 120):
        pen.line((x, 350, x - 40, 480), fill="#7f5530", width=3)


def board(pen: Pen, x: float, y: float, w: float = 100, h: float = 130) -> None:
    pen.rectangle((x, y, x + w, y + h), fill="#d9a860", outline="#8d6230", width=4)
    for k in (0.3, 0.55, 0.8):
        pen.line((x + 6, y + h * k, x + w - 6, y + h * k), fill="#c08c48", width=2)


def house(pen: Pen, x: float, y: float, s: float, body: str, roof: str) -> None:
    pen.rectangle((x - 80 * s, y - 60 * s, x + 80 * s, y + 110 * s), fill=body, outline="#3e2723")
    pen.polygon([(x - 110 * s, y - 55 * s), (x, y - 150 * s), (x + 110 * s, y - 55 * s)], fill=roof)
    disc(pen, x, y + 5 * s, 32 * s, 32 * s, "#2e1a10")
    pen.line((x, y + 55 * s, x, y + 85 * s), fill="#3e2723", width=int(8 * s) + 1)


def bird(pen: Pen, x: float, y: float, s: float, coat: str) -> None:
    disc(pen, x, y, 40 * s, 26 * s, coat)
    disc(pen, x + 36 * s, y - 22 * s, 19 * s, 19 * s, coat)
    disc(pen, x + 42 * s, y - 26 * s, 4 * s, 4 * s, "black")
    beak = [(x + 53 * s, y - 24 * s), (x + 76 * s, y - 18 * s), (x + 53 * s, y - 12 * s)]
    pen.polygon(beak, fill="#ff8f00")
    pen.polygon([(x - 36 * s, y), (x - 80 * s, y - 18 * s), (x - 72 * s, y + 14 * s)], fill=coat)


def tree(pen: Pen, crown: str, x: int = 432) -> None:
    pen.rectangle((x - 26, 210, x + 26, 420), fill="#5d4037")
    for dx, dy in ((-110, 170), (110, 170), (0, 110), (-60, 120), (70, 115)):
        pen.line((x, 250, x + dx, dy), fill="#5d4037", width=14)
        if crown:
            disc(pen, x + dx, dy, 95, 70, crown)
