"""Which open questions are wanted: skills with shares or numbers, and how much video they need.

skills = read_mix({"cause": 2, "who knows what": 1}, SHARE)
allot(12, skills)                         # {"cause": 8, "who knows what": 4}
spread_over(["a", "b"], read_mix({"cause": 5}, ALL))   # {"a": {"cause": 3}, "b": {"cause": 2}}
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mustsee.errors import UserError

SKILLS = (
    "cause", "goal", "change", "comparison", "entity", "dialogue", "plan", "summary", "knowledge",
    "space",
)  # fmt: skip
SHARE, EACH, ALL = "share", "video", "all"  # what the numbers of a mix say
WHOLE = "whole"  # a level of reach: from one end of the video to the other
WHOLE_SHARE = 0.75  # share of a video between the first and the last moment of such a question


@dataclass(frozen=True, kw_only=True)
class Skill:
    """A skill that open questions ask for. `share`: or number of questions. `definition`: in the
    user's words; empty for one of `SKILLS`, which the prompt defines.
    """

    name: str
    share: float
    definition: str = ""


@dataclass(frozen=True, kw_only=True)
class Level:
    """A share of the questions that must reach so far. `seconds`: of video that one must see, in
    sum; None: from one end of the video to the other.
    """

    seconds: float | None
    share: float

    @property
    def wanted_reach(self) -> str:
        """What is wanted, in words."""
        if self.seconds is None:
            return "open questions that reach over the whole video"
        return f"open questions that need {self.seconds:g} s of video in sum"

    def holds(self, metrics: Mapping[str, float], duration: float) -> bool:
        """Whether a question reaches so far. `metrics`: of the question; `duration`: of the
        video, seconds.
        """
        if self.seconds is None:
            return metrics.get("apart_seconds", 0.0) >= WHOLE_SHARE * duration
        return metrics.get("reach_seconds", 0.0) >= self.seconds


def read_mix(mix: Mapping[str, Any] | None, counts: str = SHARE) -> tuple[Skill, ...]:
    """Return the skills of a mix: NAME: SHARE, or NAME: {share: SHARE, definition: WORDS}. The name
    of a skill of your own is its definition where there is none. Without a mix all `SKILLS` have
    the same share. `counts`: what the numbers say: `SHARE`, questions of `EACH` video, or of `ALL`.
    Raises UserError for anything else.
    """
    if counts not in (SHARE, EACH, ALL):
        raise UserError(f"ask.settings.mix_counts={counts!r}: expected {SHARE}, {EACH} or {ALL}")
    if mix is None and counts != SHARE:
        raise UserError(f"ask.settings.mix_counts={counts}: set ask.settings.mix to the numbers")
    if mix is None:
        return tuple(Skill(name=name, share=1.0) for name in SKILLS)
    skills = [_read_skill(name, given) for name, given in mix.items() if given is not None]
    wanted = tuple(skill for skill in skills if skill.share > 0)
    if not wanted:
        raise UserError(f"ask.settings.mix={dict(mix)!r}: no skill has a share above 0")
    if counts != SHARE and (parts := [s for s in wanted if not s.share.is_integer()]):
        raise UserError(
            f"ask.settings.mix.{parts[0].name}={parts[0].share!r}: with mix_counts={counts} these "
            "are whole numbers of questions"
        )
    return wanted


def _read_skill(name: str, given: Any) -> Skill:
    fields = dict(given) if isinstance(given, Mapping) else {"share": given}
    share, definition = fields.pop("share", None), fields.pop("definition", "")
    is_number = isinstance(share, int | float) and not isinstance(share, bool)
    is_sound = is_number and math.isfinite(share) and share >= 0
    if fields or not is_sound or not isinstance(definition, str) or not name.strip():
        raise UserError(
            f"ask.settings.mix.{name}={given!r}: expected a share such as 2, or "
            "{share: 2, definition: WORDS}"
        )
    own = definition.strip() or ("" if name in SKILLS else name)
    return Skill(name=name, share=float(share), definition=own)


def read_levels(reach: Mapping[Any, Any] | None) -> tuple[Level, ...]:
    """Return the levels of reach, the farthest first: SECONDS: SHARE, or `WHOLE`: SHARE. Raises
    UserError for anything else.
    """
    return tuple(
        sorted(
            (_read_level(name, share) for name, share in (reach or {}).items() if share),
            key=lambda level: (level.seconds is not None, -(level.seconds or 0.0)),
        )
    )


def _read_level(name: Any, share: Any) -> Level:
    try:
        seconds = None if name == WHOLE else float(name)
    except (TypeError, ValueError):
        seconds = math.nan
    is_share = isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1
    if not is_share or (seconds is not None and not 0 < seconds < math.inf):
        raise UserError(
            f"ask.settings.reach.{name}={share!r}: expected SECONDS: SHARE, such as 60: 0.25, or "
            f"{WHOLE}: SHARE, with shares from 0 to 1"
        )
    return Level(seconds=seconds, share=float(share))


def allot(count: int, skills: Sequence[Skill]) -> dict[str, int]:
    """Return how many of `count` questions each skill gets by its share, the largest remainders
    first.
    """
    total = sum(skill.share for skill in skills)
    exact = {skill.name: count * skill.share / total for skill in skills}
    wanted = {name: int(number) for name, number in exact.items()}
    rest = sorted(exact, key=lambda name: wanted[name] - exact[name])
    for name in rest[: count - sum(wanted.values())]:
        wanted[name] += 1
    return wanted


def spread_over(names: Sequence[str], skills: Sequence[Skill]) -> dict[str, dict[str, int]]:
    """Return how many questions of each skill each video gets, so that they are as many in all as
    the skills say, and no video has two more than another. `names`: of the videos.
    """
    wanted: dict[str, dict[str, int]] = {name: {} for name in names}
    first = 0  # the next video that gets one more
    for skill in skills:
        each, rest = divmod(int(skill.share), len(names))
        more = {names[(first + n) % len(names)] for n in range(rest)}
        first += rest
        for name in names:
            wanted[name][skill.name] = each + (name in more)
    return wanted
