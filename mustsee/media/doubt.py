"""Which lines of a recogniser are not believed: Whisper writes down something for any sound, "Thank
you." for noise, one phrase over and over for a language that it does not know.

The thresholds of loops and silence are those of Whisper's own decoder (Radford et al. 2022, section
4.5); the others were measured on speech, noise and ten languages (docs/hearing.md).
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from mustsee.records import Line

# what a loop counts for among its neighbours: the model is sure of it, and wrong
LOOP_LOG_PROB = -2.0


@dataclass(frozen=True, kw_only=True)
class RecognisedSpeech:
    """What was recognised in one stretch of speech: `log_prob` is the mean of its tokens',
    `no_speech` the probability that nobody speaks.
    """

    lines: tuple[Line, ...]
    log_prob: float
    no_speech: float

    @property
    def text(self) -> str:
        return " ".join(line.text for line in self.lines)

    @property
    def start(self) -> float:
        return self.lines[0].start

    @property
    def seconds(self) -> float:
        return max(0.1, self.lines[-1].end - self.start)


@dataclass(frozen=True, kw_only=True)
class DoubtThresholds:
    """`compression`: how many times zlib may shorten a text before it is a loop. `unsure`: mean
    log-probability below which nothing is believed. `no_speech`: probability above which nobody
    speaks, unless the words are surer than `quiet`. `strange`: where the mean of all within
    `around` seconds is below it, another language is spoken than the only one that the model knows;
    what is surer than `clear` is believed even there.
    """

    compression: float = 2.4
    unsure: float = -1.0
    no_speech: float = 0.6
    quiet: float = -0.6
    strange: float = -0.8
    clear: float = -0.6
    around: float = 30.0

    def reason(self, guess: RecognisedSpeech) -> str | None:
        """Why a guess is not believed, on its own: "loop", "no speech", "unsure", or None."""
        if ratio(guess.text) > self.compression:
            return "loop"
        if guess.no_speech > self.no_speech and guess.log_prob < self.quiet:
            return "no speech"
        return "unsure" if guess.log_prob < self.unsure else None

    def is_clear(self, believed: Sequence[RecognisedSpeech]) -> bool:
        """Whether what is believed, as long as it lasts, is on the mean surer than `clear`."""
        seconds = sum(guess.seconds for guess in believed)
        total = sum(guess.seconds * guess.log_prob for guess in believed)
        return seconds > 0 and total / seconds > self.clear

    def reasons(
        self, guesses: Sequence[RecognisedSpeech], *, one_language: bool
    ) -> list[str | None]:
        """Why each is not believed; of a model of `one_language` also "strange"."""
        alone = [self.reason(guess) for guess in guesses]
        if not one_language:
            return alone
        sure = [
            LOOP_LOG_PROB if why == "loop" else guess.log_prob
            for guess, why in zip(guesses, alone, strict=True)
        ]
        found: list[str | None] = []
        for guess, why in zip(guesses, alone, strict=True):
            doubtful = why is None and guess.log_prob < self.clear
            strange = doubtful and self._near(guess, guesses, sure) < self.strange
            found.append("strange" if strange else why)
        return found

    def _near(
        self, guess: RecognisedSpeech, guesses: Sequence[RecognisedSpeech], sure: Sequence[float]
    ) -> float:
        """The mean of `sure` around a guess, each for as long as it lasts."""
        low, high = guess.start - self.around, guess.start + guess.seconds + self.around
        near = [
            (other.seconds, value)
            for other, value in zip(guesses, sure, strict=True)
            if low < other.start + other.seconds and other.start < high
        ]
        return sum(s * value for s, value in near) / sum(s for s, _ in near)


def ratio(text: str) -> float:
    """How many times zlib shortens a text: about 1.5 for 20 s of speech, above 2.4 for loops."""
    data = text.encode()
    return len(data) / len(zlib.compress(data)) if data else 0.0
