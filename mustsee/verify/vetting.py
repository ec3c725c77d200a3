"""How filters work on the questions of a video.

A question that one filter drops costs no further call, and with repair switched on it is repaired
before the next filter runs. Without repair, guesses that drop nothing run at once, beside the first
look.
"""

from __future__ import annotations

import math
from asyncio import gather
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from mustsee.errors import UserError
from mustsee.records import Question, Video, is_rules
from mustsee.verify.filters import QuestionFilter, RepairsQuestions, TriesTogether, VettingContext

SPARE = "spare"  # first word of the drop reason of a question that was not wanted
ROUND_SEED_STEP = 100_000  # added to the seed for each round of repair


@dataclass(frozen=True, kw_only=True)
class _Version:
    """One wording of a question and the state of its vetting.

    `failed_filter`: name of the filter that dropped it, or else of the first that it did not pass;
    `failed_by_look`: whether that one looks at the video.
    `left`: the filters that have not run yet.
    """

    question: Question
    vetting: VettingContext
    failed_filter: str | None = None
    failed_by_look: bool = False
    left: tuple[QuestionFilter, ...] = ()

    @property
    def passed_all_filters(self) -> bool:
        """Whether it passed every filter that has run."""
        return self.failed_filter is None and not self.question.unverified_by

    def add_result(self, filter_: QuestionFilter, question: Question) -> _Version:
        """Return the version after a filter returned the question."""
        passed = question.filter_results.get(filter_.name, True)
        marked = not passed and self.failed_filter is None
        failed, looks = self.failed_filter, self.failed_by_look
        if marked or question.drop is not None:
            failed, looks = filter_.name, "verifier" in filter_.roles
        left = tuple(f for f in self.left if f.name != filter_.name)
        return replace(
            self, question=question, failed_filter=failed, failed_by_look=looks, left=left
        )


def ordered_filters(
    filters: Mapping[str, QuestionFilter | None], order: Sequence[str] = ()
) -> tuple[QuestionFilter, ...]:
    """Return the filters that are not null: those that `order` names first, then the others as they
    are listed. Raises UserError for a key that is not its filter's name, and for an unknown name in
    `order`.
    """
    for key, each in filters.items():
        if each is not None and each.name != key:
            raise UserError(f"vet.filters.{key}: the filter's name is {each.name!r}; use one name")
    if unknown := [name for name in order if name not in filters]:
        raise UserError(f"vet.order={unknown!r}: expected names of {', '.join(filters)}")
    names = dict.fromkeys((*order, *filters))
    return tuple(each for name in names if (each := filters[name]) is not None)


async def vet(
    video: Video,
    filters: Sequence[QuestionFilter],
    vetting: VettingContext,
    subset: str | None = None,
    repair: RepairsQuestions | None = None,
    spare: float = 1.0,
) -> Video:
    """Run the filters on the video's questions; return the video with their verdicts.

    A question that passes every filter joins `subset`. A question that does not pass one is
    repaired before the next filter runs, and its new wording goes through all filters. If no
    version passes every filter, the one is kept that did best in them, so that a repair replaces a
    question only if it helps (`metrics.version_kept`, of `metrics.rewrites` + 1 versions).

    `spare`: a model wrote so many times as many questions as are wanted. Then the filters that
    come before the first one that looks at the video for each question try all of them, and the
    others try only as many as are wanted: first those that passed. The rest is dropped (`SPARE`).

    Questions with points have sat their exams where they were written: no filter tries them, and
    those that are kept join `subset`. So do those that ask when something is seen: looks have
    proved their answer, and nothing in them names a time.
    """
    run = _Run(video=video, filters=tuple(filters), vetting=vetting, repair=repair)
    questions = list(video.questions or ())
    due = [
        i
        for i, q in enumerate(questions)
        if q.drop is None
        and not q.points
        and not q.asks_when
        and (q.answer_index is not None or not (q.options or not q.answer))
    ]
    if any((p := questions[i].provenance) is None or is_rules(p.llm) for i in due):
        spare = 1.0
    guesses = takewhile(
        lambda f: "verifier" not in f.roles or isinstance(f, TriesTogether), filters
    )
    guess_count = len(tuple(guesses))
    first = filters[:guess_count]
    if repair is None and spare <= 1:  # No guess can spare the first look a question.
        first = filters[: guess_count + 1]
    new = [_Version(question=questions[i], vetting=vetting, left=run.filters) for i in due]
    tried = dict(zip(due, await run.try_together(new, first), strict=True))
    places = [n for n, each in enumerate(filters, 1) if isinstance(each, TriesTogether)]
    last_together = max(places, default=0)
    queue = sorted(due, key=lambda i: tried[i].failed_filter is not None)
    missing = math.ceil(len(due) / spare)
    while queue and missing > 0:
        unguessed = [i for i in queue if tried[i].failed_filter is None] or queue
        batch = unguessed[:missing] if missing < len(queue) else queue
        queue = [i for i in queue if i not in batch]
        ready = await run.try_together([tried[i] for i in batch], filters[:last_together])
        finished = await gather(*map(run.finish, ready))
        for i, best in zip(batch, finished, strict=True):
            questions[i] = best.question
            if best.passed_all_filters:
                missing -= 1
                if subset is not None and best.question.options:
                    subsets = (*best.question.subsets, subset)
                    questions[i] = replace(best.question, subsets=subsets)
    for i in queue:
        reason = "enough others passed"
        if tried[i].failed_filter is not None:
            reason = f"it did not pass {tried[i].failed_filter}, and {reason}"
        questions[i] = replace(
            tried[i].question, drop=tried[i].question.drop or f"{SPARE}: {reason}"
        )
    if subset is not None:
        questions = [
            replace(q, subsets=(*q.subsets, subset))
            if (q.points or q.asks_when) and q.drop is None and subset not in q.subsets
            else q
            for q in questions
        ]
    return replace(video, questions=tuple(questions))


@dataclass(frozen=True, kw_only=True)
class _Run:
    """The vetting of one video's questions."""

    video: Video
    filters: tuple[QuestionFilter, ...]
    vetting: VettingContext
    repair: RepairsQuestions | None

    async def try_together(
        self, versions: Sequence[_Version], filters: Sequence[QuestionFilter]
    ) -> list[_Version]:
        """Return the versions after these filters, as far as they have not run, or after the first
        of them that they do not pass, if they can be repaired. Without repair, filters run at once
        that cannot spare each other calls.
        """
        tried = list(versions)
        groups = [[each] for each in filters] if self.repair else _groups_at_once(filters)
        for group in groups:
            before = list(tried)
            due = [
                [
                    n for n, v in enumerate(before) if each in v.left
                    and v.question.drop is None and (v.failed_filter is None or self.repair is None)
                ] for each in group
            ]  # fmt: skip
            results = await gather(
                *(
                    self._try_all(f, [before[n].question for n in ns])
                    for f, ns in zip(group, due, strict=True)
                )
            )
            for each, places, done in zip(group, due, results, strict=True):
                for n, after in zip(places, done, strict=True):
                    question = _add_verdicts(tried[n].question, before[n].question, after)
                    tried[n] = tried[n].add_result(each, question)
        return tried

    async def _try_all(
        self, each: QuestionFilter, questions: Sequence[Question]
    ) -> Sequence[Question]:
        if isinstance(each, TriesTogether):
            return await each.try_all(questions, self.video, self.vetting)
        return await gather(*(each(q, self.video, self.vetting) for q in questions))

    async def finish(self, version: _Version) -> _Version:
        """Return the best of a question and its rewrites, after all filters. What guesses found and
        what looks found is rewritten `rounds` times each.
        """
        question, number = version.question, 0
        rounds = self.repair.rounds if self.repair and question.options else 0
        left = {False: rounds, True: rounds}  # whether looks found it -> rewrites
        versions = [await _run_filters(version, self.video, to_the_end=not rounds)]
        while self.repair is not None and versions[-1].failed_filter is not None:
            latest = versions[-1]
            if not left[latest.failed_by_look] and not latest.failed_by_look:
                place = _most_promising(versions)
                latest = await _run_filters(versions[place], self.video, to_the_end=True)
                versions[place] = latest
            if not left[latest.failed_by_look]:
                break
            left[latest.failed_by_look] -= 1
            number += 1
            again = replace(self.vetting, seed=self.vetting.seed + ROUND_SEED_STEP * number)
            failed = latest.failed_filter or ""
            repaired = await self.repair(latest.question, self.video, again, failed)
            if repaired is None:
                left[latest.failed_by_look] = 0
                continue
            new = replace(repaired, subsets=question.subsets)
            rewritten = _Version(question=new, vetting=again, left=self.filters)
            versions.append(await _run_filters(rewritten, self.video, to_the_end=False))
        best = await _best(versions, self.video)
        if len(versions) == 1:
            return best
        metrics = {**best.question.metrics, "rewrites": float(len(versions) - 1)}
        return replace(best, question=replace(best.question, metrics=metrics))


def _groups_at_once(filters: Sequence[QuestionFilter]) -> list[list[QuestionFilter]]:
    """Return the filters, in their order, in groups that can try the same questions at once: none
    but the last of a group may drop a question.
    """
    groups: list[list[QuestionFilter]] = [[]]
    for each in filters:
        groups[-1].append(each)
        if not isinstance(each, TriesTogether) or each.drops:
            groups.append([])
    return [group for group in groups if group]


def _add_verdicts(question: Question, before: Question, after: Question) -> Question:
    """Return what a filter made of a question (`before`, `after`), with the verdicts of others that
    tried it at the same time (`question`). Guesses add verdicts only; a look corrects the evidence.
    """
    new = {name: n for name, n in after.metrics.items() if before.metrics.get(name) != n}
    return replace(
        after,
        verdicts=(*question.verdicts, *after.verdicts[len(before.verdicts) :]),
        metrics={**question.metrics, **new},
        faults={**question.faults, **after.faults},
        drop=question.drop or after.drop,
    )


async def _best(versions: Sequence[_Version], video: Video) -> _Version:
    """Return the version that is kept, after all its filters, with its number in
    `metrics["version_kept"]`, from 1, if there are several.

    It is the last one if that passed every filter. Otherwise it is, of the versions that no filter
    drops, the one that passes most filters, then the one with the fewest right guesses, then the
    earliest. An unverified rewrite replaces no other version. The remaining filters do not run on a
    version that cannot become the best. If every version is dropped, it is the last of them.
    """
    best, kept, rank = versions[-1], len(versions), (-1, 0.0)
    if not best.passed_all_filters:
        best, kept = versions[0], 1
        for number, version in enumerate(versions, 1):
            passed, guessed = _filter_score(version.question)
            if (passed + len(version.left), -guessed) <= rank:
                continue
            whole = await _run_filters(version, video, to_the_end=True)
            passed, guessed = _filter_score(whole.question)
            if whole.question.drop is not None:
                if rank[0] < 0:
                    best, kept = whole, number
            elif (number == 1 or not whole.question.unverified_by) and (passed, -guessed) > rank:
                best, kept, rank = whole, number, (passed, -guessed)
    if len(versions) == 1:
        return best
    metrics = {**best.question.metrics, "version_kept": float(kept)}
    return replace(best, question=replace(best.question, metrics=metrics))


def _most_promising(versions: Sequence[_Version]) -> int:
    """Return the index of the version that may still pass most filters, by the rules of `_best`."""

    def promise(place: int) -> tuple[bool, int, float, int]:
        version = versions[place]
        passed, guessed = _filter_score(version.question)
        return version.question.drop is None, passed + len(version.left), -guessed, -place

    return max(range(len(versions)), key=promise)


def _filter_score(question: Question) -> tuple[int, float]:
    """Return how many filters a question has passed, and how many right guesses there were."""
    return sum(question.filter_results.values()), question.right_guesses


async def _run_filters(version: _Version, video: Video, *, to_the_end: bool) -> _Version:
    """Run the remaining filters on a version until one drops it or, unless `to_the_end`, until it
    does not pass one.
    """
    while version.left and version.question.drop is None:
        if version.failed_filter is not None and not to_the_end:
            break
        each = version.left[0]
        version = version.add_result(each, await each(version.question, video, version.vetting))
    return version
