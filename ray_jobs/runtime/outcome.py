"""The summary's parts on facts and on questions: what became of them, and videos without any."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from mustsee.questions.fact_funnel import ASK_AGAIN, RunFunnel, describe_unread
from mustsee.records import RequestCount
from mustsee.run.record import QuestionCounts, RunRecord
from mustsee.text import printable
from mustsee.verify.reasons import FILTERS, SUBSETS, name_with_meaning

MAX_UNASKED = 20  # videos without questions that are listed
MAX_VIDEOS = 20  # videos listed by name
MAX_FORMS = 15  # forms of questions listed by name
FORM_STEPS = ("possible", "drafted", "guessed", "chosen", "passed")
MEANINGS = {
    "seen": "of the facts looked at where they are claimed",
    "claims": "on how facts hang together",
    "held": "of these, in the verifier's looks",
    "written": "open questions",
    "possible": "questions that the facts allow",
    "drafted": "with options",
    "guessed": "answered right in an exam without the video",
    "passed": "every exam and filter",
}


def funnel_tables(funnel: RunFunnel) -> Iterable[RenderableType]:
    """Yield a table by video, the meaning of its columns, and a table by form; nothing where no
    video has facts.
    """
    if funnel.total is None:
        return
    steps = ("listed", "looked_at", "seen")
    if funnel.total.claims:
        steps += ("claims", "held", "written")
    composed = funnel.total.possible or not funnel.total.claims
    steps += FORM_STEPS if composed else ("passed",)
    titles = ("facts", *(step.replace("_", " ") for step in steps[1:]))
    videos = plain_table("from facts to questions", ("video", *titles), titles)
    rows = [(name, each) for name, each in islice(funnel.videos.items(), MAX_VIDEOS)]
    if len(rows) > 1:
        rows.append(("all videos", funnel.total))
    for name, each in rows:
        videos.add_row(plain_line(name), *(str(getattr(each, step)) for step in steps))
    yield videos
    meaning = "; ".join(f"{name}: {text}" for name, text in MEANINGS.items() if name in steps)
    yield plain_line(f"  {meaning}", style="dim")
    if funnel.listed_note:
        yield plain_line(funnel.listed_note)
    for line in funnel.missing_lines:
        yield plain_line(line)
    drafted = {name: each for name, each in funnel.forms.items() if each.drafted}
    if not drafted:
        return
    forms = plain_table(
        "by form of question (ask.settings.forms.NAME=null leaves one out)",
        ("form", *FORM_STEPS),
        FORM_STEPS,
    )
    ordered = sorted(drafted, key=lambda name: -drafted[name].drafted)
    for name in ordered[:MAX_FORMS]:
        forms.add_row(plain_line(name), *(str(getattr(drafted[name], n)) for n in FORM_STEPS))
    if len(ordered) > MAX_FORMS:
        forms.add_row(f"{len(ordered) - MAX_FORMS} more in run.json", *[""] * len(FORM_STEPS))
    yield forms


def plain_table(title: str, names: Sequence[str], right: Collection[str] = ()) -> Table:
    """A table without lines. `right`: the names of the columns of figures."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None)
    for name in names:
        table.add_column(name, justify="right" if name in right else "left")
    return table


def unread_lines(requests: Iterable[RequestCount], incomplete: int) -> Iterable[str]:
    """Yield a line for each thing that was asked for and had no readable reply, and what to do."""
    unread = [count for count in requests if count.unread]
    yield from (f"{count.stage}: {describe_unread(count)}" for count in unread)
    if unread:
        yield f"{incomplete} videos are incomplete for want of these replies: {ASK_AGAIN}"


def mostly_unread(requests: Iterable[RequestCount], most: float) -> list[RequestCount]:
    """Return the counts of what the questions are made of, where more than the share `most` of the
    requests had no readable reply; all counts, if no request of the run had one.
    """
    sent = [count for count in requests if count.sent]
    if all(count.unread == count.sent for count in sent):
        return sent
    return [c for c in sent if c.stage == "ask" and c.unread > most * c.sent]


def outcome_lines(
    counts: QuestionCounts, subset: str | None, *, makes: bool
) -> Iterable[RenderableType]:
    """Yield lines and a table, and how guesses compare with chance; nothing where the job does not
    make questions (`makes`).

    `subset`: name of the subset of questions that pass every filter.
    """
    if not makes:
        return
    if counts.without:
        yield Text("videos without a question that passed", style="bold")
    for video, reason in islice(counts.without.items(), MAX_UNASKED):
        yield plain_line(f"  {video}  {reason}")
    if len(counts.without) > MAX_UNASKED:
        yield Text("  ... and others: see the report")
    if counts.made:
        yield _table(counts, subset)
    for line in counts.guesses.lines() if counts.guesses else ():
        yield plain_line(line)
    if counts.sample_note:
        yield plain_line(counts.sample_note)
    if counts.worth:
        yield plain_line(counts.worth.summary_line)
    if counts.untested_note:
        yield Text(counts.untested_note, style="bold")


def _table(counts: QuestionCounts, subset: str | None) -> Table:
    """Return the questions made, passed, and left out, with the filter that each did not pass."""
    table = plain_table("questions", [""])
    table.add_column("", justify="right")
    table.add_row("made", str(counts.made))
    meaning = f": subset {name_with_meaning(subset, SUBSETS)}" if subset else ""
    table.add_row(plain_line(f"passed every filter{meaning}", "bold"), str(counts.passed))
    if left := counts.made - counts.passed:
        several = ", some by several filters" if sum(counts.failed.values()) > left else ""
        table.add_row(f"left out{several}", str(left))
    for reason, n in _most_first(counts.dropped):
        table.add_row(plain_line(f"  dropped by {name_with_meaning(reason, FILTERS)}"), str(n))
    for name, n in _most_first(counts.failed):
        table.add_row(plain_line(f"  by {name_with_meaning(name, FILTERS)}"), str(n))
    for name, n in sorted(counts.subsets.items()):
        if name != subset and n < counts.kept:
            table.add_row(plain_line(f"in subset {name}"), str(n))
    if counts.kept:
        table.add_row(
            "not dropped, by type or skill" if counts.kept > counts.passed else "by type or skill",
            "",
        )
    for name, n in _most_first(counts.types):
        table.add_row(plain_line(f"  {name or '(no type)'}"), str(n))
    return table


def _most_first(numbers: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(numbers.items(), key=lambda item: -item[1])


def subset_of(record: RunRecord) -> str | None:
    """The configured name of the subset of questions that pass every filter."""
    vet: Mapping[str, Any] = record.config.get("vet") or {}
    return vet.get("subset")


def stopped_lines(
    stopped: Mapping[tuple[str, str], int], record: RunRecord, rows: int
) -> Iterable[str]:
    """Why calls had to stop and how to continue, one line a reason, the most frequent last."""
    for (error, message), n in sorted(stopped.items(), key=lambda item: item[1]):
        left = f"{n} of {rows} videos are unfinished"
        if error == "BudgetSpent":
            spent = record.spent
            usd = f"{spent.total.usd:.4f} USD spent"
            if spent.unknown:
                usd += f", {spent.unknown_usd:.4f} USD for calls of killed runs"
            if spent.missing_usd:
                usd += f", {spent.missing_usd:.4f} USD that the damaged call log lacks"
            if spent.unanswered:
                usd += f", {spent.unanswered_usd:.4f} USD for calls that timed out"
            yield (
                f"stopped: budget_usd={record.config.get('budget_usd')} reached ({usd}), {left}; "
                "the same command with a higher budget_usd continues from here"
            )
        elif error == "NoAnswer":
            yield f"stopped: {message}; {left}; the same command continues from here"
        else:
            yield f"stopped: {message}; {left}"


def plain_line(text: str, style: str = "") -> Text:
    """`text` as one line without control characters."""
    return Text(printable(text), style=style)
