"""Compares question-making runs: what each wrote, kept, dropped and cost, which settings differ,
and what became of each question in the other runs.

Two questions of a video are the same if their ids are, else if their words are: in any case,
without articles and punctuation (`mustsee.questions.checks.normal`). Ids depend on the decoys, so
that two models seldom share any.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Any

from mustsee.errors import UserError
from mustsee.questions.checks import normal
from mustsee.records import Question

REACH_S = 30.0  # seconds of video that a question needs, from which its reach counts as long
KEPT, UNWRITTEN, NO_VIDEO = "kept", "not written", "its video is not in this run"
SAME_ID, SAME_WORDS = "id", "words"  # by what questions of several runs were matched
COUNT, SHARE, USD, NUMBER, TEXT = "count", "share", "usd", "number", "text"  # units of figures
POINTS = {
    "points_seen": "share of points that a viewer said",
    "points_blind": "share of points that a blind reader said, each question alone",
    "points_in_view": "share of points that a blind reader said, all questions in view",
}
EXAM = {  # keys of `fact_funnel.total`
    "drafted": "drafts with options",
    "guessed": "guessed without the video",
    "unread": "without a readable reply",
    "chosen": "written",
}
UNCOMPARED = ("out", "store")  # keys of a configuration that name a run's own folders
UNSET = "(not set)"
GROUPS = (  # groups of figures, in the order in which they are shown
    "run", "videos", "questions", "dropped questions", "not passed", "exam of drafts", "cost",
    "points", "reach", "worth", "guesses", "counts",
)  # fmt: skip
COLUMNS = ("drop", "metrics", "form", "provenance", "options", "answer")  # columns of the questions


@dataclass(frozen=True, kw_only=True)
class ComparedRun:
    """A run as it was read. `name`: its folder. `record`: its `run.json`. `judges`: the models in
    the verdicts on its questions.
    """

    name: str
    record: Mapping[str, Any]
    questions: Sequence[Question]
    judges: Sequence[str] = ()

    @property
    def kept_questions(self) -> list[Question]:
        return [question for question in self.questions if question.drop is None]

    @property
    def models(self) -> list[str]:
        """The identities of all models: those that wrote, were called, or gave a verdict."""
        writers = (q.provenance.llm for q in self.questions if q.provenance is not None)
        called = self.record["llm"].get("by_model") or {}
        return list(dict.fromkeys([*writers, *called, *self.judges]))

    @property
    def videos_read(self) -> int:
        """The number of videos that went in."""
        return self.record["funnel"][0]["in"] if self.record["funnel"] else 0

    @property
    def reasons_without(self) -> Mapping[str, str]:
        """Videos without a question that passed, and why; `run.json` names the first hundred."""
        return self.record.get("without_questions") or {}

    @property
    def videos(self) -> dict[str, None]:
        """The ids of the videos that its questions or `run.json` name."""
        named = (self.record.get("fact_funnel") or {}).get("videos") or {}
        asked = (question.video_id for question in self.questions)
        return dict.fromkeys([*asked, *self.reasons_without, *named])


@dataclass(frozen=True, kw_only=True)
class RunFigure:
    """One figure of a run, of one of `GROUPS`. `value`: None where it is unknown. `n`: number of
    questions of a mean or a share.
    """

    group: str
    name: str
    value: float | str | None
    unit: str = COUNT
    n: int | None = None


@dataclass(frozen=True, kw_only=True)
class SettingDifference:
    """Keys that differ between runs in the same way. `part`: of `run.json`: config, git, versions
    or prompts. `values`: of each run, as text.
    """

    part: str
    names: tuple[str, ...]
    values: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class QuestionFate:
    """What became of a question in one run. `what`: such as "kept" or "dropped by blind"."""

    what: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {self.reason}" if self.reason else self.what


@dataclass(frozen=True, kw_only=True)
class MatchedQuestion:
    """One question in all runs. `questions`: None in a run that did not write it. `matched`: by its
    "id" or its "words"; empty if one run wrote it.
    """

    questions: tuple[Question | None, ...]
    fates: tuple[QuestionFate, ...]
    matched: str

    @property
    def kept_in(self) -> tuple[int, ...]:
        """The numbers of the runs that kept it."""
        return tuple(n for n, fate in enumerate(self.fates) if fate.what == KEPT)

    @property
    def sample(self) -> Question:
        """The question as the first run that kept it wrote it; of the first that wrote it if none
        kept it.
        """
        present = [question for question in self.questions if question is not None]
        return next((question for question in present if question.drop is None), present[0])

    @property
    def answers_differ(self) -> bool:
        """Whether runs that wrote it give it different answers."""
        return len({normal(q.answer) or q.answer for q in self.questions if q is not None}) > 1


@dataclass(frozen=True, kw_only=True)
class KeptTally:
    """Kept questions of one video, skill or form, by run. `only_here`: that no other run kept."""

    group: str
    name: str
    kept: tuple[int, ...]
    only_here: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class RunsComparison:
    """Runs beside each other. `figures`: of each run, in one order."""

    runs: tuple[ComparedRun, ...]
    figures: tuple[tuple[RunFigure, ...], ...]
    differences: tuple[SettingDifference, ...]
    questions: tuple[MatchedQuestion, ...]
    tallies: tuple[KeptTally, ...]
    notes: tuple[str, ...]

    def kept_only_in(self, number: int) -> list[MatchedQuestion]:
        """Return the questions that this run kept and no other."""
        return [question for question in self.questions if question.kept_in == (number,)]

    def kept_by(self, least: int, most: int) -> list[MatchedQuestion]:
        """Return the questions that at least and at most so many runs kept."""
        return [one for one in self.questions if least <= len(one.kept_in) <= most]


def compare_runs(runs: Sequence[ComparedRun]) -> RunsComparison:
    """Return the runs compared. Raises UserError for two runs without a common video."""
    for one, other in combinations(runs, 2):
        if one.videos and other.videos and one.videos.keys().isdisjoint(other.videos):
            raise UserError(
                f"runs={one.name!r} and {other.name!r} have no common video: the first has "
                f"{_name_some(one.videos)}, the second {_name_some(other.videos)}; give runs on "
                "the same videos"
            )
    questions = match_questions(runs)
    return RunsComparison(
        runs=tuple(runs),
        figures=tuple(tuple(figures_of(run)) for run in runs),
        differences=tuple(find_differences([run.record for run in runs])),
        questions=tuple(questions),
        tallies=tuple(tally_kept(questions, len(runs))),
        notes=tuple(_notes(runs)),
    )


def _name_some(names: Mapping[str, object]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(map(repr, list(names)[:3])) + more


def _notes(runs: Sequence[ComparedRun]) -> Iterator[str]:
    """Yield what one must know to read the figures."""
    everywhere = set[str](runs[0].videos).intersection(*(run.videos for run in runs))
    for run in runs:
        if own := {name: None for name in run.videos if name not in everywhere}:
            yield (
                f"{run.name} has {len(own)} of {len(run.videos)} videos that are not in every run: "
                f"{_name_some(own)}"
            )
        yield from notes_of(run)


def notes_of(run: ComparedRun) -> Iterator[str]:
    """Yield what is missing from a run's questions and figures."""
    record, bills = run.record, run.record["llm"].get("all_runs") or {}
    if not run.questions:
        yield f"{run.name} has no question"
    unnamed = run.videos_read - len(run.videos)
    if unnamed > 0:
        yield (
            f"{run.name}: {unnamed} of {run.videos_read} videos have no question, and run.json "
            "does not name them"
        )
    if reused := sum((record.get("reused") or {}).values()):
        yield (
            f"{run.name} reused {reused} results of its store: calls that another output folder "
            "made for them are not in its calls and its USD"
        )
    if lost := bills.get("unknown", 0) + bills.get("unanswered", 0):
        most = bills.get("unknown_usd", 0) + bills.get("unanswered_usd", 0)
        yield f"{run.name}: {lost} calls without a reply cost at most {most:.2f} USD more"
    if incomplete := record.get("incomplete_videos"):
        yield f"{run.name}: of {incomplete} videos some requests had no readable reply"
    for line in (record.get("fact_funnel") or {}).get("missing") or ():
        yield f"{run.name}: {line}"


def figures_of(run: ComparedRun) -> Iterator[RunFigure]:
    """Yield the figures of a run, without those by video, skill and form (`tally_kept`). Means and
    shares are over the kept questions that have the metric.
    """
    funnel, kept = run.record["funnel"], run.kept_questions
    yield RunFigure(group="run", name="recipe", value=str(run.record["recipe"]), unit=TEXT)
    yield RunFigure(group="run", name="models", value="; ".join(run.models), unit=TEXT)
    yield RunFigure(group="videos", name="read", value=run.videos_read)
    yield RunFigure(group="videos", name="failed", value=sum(step["problems"] for step in funnel))
    dropped = sum(n for step in funnel for n in step["dropped"].values())
    yield RunFigure(group="videos", name="dropped", value=dropped)
    yield RunFigure(group="questions", name="written", value=len(run.questions))
    yield RunFigure(group="questions", name="kept", value=len(kept))
    yield RunFigure(group="questions", name="dropped", value=len(run.questions) - len(kept))
    passed = run.record["questions"].get("passed")
    yield RunFigure(group="questions", name="passed every filter", value=passed)
    for name, count in (run.record["questions"].get("failed") or {}).items():
        yield RunFigure(group="not passed", name=f"kept, not passed by {name}", value=count)
    causes = Counter(fate_of(q).what for q in run.questions if q.drop is not None)
    for name, count in causes.most_common():
        yield RunFigure(group="dropped questions", name=name, value=count)
    yield from _exam_figures(run.record)
    yield from _cost_figures(run.record, len(kept))
    for metric, name in POINTS.items():
        shares = [q.metrics[metric] for q in kept if metric in q.metrics]
        yield _mean("points", name, shares)
    reach = [q.metrics["reach_seconds"] >= REACH_S for q in kept if "reach_seconds" in q.metrics]
    yield _mean("reach", f"needs {REACH_S:g} s of video or more", reach)
    yield from _rated_figures(run.record["questions"])
    for name, count in (run.record.get("counts") or {}).items():
        yield RunFigure(group="counts", name=name, value=count, unit=NUMBER)


def _mean(group: str, name: str, values: Sequence[float]) -> RunFigure:
    value = fmean(values) if values else None
    return RunFigure(group=group, name=name, value=value, unit=SHARE, n=len(values))


def _exam_figures(record: Mapping[str, Any]) -> Iterator[RunFigure]:
    """Yield what the exams of drafts with options left out; such drafts are not written."""
    total = (record.get("fact_funnel") or {}).get("total") or {}
    if total.get("drafted"):
        for key, name in EXAM.items():
            yield RunFigure(group="exam of drafts", name=name, value=total[key])


def _cost_figures(record: Mapping[str, Any], kept: int) -> Iterator[RunFigure]:
    """Yield calls and dollars of all runs of the folder."""
    bills = record["llm"].get("all_runs") or {}
    for name, unit in (("calls", COUNT), ("usd", USD)):
        value, title = bills.get(name), "USD" if name == "usd" else "model calls"
        each = value / kept if kept and value is not None else None
        yield RunFigure(group="cost", name=title, value=value, unit=unit)
        of_each = USD if unit == USD else NUMBER
        yield RunFigure(group="cost", name=f"{title}, a kept question", value=each, unit=of_each)


def _rated_figures(counts: Mapping[str, Any]) -> Iterator[RunFigure]:
    """Yield the worth of a sample, and the guesses of filters beside chance."""
    if worth := counts.get("worth"):
        for name, mean in worth["means"].items():
            yield RunFigure(
                group="worth", name=name, value=mean, unit=NUMBER, n=worth["rated"]
            )  # fmt: skip
        if of := worth["checked"]:
            share = worth["all_met"] / of
            yield RunFigure(group="worth", name="meets all conditions", value=share, unit=SHARE,
                            n=of)  # fmt: skip
        by = "; ".join(worth["raters"])
        yield RunFigure(group="worth", name="rated by", value=by, unit=TEXT)
    for name, guess in ((counts.get("guesses") or {}).get("filters") or {}).items():
        if of := guess["questions"]:
            for what, share in (("right", guess["right"] / of), ("by chance", guess["chance"])):
                yield RunFigure(group="guesses", name=f"{name}: {what}", value=share, unit=SHARE,
                                n=of)  # fmt: skip


def find_differences(records: Sequence[Mapping[str, Any]]) -> list[SettingDifference]:
    """Return the keys of config, git, versions and prompts that differ, those that differ alike in
    one entry. `out` and `store` always differ, and are left out.
    """
    alike = defaultdict[tuple[str, tuple[str, ...]], list[str]](list)
    for part in ("config", "git", "versions", "prompts"):
        values: list[Any] = [record.get(part, UNSET) for record in records]
        if part == "config":
            values = [{k: v for k, v in each.items() if k not in UNCOMPARED} for each in values]
        for name, texts in _differing_keys("", values):
            alike[part, texts].append(name or part)
    return [SettingDifference(part=part, names=tuple(names), values=texts)
            for (part, texts), names in alike.items()]  # fmt: skip


def _differing_keys(name: str, values: Sequence[Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    if all(value == values[0] for value in values):
        return
    if all(isinstance(value, Mapping) for value in values):
        for key in dict.fromkeys(key for value in values for key in value):
            inner = [value.get(key, UNSET) for value in values]
            yield from _differing_keys(f"{name}.{key}" if name else key, inner)
    else:
        texts = (v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values)
        yield name, tuple(texts)


def match_questions(runs: Sequence[ComparedRun]) -> list[MatchedQuestion]:
    """Return each question once with what became of it in each run, in the order of the first run
    that wrote it. Of several with the same words those with the same answer are matched first.
    """
    groups = list[dict[int, Question]]()
    matched = list[str]()
    index = defaultdict[tuple[Hashable, ...], list[int]](list)
    rules: Sequence[tuple[str, Callable[[Question], tuple[Hashable, ...]]]] = (
        (SAME_ID, _id_key), (SAME_WORDS, _answer_key), (SAME_WORDS, _words_key),
    )  # fmt: skip
    for number, run in enumerate(runs):
        places = dict[int, int]()  # of a question in the run -> its group
        for by, key_of in rules:
            for at, question in enumerate(run.questions):
                if at in places:
                    continue
                waiting = (g for g in index[key_of(question)] if number not in groups[g])
                if (group := next(waiting, None)) is not None:
                    groups[group][number] = question
                    matched[group] = matched[group] or by
                    places[at] = group
        for at, question in enumerate(run.questions):
            if at not in places:
                places[at] = len(groups)
                groups.append({number: question})
                matched.append("")
            for _, key_of in rules:
                index[key_of(question)].append(places[at])
    videos = [run.videos for run in runs]
    return [
        MatchedQuestion(
            questions=tuple(group.get(n) for n in range(len(runs))),
            fates=tuple(
                fate_of(group[n]) if n in group else _fate_unwritten(run, videos[n], group)
                for n, run in enumerate(runs)
            ),
            matched=by,
        )
        for group, by in zip(groups, matched, strict=True)
    ]


def _id_key(question: Question) -> tuple[Hashable, ...]:
    return SAME_ID, question.video_id, question.question_id


def _words_key(question: Question) -> tuple[Hashable, ...]:
    """The words of a question; one with options is not the same without them."""
    words = normal(question.question) or question.question
    return SAME_WORDS, question.video_id, words, bool(question.options)


def _answer_key(question: Question) -> tuple[Hashable, ...]:
    return (*_words_key(question), normal(question.answer) or question.answer)


def fate_of(question: Question) -> QuestionFate:
    """Return what became of a question in the run that wrote it."""
    if question.drop is None:
        return QuestionFate(what=KEPT)
    by = question.dropped_by or "an unnamed filter"
    return QuestionFate(what=f"dropped by {by}", reason=question.drop_reason)


def _fate_unwritten(
    run: ComparedRun, videos: Mapping[str, None], group: Mapping[int, Question]
) -> QuestionFate:
    video = next(iter(group.values())).video_id
    if video not in videos:
        if len(videos) >= run.videos_read:
            return QuestionFate(what=NO_VIDEO)
        return QuestionFate(what=UNWRITTEN, reason="no question on its video")
    return QuestionFate(what=UNWRITTEN, reason=run.reasons_without.get(video, ""))


def tally_kept(questions: Sequence[MatchedQuestion], runs: int) -> list[KeptTally]:
    """Count the kept questions of each run by video, skill and form, each run by its own skill and
    form of a question.
    """
    kept, only = Counter[tuple[str, str, int]](), Counter[tuple[str, str, int]]()
    for one in questions:
        for number in one.kept_in:
            question = one.questions[number]
            assert question is not None
            for group, name in (
                ("video", question.video_id),
                ("skill", question.skill_or_type),
                ("form", question.form or "(none)"),
            ):
                kept[group, name, number] += 1
                only[group, name, number] += len(one.kept_in) == 1
    names = {(group, name): None for group, name, _ in kept}
    order = ("video", "skill", "form")
    return [
        KeptTally(
            group=group,
            name=name,
            kept=tuple(kept[group, name, n] for n in range(runs)),
            only_here=tuple(only[group, name, n] for n in range(runs)),
        )
        for group, name in sorted(names, key=lambda pair: (order.index(pair[0]), pair[1]))
    ]
