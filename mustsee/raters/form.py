"""A rater's form: its rounds, steps and fields, and the rules that turn answers into a decision.

Forms are configurations in `conf/form/`; one engine shows, checks and counts them.

An answer is JSON by its field's kind: `pick` and `text` a string, `ticks` and `lines` a list of
strings, `option` the index of one of the question's options, `spans` a list of [start, end] in
seconds. `FormField.read` parses the text that a browser sends.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from mustsee.errors import UserError
from mustsee.records import Point, Question, Span

MAX_ANSWER_CHARS = 4000  # characters of a written answer
MAX_SPANS = 60  # spans in one answer
Kind = Literal["pick", "ticks", "option", "text", "lines", "spans"]
Part = Literal["question", "answer", "decoys", "scoring_points", "evidence"]
PAGE_ELEMENTS = ("video", "question", "options", "answer", "evidence", "transcript")
HIDDEN_ELEMENTS = ("votes", "reply", "doubt")  # shown only where a step lists them
Answers = Mapping[str, Any]
MIN_MARK_S = 0.1  # seconds of the shortest mark
MERGE_GAP_S = 5.0  # seconds of a gap below which marked spans are merged
ANY_ANSWER = "*"  # value in a `Check` that any answer matches


def merge_marks(marks: Sequence[Span]) -> list[Span]:
    """Return marked spans merged, in order of time: the temporal certificate (EgoSchema, 3.2 and
    11.1). A mark counts at least 0.1 s; spans with a gap of less than 5 s are merged, with the gap.
    """
    merged: list[Span] = []
    for mark in sorted((_widen(mark) for mark in marks), key=lambda m: (m.start, m.end)):
        if merged and mark.start - merged[-1].end < MERGE_GAP_S:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, mark.end))
        else:
            merged.append(mark)
    return merged


def _widen(mark: Span) -> Span:
    """Return a mark of at least `MIN_MARK_S` seconds, around the same middle."""
    if mark.seconds >= MIN_MARK_S - 1e-9:
        return mark
    start = max(0.0, (mark.start + mark.end - MIN_MARK_S) / 2)
    return Span(start, start + MIN_MARK_S)


class AnswerFault(ValueError):
    """An invalid answer; the message continues the field's question."""


@dataclass(frozen=True, kw_only=True)
class FormField:
    """A field of a form.

    `options` can be picked or ticked; `labels` are their texts where these differ. A `needed` field
    must be answered. `fills` names the part of the question that the field corrects: text and lines
    begin with its value, and must be changed to count as an answer. `least` and `most` bound the
    number of lines or spans; the number of decoys must stay the same. `about` is the statement that
    the field asks about, such as ("points", 0), the first of a question's points: the field is
    left out where there is none, and its question is the statement. `of_options`: a question
    without options has no such field.
    """

    name: str
    ask: str
    kind: Kind = "pick"
    options: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    needed: bool = True
    hint: str = ""
    fills: Part | None = None
    least: int = 0
    most: int = MAX_SPANS
    about: tuple[Literal["points", "contradictions"], int] | None = None
    of_options: bool = False

    def __post_init__(self) -> None:
        where = f"form field {self.name!r}"
        if not self.name.isidentifier():
            raise UserError(f"{where}: name= must have letters, digits and _ only")
        if self.kind not in get_args(Kind):
            raise UserError(f"{where}: kind={self.kind!r}: choose one of {get_args(Kind)!r}")
        if self.fills is not None and self.fills not in get_args(Part):
            raise UserError(f"{where}: fills={self.fills!r}: choose one of {get_args(Part)!r}")
        if bool(self.options) != (self.kind in ("pick", "ticks")):
            raise UserError(
                f"{where}: options={self.options!r} with kind={self.kind!r}: pick and ticks need "
                "options, other kinds have none"
            )
        if any("," in option for option in self.options) or set(self.labels) - set(self.options):
            raise UserError(
                f"{where}: an option has a comma, or a label is for an unknown option: "
                f"options={self.options!r}, labels={dict(self.labels)!r}"
            )

    def applies_to(self, question: Question) -> bool:
        """Return whether the question has what the field asks about."""
        if self.about is not None:
            return self.about[1] < len(getattr(question, self.about[0]))
        needs_options = self.of_options or self.kind == "option" or self.fills == "decoys"
        return bool(question.options) or not needs_options

    def asked_of(self, question: Question) -> FormField:
        """Return the field as it is asked of a question that it applies to."""
        if self.about is None:
            return self
        statement = getattr(question, self.about[0])[self.about[1]]
        text = statement.text if isinstance(statement, Point) else statement
        return replace(self, ask=f"{self.ask}: {text}")

    def initial_text(self, question: Question) -> str:
        """Return the initial text of a field that `fills` a part."""
        if self.fills is None or self.kind == "spans":
            return ""
        value = part(question, self.fills)
        return "\n".join(value) if self.kind == "lines" else str(value)

    def read(self, text: str, question: Question, duration: float | None = None) -> Any:
        """Parse an answer; None if it is empty or leaves a part unchanged. Raises AnswerFault."""
        text = text.replace("\r\n", "\n").strip()
        if not text:
            if self.needed and self.kind != "ticks":
                raise AnswerFault("is not answered")
            return [] if self.kind == "ticks" else None
        answer = self._parse(text, question, duration)
        if self.fills == "decoys" and len(answer) != len(question.options) - 1:
            raise AnswerFault(f"has {len(answer)} lines, and needs {len(question.options) - 1}")
        if self.kind in ("text", "lines") and self.fills is not None:
            initial = part(question, self.fills)
            return None if answer == initial else answer
        return answer

    def _parse(self, text: str, question: Question, duration: float | None) -> Any:
        if self.kind == "pick":
            return self._option(text)
        if self.kind == "ticks":
            ticks = text.split(",")
            if len(set(ticks)) < len(ticks):
                raise AnswerFault("has the same tick twice")
            return sorted((self._option(tick) for tick in ticks), key=self.options.index)
        if self.kind == "option":
            if not text.isdecimal() or int(text) >= len(question.options):
                raise AnswerFault(f"is {text[:40]!r}, which is not one of the options")
            return int(text)
        if len(text) > MAX_ANSWER_CHARS:
            raise AnswerFault(f"has {len(text)} characters; at most {MAX_ANSWER_CHARS} are allowed")
        if self.kind == "text":
            return text
        if self.kind == "lines":
            return self._within_bounds([" ".join(x.split()) for x in text.split("\n") if x.strip()])
        return self._within_bounds(_parse_spans(text, duration))

    def _option(self, text: str) -> str:
        if text not in self.options:
            raise AnswerFault(f"is {text[:40]!r}, which is not one of the options")
        return text

    def _within_bounds(self, items: list[Any]) -> list[Any]:
        if not self.least <= len(items) <= self.most:
            noun = "spans" if self.kind == "spans" else "lines"
            bounds = str(self.least) if self.least == self.most else f"{self.least} to {self.most}"
            raise AnswerFault(f"has {len(items)} {noun}, and needs {bounds}")
        return items


def part(question: Question, name: Part) -> Any:
    """Return a part of a question in the form of an answer to a field that fills it."""
    right = question.answer
    if question.answer_index is not None and question.options:
        right = question.options[question.answer_index]
    return {
        "question": question.question,
        "answer": right,
        "decoys": [o for i, o in enumerate(question.options) if i != question.answer_index],
        "scoring_points": list(question.scoring_points),
        "evidence": [[s.start, s.end] for s in question.evidence],
    }[name]


def _parse_spans(text: str, duration: float | None) -> list[list[float]]:
    """Parse lines of START-END in seconds."""
    spans: list[list[float]] = []
    for line in text.replace(";", "\n").split("\n"):
        if not line.strip():
            continue
        start, dash, end = line.partition("-")
        try:
            span = [round(float(start), 3), round(float(end), 3)]
        except ValueError:
            raise AnswerFault(
                f"has {line.strip()[:40]!r}, which is not START-END in seconds"
            ) from None
        late = duration is not None and span[1] > duration + 0.5
        if not dash or not 0 <= span[0] < span[1] or late:
            raise AnswerFault(
                f"has {line.strip()!r}: a span must start before it ends, within the video"
            )
        spans.append(span)
    return spans


@dataclass(frozen=True, kw_only=True)
class Check:
    """A rule over several fields: if all answers in `when` are given, the other conditions hold.

    All answers in `every` must be given, at least one of those in `one` (`*` matches any answer),
    and the spans of each field in `seconds` must have that total length. `say` is the message to
    the rater otherwise.
    """

    when: Mapping[str, str]
    say: str
    every: Mapping[str, str] = field(default_factory=dict[str, str])
    one: Mapping[str, str] = field(default_factory=dict[str, str])
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])

    def holds(self, answers: Answers, without: Collection[str] = ()) -> bool:
        """Whether the answers keep the rule; those of the fields `without` are not wanted."""
        if not all(answers.get(name) == value for name, value in self.when.items()):
            return True
        long_enough = all(
            sum(s.seconds for s in merge_marks([Span(*s) for s in answers.get(name, ())]))
            >= least - 1e-9
            for name, least in self.seconds.items()
        )
        all_given = all(
            _matches(answers, name, value)
            for name, value in self.every.items()
            if name not in without
        )
        one_given = not self.one or any(_matches(answers, name, v) for name, v in self.one.items())
        return long_enough and all_given and one_given


def _matches(answers: Answers, name: str, value: str) -> bool:
    given = answers.get(name)
    return given not in (None, "", []) if value == ANY_ANSWER else given == value


@dataclass(frozen=True, kw_only=True)
class FormStep:
    """A page of a round.

    `shows` lists the elements shown: those of `PAGE_ELEMENTS`; `votes`, the votes of the previous
    round; `reply`, a model's written answer; and `doubt`, what speaks against the key. Answers are
    final once the next step is shown. `note` is the instruction.
    """

    fields: tuple[FormField, ...] = ()
    shows: tuple[str, ...] = PAGE_ELEMENTS
    note: str = ""

    def __post_init__(self) -> None:
        elements = (*PAGE_ELEMENTS, *HIDDEN_ELEMENTS)
        if unknown := set(self.shows) - {*elements}:
            raise UserError(f"a form's step shows={sorted(unknown)!r}: of {elements!r}")

    def read(
        self, texts: Mapping[str, str], question: Question, duration: float | None = None
    ) -> tuple[dict[str, Any], list[str]]:
        """Return (field -> answer, faults); the answers count only without faults."""
        fields = [f.asked_of(question) for f in self.fields if f.applies_to(question)]
        unknown = sorted(set(texts) - {f.name for f in fields})
        faults = [f"there is no field {name[:40]!r}" for name in unknown]
        answers: dict[str, Any] = {}
        for field_ in fields:
            try:
                value = field_.read(texts.get(field_.name, ""), question, duration)
            except AnswerFault as fault:
                faults.append(f"“{field_.ask}” {fault}")
                continue
            if value is not None:
                answers[field_.name] = value
        return answers, faults


@dataclass(frozen=True, kw_only=True)
class Round:
    """A round of votes on a question, by raters who have not had the question before.

    - `votes`: number of votes; null means the job's `raters=`
    - `senior`: for experienced raters only
    - `after`: name of the round that must be complete first, without dropping the question
    - `seconds`: time limit per question, over all steps
    - `fps`: frames shown per second; null shows all
    - `task`: kind of a task on videos, where the name is another one
    - `covers`: seconds from the beginning of a video that a task is about; null means all
    - `lengths`: shortest and longest video of a task, seconds; null means any
    - `hours`: work of all raters together after which no more questions of this round are given
    - `falls`: field -> settled answers that drop the question
    - `needs`: tick fields of which every option must be settled, else the question is dropped
    """

    name: str
    steps: tuple[FormStep, ...]
    title: str = ""
    votes: int | None = None
    senior: bool = False
    after: str | None = None
    seconds: float | None = None
    fps: float | None = None
    task: str | None = None
    covers: float | None = None
    lengths: tuple[float, float] | None = None
    hours: float | None = None
    falls: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    needs: tuple[str, ...] = ()

    def suits(self, duration: float | None) -> bool:
        """Whether a task is for a video of this length, in seconds; unknown lengths suit only tasks
        on the whole video.
        """
        if duration is None:
            return self.covers is None
        least, most = self.lengths or (0.0, duration)
        return least <= duration <= most and (self.covers is None or duration > self.covers)

    @property
    def fields(self) -> tuple[FormField, ...]:
        return tuple(f for step in self.steps for f in step.fields)

    def field_named(self, name: str) -> FormField:
        """Return the field of that name."""
        return next(f for f in self.fields if f.name == name)


@dataclass(frozen=True, kw_only=True)
class RatingForm:
    """A form of one or more rounds.

    - `rule`: how votes settle (`mustsee.raters.decision`)
    - `right`: field -> settled answer; a question is right if all match
    - `checks`: rules over several fields
    - `modality`: the field that says whether a question needs audio, video or both
    - `dealt`: items are assigned to raters in advance, a question to another rater in each round
    - `videos`: the rounds are tasks on videos, in which raters write questions
    - `replies`: raters judge models' written answers; by their points where `points` is true
    - `errata`: raters decide on the doubtful keys of a file; the votes become such a file
    - `draws`: numbers of videos and of questions on them that each rater gets, drawn at random
    """

    name: str
    title: str
    rounds: tuple[Round, ...]
    rule: Literal["majority", "unanimous", "strictest"] = "majority"
    """Keep each moment that most raters marked."""
    right: Mapping[str, str] = field(default_factory=dict[str, str])
    """Answers that make a question right; needing the video is a separate matter."""
    checks: tuple[Check, ...] = ()
    modality: str | None = None
    """Field that defines the subset `mmh`."""
    dealt: bool = False
    videos: bool = False
    replies: bool = False
    points: bool = False
    errata: bool = False
    draws: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.rule not in ("majority", "unanimous", "strictest"):
            raise UserError(f"form.rule={self.rule!r}: choose majority, unanimous or strictest")
        if self.errata and not any(f.name == "verdict" for r in self.rounds for f in r.fields):
            raise UserError(f"form {self.name!r}: errata=true needs a field named verdict")
        for number, round_ in enumerate(self.rounds):
            names = [f.name for f in round_.fields]
            where = f"form {self.name!r}, round {round_.name!r}"
            if len(set(names)) < len(names):
                raise UserError(f"{where}: two fields have the same name: {names!r}")
            if round_.after is not None and round_.after not in [
                r.name for r in self.rounds[:number]
            ]:
                raise UserError(f"{where}: after={round_.after!r} is not an earlier round")
            options_of = {f.name: f.options for f in round_.fields}
            for name, options in round_.falls.items():
                if not set(options) <= set(options_of.get(name, ())):
                    raise UserError(f"{where}: falls.{name}={options!r}: not an option")
            if self.rounds and (unknown := set(round_.needs) - set(options_of)):
                raise UserError(f"{where}: needs={sorted(unknown)!r}: not fields")
            for name, option in self.right.items():
                if option not in options_of.get(name, ()):
                    raise UserError(f"{where}: right.{name}={option!r}: not an option")

    def round(self, name: str) -> Round:
        """Return the round of that name."""
        return next(r for r in self.rounds if r.name == name)

    def faults(self, answers: Answers, question: Question) -> list[str]:
        """Return the messages of the checks that the answers, valid by themselves, violate."""
        fields = [f for round_ in self.rounds for f in round_.fields]
        without = {f.name for f in fields if not f.applies_to(question)}
        return [check.say for check in self.checks if not check.holds(answers, without)]
