"""The second half of the story's shots, from dusk on, and the whole as a list (`story.py`)."""

from __future__ import annotations

import math

import figures as f
from figures import DUSK, FLOOR, NIGHT, NILO, OTTO, ROSA, SHELF, SILL, TOP, VERA, ease
from story import (
    GREEN,
    Row,
    boot_as_vase,
    broken_lantern,
    crab_moves_in,
    green_pane,
    grip,
    harbour,
    just_like_it,
    key_as_pledge,
    key_into_boot,
    key_into_tin,
    letter_on_sill,
    loose_lid,
    mussel_falls,
    nilo_takes_tin,
    otto_brings_lantern,
    room,
    stool,
    talk,
    tidies_up,
    tin_close,
    vase_falls,
    vera_asks,
    vera_finds_it,
    vera_leaves,
    wet_letter,
    wood,
)  # fmt: skip
from things import Pen, disc


def evening_room(pen: Pen, *, tin: bool = True, boot: bool = True, paper: bool = True) -> None:
    room(pen, DUSK, tin=tin, floor_boot=False, sill="boot" if boot else "",
         paper="line" if paper else "")  # fmt: skip


def hammer(pen: Pen, x: float, y: float) -> None:
    pen.line((x, y, x - 50, y - 30), fill="#8d6e63", width=10)
    pen.line((x - 62, y - 12, x - 38, y - 52), fill="#455a64", width=22)


def tin_comes_back(pen: Pen, t: float, who: str) -> None:
    """Draw Vera, who hammers with her back turned, and the boy who puts the tin on the shelf."""
    back = t > 0.62
    evening_room(pen, tin=back)
    f.person(pen, VERA, 390, turn=-1, hand=(330, 250 + 16 * math.sin(40 * t)))
    f.table(pen)
    hammer(pen, 330, 250 + 16 * math.sin(40 * t))
    f.lantern(pen, 340, TOP, 0.85, GREEN)
    stool(pen)
    x = 930 - 200 * ease(t, 0, 0.3) + 200 * ease(t, 0.78, 1)
    up = 92 * (ease(t, 0.28, 0.4) - ease(t, 0.7, 0.8))
    hand = f.between((x - 30, 350), (705, SHELF + 4), ease(t, 0.4, 0.6) - ease(t, 0.65, 0.75))
    f.person(pen, NILO, x, turn=-1 if t < 0.78 else 1, hand=hand if t < 0.75 else None,
             feet=FLOOR - up, speaking=talk(who, "Nilo", t))  # fmt: skip
    if not back:
        f.tin(pen, hand[0] - 10, hand[1] + 6)


def green_light(pen: Pen, t: float, who: str) -> None:
    evening_room(pen)
    f.person(pen, VERA, 390, hand=(480, 290) if t < 0.5 else None, speaking=talk(who, "Vera", t))
    f.table(pen)
    x = 920 - 280 * ease(t, 0, 0.2)
    took = ease(t, 0.3, 0.45)
    hand = f.between((480, 290), (x - 70, 290), took)
    f.person(pen, OTTO, x, turn=-1, hand=hand if t > 0.3 else None,
             speaking=talk(who, "Otto", t))  # fmt: skip
    f.lantern(pen, hand[0], hand[1] + 90, 0.85, GREEN)


def looks_in_tin(pen: Pen, t: float, who: str) -> None:
    evening_room(pen, tin=False)
    f.person(pen, VERA, 400, speaking=talk(who, "Vera", t))
    f.table(pen)
    f.lantern(pen, 560, TOP, 0.85, GREEN)
    hand = f.between((740, 330), (716, SHELF - 62), ease(t, 0.2, 0.5))
    f.person(pen, OTTO, 800, turn=-1, hand=hand, speaking=talk(who, "Otto", t))
    f.tin(pen, 700, SHELF, lid=ease(t, 0.5, 0.75))


def crab_pinches(pen: Pen, t: float, who: str) -> None:
    wood(pen)
    up = ease(t, 0.35, 0.5)
    y = 230 - 150 * up
    shake = 14 * math.sin(60 * t) if t > 0.5 else 0
    if t > 0.3:
        f.crab(pen, 430 + shake, y + 90, 2.4)
    grip(pen, 430 + shake, y, OTTO.coat)
    f.tin(pen, 430, 450, 3.0, lid=-1)
    loose_lid(pen, 680, 440, 3.0)
    if t > 0.3 and up < 0.4:
        f.crab(pen, 430 + shake, y + 60, 2.2)


def nilo_owns_up(pen: Pen, t: float, who: str) -> None:
    evening_room(pen, tin=False)
    f.tin(pen, 700, SHELF)
    f.person(pen, VERA, 270, speaking=talk(who, "Vera", t))
    f.table(pen)
    f.lantern(pen, 340, TOP, 0.85, GREEN)
    x = 920 - 150 * ease(t, 0, 0.2)
    f.person(pen, OTTO, 470, speaking=talk(who, "Otto", t))
    f.person(pen, NILO, x, turn=-1, speaking=talk(who, "Nilo", t),
             hand=(x - 60, 400) if t > 0.35 else None)  # fmt: skip


def under_the_table(pen: Pen, t: float, who: str) -> None:
    """Draw the searched floor, which is bare; then Vera points at the sill."""
    evening_room(pen, tin=False)
    f.tin(pen, 700, SHELF)
    point = ease(t, 0.6, 0.75)
    f.person(pen, VERA, 350, turn=-1, speaking=talk(who, "Vera", t),
             hand=f.between((310, 372), (262, 230), point))  # fmt: skip
    f.table(pen)
    f.lantern(pen, 440, TOP, 0.85, GREEN)
    down = ease(t, 0.05, 0.25) - ease(t, 0.55, 0.7)
    f.person(pen, OTTO, 660, turn=-1, feet=FLOOR + 50 * down, speaking=talk(who, "Otto", t),
             hand=f.between((600, 360), (500, 430), down))  # fmt: skip
    f.person(pen, NILO, 790, turn=-1)


def key_falls_out(pen: Pen, t: float, who: str) -> None:
    wood(pen)
    out = ease(t, 0.05, 0.3)
    f.flowers(pen, 310 + 370 * out, 230 + 60 * out, 2.2)
    if out < 1:
        f.boot(pen, 320, 440, 3.0)
        grip(pen, 320 + 370 * out, 210 + 60 * out, VERA.coat)
        return
    pen.polygon([(150, 60), (330, 150), (300, 230), (120, 140)], fill="#795548")  # tipped over
    pen.polygon([(150, 60), (90, 30), (30, 130), (120, 190)], fill="#795548")
    pen.line((326, 150, 300, 232), fill="#a1887f", width=22)
    pour = ease(t, 0.35, 0.5)
    pen.line((320, 200, 400, 200 + 210 * pour), fill="#64b5f6", width=26)
    disc(pen, 460, 430, 200 * pour, 30 * pour, "#64b5f6")
    fall = ease(t, 0.5, 0.7)
    if t > 0.48:
        f.key(pen, 360 + 140 * fall, 230 + 180 * fall, 2.2)
    grip(pen, 110, 190, VERA.coat, down=False)


def letter_handed_over(pen: Pen, t: float, who: str) -> None:
    room(pen, DUSK, floor_boot=False, sill="", paper="line" if t < 0.2 else "")
    f.table(pen)
    f.lantern(pen, 380, TOP, 0.85, GREEN)
    hand = f.between((450, 150), (520, 270), ease(t, 0.2, 0.4))
    f.person(pen, VERA, 430, hand=hand if t < 0.8 else None, speaking=talk(who, "Vera", t))
    got = ease(t, 0.5, 0.65)
    f.person(pen, OTTO, 640, turn=-1, hand=(560, 290) if t > 0.4 else None, other=(690, 330),
             speaking=talk(who, "Otto", t))  # fmt: skip
    f.key(pen, 690, 336, 0.9)
    if t >= 0.2:
        at = f.between(hand, (556, 284), got)
        f.letter(pen, at[0] + 10, at[1] - 24, 0.9, wet=True)


def unlocks(pen: Pen, t: float, who: str) -> None:
    harbour(pen, NIGHT, t)
    pen.rounded_rectangle((452, 372, 496, 412), 6, fill="#fbc02d", outline="#6d4c00", width=4)
    hand = f.between((600, 330), (520, 392), ease(t, 0.15, 0.5))
    f.lantern(pen, 760, 404, 0.9, GREEN)
    disc(pen, 760, 366, 12, 16, "#eafff2")
    f.person(pen, OTTO, 620, turn=-1, hand=hand, speaking=talk(who, "Otto", t))
    f.key(pen, hand[0] - 14, hand[1], 0.9)


def two_boats(pen: Pen, x: float) -> None:
    """Draw Otto's red boat further off and Rosa's yellow one at `x`."""
    f.ship(pen, 110, 320)
    f.ship(pen, x, 350, "#fdd835", mast=False)


def rosa_arrives(pen: Pen, t: float, who: str) -> None:
    f.quay(pen, NIGHT, t)
    f.post(pen)
    x = -120 + 420 * ease(t, 0, 0.45)
    f.ship(pen, 110, 320)
    f.person(pen, ROSA, x, feet=372, speaking=talk(who, "Rosa", t),
             hand=(x + 80, 330 + 16 * math.sin(30 * t)) if t < 0.45 else (x + 60, 250))  # fmt: skip
    f.ship(pen, x, 350, "#fdd835", mast=False)
    if t < 0.45:
        pen.line((x + 60, 310, x + 120, 430), fill="#8d6e63", width=10)
    f.person(pen, OTTO, 640, turn=-1, hand=(570, 290), speaking=talk(who, "Otto", t))
    f.lantern(pen, 570, 378, 0.9, GREEN)


def own_hand(pen: Pen, t: float, who: str) -> None:
    f.quay(pen, NIGHT, t)
    two_boats(pen, 290)
    f.post(pen)
    f.lantern(pen, 790, 404, 0.9, GREEN)
    give = ease(t, 0.25, 0.45)
    pocket = ease(t, 0.6, 0.75)
    hand = f.between((600, 280), (570, 280), give)
    f.person(pen, ROSA, 500, hand=f.between((555, 285), (520, 350), pocket) if t > 0.2 else None,
             speaking=talk(who, "Rosa", t))  # fmt: skip
    f.person(pen, OTTO, 680, turn=-1, hand=hand if t < 0.6 else None,
             speaking=talk(who, "Otto", t))  # fmt: skip
    if t < 0.74:
        at = f.between(hand, (520, 350), pocket)
        f.letter(pen, at[0], at[1] - 20, 0.9 - 0.3 * pocket, wet=True)


def crab_goes_home(pen: Pen, t: float, who: str) -> None:
    harbour(pen, NIGHT, t, boat=False)
    two_boats(pen, 190)
    f.person(pen, NILO, 560, turn=-1, speaking=talk(who, "Nilo", t), hand=(500, 364))
    x = 500 - 150 * ease(t, 0.3, 0.75)
    y = 388 + 60 * ease(t, 0.5, 0.75)
    if t < 0.75:
        f.crab(pen, x, y, 0.9)
    else:
        for r in (30, 60):
            pen.ellipse((350 - r, 440 - r / 4, 350 + r, 440 + r / 4), outline="#b3e5fc", width=4)
    pen.polygon([(470, 350), (540, 350), (540, 400), (470, 400)], fill="#1e88e5")
    pen.rectangle((496, 350, 510, 400), fill="white")


def lantern_on_post(pen: Pen, t: float, who: str) -> None:
    harbour(pen, NIGHT, t, boat=False)
    two_boats(pen, 260)
    hang = ease(t, 0.1, 0.45)
    hand = f.between((600, 320), (552, 216), hang)
    f.lantern(pen, hand[0] - 6, hand[1] + 110, 0.9, GREEN)
    f.person(pen, OTTO, 640, turn=-1, hand=hand if t < 0.6 else None,
             speaking=talk(who, "Otto", t))  # fmt: skip
    if t > 0.45:
        for angle in range(0, 360, 30):
            c, s = math.cos(math.radians(angle)), math.sin(math.radians(angle))
            pen.line((546 + 60 * c, 286 + 60 * s, 546 + 84 * c, 286 + 84 * s), GREEN, 6)


def sisters(pen: Pen, t: float, who: str) -> None:
    room(pen, NIGHT, floor_boot=False, sill="", cat=0, tin=False)
    near = ease(t, 0.05, 0.35)
    vera, rosa = 400 + 20 * near, 640 - 120 * near
    f.person(pen, VERA, vera, hand=(rosa - 16, 320), speaking=talk(who, "Vera", t))
    f.person(pen, ROSA, rosa, turn=-1, hand=(vera + 20, 330), speaking=talk(who, "Rosa", t))
    f.table(pen)
    f.letter(pen, 380, TOP - 22, 0.85, wet=True)
    f.cat(pen, 80 + 20 * ease(t, 0.3, 0.5), SILL, paw=ease(t, 0.5, 0.6) - ease(t, 0.8, 0.9))
    fall = ease(t, 0.6, 0.72)
    f.boot(pen, 172 + 20 * fall, SILL + (FLOOR - SILL) * fall)
    if fall < 1:
        f.flowers(pen, 168 + 20 * fall, SILL - 70 + (FLOOR - SILL) * fall)


def it_was_you(pen: Pen, t: float, who: str) -> None:
    room(pen, NIGHT, floor_boot=False, sill="", cat=100, tin=False)
    f.boot(pen, 200, FLOOR)
    f.flowers(pen, 290, FLOOR)
    f.table(pen)
    give = ease(t, 0.65, 0.82)
    f.person(pen, ROSA, 800, turn=-1)
    looks = t < 0.45
    hand = (330, 280) if looks else f.between((540, 320), (604, 356), give)
    f.person(pen, NILO, 680, turn=-1, speaking=talk(who, "Nilo", t),
             hand=(630, 366) if t > 0.6 else None)  # fmt: skip
    f.person(pen, VERA, 480, turn=-1 if looks else 1, hand=hand,
             speaking=talk(who, "Vera", t))  # fmt: skip
    f.letter(pen, 380, TOP - 22, 0.85, wet=True)
    if not looks:
        f.tin(pen, hand[0] + 14, hand[1] + 14)


STORY: tuple[Row, ...] = (
    (mussel_falls, 7.0, 4.0, ("Otto: Hey, you silly bird! My lantern!",)),
    (broken_lantern, 4.5, 0.6, ("Otto: Without a light I must not sail tonight.",)),
    (otto_brings_lantern, 8.0, 2.2, ("Otto: Good morning, Vera. Can you mend this today?",
                                "Vera: Yes, Otto. Before it gets dark.")),
    (vera_asks, 8.0, 0.6,
     ("Vera: I want no money. Take this letter to my sister Rosa, on the island.",
                      "Otto: I will put it into her own hand. I promise.")),
    (letter_on_sill, 5.5, 0.6, ("Vera: It stays here until your lantern is done.",)),
    (key_as_pledge, 6.0, 0.6,
     ("Otto: Then take the key of my boat, so you know I will come back.",)),
    (key_into_tin, 6.0, 1.6, ("Vera: Look. It goes into the tin.",)),
    (tin_close, 4.0, 0.6, ()),
    (vera_leaves, 9.0, 1.4, ("Nilo: Aunt Vera, do you have an empty tin?",
                        "Vera: Not now, Nilo. I have to buy glass. Do not touch anything.")),
    (nilo_takes_tin, 8.0, 5.6, ("Nilo: He only needs it tonight.",)),
    (key_into_boot, 5.0, 0.6, ()),
    (vase_falls, 7.0, 0.6, ()),
    (crab_moves_in, 7.0, 2.6,
     ("Nilo: This is your house now. I bring you back before night. I promise.",)),
    (just_like_it, 8.0, 0.6, ("Otto: That is a nice tin. Vera keeps my key in one just like it.",
                         "Nilo: Yes. Just like it.")),
    (vera_finds_it, 7.5, 4.2, ("Vera: Oh no. Nilo! That boy cannot keep still.",)),
    (wet_letter, 5.5, 1.6, ("Vera: Well, at least it is still closed.",)),
    (tidies_up, 9.0, 0.6, ()),
    (boot_as_vase, 4.5, 1.4, ("Vera: That will do.",)),
    (green_pane, 7.0, 3.0, ("Vera: The shop had no other colour left.",)),
    (tin_comes_back, 8.0, 3.2, ("Nilo: Be quiet in there.",)),
    (green_light, 9.0, 1.6, ("Vera: Here, Otto. As good as new.",
                        "Otto: Hm. Nobody sails with such a light. It is the sign of a harbour.")),
    (looks_in_tin, 5.0, 0.6, ("Otto: And now what is mine.",)),
    (crab_pinches, 5.0, 2.4, ("Otto: Ouch! That is not it!",)),
    (nilo_owns_up, 8.0, 1.0,
     ("Otto: Where is it?",
      "Nilo: I needed the tin. It is in the boot, under the table.")),
    (under_the_table, 8.0, 1.6, ("Otto: There is no boot here.", "Vera: No. It has a new job.")),
    (key_falls_out, 6.0, 0.6, ()),
    (letter_handed_over, 7.0, 2.4,
     ("Vera: And this. It had a bath.",
      "Otto: I will keep my word.")),
    (unlocks, 5.0, 1.8, ("Otto: Now we will see.",)),
    (rosa_arrives, 9.0, 3.4,
     ("Rosa: Is this the harbour? I followed the light.",
      "Otto: Then you must be Rosa!")),
    (own_hand, 9.0, 1.6, ("Otto: From your sister. Into your own hand.",
                     "Rosa: I will not read it. She can tell me herself.")),
    (crab_goes_home, 6.5, 2.2, ("Nilo: I know. I am late. I am sorry.",)),
    (lantern_on_post, 6.0, 2.0, ("Otto: You stay here. And so do I.",)),
    (sisters, 6.5, 1.8, ("Vera: You came!",)),
    (it_was_you, 7.5, 0.8, ("Vera: So it was you!", "Vera: I was wrong, Nilo. Keep it.")),
)  # fmt: skip
VOICES = {"Vera": ("slt", 1.0), "Otto": ("rms", 0.9), "Nilo": ("awb", 1.35), "Rosa": ("slt", 1.18)}
