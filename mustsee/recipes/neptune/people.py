"""Perceived age and gender of the people in a video (Neptune, C.1), as strata of the diversity
sample. They are a model's impression from a few frames, not facts about anybody. No question asks
about them, and they are off by default.
"""

from __future__ import annotations

import re
from asyncio import to_thread
from dataclasses import dataclass

from mustsee.calls.llm import Asker
from mustsee.calls.request_tally import RequestTally
from mustsee.errors import BadRow, Unparsed
from mustsee.media.frames import crop_jpeg
from mustsee.records import Video
from mustsee.replies.forms import Form, form, one_of, record

PROMPT = "neptune/people"
AGES = ("CHILDREN", "YOUNG", "MIDDLE", "OLD", "MIXED", "NONE", "UNCLEAR")
GENDERS = ("WOMEN", "MEN", "MIXED", "NONE", "UNCLEAR")


@dataclass(frozen=True, kw_only=True)
class PerceivedPeople:
    """One of `AGES` and of `GENDERS`, in small letters."""

    age: str
    gender: str


UNCLEAR = PerceivedPeople(age="unclear", gender="unclear")


async def perceive_people(
    video: Video, asker: Asker, requests: RequestTally, *, frames: int, seed: int = 0
) -> PerceivedPeople:
    """Return the impression from `frames` evenly spread keyframes: "none" without keyframes,
    "unclear" if the reply cannot be parsed, which `requests` counts.
    """
    keyframes = video.keyframes or ()
    if not keyframes:
        return PerceivedPeople(age="none", gender="none")
    count = min(frames, len(keyframes))
    chosen = [keyframes[(2 * n + 1) * len(keyframes) // (2 * count)].jpeg for n in range(count)]
    images = await to_thread(lambda: [crop_jpeg(jpeg) for jpeg in chosen])
    requests.add_sent("impressions of people")
    try:
        return await asker.ask(PROMPT, impression(), images=images, seed=seed, count=count)
    except BadRow as error:
        requests.add_unread("impressions of people", error)
        return UNCLEAR


def impression() -> Form[PerceivedPeople]:
    """Parse `AGE: MIDDLE` and `GENDER: WOMEN`."""

    def make_impression(age: str, gender: str) -> PerceivedPeople:
        return PerceivedPeople(age=age.lower(), gender=gender.lower())

    def parse_impression(reply: str) -> PerceivedPeople:
        parts: list[str] = []
        for name, values in (("AGE", AGES), ("GENDER", GENDERS)):
            line = rf"^[\s>*_#-]*{name}[*_]*\s*[:：][\s*_]*({'|'.join(values)})\b"
            match = re.search(line, reply, re.IGNORECASE | re.MULTILINE)
            if not match:
                raise Unparsed(f"it holds no line '{name}: ...' with one of {', '.join(values)}")
            parts.append(match[1])
        return make_impression(*parts)

    shape = record(
        make_impression,
        age=one_of(AGES, "how old they look"),
        gender=one_of(GENDERS, "how they present"),
    )
    return form(text=parse_impression, shape=shape)
