"""The words of a question around its parts, written and read by one template.

Code that must know what a composed question states reads it with the template that wrote it, so
that another wording needs no second change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property


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
