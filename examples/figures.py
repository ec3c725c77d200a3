"""The people, things and places of the story (`story.py`), drawn without a word in the picture."""

from __future__ import annotations

import math
from dataclasses import dataclass

from things import HEIGHT, WIDTH, Pen, disc

Spot = tuple[float, float]
FLOOR = 452  # where feet stand


@dataclass(frozen=True)
class Look:
    """How a person looks in every shot. `size`: 1 is a grown woman."""

    coat: str
    hair: str
    legs: str
    size: float = 1.0
    hat: str = ""
    beard: str = ""
    bun: bool = False
    apron: str = ""


VERA = Look("#2e7d32", "#c8501e", "#5d4037", bun=True, apron="#fff3e0")
OTTO = Look("#1f3f7a", "#9e9e9e", "#37474f", 1.12, hat="#0d2149", beard="#bdbdbd")
NILO = Look("#f57c00", "#1b1310", "#546e7a", 0.72)
ROSA = Look("#8e24aa", "#c8501e", "#4a148c", hat="#ffffff")
SKIN = "#e0ac85"


def ease(t: float, start: float, end: float) -> float:
    """Return 0 before `start`, 1 after `end`, and a smooth way between."""
    part = min(1.0, max(0.0, (t - start) / (end - start)))
    return part * part * (3 - 2 * part)


def between(a: Spot, b: Spot, part: float) -> Spot:
    return (a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part)


def person(
    pen: Pen,
    look: Look,
    x: float,
    *,
    turn: int = 1,
    hand: Spot | None = None,
    other: Spot | None = None,
    speaking: float = -1.0,
    feet: float = FLOOR,
) -> None:
    """Draw a person at `x` who looks to the right (`turn` 1) or left (-1) and walks as `x` moves.

    `hand`, `other`: where the hands are, by default at the sides. `speaking`: time in the shot
    where the person speaks, which moves the mouth and draws a bubble with three dots.
    """
    s = look.size
    hip, neck = feet - 80 * s, feet - 185 * s
    swing = 22 * s * math.sin(x / 16)
    for side in (-1, 1):
        foot = x + side * (12 * s + swing * 0.6)
        pen.line((x + side * 10 * s, hip, foot, feet - 6), fill=look.legs, width=int(24 * s))
        disc(pen, foot + turn * 8 * s, feet - 4, 20 * s, 9 * s, "#2b1d14")
    _arm(pen, look, (x - turn * 22 * s, neck + 18 * s), other or (x - turn * 40 * s, hip))
    coat = [(x - 30 * s, neck), (x + 30 * s, neck), (x + 46 * s, hip + 16), (x - 46 * s, hip + 16)]
    pen.polygon(coat, fill=look.coat)
    if look.apron:
        pen.polygon(
            [(x - 18, neck + 34), (x + 18, neck + 34), (x + 32, hip + 14), (x - 32, hip + 14)],
            fill=look.apron,
        )
    _head(pen, look, x, neck - 30 * s, turn, speaking)
    _arm(pen, look, (x + turn * 22 * s, neck + 18 * s), hand or (x + turn * 40 * s, hip))


def _arm(pen: Pen, look: Look, shoulder: Spot, hand: Spot) -> None:
    s = look.size
    pen.line((*shoulder, *hand), fill="#11222a", width=int(24 * s))
    pen.line((*shoulder, *hand), fill=look.coat, width=int(19 * s))
    disc(pen, *shoulder, 11 * s, 11 * s, look.coat)
    disc(pen, *hand, 13 * s, 13 * s, SKIN, "#8d5f41")


def _head(pen: Pen, look: Look, x: float, y: float, turn: int, speaking: float) -> None:
    s = 1.05 * look.size**0.6
    if look.bun:
        disc(pen, x - turn * 22 * s, y - 40 * s, 20 * s, 20 * s, look.hair)
    disc(pen, x - turn * 6 * s, y - 6 * s, 42 * s, 44 * s, look.hair)
    disc(pen, x + turn * 4 * s, y + 4 * s, 35 * s, 38 * s, SKIN)
    if look.beard:
        box = (x + turn * 4 * s - 35 * s, y - 24 * s, x + turn * 4 * s + 35 * s, y + 52 * s)
        pen.chord(box, 0, 180, fill=look.beard)
    pen.chord((x - 40 * s, y - 48 * s, x + 40 * s, y + 16 * s), 180, 360, fill=look.hair)
    if look.hat:
        pen.chord((x - 42 * s, y - 60 * s, x + 42 * s, y + 20 * s), 180, 360, fill=look.hat)
        brim = sorted((x - turn * 42 * s, x + turn * 62 * s))
        pen.rectangle((brim[0], y - 26 * s, brim[1], y - 15 * s), fill=look.hat, outline="#333333")
    for side in (4, 24):
        disc(pen, x + turn * side * s, y, 4.5 * s, 6 * s, "#20140c")
    nose = [
        (x + turn * 34 * s, y),
        (x + turn * 48 * s, y + 12 * s),
        (x + turn * 34 * s, y + 14 * s),
    ]
    pen.polygon(nose, fill="#c98f68")
    gape = 2 + 8 * abs(math.sin(speaking * 9)) if speaking >= 0 else 2
    disc(pen, x + turn * 16 * s, y + 24 * s, 11 * s, gape * s, "#7a2020")
    if speaking >= 0:
        top, at = y - 96 * s, x + turn * 66
        pen.polygon([(x + turn * 36, y - 40 * s), (at - 14, top), (at + 14, top)], fill="white")
        disc(pen, at, top, 42, 24, "white", "#444444")
        for i in (-1, 0, 1):
            disc(pen, at + 20 * i, top, 6, 6, "#444444")


def cat(pen: Pen, x: float, y: float, s: float = 1.0, paw: float = 0.0) -> None:
    """Draw a black cat that sits at (`x`, `y`), looks right and stretches a paw by `paw`."""
    pen.line((x - 24 * s, y - 8 * s, x - 52 * s, y - 30 * s), fill="#111111", width=int(10 * s))
    disc(pen, x, y - 26 * s, 28 * s, 30 * s, "#111111")
    pen.line(
        (x + 12 * s, y - 22 * s, x + (24 + 46 * paw) * s, y - 10 * s), fill="#111111", width=12
    )
    disc(pen, x + 14 * s, y - 62 * s, 23 * s, 20 * s, "#111111")
    for ear in (0, 26):
        left = x + (ear - 6) * s
        pen.polygon(
            [(left, y - 72 * s), (left + 8, y - 98 * s), (left + 16, y - 74 * s)], "#111111"
        )
    for eye in (12, 26):
        disc(pen, x + eye * s, y - 64 * s, 5 * s, 5 * s, "#ffeb3b")


def tin(pen: Pen, x: float, y: float, s: float = 1.0, *, lid: float = 0.0) -> None:
    """Draw the blue tin that stands on `y`, its lid lifted by `lid`, or without it (below 0)."""
    box = (x - 34 * s, y - 54 * s, x + 34 * s, y)
    pen.rounded_rectangle(box, 6, fill="#1e88e5", outline="#0d3c75", width=3)
    pen.rectangle((x - 34 * s, y - 34 * s, x + 34 * s, y - 22 * s), fill="white")
    if lid < 0:
        disc(pen, x, y - 54 * s, 34 * s, 5 * s, "#0d3c75")
        return
    top = y - 54 * s - 50 * s * lid
    box = (x - 37 * s, top - 10 * s, x + 37 * s, top + 3 * s)
    pen.rounded_rectangle(box, 4, fill="#1565c0", outline="#0d3c75", width=2)


def key(pen: Pen, x: float, y: float, s: float = 1.0) -> None:
    """Draw a brass key with a red ribbon."""
    pen.line((x - 30 * s, y, x - 52 * s, y + 30 * s), fill="#d50000", width=int(9 * s))
    pen.line((x - 30 * s, y, x - 34 * s, y + 36 * s), fill="#d50000", width=int(9 * s))
    pen.line((x - 14 * s, y, x + 40 * s, y), fill="#c99700", width=int(10 * s))
    for tooth in (24, 36):
        pen.line((x + tooth * s, y, x + tooth * s, y + 18 * s), fill="#c99700", width=int(8 * s))
    pen.ellipse(
        (x - 44 * s, y - 18 * s, x - 8 * s, y + 18 * s), outline="#c99700", width=int(9 * s)
    )


def letter(pen: Pen, x: float, y: float, s: float = 1.0, *, wet: bool = False) -> None:
    """Draw an envelope with a purple seal around (`x`, `y`), dry or with ink that ran."""
    box = (x - 42 * s, y - 27 * s, x + 42 * s, y + 27 * s)
    pen.rectangle(box, fill="#cfd8f5" if wet else "#fffdf5", outline="#6b5b4b", width=3)
    flap = [(x - 42 * s, y - 27 * s), (x, y + 4 * s), (x + 42 * s, y - 27 * s)]
    pen.line(flap, fill="#6b5b4b", width=3)
    if wet:
        for dx, dy, r in ((-26, 10, 14), (22, 12, 12), (-8, 19, 9), (30, -8, 8)):
            disc(pen, x + dx * s, y + dy * s, r * s, r * 0.6 * s, "#3f51b5")
    disc(pen, x, y + 4 * s, 11 * s, 11 * s, "#7b1fa2")


def flowers(pen: Pen, x: float, y: float, s: float = 1.0) -> None:
    for dx in (-20, 0, 20):
        top = y - (58 - abs(dx) * 0.6) * s
        pen.line((x, y, x + dx * s, top), fill="#2e7d32", width=int(5 * s))
        disc(pen, x + dx * s, top, 14 * s, 14 * s, "#fdd835")
        disc(pen, x + dx * s, top, 5 * s, 5 * s, "#8d6e00")


def vase(pen: Pen, x: float, y: float, s: float = 1.0) -> None:
    flowers(pen, x, y - 44 * s, s)
    pen.rounded_rectangle(
        (x - 20 * s, y - 56 * s, x + 20 * s, y), 10, fill="#f06292", outline="#ad1457", width=3
    )


def shards(pen: Pen, x: float, y: float, s: float = 1.0) -> None:
    for dx, size in ((-30, 22), (0, 30), (32, 20)):
        left = x + dx * s
        tip = (left + size * s * 0.4, y - size * s)
        pen.polygon([(left, y), tip, (left + size * s, y)], fill="#f06292", outline="#ad1457")


def boot(pen: Pen, x: float, y: float, s: float = 1.0) -> None:
    """Draw an old brown boot that stands on `y` with its toe to the right."""
    pen.rectangle((x - 24 * s, y - 72 * s, x + 16 * s, y - 4 * s), fill="#795548")
    pen.rounded_rectangle(
        (x - 24 * s, y - 34 * s, x + 52 * s, y - 4 * s), int(14 * s), fill="#795548"
    )
    pen.rectangle((x - 26 * s, y - 10 * s, x + 54 * s, y), fill="#3e2723")
    pen.rectangle((x - 28 * s, y - 76 * s, x + 20 * s, y - 62 * s), fill="#a1887f")
    for row in (50, 40, 30):
        pen.line((x - 4 * s, y - row * s, x + 18 * s, y - row * s), fill="#ffcc80", width=4)


def crab(pen: Pen, x: float, y: float, s: float = 1.0) -> None:
    for side in (-1, 1):
        for leg in (10, 20, 30):
            foot = (x + side * (leg + 22) * s, y + 16 * s)
            pen.line((x + side * leg * 0.6 * s, y, *foot), fill="#d84315", width=int(5 * s))
        claw = (x + side * 40 * s, y - 26 * s)
        pen.line((x + side * 18 * s, y - 4 * s, *claw), fill="#d84315", width=int(8 * s))
        disc(pen, *claw, 13 * s, 10 * s, "#ff5722", "#bf360c")
        disc(pen, x + side * 9 * s, y - 22 * s, 5 * s, 6 * s, "black")
    disc(pen, x, y, 30 * s, 20 * s, "#ff5722", "#bf360c")


def lantern(pen: Pen, x: float, y: float, s: float = 1.0, glass: str = "#fff59d") -> None:
    """Draw a lantern that stands on `y`; `glass` "" is a broken pane."""
    pen.arc((x - 22 * s, y - 128 * s, x + 22 * s, y - 84 * s), 180, 360, "#222222", int(6 * s))
    pen.polygon([(x - 32 * s, y - 82 * s), (x, y - 108 * s), (x + 32 * s, y - 82 * s)], "#37474f")
    pane = (x - 26 * s, y - 82 * s, x + 26 * s, y - 12 * s)
    pen.rectangle(pane, fill=glass or "#263238", outline="#37474f", width=int(6 * s))
    if glass:
        disc(pen, x, y - 40 * s, 8 * s, 16 * s, "#ffffff")
    else:
        for points in (((-24, -14), (-24, -46), (-6, -14)), ((24, -80), (24, -46), (4, -80))):
            pen.polygon([(x + a * s, y + b * s) for a, b in points], fill="#fff59d")
    pen.rectangle((x - 32 * s, y - 14 * s, x + 32 * s, y), fill="#37474f")


def gull(pen: Pen, x: float, y: float, flap: float) -> None:
    for side in (-1, 1):
        pen.polygon([(x - 12, y), (x + 12, y), (x + side * 66, y - 34 * flap)], fill="#eceff1")
    disc(pen, x, y, 30, 14, "white", "#78909c")
    disc(pen, x + 30, y - 8, 12, 11, "white", "#78909c")
    pen.polygon([(x + 40, y - 10), (x + 58, y - 4), (x + 40, y)], fill="#ff8f00")


def window(pen: Pen, box: tuple[float, float, float, float], sky: str) -> None:
    pen.rectangle(box, fill=sky, outline="#6d4c41", width=10)
    middle = (box[0] + box[2]) / 2
    pen.line((middle, box[1], middle, box[3]), fill="#6d4c41", width=8)
    if sky == NIGHT:
        disc(pen, box[0] + 48, box[1] + 46, 20, 20, "#fff9c4")
    if sky == DUSK:
        disc(pen, box[2] - 48, box[3] - 20, 30, 30, "#ff7043")


MORNING, NOON, DUSK, NIGHT = "#a8dcf5", "#d9f0fa", "#f6a55c", "#1d2550"
SILL, SHELF, TOP = 258, 140, 352  # what stands on the sill, the shelf and the table


def workshop(pen: Pen, sky: str) -> None:
    """Draw the room: window and sill on the left, shelf on the right."""
    wall = {DUSK: "#d9b48a", NIGHT: "#a98f78"}.get(sky, "#f0dcb4")
    pen.rectangle((0, 0, WIDTH, 410), fill=wall)
    pen.rectangle((0, 410, WIDTH, HEIGHT), fill="#8d6748")
    window(pen, (40, 50, 290, SILL - 6), sky)
    pen.rectangle((20, SILL, 310, SILL + 14), fill="#6d4c41")
    pen.rectangle((645, SHELF, 850, SHELF + 14), fill="#6d4c41")
    disc(pen, 808, SHELF - 32, 28, 28, "#eceff1", "#4e342e")  # a clock
    pen.line((808, SHELF - 32, 808, SHELF - 52), fill="black", width=4)


def table(pen: Pen) -> None:
    for x in (330, 566):
        pen.rectangle((x, TOP, x + 18, FLOOR + 4), fill="#5d3a22")
    pen.rectangle((310, TOP, 604, TOP + 16), fill="#7b4f2e")


WATER = 300  # where the quay's wall meets the water


def quay(pen: Pen, sky: str, t: float) -> None:
    """Draw the sea on the left, the stone quay on the right, and a post for a lamp."""
    pen.rectangle((0, 0, WIDTH, HEIGHT), fill=sky)
    if sky == NIGHT:
        disc(pen, 780, 70, 30, 30, "#fff9c4")
    pen.polygon([(30, 210), (110, 160), (220, 210)], fill="#6d8f5f")  # the island
    sea = "#12324f" if sky == NIGHT else "#3f8fb5"
    pen.rectangle((0, 210, WIDTH, HEIGHT), fill=sea)
    for i in range(12):
        x, y = (i * 97 + 40 * t) % 420, 235 + 20 * i
        pen.line((x, y, x + 46, y), fill="#7fb8d3" if sky != NIGHT else "#2c587c", width=4)
    stone = "#6f6a66" if sky == NIGHT else "#b7aea4"
    pen.rectangle((430, 400, WIDTH, HEIGHT), fill=stone)
    pen.rectangle((430, 400, 446, HEIGHT), fill="#7d756d")


def post(pen: Pen) -> None:
    pen.rectangle((486, 190, 504, 410), fill="#4e342e")
    pen.rectangle((486, 190, 560, 202), fill="#4e342e")


def ship(pen: Pen, x: float, y: float, hull: str = "#c62828", *, mast: bool = True) -> None:
    if mast:
        pen.rectangle((x - 6, y - 190, x + 6, y), fill="#5d4037")
        pen.rectangle((x - 6, y - 130, x + 70, y - 122), fill="#5d4037")
    pen.polygon([(x - 150, y), (x + 150, y), (x + 110, y + 74), (x - 110, y + 74)], fill=hull)
    pen.rectangle((x - 150, y, x + 150, y + 14), fill="white")
