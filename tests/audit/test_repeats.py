"""Repeated questions and videos are found, and merely similar ones are not."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mustsee.audit import repeats
from mustsee.audit.repeats import fingerprint
from mustsee.records import OPEN, Question, Video, passed_metric
from tests.support import sample_videos

BASE = Question(
    question_id="a", video_id="v", recipe="hand", question_type="",
    question="Why does the woman in the red coat leave the kitchen before the guests arrive?",
    options=("To buy more bread", "To call her son", "To change her shoes", "To feed the dog"),
    answer_index=0, answer="To buy more bread",
)  # fmt: skip


def alike(question: str, options: Sequence[str] = BASE.options, *, video: str = "w") -> Question:
    return replace(BASE, question_id="b", video_id=video, question=question, options=tuple(options))


SAME = BASE.question.lower().replace("?", " ?")
TYPO = BASE.question.replace("leave the kitchen", "leave kitchen")


@pytest.mark.parametrize(
    ("other", "needed"),
    [
        (alike("For what reason does she go out before the guests come?"), True),
        (alike("What does she build before it rains?", ("x", "y", "z"), video="v"), True),
        (alike("What does she build before it rains?", ("x", "y", "z")), False),
        (alike("For what reason does she go out after the guests come?"), False),
    ],
)
def test_vectors_are_needed_where_questions_share_options_or_a_video(
    other: Question, needed: bool
) -> None:
    assert repeats.needs_vectors([BASE, other]) == needed


@pytest.mark.parametrize(
    ("other", "how"),
    [
        (alike(SAME), "exact"),
        (alike(TYPO), "near"),
        (alike(TYPO, video="v"), "near"),
        (alike(BASE.question, ("To buy more bread", "x", "y", "z"), video="v"), "exact"),
        (alike(BASE.question, ("To buy more bread", "x", "y", "z")), None),  # another video
        (alike(BASE.question.replace("before", "after")), None),
        (alike("What does the man in the garden build?"), None),
        (replace(alike(TYPO), answer="To call her son", answer_index=1), None),
    ],
)
def test_repeats_within_a_dataset_are_found(other: Question, how: str | None) -> None:
    found = repeats.repeats_within([BASE, other])
    assert [p.how for p in found] == ([how] if how else [])
    for pair in found:
        assert (pair.question, pair.other) == ("b", "a")
        assert pair.video == (other.video_id == "v")


def test_a_paraphrase_is_found_by_embedding() -> None:
    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        """Questions on leaving are one, on building another; so are the answers."""
        named = [[("leav" in t or "go out" in t), "build" in t, "bread" in t] for t in texts]
        return np.array(named, dtype=np.float32) + 0.01

    other = alike("For what reason does she go out before the guests come?")
    assert [p.how for p in repeats.repeats_within([BASE, other], embed)] == ["embedding"]
    assert repeats.repeats_within([BASE, alike("What does he build?")], embed) == []
    (pair,) = repeats.overlap([other], [BASE], "bench", embed)
    assert (pair.question, pair.other, pair.how, pair.dataset) == ("b", "a", "embedding", "bench")


def test_of_two_alike_the_one_that_passed_stays_and_an_open_form_goes_with_its_question() -> None:
    weak = replace(BASE, metrics={passed_metric("blind"): 0.0})
    good = alike(SAME)
    opened = replace(weak, question_id="open", options=(), answer_index=None, relation=OPEN,
                     sibling_of="a")  # fmt: skip
    gone = replace(BASE, question_id="gone", drop="sight: none")
    asked = [gone, weak, opened, good]
    pairs = repeats.repeats_among_kept(asked, None, alike=0.95)
    assert [(p.question, p.other) for p in pairs] == [("a", "b")]
    left = repeats.drop_repeats(asked, pairs)
    reason = "duplicate: repeats b (exact, 1.00)"
    assert [q.drop for q in left] == ["sight: none", reason, reason, None]
    assert (left[0], left[3]) == (gone, good)
    assert repeats.repeats_among_kept(left, None, alike=0.95) == []
    assert repeats.repeats_among_kept([weak, opened], None, alike=0.95) == []


def test_each_question_is_paired_with_the_most_similar_of_a_benchmark() -> None:
    others = [replace(BASE, question_id=f"o{n}", video_id=f"x{n}") for n in range(3)]
    found = repeats.overlap([BASE, alike(TYPO), alike("What is built?")], others, "bench")
    assert [(p.question, p.how) for p in found] == [("a", "exact"), ("b", "near")]


def test_a_shared_video_is_found_by_id_digest_and_frames(tmp_path: Path) -> None:
    images = sample_videos.cuts([30, 40, 30])
    one = sample_videos.write(tmp_path / "one.mp4", images)
    small = sample_videos.write(tmp_path / "two.mp4", [i[::2, ::2] for i in images])
    other = sample_videos.write(tmp_path / "three.mp4", sample_videos.cuts([30, 40, 30])[::-1])
    seen = {
        str(p): found for p in (one, small, other) if (found := fingerprint(str(p))) is not None
    }
    assert len(seen) == 3
    mine = [
        Video(video_id="id", uri=""),
        Video(video_id="digest", uri="", digest="d"),
        Video(video_id="looks", uri=str(one)),
        Video(video_id="none", uri=str(other)),
    ]
    theirs = [
        Video(video_id="id", uri=""),
        Video(video_id="x", uri="", digest="d"),
        Video(video_id="y", uri=str(small)),
    ]
    found = repeats.shared_videos(mine, theirs, "bench", seen)
    assert [(f.video, f.other, f.how) for f in found] == [
        ("id", "id", "id"), ("digest", "x", "digest"), ("looks", "y", "looks"),
    ]  # fmt: skip
    (tmp_path / "broken.mp4").write_bytes(b"no video")
    assert fingerprint(str(tmp_path / "broken.mp4")) is None


def test_many_equal_questions_are_each_paired_with_the_first() -> None:
    many = [replace(BASE, question_id=f"q{n:04}", video_id=f"v{n}") for n in range(1500)]
    found = repeats.repeats_within(many, lambda texts: np.ones((len(texts), 4), np.float32))
    assert [(p.question, p.other, p.how) for p in found] == [
        (f"q{n:04}", "q0000", "exact") for n in range(1, 1500)
    ]


def test_a_question_is_compared_with_those_that_repeat_no_other() -> None:
    """The third shares its options with the second only, which repeats the first."""
    options = ("To buy more bread", "p", "q", "r", "s")
    first = replace(BASE, options=options)
    second = replace(first, question_id="b", video_id="w", options=(*options[:3], "t"))
    third = replace(second, question_id="c", video_id="x", options=(options[0], "q", "t", "u"))
    assert [(p.question, p.other) for p in repeats.repeats_within([first, second, third])] == [
        ("b", "a")
    ]
    assert [(p.question, p.other) for p in repeats.repeats_within([second, third])] == [("c", "b")]
