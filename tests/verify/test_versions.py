"""The version of a repaired question that is kept: the one that did best in the filters."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from mustsee.records import Question, Video, guessed_metric
from mustsee.verify.conditions.video_frames import VideoFrames
from mustsee.verify.filters import (
    GUESSED,
    FilterOutcome,
    QuestionFilter,
    VettingContext,
    add_outcome,
    mark_unverified,
)
from mustsee.verify.vetting import _best, _run_filters, _Version, vet

Result = Literal["passed", "failed", "drop", "unverified"]
VIDEO = Video(video_id="v", uri="")
CONTEXT = VettingContext(askers={}, video_frames=VideoFrames(VIDEO))
FIRST = Question(
    question_id="q", video_id="v", recipe="r", question="version 1", question_type="Other",
    options=("a", "b"), answer_index=0, answer="a",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Scripted:
    """A filter with a known result, and number of right guesses, for each version."""

    name: str
    results: Mapping[str, tuple[Result, int]]
    asked: list[str] = field(default_factory=list[str])
    roles: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()

    async def __call__(self, question: Question, video: Video, vetting: VettingContext) -> Question:
        self.asked.append(question.question)
        result, right = self.results[question.question]
        if result == "unverified":
            return mark_unverified(question, self.name)
        outcome = FilterOutcome(
            filter=self.name, passed=result == "passed", fault=GUESSED, reason="no",
            drops=result == "drop", metrics={guessed_metric(self.name): float(right)},
        )  # fmt: skip
        return add_outcome(question, outcome)


def scripted(table: Sequence[Sequence[tuple[Result, int]]]) -> list[Scripted]:
    """Return the filters of a table: a row for each version, a column for each filter."""
    return [
        Scripted(
            name=f"filter{column}",
            results={f"version {n}": row[column] for n, row in enumerate(table, 1)},
        )
        for column in range(len(table[0]))
    ]


async def kept(table: Sequence[Sequence[tuple[Result, int]]]) -> Question:
    filters: Sequence[QuestionFilter] = scripted(table)
    versions = [
        await _run_filters(
            _Version(
                question=replace(FIRST, question=f"version {n}"),
                vetting=CONTEXT,
                left=tuple(filters),
            ),
            VIDEO,
            to_the_end=False,
        )
        for n in range(1, len(table) + 1)
    ]
    return (await _best(versions, VIDEO)).question


results = st.tuples(
    st.sampled_from(["passed", "passed", "failed", "failed", "drop", "unverified"]),
    st.integers(0, 2),
)
tables = st.tuples(st.integers(1, 4), st.integers(1, 3)).flatmap(
    lambda size: st.lists(
        st.lists(results, min_size=size[1], max_size=size[1]), min_size=size[0], max_size=size[0]
    )
)


@given(tables)
def test_the_version_that_did_best_is_kept(table: list[list[tuple[Result, int]]]) -> None:
    def words(row: list[tuple[Result, int]]) -> list[Result]:
        return [result for result, _ in row]

    def score(row: list[tuple[Result, int]]) -> tuple[int, int]:
        right = sum(n for result, n in row if result != "unverified")
        return words(row).count("passed"), -right

    undropped = [
        n
        for n, row in enumerate(table, 1)
        if "drop" not in words(row) and (n == 1 or "unverified" not in words(row))
    ]
    if set(words(table[-1])) == {"passed"}:
        expected = len(table)
    elif undropped:
        expected = max(undropped, key=lambda n: (score(table[n - 1]), -n))
    else:
        dropped = [n for n, row in enumerate(table, 1) if "drop" in words(row)]
        expected = dropped[-1]
    found = asyncio.run(kept(table))
    assert found.question == f"version {expected}"
    assert found.metrics.get("version_kept") == (expected if len(table) > 1 else None)
    assert (found.drop is None) == (expected in undropped)


def test_a_version_that_is_guessed_less_often_is_kept_before_an_earlier_one() -> None:
    sound: tuple[Result, int] = ("passed", 0)
    guessed = asyncio.run(kept([[sound, ("failed", 3)], [sound, ("failed", 2)]]))
    assert guessed.question == "version 2"
    equal = asyncio.run(kept([[sound, ("failed", 2)], [sound, ("failed", 2)]]))
    assert equal.question == "version 1"


def test_no_filter_runs_on_a_version_that_cannot_become_the_best() -> None:
    """The second version fails as the first does, before the costly filter runs."""
    table: list[list[tuple[Result, int]]] = [
        [("failed", 1), ("passed", 0)],
        [("failed", 1), ("passed", 0)],
    ]
    guess, costly = scripted(table)

    @dataclass(frozen=True)
    class Rewrite:
        rounds: int = 1

        async def __call__(
            self, question: Question, video: Video, vetting: VettingContext, failed_filter: str
        ) -> Question:
            return replace(question, question="version 2", metrics={}, verdicts=())

    video = replace(VIDEO, questions=(FIRST,))
    done = asyncio.run(vet(video, (guess, costly), CONTEXT, "mma", Rewrite()))
    (found,) = done.questions or ()
    assert (found.metrics["version_kept"], found.metrics["rewrites"]) == (1, 1)
    assert guess.asked == ["version 1", "version 2"]
    assert costly.asked == ["version 1"]
