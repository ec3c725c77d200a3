"""What became of the facts of videos on their way to questions, which step lost most, and why a
video has no question.

    funnel = funnel_of_video(video, passed=3) + funnel_of_video(other)
    why = explain_loss(funnel, (), by_rules=False)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import shorten
from typing import Any

from mustsee.papers import Paper, papers
from mustsee.records import Fact, MissingQuestions, RequestCount, Span, Video, is_rules

LISTED_ALL = 0.995  # share of videos from which all of them is listed
MAX_ERROR_CHARS = 200  # characters of an error that is named
_Loss = tuple[float, str]  # share that a step lost, and the sentence
FEW = 8  # questions; where more are drafted or chosen, a limit leaves out others on purpose
ASK_AGAIN = "retry_problems=true asks for these again and takes the rest from the store"
BETTER_WRITER = (
    "a vision model lists what people do, where and with what (llm=openai, or +experiment=gemini, "
    "ollama or vllm)"
)
OTHER_WRITER = "another writer may list better facts (ask/writer=openai ask.writer.model=...)"


@dataclass(frozen=True, kw_only=True)
class FactFunnel:
    """Numbers of facts, and then of questions, of one video or of several.

    `listed`: facts. `spoken`: transcript lines among them, which need no look. `looked_at`: facts
    that a look judged where they are claimed; `seen`: those that it found there. `possible`:
    questions that the facts allow. `drafted`: of these, with options, for the exam. `guessed`:
    answered right there without the video. `unread`: whose exam had no readable reply. `chosen`:
    composed. `claims`: listed of the whole video; `held`: of these, in the verifier's looks.
    `written`: open questions. `passed`: of all questions, every exam and filter. `seconds`: of
    video; `listed_seconds`: of these, in windows of which facts were listed.
    """

    seconds: float = 0.0
    listed_seconds: float = 0.0
    listed: int = 0
    spoken: int = 0
    looked_at: int = 0
    seen: int = 0
    possible: int = 0
    drafted: int = 0
    guessed: int = 0
    unread: int = 0
    chosen: int = 0
    claims: int = 0
    held: int = 0
    written: int = 0
    passed: int = 0

    def __add__(self, other: FactFunnel) -> FactFunnel:
        return FactFunnel(**{name: n + getattr(other, name) for name, n in vars(self).items()})


@dataclass(frozen=True, kw_only=True)
class FormFunnel:
    """Numbers of the questions of one form, as in `FactFunnel`."""

    possible: int = 0
    drafted: int = 0
    guessed: int = 0
    unread: int = 0
    chosen: int = 0
    passed: int = 0


@dataclass(frozen=True, kw_only=True)
class RunFunnel:
    """The numbers of a run.

    `total`: of all videos with facts; None where there are none, as no job of facts wrote the rows.
    `videos`: of the first of them. `forms`: by key under `ask.settings.forms`. `requests`: of all
    stages, by what they are for. `incomplete`: rows with a request without a readable reply.
    `by_rules`: whether rules listed the facts. `missing`: questions of all videos that are wanted
    and not asked.
    """

    total: FactFunnel | None = None
    videos: Mapping[str, FactFunnel] = field(default_factory=dict[str, FactFunnel])
    forms: Mapping[str, FormFunnel] = field(default_factory=dict[str, FormFunnel])
    requests: Sequence[RequestCount] = ()
    incomplete: int = 0
    by_rules: bool = False
    missing: Sequence[MissingQuestions] = ()

    @property
    def missing_lines(self) -> list[str]:
        """A line for each kind of questions that are missing, with the number and the reason."""
        return [f"{each.what}: {each.number} missing, {each.why}" for each in self.missing]

    @property
    def most_lost(self) -> str:
        """A sentence with the step that lost most, and the key that changes it; "" if none did."""
        if self.total is None:
            return ""
        asking = [count for count in self.requests if count.stage == "ask"]
        return explain_loss(self.total, asking, by_rules=self.by_rules)

    @property
    def listed_note(self) -> str:
        """A sentence with the share of the videos of which facts were listed; "" where it is
        unknown, or all.
        """
        total = self.total or FactFunnel()
        share = total.listed_seconds / total.seconds if total.seconds else 1.0
        if share >= LISTED_ALL:
            return ""
        return (
            f"facts were listed of {share:.0%} of {total.seconds / 3600:.2g} h of video, where "
            "most goes on; ask.settings.moments.windows=N lists more windows of a video"
        )

    def explain_all(self, reasons: Mapping[str, str]) -> dict[str, str]:
        """Return reasons why videos have no question that passed, each of a video with a question
        with the step that lost most of it.
        """
        explained = dict(reasons)
        for name, funnel in self.videos.items():
            loss = explain_loss(funnel, (), by_rules=self.by_rules) if funnel.chosen else ""
            if name in reasons and loss:
                explained[name] = f"{reasons[name]}; before that, {loss}"
        return explained

    def plain(self) -> dict[str, Any]:
        """Return the content of `fact_funnel` in run.json."""
        if self.total is None:
            return {}
        return {
            "total": dict(vars(self.total)),
            "videos": {name: dict(vars(each)) for name, each in self.videos.items()},
            "forms": {name: dict(vars(each)) for name, each in self.forms.items()},
            "most_lost": self.most_lost,
            "listed_note": self.listed_note,
            "missing": self.missing_lines,
        }


def funnel_of_video(video: Video, passed: int = 0, written: int = 0) -> FactFunnel:
    """Return the numbers of a video with facts. `passed`: questions that pass every exam and
    filter. `written`: open questions.
    """
    facts, windows = video.facts or (), video.listed or ()
    claimed = [fact for fact in facts if fact.kind != "line"]
    forms, claims = video.forms or (), video.claims or ()
    is_known, until = video.listed is not None, video.until
    return FactFunnel(
        seconds=until - (video.start or 0.0) if is_known and until is not None else 0.0,
        listed_seconds=round(sum(span.seconds for span in windows), 3),
        listed=len(facts),
        spoken=len(facts) - len(claimed),
        looked_at=sum(_meet(fact, (*fact.seen, *fact.unseen, *fact.unsure)) for fact in claimed),
        seen=sum(_meet(fact, fact.seen) for fact in claimed),
        possible=sum(form.possible for form in forms),
        drafted=sum(form.drafted for form in forms),
        guessed=sum(form.guessed for form in forms),
        unread=sum(form.unread for form in forms),
        chosen=sum(form.chosen for form in forms),
        claims=len(claims),
        held=sum(claim.drop is None for claim in claims),
        written=written,
        passed=passed,
    )


def _meet(fact: Fact, spans: Iterable[Span]) -> bool:
    """Whether one of some spans overlaps one where the fact is claimed."""
    return any(s.start < c.end and c.start < s.end for s in spans for c in fact.spans)


def sum_requests(counts: Iterable[RequestCount]) -> list[RequestCount]:
    """Return the sums by stage and `what`, each with the last error."""
    sums = dict[tuple[str, str], RequestCount]()
    for count in counts:
        key = count.stage, count.what
        before = sums.get(key, replace(count, sent=0, unread=0, error=""))
        sums[key] = replace(
            before,
            sent=before.sent + count.sent,
            unread=before.unread + count.unread,
            error=count.error or before.error,
        )
    return list(sums.values())


def sum_missing(missing: Iterable[MissingQuestions]) -> list[MissingQuestions]:
    """Return the sums by what is missing and why, the largest first."""
    sums = Counter[tuple[str, str]]()
    for each in missing:
        sums[each.what, each.why] += each.number
    return [
        MissingQuestions(what=what, why=why, number=number)
        for (what, why), number in sums.most_common()
    ]


def describe_unread(count: RequestCount) -> str:
    """Return how many requests had no readable reply, and the error of the last of them."""
    error = shorten(count.error, MAX_ERROR_CHARS, placeholder=" ...")
    return f"{count.unread} of {count.sent} {count.what} had no readable reply (the last: {error})"


def explain_loss(funnel: FactFunnel, requests: Iterable[RequestCount], *, by_rules: bool) -> str:
    """Return a sentence with the step that lost most, and the key that changes it; "" where no step
    lost anything.

    `requests`: about the same videos. `by_rules`: whether rules listed the facts.
    """
    losses = [*_unread_losses(requests), *_fact_losses(funnel, by_rules=by_rules)]
    losses += _question_losses(funnel, by_rules=by_rules)
    share, sentence = max(losses, key=lambda loss: loss[0], default=(0.0, ""))
    return sentence if share > 0 else ""


def _loss(lost: int, of: int, sentence: str) -> _Loss:
    """Return the share of a step's losses, in which one of one counts less than ten of ten."""
    return lost / (of + 1), sentence


def _unread_losses(requests: Iterable[RequestCount]) -> Iterator[_Loss]:
    """Yield what was lost because replies were refused or could not be read."""
    for count in sum_requests(requests):
        yield _loss(count.unread, count.sent, f"{describe_unread(count)}; {ASK_AGAIN}")


def _fact_losses(funnel: FactFunnel, *, by_rules: bool) -> Iterator[_Loss]:
    """Yield what was lost up to the questions that the facts allow."""
    if not funnel.listed:
        yield (
            1.0,
            "rules found nothing to list: they know 80 kinds of things, people, words on the "
            f"screen, spoken lines, colours and light, where these come and go; {BETTER_WRITER}"
            if by_rules
            else f"the model listed no fact; {OTHER_WRITER}",
        )
    keys = "look.most=24"
    if funnel.claims and not funnel.possible:  # Nothing is composed: looks at several moments.
        keys = "look_own.fps=3 ask.settings.look_own.most=120"
    more_frames = (
        f"more frames show more (ask.settings.{keys}), and another verifier may see more "
        "(ask/verifier=openai ask.verifier.model=...)"
    )
    missed = funnel.looked_at - funnel.seen
    yield _loss(
        missed, funnel.looked_at,
        f"not seen where they are claimed: {missed} of {funnel.looked_at} facts that were looked "
        f"at; {BETTER_WRITER if by_rules else more_frames}",
    )  # fmt: skip
    usable = funnel.seen + funnel.spoken
    yield _loss(
        funnel.claims - funnel.held, funnel.claims,
        f"not shown as they are claimed: {funnel.claims - funnel.held} of {funnel.claims} claims "
        f"on how the facts hang together; {OTHER_WRITER}",
    )  # fmt: skip
    if not funnel.claims and funnel.possible < min(usable, FEW):
        more_facts = (
            "shorter moments and more facts of each allow more (ask.settings.moments.seconds=3 "
            "ask.settings.each=6)"
        )
        yield _loss(
            usable - funnel.possible, usable,
            "a question needs several facts of one kind that hold at different times: the "
            f"{usable} facts that hold allow {funnel.possible} questions; "
            f"{BETTER_WRITER if by_rules else more_facts}",
        )  # fmt: skip


def _question_losses(funnel: FactFunnel, *, by_rules: bool) -> Iterator[_Loss]:
    """Yield what was lost of the questions that the facts allow."""
    if funnel.drafted < min(funnel.possible, FEW):
        fewer_options = "smaller sets need fewer (ask.settings.select.options=4)"
        yield _loss(
            funnel.possible - funnel.drafted, funnel.possible,
            f"too few wrong options: {funnel.drafted} of {funnel.possible} possible questions have "
            "enough of the answer's kind that are surely wrong and do not stand out; "
            f"{BETTER_WRITER if by_rules else fewer_options}",
        )  # fmt: skip
    more_drafts = f"more drafts leave more (ask.settings.drafts=16), or {OTHER_WRITER}"
    yield _loss(
        funnel.guessed, funnel.drafted,
        f"answered right without the video: {funnel.guessed} of {funnel.drafted} drafted "
        f"questions; {BETTER_WRITER if by_rules else more_drafts}",
    )  # fmt: skip
    left = funnel.drafted - funnel.guessed - funnel.unread
    if funnel.chosen < min(left, FEW):
        yield _loss(
            left - funnel.chosen, left,
            "too many alike, on one form, one fact or one moment: "
            f"{funnel.chosen} of {left} questions that the exam left were chosen; higher shares "
            "take more (ask.settings.select.of_form=0.5 ask.settings.select.single_share=0.5)",
        )  # fmt: skip
    made = funnel.chosen + funnel.written
    yield _loss(
        made - funnel.passed, made,
        f"kept out by {'an exam or ' if funnel.written else ''}a filter: {made - funnel.passed} of "
        f"{made} questions, as the report shows; "
        f"{BETTER_WRITER if by_rules else OTHER_WRITER}",
    )  # fmt: skip


def no_questions_reason(video: Video, writer: str, reads: Collection[str], area: str) -> str:
    """Return why a video has no questions.

    `writer`: identity of the model that should write them. `reads`: columns that it was given.
    `area`: folder of its prompts.
    """
    columns = {
        "lines": ("lines of speech", video.lines), "texts": ("texts on the screen", video.texts),
        "captions": ("captions", video.captions),
        "scene": ("lines of its scene", video.scene and video.scene.lines),
    }  # fmt: skip
    counts = ", ".join(
        f"{what}: {len(items or ())}" for name, (what, items) in columns.items() if name in reads
    )
    if not is_rules(writer):
        return f"the model wrote no usable question: {writer}" + (
            f", which was given {counts}" if counts else ""
        )
    need = f"the rules need {papers().get(area, Paper()).rules_need}"
    unheard = f"; {video.unheard}" if video.unheard and not video.lines else ""
    counted = f" ({counts})" if counts else ""
    return f"{need}: found too little to ask about{counted}{unheard}"
