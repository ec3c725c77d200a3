"""The scenes of the sample videos: each function draws a frame of one scene.

A scene is `draw(pen, t)`: `pen` draws on an image of 864x480 units (twice the video's size, scaled
down for smooth edges), `t` runs from 0 to 1 over the shot.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from things import (
    HEIGHT,
    WIDTH,
    Pen,
    back,
    bench,
    bird,
    board,
    bowl,
    disc,
    egg,
    face,
    font,
    house,
    pan,
    plate,
    sign,
    tree,
)

Scene = Callable[[Pen, float], None]


def card(text: str, under: str, ground: str, ink: str = "white") -> Scene:
    """Return a title card."""

    def draw(pen: Pen, t: float) -> None:
        pen.rectangle((0, 0, WIDTH, HEIGHT), fill=ground)
        pen.text((WIDTH / 2, 200), text, ink, font(64), anchor="mm")
        pen.text((WIDTH / 2, 290), under, ink, font(36), anchor="mm")
        pen.rectangle((176, 340, 176 + 500 * t, 348), fill=ink)

    return draw


def speaker(
    name: str, wall: str, shirt: str, hair: str, r: float = 120, skin: str = "#d8a47f"
) -> Scene:
    """Return a person who talks to the camera, with a name plate."""

    def draw(pen: Pen, t: float) -> None:
        pen.rectangle((0, 0, WIDTH, HEIGHT), fill=wall)
        sway = 10 * math.sin(7 * t)
        disc(pen, 432 + sway, 220 + 3.1 * r, 2.1 * r, 1.6 * r, shirt)
        face(pen, 432 + sway, 210, r, abs(math.sin(40 * t)), hair, skin)
        if name:
            sign(pen, name, 440, "#303030", "white")

    return draw


def eggs(pen: Pen, t: float) -> None:
    """Draw three eggs, broken one after another into the bowl."""
    back(pen, "#f7d9a8", "#8a5a33")
    bowl(pen, "#d6e6fb")
    broken = min(3, int(t * 4))
    for i in range(3):
        if i >= broken:
            egg(pen, 110 + 75 * i, 300)
        else:
            disc(pen, 350 + 75 * i, 330, 30, 14, "#fdf6dc")
            disc(pen, 350 + 75 * i, 328, 13, 8, "#f5a800")
    if broken < 3 and t * 4 % 1 > 0.5:
        egg(pen, 350 + 75 * broken, 150 + 120 * (t * 4 % 1 - 0.5))
    sign(pen, "EGGS FROM THE FARM")


def shopping(pen: Pen, t: float) -> None:
    """Draw the ingredients, put on the table one after another."""
    back(pen, "#ffab91", "#795548")
    count = int(t * 7)
    if count > 0:
        for i in range(3):
            egg(pen, 90 + 40 * i, 330)
    if count > 1:
        pen.rectangle((250, 200, 350, 360), fill="#e8e0d0", outline="#8d8371")
        pen.text((300, 280), "FLOUR", "#9c3328", font(26), anchor="mm")
    if count > 2:
        pen.polygon([(410, 360), (410, 210), (450, 160), (490, 210), (490, 360)], fill="white")
        pen.text((450, 290), "MILK", "#2962a8", font(26), anchor="mm")
    if count > 3:
        pen.rectangle((540, 310, 630, 360), fill="#ffd54f", outline="#c49000")
    if count > 4:
        disc(pen, 730, 310, 56, 56, "#ffb300", "#6d4c41")
        pen.rectangle((690, 236, 770, 262), fill="#6d4c41")
    sign(pen, "YOU NEED", 70)


def burnt(pen: Pen, t: float) -> None:
    """Draw the first pancake turning black, and rising smoke."""
    pan(pen, "#90a4ae")
    disc(pen, 400, 306, 125, 38, "#b5651d" if t < 0.3 else "#1a1110", "#000000")
    rng = random.Random("smoke")
    for i in range(18):
        rise = (rng.random() + 1.5 * t) % 1
        if t > 0.3:
            disc(pen, 330 + 9 * i, 280 - 240 * rise, 16 + 14 * rise, 12 + 10 * rise, "#cfd8dc")
    sign(pen, "TOO HOT!", 44, "#b71c1c", "white")


def breakfast(pen: Pen, t: float) -> None:
    """Draw a table seen from above, with four plates."""
    pen.rectangle((0, 0, WIDTH, HEIGHT), fill="#4db6ac")
    pen.rectangle((90, 50, 762, 430), fill="#fafafa")
    for x, y in ((240, 140), (612, 140), (240, 340), (612, 340)):
        disc(pen, x, y, 84, 72, "#43a047", "#1b5e20")
        disc(pen, x, y, 46, 40, "#b5651d")
    pen.rectangle((400, 170, 452, 310), fill="#8e24aa")
    disc(pen, 432, 160, 60 + 8 * math.sin(6 * t), 44, "#f06292")


def flour(pen: Pen, t: float) -> None:
    back(pen, "#c9d8c0", "#6f7f66")
    bowl(pen, "#f5d98a")
    rng = random.Random("flour")
    for _ in range(140):
        x, y = 432 + rng.uniform(-60, 60), 150 + (rng.random() + t * 3) % 1 * 180
        disc(pen, x, y, 4, 4, "white")
    disc(pen, 432, 326, 40 + 90 * t, 8 + 18 * t, "white")
    pen.polygon([(300, 60), (480, 100), (450, 190), (350, 150)], fill="#e8e0d0", outline="#8d8371")
    pen.text((392, 122), "FLOUR", "#9c3328", font(30), anchor="mm")
    sign(pen, "200 GRAMS", 440)


def milk(pen: Pen, t: float) -> None:
    back(pen, "#8fc1d9", "#3d6a80")
    bowl(pen, "#fffdf5")
    pen.rectangle((470, 110, 486, 326), fill="white")
    pen.polygon([(470, 100), (640, 40), (680, 130), (505, 165)], fill="white", outline="#90a4ae")
    pen.polygon([(640, 40), (700, 60), (680, 130)], fill="#2962a8")
    disc(pen, 478, 326, 20 + 60 * t, 6 + 16 * t, "#eef4f8")
    sign(pen, "300 ML COLD MILK")


def whisk(pen: Pen, t: float) -> None:
    """Draw lumps that vanish while the batter is stirred."""
    back(pen, "#e7c7d5", "#7d4f63")
    bowl(pen, "#f3dfa2")
    rng = random.Random("lumps")
    for i in range(26):
        x, y = 432 + rng.uniform(-125, 125), 330 + rng.uniform(-20, 20)
        if i >= 26 * t * 1.2:
            disc(pen, x, y, 11, 8, "white", "#c8b070")
    x, y = 432 + 110 * math.cos(30 * t), 320 + 18 * math.sin(30 * t)
    pen.line((x, y, x + 90, y - 210), fill="#555555", width=14)
    for k in (-22, 0, 22):
        pen.line((x, y, x + 30 + k, y - 100), fill="#9aa0a6", width=5)


def timer(pen: Pen, t: float) -> None:
    """Draw a kitchen timer that runs down from twenty minutes."""
    pen.rectangle((0, 0, WIDTH, HEIGHT), fill="#3b3f58")
    pen.rectangle((226, 90, 626, 290), fill="#eceff1", outline="#111111", width=8)
    left = 1200 - int(1200 * t)
    pen.text((432, 190), f"{left // 60:02}:{left % 60:02}", "#b71c1c", font(120), anchor="mm")
    sign(pen, "KITCHEN TIMER", 400)


def butter(pen: Pen, t: float) -> None:
    """Draw a block of butter that melts to a pool."""
    pan(pen, "#d7ccc8")
    disc(pen, 400, 308, 30 + 120 * t, 10 + 36 * t, "#fff176")
    side = 62 * (1 - t)
    pen.rectangle((400 - side, 306 - side, 400 + side, 306), fill="#ffd54f", outline="#c49000")
    sign(pen, "MEDIUM HEAT")


def pour(pen: Pen, t: float) -> None:
    pan(pen, "#b2dfdb")
    disc(pen, 400, 306, 20 + 105 * t, 8 + 30 * t, "#f6e7b4")
    pen.line((400, 150, 400, 306), fill="#f6e7b4", width=14)
    disc(pen, 400, 140, 60, 28, "#9e9e9e", "#616161")
    pen.line((450, 130, 640, 40), fill="#9e9e9e", width=16)


def bubbles(pen: Pen, t: float) -> None:
    """Draw bubbles on the pale side, then the turned, brown pancake."""
    pan(pen, "#ffccbc")
    turned = t > 0.6
    lift = 110 * math.sin(math.pi * (t - 0.5) / 0.2) if 0.5 < t < 0.7 else 0
    shade = "#b5651d" if turned else "#f6e7b4"
    disc(pen, 400, 300 - lift, 130, 38 if lift < 60 else 14, shade, "#8d5524")
    rng = random.Random("bubbles")
    for i in range(24):
        x, y = 400 + rng.uniform(-95, 95), 300 + rng.uniform(-20, 20)
        if not turned and lift == 0 and i < 24 * t * 2:
            disc(pen, x, y, 7, 5, "#e2c878", "#a88b4a")
    sign(pen, "TURN IT ONCE")


def stack(pen: Pen, t: float) -> None:
    plate(pen, 1 + min(4, int(t * 6)), "#fff3c4")
    sign(pen, "KEEP THEM WARM")


def topping(pen: Pen, t: float) -> None:
    plate(pen, 5, "#d1c4e9", min(6, int(t * 9)), max(0.0, min(1.0, 2 * t)) if t < 0.55 else 0.0)


# The bird house


def measure(pen: Pen, t: float) -> None:
    bench(pen, "#b0bec5")
    board(pen, 120, 220, 600, 110)
    pen.rectangle((120, 190, 120 + 600 * t, 216), fill="#fdd835")
    for i in range(int(24 * t)):
        pen.line((125 + 25 * i, 190, 125 + 25 * i, 205), fill="black", width=3)
    sign(pen, "120 CENTIMETERS", 80)


def saw(pen: Pen, t: float) -> None:
    bench(pen, "#ffe0b2")
    board(pen, 120, 240, 600, 110)
    x = 400 + 60 * math.sin(25 * t)
    pen.line((420, 240, 420, 240 + 110 * t), fill="#4e342e", width=6)
    pen.polygon([(x - 140, 170), (x + 120, 110), (x + 120, 150), (x - 140, 250)], fill="#cfd8dc")
    pen.rectangle((x + 110, 90, x + 190, 170), fill="#d32f2f")


def boards(pen: Pen, t: float) -> None:
    bench(pen, "#c8e6c9")
    for i in range(min(6, 1 + int(7 * t))):
        board(pen, 60 + 125 * i, 210)
    sign(pen, "PARTS LIST", 80)


def crack(pen: Pen, t: float) -> None:
    bench(pen, "#ffcdd2")
    board(pen, 300, 150, 250, 200)
    pen.line((425, 90, 425, 150 + 60 * t), fill="#78909c", width=22)
    if t > 0.4:
        zigzag = [(425, 150), (400, 190), (440, 235), (405, 280), (430, 350)]
        pen.line(zigzag, fill="#3e2723", width=8)
        sign(pen, "OOPS!", 60, "#b71c1c", "white")


def drill(pen: Pen, t: float) -> None:
    bench(pen, "#d1c4e9")
    board(pen, 180, 130, 260, 230)
    disc(pen, 310, 230, 12 + 44 * t, 12 + 44 * t, "#2e1a10")
    pen.rectangle((320 + 60 * t, 215, 520, 245), fill="#90a4ae")
    pen.rectangle((500, 190, 700, 270), fill="#00838f")
    pen.rectangle((610, 270, 670, 400), fill="#00838f")
    sign(pen, "DOOR 32 MM", 70)


def screws(pen: Pen, t: float) -> None:
    bench(pen, "#b3e5fc")
    house(pen, 432, 240, 1.2, "#d9a860", "#b9843f")
    spots = [(x, y) for y in (190, 240, 300, 350) for x in (345, 507)]
    for x, y in spots[: min(8, 1 + int(9 * t))]:
        disc(pen, x, y, 9, 9, "#eceff1", "#37474f")
        pen.line((x - 6, y, x + 6, y), fill="#37474f", width=3)


def paint(pen: Pen, t: float) -> None:
    """Draw a bare house that turns red from top to bottom under a blue roof."""
    bench(pen, "#fff9c4")
    house(pen, 432, 240, 1.2, "#d9a860", "#1565c0")
    edge = 171 + 201 * t
    pen.rectangle((331, 170, 521, edge), fill="#c62828")
    disc(pen, 432, 246, 38, 38, "#2e1a10")
    pen.rectangle((520, edge - 24, 600, edge + 6), fill="#5d4037")
    pen.line((600, edge - 10, 700, edge - 60), fill="#8d6e63", width=14)


def hang(pen: Pen, t: float) -> None:
    back(pen, "#81d4fa", "#66bb6a", 400)
    tree(pen, "#2e7d32", 300)
    y = 470 - 190 * min(1.0, 1.4 * t)
    pen.line((560, 150, 560, y - 60), fill="#4e342e", width=5)
    pen.line((330, 160, 580, 150), fill="#5d4037", width=18)
    house(pen, 560, y, 0.7, "#c62828", "#1565c0")
    sign(pen, "TWO METERS HIGH", 440)


def tenants(pen: Pen, t: float) -> None:
    back(pen, "#ffecb3", "#aed581", 400)
    house(pen, 560, 230, 1.1, "#c62828", "#1565c0")
    bird(pen, 80 + 340 * t, 150 + 60 * math.sin(5 * t), 1.0, "#fbc02d")
    if t > 0.4:
        bird(pen, 40 + 260 * (t - 0.4), 330, 0.9, "#fbc02d")
    sign(pen, "THREE DAYS LATER", 440)


# The silent garden, the still image


def garden(sky: str, ground: str, crown: str, title: str, extra: Scene | None = None) -> Scene:
    def draw(pen: Pen, t: float) -> None:
        back(pen, sky, ground, 390)
        tree(pen, crown)
        if extra:
            extra(pen, t)
        if title:
            sign(pen, title, 446, "#212121", "white")

    return draw


def snow(pen: Pen, t: float) -> None:
    rng = random.Random("snow")
    for _ in range(160):
        x, y, fall = rng.random() * WIDTH, rng.random(), rng.uniform(0.5, 1.5)
        disc(pen, x, (y + fall * t) % 1 * HEIGHT, 5, 5, "white")
    for x in (330, 520):
        bird(pen, x, 150, 0.7, "#212121")


def blossom(pen: Pen, t: float) -> None:
    rng = random.Random("blossom")
    for i in range(60):
        x, y = 432 + rng.uniform(-190, 190), 145 + rng.uniform(-90, 80)
        if i < 60 * t * 1.5:
            disc(pen, x, y, 11, 11, "#f8bbd0", "#ec407a")
    for x in (120, 200, 650, 740):
        pen.line((x, 410, x, 370), fill="#2e7d32", width=6)
        disc(pen, x, 360, 18, 18, "#d81b60")


def sunny(pen: Pen, t: float) -> None:
    disc(pen, 110 + 120 * t, 90, 60, 60, "#ffeb3b")
    for x, y in ((330, 150), (400, 100), (470, 180), (520, 130), (380, 190), (450, 80), (560, 180)):
        disc(pen, x, y, 15, 15, "#9ccc65", "#33691e")
    pen.rectangle((640, 330, 790, 350), fill="#8d6e63")
    for x in (650, 770):
        pen.rectangle((x, 350, x + 12, 410), fill="#6d4c41")


def harvest(pen: Pen, t: float) -> None:
    rng = random.Random("leaves")
    for _ in range(50):
        x, y = rng.random() * WIDTH, (rng.random() + t) % 1 * HEIGHT
        disc(pen, x, y, 9, 5, "#e65100")
    pen.pieslice((610, 300, 810, 480), 0, 180, fill="#a1887f")
    for i in range(min(7, 1 + int(8 * t))):
        disc(pen, 640 + 24 * i, 382, 16, 16, "#d50000", "#7f0000")


def pond(pen: Pen, t: float) -> None:
    back(pen, "#b3e5fc", "#558b2f", 200)
    disc(pen, 432, 340, 340, 110, "#0277bd")
    for i in range(4):
        x = 150 + 110 * i + 120 * t
        disc(pen, x, 330 + 12 * math.sin(9 * t + i), 34, 18, "white", "#607d8b")
        disc(pen, x + 32, 312, 13, 13, "#1b5e20")
    sign(pen, "THE POND", 446, "#212121", "white")


def night(pen: Pen, t: float) -> None:
    back(pen, "#101433", "#1b2a1b", 390)
    tree(pen, "")
    disc(pen, 680, 100, 50, 50, "#fff9c4")
    disc(pen, 680 - 60 + 50 * t, 90, 48, 48, "#101433")
    rng = random.Random("stars")
    for _ in range(50):
        disc(pen, rng.random() * WIDTH, rng.random() * 300, 3, 3, "white")


def lighthouse(pen: Pen, t: float) -> None:
    """Draw a still image, which does not depend on `t`."""
    back(pen, "#ef9a7a", "#264a6e", 300)
    disc(pen, 200, 300, 70, 70, "#ffe082")
    pen.rectangle((0, 300, WIDTH, HEIGHT), fill="#264a6e")
    pen.polygon([(560, 400), (864, 330), (864, 480), (520, 480)], fill="#4e342e")
    pen.polygon([(660, 370), (680, 130), (740, 130), (760, 370)], fill="#fafafa")
    for y in (190, 270, 340):
        pen.rectangle((672, y, 750, y + 26), fill="#c62828")
    pen.rectangle((686, 96, 734, 130), fill="#fff59d")
    pen.polygon([(676, 96), (710, 62), (744, 96)], fill="#37474f")


def library(pen: Pen, t: float) -> None:
    back(pen, "#5d4037", "#3e2723", 420)
    colours = ("#c62828", "#1565c0", "#2e7d32", "#f9a825", "#6a1b9a", "#00838f")
    for row in range(3):
        pen.rectangle((40, 120 + 110 * row, 812, 132 + 110 * row), fill="#a1887f")
        for i in range(22):
            h = 60 + 11 * ((i * 7 + row * 3) % 4)
            x = 50 + 34 * i
            ink = colours[(i * 5 + row) % 6]
            pen.rectangle((x, 120 + 110 * row - h, x + 26, 120 + 110 * row), fill=ink)
    pen.rectangle((WIDTH * t - 60, 60, WIDTH * t - 20, 420), fill="#bcaaa4")
    sign(pen, "OPEN UNTIL NINE", 446)
