"""The shots of `story.mp4`: a lantern, a key and a letter between a workshop and a quay.

A shot is `draw(pen, t, who)`: `t` runs from 0 to 1 over the shot, `who` is who speaks just then, or
"". No word is written in the pictures. `story.json` has what is true of the story, with times, and
a wrong version of each claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import figures as f
from figures import (
    FLOOR,
    MORNING,
    NILO,
    NOON,
    OTTO,
    SHELF,
    SILL,
    TOP,
    VERA,
    ease,
)
from things import HEIGHT, WIDTH, Pen, disc

Told = Callable[[Pen, float, str], None]
Row = tuple[Told, float, float, tuple[str, ...]]  # a shot, least seconds, silence first, lines
GREEN = "#00e676"


def talk(who: str, name: str, t: float) -> float:
    return 20 * t if who == name else -1.0


def room(
    pen: Pen,
    sky: str,
    *,
    tin: bool = True,
    floor_boot: bool = True,
    sill: str = "vase",
    paper: str = "",
    cat: float = 80,
) -> None:
    """Draw the workshop. `sill`: "vase", "broken" or "boot". `paper`: "sill", "line" or ""."""
    f.workshop(pen, sky)
    if tin:
        f.tin(pen, 700, SHELF)
    if cat:
        f.cat(pen, cat, SILL)
    if sill == "vase":
        f.vase(pen, 170, SILL)
    elif sill == "broken":
        puddle(pen)
        f.shards(pen, 170, SILL)
        f.flowers(pen, 180, SILL + 4)
    elif sill == "boot":
        f.flowers(pen, 186, SILL - 70)
        f.boot(pen, 190, SILL)
    if paper == "sill":
        f.letter(pen, 252, SILL - 18, 0.8, wet=sill == "broken")
    if paper == "line":
        pen.line((300, 96, 600, 84), fill="#5d4037", width=4)
        f.letter(pen, 450, 122, 0.9, wet=True)
        pen.rectangle((445, 78, 457, 106), fill="#d9a860", outline="#8d6230")
    if floor_boot:
        f.boot(pen, 490, FLOOR + 4)


def puddle(pen: Pen) -> None:
    disc(pen, 220, SILL + 3, 80, 8, "#64b5f6")
    for x, length in ((190, 46), (230, 70), (262, 34)):
        pen.line((x, SILL + 4, x, SILL + length), fill="#64b5f6", width=6)


def wood(pen: Pen, top: str = "#8a5a35", horizon: int = 250) -> None:
    """Draw the ground of a close view."""
    pen.rectangle((0, 0, WIDTH, HEIGHT), fill="#e6d0a4")
    pen.rectangle((0, horizon, WIDTH, HEIGHT), fill=top)


def grip(pen: Pen, x: float, y: float, coat: str, down: bool = True) -> None:
    """Draw a big hand with its sleeve, which comes from above or from below."""
    end = y - 600 if down else y + 600
    pen.line((x, y, x + 60, end), fill=coat, width=84)
    disc(pen, x, y, 46, 46, f.SKIN, "#8d5f41")


def harbour(pen: Pen, sky: str, t: float, boat: bool = True) -> None:
    f.quay(pen, sky, t)
    if boat:
        f.ship(pen, 250, 372 + 4 * math.sin(9 * t))
        pen.line((395, 390, 470, 404), fill="#212121", width=8)  # the chain
    f.post(pen)


# Morning: the lantern breaks, three things change hands


def mussel_falls(pen: Pen, t: float, who: str) -> None:
    harbour(pen, MORNING, t)
    hit = t > 0.52
    f.lantern(pen, 310, 372 + 4 * math.sin(9 * t) - 10, 1.0, "" if hit else "#fff59d")
    x = 40 + 900 * t * 0.6
    f.gull(pen, x, 60, math.sin(30 * t))
    drop = (310, 80 + 190 * ease(t, 0.42, 0.52)) if not hit else (430, 392)
    if t < 0.42:
        drop = (x + 46, 72)
    disc(pen, drop[0], drop[1], 18, 11, "#311b92", "#9fa8da")
    if 0.52 < t < 0.66:
        for angle in range(0, 360, 45):
            a = math.radians(angle)
            c, s = math.cos(a), math.sin(a)
            pen.line((310 + 34 * c, 310 + 34 * s, 310 + 62 * c, 310 + 62 * s), "white", 6)
    f.person(pen, OTTO, 640, turn=-1, hand=(570, 300) if hit else None,
             speaking=talk(who, "Otto", t))  # fmt: skip


def broken_lantern(pen: Pen, t: float, who: str) -> None:
    wood(pen, "#b7aea4")
    f.lantern(pen, 430, 440, 3.2, "")
    disc(pen, 650, 420, 74, 40, "#311b92", "#9fa8da")
    for i in range(4):
        pen.arc((590 + 12 * i, 390, 700, 450), 200, 330, "#9fa8da", 4)
    for x in (200, 260, 560):
        pen.polygon([(x, 446), (x + 22, 410), (x + 40, 450)], fill="#fff59d", outline="#8d6e00")


def otto_brings_lantern(pen: Pen, t: float, who: str) -> None:
    room(pen, MORNING)
    x = 920 - 260 * ease(t, 0, 0.45)
    set_down = ease(t, 0.45, 0.6)
    hand = f.between((x - 60, 330), (560, TOP - 80), set_down)
    f.person(pen, VERA, 380, speaking=talk(who, "Vera", t))
    f.table(pen)
    hand_on = hand if t < 0.7 else None
    f.person(pen, OTTO, x, turn=-1, hand=hand_on, speaking=talk(who, "Otto", t))
    at = (hand[0], hand[1] + 90) if t < 0.6 else (560, TOP)
    f.lantern(pen, at[0], min(at[1], TOP if t > 0.45 else 999), 0.85, "")


def vera_asks(pen: Pen, t: float, who: str) -> None:
    room(pen, MORNING)
    up = ease(t, 0.05, 0.2)
    hand = f.between((430, 372), (470, 280), up)
    f.person(pen, VERA, 390, hand=hand, speaking=talk(who, "Vera", t))
    f.table(pen)
    f.lantern(pen, 560, TOP, 0.85, "")
    f.person(pen, OTTO, 670, turn=-1, speaking=talk(who, "Otto", t),
             hand=(650, 320) if who == "Otto" else None)  # fmt: skip
    f.letter(pen, hand[0] + 34, hand[1] - 10, 1.0)


def letter_on_sill(pen: Pen, t: float, who: str) -> None:
    room(pen, MORNING, paper="sill" if t > 0.5 else "")
    x = 400 - 70 * ease(t, 0, 0.35) + 70 * ease(t, 0.65, 1)
    hand = f.between((x - 40, 300), (276, SILL - 16), ease(t, 0.25, 0.5))
    turn = -1 if t < 0.65 else 1
    f.person(pen, VERA, x, turn=turn, hand=hand if t < 0.62 else None,
             speaking=talk(who, "Vera", t))  # fmt: skip
    f.table(pen)
    f.lantern(pen, 560, TOP, 0.85, "")
    f.person(pen, OTTO, 670, turn=-1)
    if t <= 0.5:
        f.letter(pen, hand[0] - 20, hand[1] - 6, 0.8)


def key_as_pledge(pen: Pen, t: float, who: str) -> None:
    room(pen, MORNING, paper="sill")
    give = ease(t, 0.3, 0.6)
    hand = f.between((600, 300), (520, 290), give)
    f.person(pen, VERA, 400, hand=(500, 296) if t > 0.4 else None, speaking=talk(who, "Vera", t))
    f.table(pen)
    f.lantern(pen, 560, TOP, 0.85, "")
    f.person(pen, OTTO, 670, turn=-1, hand=hand if t < 0.75 else None,
             speaking=talk(who, "Otto", t))  # fmt: skip
    at = hand if t < 0.62 else (500, 296)
    f.key(pen, at[0], at[1] - 22, 0.9)


def key_into_tin(pen: Pen, t: float, who: str) -> None:
    room(pen, MORNING, paper="sill", tin=False)
    f.tin(pen, 700, SHELF, lid=ease(t, 0.2, 0.35) - ease(t, 0.7, 0.85))
    x = 400 + 210 * ease(t, 0, 0.3)
    hand = f.between((x + 50, 300), (690, SHELF - 66), ease(t, 0.25, 0.5))
    f.person(pen, OTTO, 790, turn=-1, speaking=talk(who, "Otto", t))
    f.person(pen, VERA, x, hand=hand if t < 0.85 else None, speaking=talk(who, "Vera", t))
    f.table(pen)
    f.lantern(pen, 560, TOP, 0.85, "")
    if t < 0.6:
        f.key(pen, hand[0], hand[1] - 18, 0.9)


def tin_close(pen: Pen, t: float, who: str) -> None:
    wood(pen)
    y = 70 + 240 * ease(t, 0.05, 0.45)
    if t < 0.5:
        f.key(pen, 430, y, 2.2)
        grip(pen, 400, y - 90, VERA.coat)
        f.tin(pen, 430, 440, 3.4, lid=-1)
        loose_lid(pen, 660, 430, 3.4)
    else:
        f.tin(pen, 430, 440, 3.4, lid=1 - ease(t, 0.5, 0.8))


def loose_lid(pen: Pen, x: float, y: float, s: float) -> None:
    box = (x - 37 * s, y - 13 * s, x + 37 * s, y)
    pen.rounded_rectangle(box, 4, fill="#1565c0", outline="#0d3c75", width=2)


# Noon: the key, the tin, the vase


def vera_leaves(pen: Pen, t: float, who: str) -> None:
    room(pen, NOON, paper="sill")
    f.table(pen)
    f.lantern(pen, 560, TOP, 0.85, "")
    boy = 920 - 220 * ease(t, 0, 0.2)
    f.person(pen, VERA, 430 + 520 * ease(t, 0.8, 1), speaking=talk(who, "Vera", t))
    f.person(pen, NILO, boy, turn=-1, speaking=talk(who, "Nilo", t),
             hand=(boy - 50, 340) if who == "Nilo" else None)  # fmt: skip


def stool(pen: Pen) -> None:
    pen.rectangle((680, 360, 770, FLOOR + 4), fill="#a1764c", outline="#5d3a22", width=4)
    pen.line((680, 400, 770, 400), fill="#5d3a22", width=4)


def nilo_takes_tin(pen: Pen, t: float, who: str) -> None:
    taken = t > 0.4
    room(pen, NOON, paper="sill", tin=not taken)
    f.table(pen)
    f.lantern(pen, 560, TOP, 0.85, "")
    stool(pen)
    up = 92 * (ease(t, 0.05, 0.2) - ease(t, 0.5, 0.62))
    x = 780 - 50 * ease(t, 0, 0.15)
    hand = f.between((x - 30, 350), (705, SHELF + 4), ease(t, 0.2, 0.38) - ease(t, 0.42, 0.6))
    f.person(pen, NILO, x, turn=-1, hand=hand, feet=FLOOR - up, speaking=talk(who, "Nilo", t))
    if taken:
        f.tin(pen, hand[0] - 16, hand[1] + 10, lid=ease(t, 0.65, 0.8))
    if t > 0.75:
        f.key(pen, hand[0] - 20, hand[1] - 46 - 50 * ease(t, 0.75, 0.95), 0.9)


def key_into_boot(pen: Pen, t: float, who: str) -> None:
    wood(pen, "#6d4c34", 330)
    pen.rectangle((60, 0, 110, 480), fill="#5d3a22")
    pen.rectangle((0, 0, WIDTH, 40), fill="#7b4f2e")
    y = 30 + 190 * ease(t, 0.1, 0.7)
    if t < 0.55:
        f.key(pen, 440, y, 1.8)
    if t < 0.6:
        grip(pen, 405, y - 70, NILO.coat)
    else:
        grip(pen, 405, 130 - 340 * ease(t, 0.6, 0.9), NILO.coat)
    f.boot(pen, 430, 450, 3.6)


def vase_falls(pen: Pen, t: float, who: str) -> None:
    """Draw the boy who leaves with the tin; behind him the cat pushes the vase."""
    fell = t > 0.6
    room(pen, NOON, paper="sill", tin=False, sill="broken" if t > 0.72 else "", cat=0)
    f.cat(pen, 80 + 20 * ease(t, 0.2, 0.5), SILL, paw=ease(t, 0.4, 0.55) - ease(t, 0.8, 1))
    if not fell:
        f.vase(pen, 170 + 10 * ease(t, 0.45, 0.6), SILL)
    elif t <= 0.72:
        pen.rounded_rectangle((160, SILL - 40, 225, SILL), 12, fill="#f06292", outline="#ad1457")
        f.letter(pen, 252, SILL - 18, 0.8)
    f.table(pen)
    f.lantern(pen, 560, TOP, 0.85, "")
    x = 560 + 380 * ease(t, 0.15, 0.95)
    f.person(pen, NILO, x, hand=(x + 40, 352), other=(x + 10, 362))
    f.tin(pen, x + 46, 364)


def crab_moves_in(pen: Pen, t: float, who: str) -> None:
    harbour(pen, NOON, t)
    f.person(pen, NILO, 700, turn=-1, speaking=talk(who, "Nilo", t),
             hand=(640, 350) if 0.1 < t < 0.6 else None)  # fmt: skip
    spot = f.between((500, 385), (630, 330), ease(t, 0.1, 0.3))
    spot = f.between(spot, (592, 388), ease(t, 0.35, 0.5))
    if t < 0.55:
        f.crab(pen, *spot, 0.8)
    if t >= 0.45:
        f.crab(pen, 592, 360, 0.7)
    f.tin(pen, 592, 420, 1.1, lid=-1)
    loose_lid(pen, 660, 440, 1.1)


def just_like_it(pen: Pen, t: float, who: str) -> None:
    harbour(pen, NOON, t)
    pen.rectangle((560, 360, 650, 408), fill="#a1764c", outline="#5d3a22", width=4)
    f.person(pen, OTTO, 590, speaking=talk(who, "Otto", t), hand=(690, 300))
    x = 770
    f.person(pen, NILO, x, turn=-1 if t < 0.6 else 1, speaking=talk(who, "Nilo", t),
             hand=(x - 30 if t < 0.6 else x + 24, 366), other=(x, 372))  # fmt: skip
    f.tin(pen, x - 40 if t < 0.6 else x + 34, 376)


def vera_finds_it(pen: Pen, t: float, who: str) -> None:
    room(pen, NOON, paper="sill", tin=False, sill="broken")
    f.table(pen)
    f.lantern(pen, 560, TOP, 0.85, "")
    x = 920 - 530 * ease(t, 0, 0.55)
    shock = t > 0.58
    f.person(pen, VERA, x, turn=-1, hand=(x - 70, 270) if shock else (x - 50, 320),
             other=(x - 40, 250) if shock else None, speaking=talk(who, "Vera", t))  # fmt: skip
    pane(pen, *((x - 80, 300) if not shock else (x + 30, 320)))


def pane(pen: Pen, x: float, y: float, s: float = 1.0) -> None:
    pen.polygon(
        [(x - 34 * s, y - 40 * s), (x + 34 * s, y - 46 * s), (x + 34 * s, y + 40 * s),
         (x - 34 * s, y + 46 * s)], fill=GREEN, outline="#00733b", width=4,
    )  # fmt: skip
    pen.line((x - 18 * s, y + 18 * s, x + 10 * s, y - 22 * s), fill="white", width=5)


def wet_letter(pen: Pen, t: float, who: str) -> None:
    wood(pen, "#6d4c41", 300)
    disc(pen, 440, 400, 380, 60, "#64b5f6")
    f.shards(pen, 170, 420, 2.4)
    f.flowers(pen, 730, 440, 2.2)
    lift = 90 * ease(t, 0.4, 0.8)
    f.letter(pen, 430, 360 - lift, 3.2, wet=True)
    if t > 0.3:
        grip(pen, 560, 420 - lift, VERA.coat, down=False)
    for i in range(3):
        y = 450 - lift + (200 * t + 40 * i) % 90
        disc(pen, 340 + 60 * i, y, 6, 9, "#64b5f6")


def tidies_up(pen: Pen, t: float, who: str) -> None:
    """Draw the letter pegged to a line; then the flowers get the boot for a vase."""
    moved = t > 0.5
    boot_up = t > 0.82
    room(pen, NOON, tin=False, sill="boot" if boot_up else "broken" if not moved else "",
         paper="line" if t > 0.25 else "", floor_boot=not moved)  # fmt: skip
    x = 400 + 30 * ease(t, 0.3, 0.45) - 90 * ease(t, 0.55, 0.8)
    hand = f.between((x + 30, 290), (450, 160), ease(t, 0.02, 0.2))
    turn = 1
    if t > 0.3:
        hand = f.between((450, 160), (480, 390), ease(t, 0.3, 0.48))
    if moved:
        turn = -1
        hand = f.between((450, 360), (220, SILL - 40), ease(t, 0.52, 0.82))
    f.person(pen, VERA, x, turn=turn, hand=hand)
    f.table(pen)
    f.lantern(pen, 560, TOP, 0.85, "")
    if t <= 0.25:
        f.letter(pen, hand[0], hand[1] - 30, 0.9, wet=True)
    if moved and not boot_up:
        f.flowers(pen, hand[0] - 34, hand[1] - 44)
        f.boot(pen, hand[0] - 30, hand[1] + 26)


def boot_as_vase(pen: Pen, t: float, who: str) -> None:
    wood(pen, "#6d4c41", 400)
    pen.rectangle((0, 0, WIDTH, 400), fill=NOON)
    pen.rectangle((420, 0, 440, 400), fill="#6d4c41")
    f.flowers(pen, 405, 230, 2.6)
    f.boot(pen, 420, 450, 3.2)
    x = 640 + 200 * ease(t, 0.7, 1)
    pen.polygon([(x - 60, 60), (x + 90, 60), (x + 70, 190), (x - 40, 190)], fill="#90a4ae")
    pen.line((x - 50, 80, x - 130, 110), fill="#90a4ae", width=22)  # a watering can
    if t < 0.7:
        pen.line((x - 130, 112, x - 220, 210), fill="#64b5f6", width=8)


def green_pane(pen: Pen, t: float, who: str) -> None:
    wood(pen)
    done = t > 0.55
    f.lantern(pen, 330, 440, 3.3, GREEN if done else "")
    if not done:
        x = 690 - 350 * ease(t, 0.1, 0.55)
        pane(pen, x, 290, 2.2)
        grip(pen, x + 80, 340, VERA.coat, down=False)
    else:
        glow = 12 * math.sin(20 * t)
        for angle in range(0, 360, 30):
            c, s = math.cos(math.radians(angle)), math.sin(math.radians(angle))
            near, far = 150, 190 + glow
            pen.line((330 + near * c, 280 + near * s, 330 + far * c, 280 + far * s), GREEN, 8)
