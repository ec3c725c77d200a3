"""The summary's part on facts: what became of them, by video and form, and which step lost most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from rich.console import RenderableType
from rich.table import Table

from mustsee.questions.fact_funnel import ASK_AGAIN, RunFunnel, describe_unread
from mustsee.records import RequestCount
from ray_jobs.runtime.outcome import plain_line

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
    videos = _table("from facts to questions", "video", titles)
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
    forms = _table(
        "by form of question (ask.settings.forms.NAME=null leaves one out)", "form", FORM_STEPS
    )
    ordered = sorted(drafted, key=lambda name: -drafted[name].drafted)
    for name in ordered[:MAX_FORMS]:
        forms.add_row(plain_line(name), *(str(getattr(drafted[name], n)) for n in FORM_STEPS))
    if len(ordered) > MAX_FORMS:
        forms.add_row(f"{len(ordered) - MAX_FORMS} more in run.json", *[""] * len(FORM_STEPS))
    yield forms


def _table(title: str, first: str, names: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None)
    table.add_column(first)
    for name in names:
        table.add_column(name, justify="right")
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
