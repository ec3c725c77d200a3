"""Video filters: dropped videos and their reasons."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.errors import UserError
from mustsee.files import schemas
from mustsee.media.frames import Thumbnail
from mustsee.media.samples import SIZE, clusters, describe, motion
from mustsee.questions.decision import Decision
from mustsee.recipes.neptune.video_filters import (
    FilterFit,
    MetadataFilter,
    Static,
    TalkingHead,
    fit_filters,
    read_labels,
)
from mustsee.records import Face, Frame, Line, Video

VIDEO = Video(video_id="v", uri="v.mp4")
RULES = MetadataFilter(today="2026-06-30")


def thumbnail(luma: np.ndarray) -> Thumbnail:
    height, width = luma.shape
    grey = np.full((height // 2, width), 128, np.uint8)
    return Thumbnail(np.vstack([luma, grey]))


def frame(level: float, faces: tuple[Face, ...] | None = None, time: float = 0.0) -> Frame:
    return Frame(time=time, brightness=level, motion=0.0, descriptor=(level,) * SIZE, faces=faces)


def face(height: float) -> Face:
    return Face(x=0.1, y=0.1, width=0.2, height=height)


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        ({}, None),
        ({"views": 99}, "views"),
        ({"views": 100}, None),
        ({"published": "2026-04-02"}, "published"),
        ({"published": "2026-04-01"}, None),
        ({"published": "2026-06-29T12:00:00Z"}, "published"),
        ({"published": "last week"}, "last week"),
        ({"tags": ("cooking", " Mature ")}, "unsafe tag"),
        ({"tags": ("maturely",)}, None),
        ({"views": 5000, "published": "2020-02-29", "tags": ("diy",)}, None),
    ],
)
def test_metadata_rules_ignore_missing_columns(
    known: dict[str, object], reason: str | None
) -> None:
    result = RULES(dataclasses.replace(VIDEO, **known))
    assert result is None if reason is None else reason in str(result)


def test_metadata_rules_can_be_turned_off() -> None:
    young = dataclasses.replace(VIDEO, views=1, published="2026-06-29", tags=("racy",))
    assert MetadataFilter(min_views=None, unsafe_tags=())(young) is None  # without `today`, no age
    assert (
        MetadataFilter(min_views=None, min_days=None, today="2026-06-30", unsafe_tags=())(young)
        is None
    )
    with pytest.raises(UserError, match="tomorrow"):
        MetadataFilter(today="tomorrow")


@given(
    levels=st.lists(st.sampled_from([0.1, 0.5, 0.9]), min_size=1, max_size=60),
    share=st.floats(0.5, 1.0),
)
def test_a_static_video_is_one_cluster_except_for_a_fade(levels: list[float], share: float) -> None:
    video = dataclasses.replace(VIDEO, frames=tuple(frame(level) for level in levels))
    largest = max(levels.count(level) for level in set(levels))
    dropped = Static(share=share)(video) is not None
    assert dropped == (largest >= share * len(levels))
    strict = Static(share=1.0)(video) is not None
    assert strict == (len(set(levels)) == 1)


@given(levels=st.lists(st.floats(0, 1), max_size=30), gap=st.floats(0.01, 0.5))
def test_similar_frames_are_one_cluster(levels: list[float], gap: float) -> None:
    frames = [frame(level) for level in levels]
    labels = clusters(frames, gap)
    assert len(labels) == len(levels)
    leaders = [levels[int(np.argmax(labels == n))] for n in range(len(set(labels.tolist())))]
    for level, label in zip(levels, labels, strict=True):
        assert abs(level - leaders[label]) < gap + 1e-6
    assert all(abs(a - b) >= gap - 1e-6 for i, a in enumerate(leaders) for b in leaders[i + 1 :])


@pytest.mark.parametrize(("heads", "dropped"), [(0, False), (3, False), (4, True), (10, True)])
def test_talking_head_counts_frames_with_a_high_face(heads: int, dropped: bool) -> None:
    high, low = (face(0.1), face(0.25)), (face(0.2),)
    frames = tuple(frame(0.5, high if n < heads else low) for n in range(10))
    said = (Line(start=0.0, end=99.0, text="Good evening."),)
    video = dataclasses.replace(VIDEO, frames=frames, lines=said)
    assert (TalkingHead()(video) is not None) == dropped


@pytest.mark.parametrize(
    ("spoken", "frontal", "dropped"),
    [(8, True, True), (8, False, False), (3, True, False), (0, True, False)],
)
def test_a_talking_head_talks_and_looks_at_the_camera(
    spoken: int, frontal: bool, dropped: bool
) -> None:
    """A concert and a silent worker have large faces, too."""
    faces = (dataclasses.replace(face(0.5), frontal=frontal),)
    frames = tuple(dataclasses.replace(frame(0.5, faces), time=n + 0.5) for n in range(10))
    said = (Line(start=0.0, end=float(spoken), text="Good evening."),)
    video = dataclasses.replace(VIDEO, frames=frames, lines=said)
    assert (TalkingHead()(video) is not None) == dropped


def test_a_face_counts_in_silence_if_the_filter_does_not_ask_for_speech() -> None:
    frames = tuple(frame(0.5, (face(0.5 if n < 4 else 0.1),), n + 0.5) for n in range(10))
    silent = dataclasses.replace(VIDEO, frames=frames)
    assert TalkingHead()(silent) is None
    assert TalkingHead()(dataclasses.replace(silent, lines=())) is None
    assert TalkingHead(speaking=False)(silent) == "talking head: 4 of 10 frames"
    assert (TalkingHead().measure(silent), TalkingHead(speaking=False).measure(silent)) == (
        None,
        0.4,
    )


def test_the_share_of_a_filter_is_fitted_to_labelled_videos() -> None:
    """Heads in 2, 4, 6 and 8 of 10 frames; those with 6 and 8 are labelled."""
    filters = {"talking_head": TalkingHead(speaking=False), "static": Static(), "none": None}
    videos = [
        dataclasses.replace(
            VIDEO,
            video_id=str(heads),
            frames=tuple(frame(0.5, (face(0.5 if n < heads else 0.1),)) for n in range(10)),
        )
        for heads in (2, 4, 6, 8)
    ]
    unseen = dataclasses.replace(VIDEO, video_id="unseen")
    table = pa.table(
        {
            "video_id": ["2", "4", "6", "8", "unseen", "unlabelled"],
            "talking_head": ["false", "no", "TRUE", "1.0", "true", None],
            "none": ["x"] * 6,
        }
    )
    labels = read_labels(table, filters)
    assert set(labels) == {"talking_head"}
    fit = FilterFit(filters=filters, labels=labels)
    unlabelled = dataclasses.replace(videos[0], video_id="unlabelled")
    assert fit(schemas.table([*videos, unseen, unlabelled], Video)) == Decision()
    fitted = fit.fitted["talking_head"]
    assert fitted == {
        "labelled": 5, "measured": 4, "share": 0.3, "f1": pytest.approx(0.8), "best_f1": 1.0,
        "best_share": pytest.approx(0.5), "range": [0.4, 0.6],
    }  # fmt: skip
    with pytest.raises(UserError, match=r"talking_head='perhaps'"):
        read_labels(pa.table({"video_id": ["v"], "talking_head": ["perhaps"]}), filters)


def test_the_published_static_filter_drops_what_it_is_measured_by() -> None:
    still = dataclasses.replace(VIDEO, frames=tuple(frame(0.5) for _ in range(4)))
    moving = dataclasses.replace(VIDEO, video_id="w", frames=(frame(0.1), frame(0.9)))
    filters, labels = {"static": Static(share=1.0)}, {"static": {"v": True, "w": False}}
    fitted = fit_filters(filters, labels, [still, moving])["static"]
    assert (fitted["f1"], fitted["best_f1"]) == (1.0, 1.0)
    one_kind = fit_filters(filters, {"static": {"v": True}}, [still])["static"]
    assert one_kind == {"labelled": 1, "measured": 1, "share": 1.0}


def test_videos_without_measurements_are_kept() -> None:
    assert Static()(VIDEO) is None
    assert TalkingHead()(VIDEO) is None
    unsearched = dataclasses.replace(VIDEO, frames=(frame(0.5), frame(0.5)))
    assert TalkingHead()(unsearched) is None


def test_descriptors_show_where_a_frame_is_bright() -> None:
    luma = np.full((36, 64), 16, np.uint8)
    luma[:18, 32:] = 235  # top right
    descriptor = np.array(describe(thumbnail(luma)))
    assert descriptor.shape == (SIZE,)
    grid = descriptor[:64].reshape(8, 8)
    assert grid[:4, 4:].min() == 1.0
    assert grid[:4, :4].max() == grid[5:].max() == 0.0
    assert np.abs(descriptor[64:] - 0.5).max() < 0.01
    turned = np.array(describe(thumbnail(luma), 90))[:64].reshape(8, 8)  # to the left: top left
    assert turned[:3, :4].min() == 1.0
    assert turned[:, 5:].max() == 0.0
    assert motion(None, thumbnail(luma)) == 0.0
    assert motion(thumbnail(luma), thumbnail(luma)) == 0.0
    assert motion(thumbnail(np.full_like(luma, 16)), thumbnail(luma)) == pytest.approx(0.25)
