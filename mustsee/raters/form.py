"""A rater's form: what is asked of one question, in which rounds and steps, and what becomes of the
question by the answers. Each is a choice of `conf/form/`; one engine shows, checks and counts them.

An answer is plain JSON by its field's kind: `pick` and `text` a string, `ticks` and `lines` a list
of strings, `option` the place of one of the question's own options, `spans` a list of [start, end]
in seconds. What a browser sends is text (`Field.read`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from mustsee.errors import UserError
from mustsee.raters.marks import length
from mustsee.records import Question, Span

MAX_ANSWER_CHARS = 4000  # characters of a written answer
MAX_SPANS = 60  # marked in one answer
Kind = Literal["pick", "ticks", "option", "text", "lines", "spans"]
Part = Literal["question", "answer", "decoys", "scoring_points", "evidence"]
SHOWN = ("video", "question", "options", "answer", "evidence", "transcript")
Answers = Mapping[str, Any]
FILLED = "*"  # in a check: any answer


class AnswerFault(ValueError):
    """An answer that cannot be taken; the text says why, after the name of the field."""


@dataclass(frozen=True, kw_only=True)
class FormField:
    """One thing asked. `options`: what can be picked or ticked, with `labels` for those that are
    shown as something else. `needed`: it may not be left out. `fills`: the part of the question
    that it corrects; text and lines stand there first, and left as they are, they are no answer.
    `least`, `most`: lines or spans; wrong options are as many as before.
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

    def __post_init__(self) -> None:
        where = f"form field {self.name!r}"
        if not self.name.isidentifier():
            raise UserError(f"{where}: letters, digits and _ only in name=")
        if self.kind not in get_args(Kind):
            raise UserError(f"{where}: kind={self.kind!r}: choose one of {get_args(Kind)!r}")
        if self.fills is not None and self.fills not in get_args(Part):
            raise UserError(f"{where}: fills={self.fills!r}: choose one of {get_args(Part)!r}")
        if bool(self.options) != (self.kind in ("pick", "ticks")):
            raise UserError(f"{where}: options={self.options!r} with kind={self.kind!r}")
        if any("," in option for option in self.options) or set(self.labels) - set(self.options):
            raise UserError(f"{where}: an option has a comma, or a label no option")

    def applies_to(self, question: Question) -> bool:
        """Whether it can be asked of this question."""
        return bool(question.options) or (self.kind != "option" and self.fills != "decoys")

    def initial_text(self, question: Question) -> str:
        """What a field that `fills` shows first, as text."""
        if self.fills is None or self.kind == "spans":
            return ""
        value = part(question, self.fills)
        return "\n".join(value) if self.kind == "lines" else str(value)

    def read(self, given: str, question: Question, duration: float | None = None) -> Any:
        """The answer; null where none is given, or it leaves a part as it was. Raises Fault."""
        given = given.replace("\r\n", "\n").strip()
        if not given:
            if self.needed and self.kind != "ticks":
                raise AnswerFault("is not answered")
            return [] if self.kind == "ticks" else None
        found = self._parsed(given, question, duration)
        if self.fills == "decoys" and len(found) != len(question.options) - 1:
            raise AnswerFault(f"has {len(found)} lines, and wants {len(question.options) - 1}")
        if self.kind in ("text", "lines") and self.fills is not None:
            before = part(question, self.fills)
            return None if found == before else found
        return found

    def _parsed(self, given: str, question: Question, duration: float | None) -> Any:
        if self.kind == "pick":
            return self._one(given)
        if self.kind == "ticks":
            said = given.split(",")
            if len(set(said)) < len(said):
                raise AnswerFault("has one tick twice")
            return sorted((self._one(tick) for tick in said), key=self.options.index)
        if self.kind == "option":
            if not given.isdecimal() or int(given) >= len(question.options):
                raise AnswerFault("is none of the options")
            return int(given)
        if len(given) > MAX_ANSWER_CHARS:
            raise AnswerFault(f"has more than {MAX_ANSWER_CHARS} characters")
        if self.kind == "text":
            return given
        if self.kind == "lines":
            return self._counted([" ".join(x.split()) for x in given.split("\n") if x.strip()])
        return self._counted(_spans(given, duration))

    def _one(self, given: str) -> str:
        if given not in self.options:
            raise AnswerFault(f"cannot be {given[:40]!r}")
        return given

    def _counted(self, found: list[Any]) -> list[Any]:
        if not self.least <= len(found) <= self.most:
            what = "parts" if self.kind == "spans" else "lines"
            bounds = str(self.least) if self.least == self.most else f"{self.least} to {self.most}"
            raise AnswerFault(f"has {len(found)} {what}, and wants {bounds}")
        return found


def part(question: Question, name: Part) -> Any:
    """A part of a question, as an answer of a field that fills it."""
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


def _spans(given: str, duration: float | None) -> list[list[float]]:
    """Lines of START-END in seconds."""
    found: list[list[float]] = []
    for line in given.replace(";", "\n").split("\n"):
        if not line.strip():
            continue
        start, dash, end = line.partition("-")
        try:
            span = [round(float(start), 3), round(float(end), 3)]
        except ValueError:
            raise AnswerFault(
                f"has {line.strip()[:40]!r}, which is no START-END in seconds"
            ) from None
        late = duration is not None and span[1] > duration + 0.5
        if not dash or not 0 <= span[0] < span[1] or late:
            raise AnswerFault(
                f"has {line.strip()!r}: a part begins before it ends, within the video"
            )
        found.append(span)
    return found


@dataclass(frozen=True, kw_only=True)
class Check:
    """Fields that go together: where all answers of `when` are given, those of `every` must be, one
    of `one` at least (`*`: any answer), and the spans of `seconds` that long in all. `say`: what
    the rater is told else.
    """

    when: Mapping[str, str]
    say: str
    every: Mapping[str, str] = field(default_factory=dict[str, str])
    one: Mapping[str, str] = field(default_factory=dict[str, str])
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])

    def holds(self, answers: Answers) -> bool:
        if not all(answers.get(name) == value for name, value in self.when.items()):
            return True
        long = all(
            length([Span(*s) for s in answers.get(name, ())]) >= least - 1e-9
            for name, least in self.seconds.items()
        )
        every = all(_given(answers, name, value) for name, value in self.every.items())
        one = not self.one or any(_given(answers, name, v) for name, v in self.one.items())
        return long and every and one


def _given(answers: Answers, name: str, value: str) -> bool:
    return bool(answers.get(name)) if value == FILLED else answers.get(name) == value


@dataclass(frozen=True, kw_only=True)
class FormStep:
    """A page of a round. `shows`: of SHOWN, and `votes`, what raters of the round before said. What
    a step was answered with stands once the next is shown. `note`: what to do here.
    """

    fields: tuple[FormField, ...] = ()
    shows: tuple[str, ...] = SHOWN
    note: str = ""

    def __post_init__(self) -> None:
        if strange := set(self.shows) - {*SHOWN, "votes"}:
            raise UserError(f"a form's step shows={sorted(strange)!r}: of {(*SHOWN, 'votes')!r}")

    def read(
        self, given: Mapping[str, str], question: Question, duration: float | None = None
    ) -> tuple[dict[str, Any], list[str]]:
        """The answers, and what keeps them from counting."""
        asked = [f for f in self.fields if f.applies_to(question)]
        strange = sorted(set(given) - {f.name for f in asked})
        faults = [f"there is no field {name[:40]!r}" for name in strange]
        answers: dict[str, Any] = {}
        for each in asked:
            try:
                value = each.read(given.get(each.name, ""), question, duration)
            except AnswerFault as fault:
                faults.append(f"“{each.ask}” {fault}")
                continue
            if value is not None:
                answers[each.name] = value
        return answers, faults


@dataclass(frozen=True, kw_only=True)
class Round:
    """Votes on a question by people who have not met it before. `votes`: how many; null: `raters=`.
    `senior`: by experienced raters. `after`: it comes once that round is complete and the question
    has not fallen there. `seconds`: for a question, all steps together. `fps`: pictures a second
    that are shown; null: all. `hours`: work in it, of all together. `falls`: field -> settled
    answers by which a question falls; `needs`: fields of which all ticks must be settled.
    """

    name: str
    steps: tuple[FormStep, ...]
    title: str = ""
    votes: int | None = None
    senior: bool = False
    after: str | None = None
    seconds: float | None = None
    fps: float | None = None
    hours: float | None = None
    falls: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    needs: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[FormField, ...]:
        return tuple(f for step in self.steps for f in step.fields)

    def of(self, name: str) -> FormField:
        """The field of that name."""
        return next(f for f in self.fields if f.name == name)


@dataclass(frozen=True, kw_only=True)
class RatingForm:
    """`right`: the settled answers by which a question counts as right, all of them. `rule`: how
    votes settle (`mustsee.raters.settle`). `modality`: the field that says what a question needs
    (audio, video or both). `dealt`: who rates what is dealt out before, each question to another
    person in each round. `videos`: the rounds are tasks on videos, in which questions are written.
    """

    name: str
    title: str
    rounds: tuple[Round, ...]
    rule: Literal["majority", "unanimous", "strictest"] = "majority"
    right: Mapping[str, str] = field(default_factory=dict[str, str])
    checks: tuple[Check, ...] = ()
    modality: str | None = None
    dealt: bool = False
    videos: bool = False

    def __post_init__(self) -> None:
        if self.rule not in ("majority", "unanimous", "strictest"):
            raise UserError(f"form.rule={self.rule!r}: majority, unanimous or strictest")
        for number, each in enumerate(self.rounds):
            names = [f.name for f in each.fields]
            where = f"form {self.name!r}, round {each.name!r}"
            if len(set(names)) < len(names):
                raise UserError(f"{where}: two fields have one name: {names!r}")
            if each.after is not None and each.after not in [r.name for r in self.rounds[:number]]:
                raise UserError(f"{where}: after={each.after!r} is no round before it")
            known = {f.name: f.options for f in each.fields}
            for name, options in each.falls.items():
                if not set(options) <= set(known.get(name, ())):
                    raise UserError(f"{where}: falls.{name}={options!r} is no option")
            if self.rounds and (lost := set(each.needs) - set(known)):
                raise UserError(f"{where}: needs={sorted(lost)!r} are no fields")
            for name, option in self.right.items():
                if option not in known.get(name, ()):
                    raise UserError(f"{where}: right.{name}={option!r} is no option")

    def round(self, name: str) -> Round:
        """The round of that name."""
        return next(r for r in self.rounds if r.name == name)

    def faults(self, answers: Answers) -> list[str]:
        """What is wrong with answers that are each right by themselves."""
        return [check.say for check in self.checks if not check.holds(answers)]
