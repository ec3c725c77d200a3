"""Cards that are sent to a server: a large numeral on a coloured ground within a coloured border.

The border repeats the numeral in colours, one for each of its digits, so that the tests' servers
can read a card from its pixels without recognising text.
"""

from __future__ import annotations

import functools
import io
import random
from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

SIZE = (320, 240)  # pixels
BORDER = 24  # pixels
NUMERAL_PIXELS = 130  # height of the numeral
QUALITY = 90  # quality of the JPEG
TWO_DIGITS = range(10, 100)
THREE_DIGITS = range(100, 1000)
MOST_OF_TWO = 64  # numerals of two digits in one request; of more, each has three
Colour = tuple[int, int, int]
# Border colours of the digits 0 to 9.
DIGIT_COLOURS: tuple[Colour, ...] = (
    (0, 0, 0), (255, 255, 255), (220, 30, 30), (30, 160, 50), (40, 70, 220),
    (250, 220, 40), (40, 210, 220), (210, 50, 210), (250, 140, 20), (128, 128, 128),
)  # fmt: skip
GROUNDS: tuple[Colour, ...] = (
    (255, 245, 200), (205, 235, 255), (220, 255, 215), (255, 220, 225), (235, 225, 255),
)  # fmt: skip
INK: Colour = (20, 20, 30)


def draw_numerals(count: int, rng: random.Random) -> tuple[int, ...]:
    """Return `count` different random numbers, of two digits, or of three if there are many. A
    sequence such as 1 to `count` could be told without seeing it.
    """
    return tuple(rng.sample(TWO_DIGITS if count <= MOST_OF_TWO else THREE_DIGITS, count))


@functools.lru_cache(maxsize=2048)
def draw_card(numeral: int) -> bytes:
    """Return the card of a numeral of at most three digits as JPEG."""
    width, height = SIZE
    hundreds, tens, units = (DIGIT_COLOURS[numeral // scale % 10] for scale in (100, 10, 1))
    card = Image.new("RGB", SIZE, hundreds)  # the left border
    draw = ImageDraw.Draw(card)
    draw.rectangle((BORDER, 0, width, height), fill=tens)  # the upper and the lower border
    draw.rectangle((width - BORDER, 0, width, height), fill=units)  # the right border
    inner = (BORDER, BORDER, width - BORDER - 1, height - BORDER - 1)
    draw.rectangle(inner, fill=GROUNDS[numeral % len(GROUNDS)])
    font = ImageFont.load_default(NUMERAL_PIXELS)
    draw.text((width / 2, height / 2), str(numeral), font=font, fill=INK, anchor="mm")
    file = io.BytesIO()
    card.save(file, "JPEG", quality=QUALITY, subsampling=0)
    return file.getvalue()


def read_border(pixels: Sequence[Colour]) -> int:
    """Return the numeral of a card from the colours of its left, upper and right border."""

    def distance(pixel: Colour, other: Colour) -> int:
        return sum((a - b) ** 2 for a, b in zip(pixel, other, strict=True))

    digits = [min(range(10), key=lambda d: distance(p, DIGIT_COLOURS[d])) for p in pixels]
    return int("".join(map(str, digits)))
