"""A rater's form: what is asked of one question, and what may be answered. Each is a choice of
`conf/form/`.

Answers are plain text by the field's name; several ticks of one field are joined by commas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mustsee.errors import UserError

LONGEST = 4000  # characters of a written answer


@dataclass(frozen=True, kw_only=True)
class Field:
    """One thing asked. `options`: what can be picked; none: it is written. `many`: any number of
    them. `hint`: a line below. An answer that is not `needed` may be left out.
    """

    name: str
    ask: str
    options: tuple[str, ...] = ()
    many: bool = False
    needed: bool = True
    hint: str = ""

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise UserError(f"form field name={self.name!r}: letters, digits and _ only")
        if any("," in option for option in self.options):
            raise UserError(f"form field {self.name!r}: an option has a comma: {self.options!r}")

    def fault(self, given: str) -> str | None:
        """What is wrong with an answer, for the rater to mend."""
        if not given.strip():
            return "is not answered" if self.needed else None
        if not self.options:
            return f"has more than {LONGEST} characters" if len(given) > LONGEST else None
        picked = given.split(",") if self.many else [given]
        if len(set(picked)) < len(picked) or not set(picked) <= set(self.options):
            return f"cannot be {given[:40]!r}"
        return None


@dataclass(frozen=True, kw_only=True)
class Form:
    """`right`: the answers by which a question counts as right, all of them. `falls`: field
    -> the answer that drops a question when most raters give it.
    """

    name: str
    title: str
    fields: tuple[Field, ...]
    right: Mapping[str, str] = field(default_factory=dict[str, str])
    falls: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        known = {f.name: f.options for f in self.fields}
        if len(known) < len(self.fields):
            raise UserError(f"form {self.name!r}: two fields have one name: {[*known]!r}")
        for which, rule in (("right", self.right), ("falls", self.falls)):
            for name, option in rule.items():
                if option not in known.get(name, ()):
                    raise UserError(f"form {self.name!r}: {which}.{name}={option!r} is no option")

    def faults(self, answers: Mapping[str, str]) -> list[str]:
        """What keeps the answers from counting; empty when nothing does."""
        names = {f.name for f in self.fields}
        found = [f"there is no field {name[:40]!r}" for name in sorted(set(answers) - names)]
        for each in self.fields:
            if fault := each.fault(answers.get(each.name, "")):
                found.append(f"“{each.ask}” {fault}")
        return found

    def of(self, name: str) -> Field:
        """The field of that name."""
        return next(f for f in self.fields if f.name == name)
