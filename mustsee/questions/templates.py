"""The words of a question around its parts, written and read by one template; and those of the
questions that ask when something is seen.

Code that must know what a composed question states reads it with the template that wrote it, so
that another wording needs no second change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from mustsee.records import Span


@dataclass(frozen=True)
class QuestionTemplate:
    """`text`: with each part as {part}. `choices`: the words that a part may be; other parts are
    free.
    """

    text: str
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    def fill(self, **parts: str) -> str:
        """Return the question with its parts."""
        return self.text.format(**parts)

    def read(self, question: str) -> dict[str, str] | None:
        """Return the parts of a question; null for one that this template cannot have written."""
        match = self._pattern.fullmatch(question)
        return match.groupdict() if match else None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        words = re.split(r"\{(\w+)\}", self.text)  # Every second one is a part.
        for n, name in enumerate(words):
            allowed = "|".join(map(re.escape, self.choices.get(name, ()))) or ".+"
            words[n] = f"(?P<{name}>{allowed})" if n % 2 else re.escape(name)
        return re.compile("".join(words), re.DOTALL)


ONCE = "Give its start and its end, in seconds."
AGAIN = "It comes more than once: give the start and the end of each time, in seconds."


def _when_template(text: str) -> QuestionTemplate:
    return QuestionTemplate(f"{text} {{times}}", {"times": (ONCE, AGAIN)})


SEEN, WORDS_SEEN = map(_when_template, ("When is {phrase} seen?", "When are {phrase} seen?"))
ASKS_WHEN = {  # words by the kind of the fact; of another kind it is seen
    "event": _when_template("When does this happen: {phrase}?"),
    "state": _when_template("When is this so: {phrase}?"),
}


def word_question(phrase: str, kind: str, times: int, *, is_written: bool = False) -> str:
    """Return the question that asks when, for a fact of a kind that is seen at so many separate
    times. `is_written`: it is words on the screen.

    >>> word_question("a boy in red rings a bell", "event", 1)
    'When does this happen: a boy in red rings a bell? Give its start and its end, in seconds.'
    """
    template = ASKS_WHEN.get(kind, WORDS_SEEN if is_written else SEEN)
    return template.fill(phrase=phrase, times=ONCE if times == 1 else AGAIN)


def stated_phrase(question: str) -> str:
    """Return the phrase that a question asks for; the whole question if it has other words."""
    read = (template.read(question) for template in (*ASKS_WHEN.values(), SEEN, WORDS_SEEN))
    return next((parts["phrase"] for parts in read if parts), question)


def word_spans(spans: Sequence[Span]) -> str:
    """Return spans in words: "12.5 to 18.0 s; 40.0 to 44.5 s"."""
    return "; ".join(f"{span.start:.1f} to {span.end:.1f} s" for span in spans)
