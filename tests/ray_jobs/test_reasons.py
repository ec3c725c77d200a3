"""Every reason for leaving a video out names the key that keeps the video."""

import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from omegaconf import DictConfig, OmegaConf

from mustsee.align.place import Description, MatchOptions, align
from mustsee.media.samples import SIZE
from mustsee.recipes.neptune.diversity import REASON
from mustsee.records import Caption, Face, Frame, Line, Video
from mustsee.synth.absence import Absence, NearestMoments
from mustsee.verify.filters import by_stage
from ray_jobs.cli.class_defaults import fill
from ray_jobs.cli.launch import build, compose

VIDEO = Video(video_id="v", uri="v.mp4")
FACE = Face(x=0.1, y=0.1, width=0.2, height=0.5)
FRAMES = tuple(
    Frame(time=n, brightness=0.5, motion=0.0, descriptor=(0.5,) * SIZE) for n in range(9)
)
LEFT_OUT = {  # a video that each filter of conf/filters/video.yaml leaves out
    "metadata": replace(VIDEO, views=1),
    "static": replace(VIDEO, frames=FRAMES),
    "talking_head": replace(
        VIDEO,
        lines=(Line(start=0.0, end=9.0, text="Good evening."),),
        frames=tuple(
            replace(f, faces=(FACE,), descriptor=(n % 2.0,) * SIZE) for n, f in enumerate(FRAMES)
        ),
    ),
}


def keeping(reason: str | None) -> str:
    """The key that a reason names."""
    found = re.search(r"; (?:[^;]* )?([a-z_.]+)(?:=null)?,? keeps it$", reason or "")
    assert found is not None, reason
    return found[1]


@cache
def neptune(*overrides: str) -> Any:
    return compose("neptune", ["videos=x", "out=y", *overrides])


@cache
def cinepile() -> DictConfig:
    return compose("cinepile", ["videos=x", "descriptions=d", "templates=t", "out=y"])


def set_to(config: DictConfig, key: str, default: object = None) -> Any:
    """The value of a key, which the configuration may leave to a class."""
    return OmegaConf.select(
        OmegaConf.create(fill(OmegaConf.to_container(config))), key, default=default
    )


@cache
def filters(*overrides: str) -> Any:
    return build(neptune(*overrides)).filters


def reasons(video: Video, *overrides: str) -> list[str]:
    found = by_stage(filters(*overrides), ("probe", "look", "hear"))
    return [r for filters_ in found.values() for f in filters_ if (r := f(video)) is not None]


@pytest.mark.parametrize("name", sorted(neptune().filters))
def test_the_reason_of_a_filter_names_the_key_that_keeps_the_video(name: str) -> None:
    (reason,) = reasons(LEFT_OUT[name])
    assert keeping(reason) == f"filters.{name}"
    assert reasons(LEFT_OUT[name], f"{keeping(reason)}=null") == []


@pytest.mark.parametrize(("limit", "seconds"), [("min_seconds=5", 1.0), ("max_seconds=20", 60.0)])
def test_the_reason_of_the_length_limit_names_its_key(limit: str, seconds: float) -> None:
    reason = build(neptune(f"probe.{limit}")).probe.unfit(seconds)
    kept = build(neptune(f"probe.{limit}", f"{keeping(reason)}=null"))
    assert kept.probe.unfit(seconds) is None


def test_the_reason_of_the_sampling_names_its_key() -> None:
    assert set_to(neptune(), keeping(REASON), 0) is None  # It is off by default.


@pytest.mark.parametrize(
    ("sighting", "key"),
    [
        (NearestMoments(rule=Absence(), time=1.0, distance=0.01), "apart"),
        (NearestMoments(rule=Absence(), distance=0.5, likeness=0.9, max_likeness=0.75), "alike"),
        (NearestMoments(rule=Absence(), distance=0.5, likeness=0.9, max_likeness=0.5), "called"),
        (NearestMoments(rule=Absence(), mention=Caption(1.0, "a cat")), "called"),
    ],
)
def test_the_reason_of_the_absence_check_names_its_key(sighting: NearestMoments, key: str) -> None:
    assert not sighting.absent
    assert sighting.failed_setting == key
    assert replace(
        sighting, rule=replace(sighting.rule, **{key: None}), max_likeness=None, mention=None
    ).absent
    assert key in compose("mlvu", ["out=y"])


SAID = "the lighthouse keeper counted seven copper lanterns beside the frozen harbour wall"


def said(text: str, at: float = 0.0, seconds: float = 5.0) -> Line:
    return Line(start=at, end=at + seconds, text=text)


def spoken(lines: list[Line], described: list[Line], **options: Any) -> str | None:
    def embed(texts: Any) -> Any:
        return np.ones((len(texts), 4), np.float32)

    duration = options.pop("duration", None)
    return align(
        lines,
        Description(described, embed),
        embed,
        duration=duration,
        options=MatchOptions(**options),
    ).refused


@pytest.mark.parametrize(
    ("refused", "key"),
    [
        (spoken([], [said(SAID)]), "hear"),
        (spoken([said(SAID)], []), "descriptions"),
        (
            spoken([said(SAID)], [said("nothing alike is described here at all")], few=0.0),
            "descriptions",
        ),
        (spoken([said("hello")], [said(SAID)]), "align.options.few"),
        (spoken([said(SAID)], [said(SAID)], threshold=2.0), "align.options.threshold"),
        (
            spoken([said(SAID)], [said(SAID)], duration=0.1, tolerance=0.0),
            "align.options.tolerance",
        ),
        (
            spoken([said(SAID)], [said(SAID), said(SAID, 500.0)], threshold=0.0),
            "align.options.margin",
        ),
    ],
)
def test_the_reason_of_a_refused_alignment_names_its_key(refused: str | None, key: str) -> None:
    config = cinepile()
    named = [k for k in re.findall(r"[a-z_.]+", refused or "") if set_to(config, k)]
    assert (refused or "").endswith("keeps it")
    assert key in named
