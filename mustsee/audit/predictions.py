"""Votes on keys of models that answered elsewhere: files of replies, and earlier evaluations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mustsee.errors import UserError
from mustsee.evaluate.answers import answers
from mustsee.evaluate.predictions import read_predictions
from mustsee.layouts import read
from mustsee.records import Question
from mustsee.replies.extract import extract
from mustsee.text import LETTERS, printable

SETTING = "predictions"  # the key of the job, as messages name it
NamedOptions = Mapping[str, int | None]
"""Question id -> the index of the option that a model names; None where its reply names none."""


@dataclass(frozen=True, kw_only=True)
class PredictedVotes:
    """The votes of one model: question id -> the option's index.

    `unknown`: number of its replies to other questions; `unread`: of those to these questions that
    name no option, or no option in all rotations.
    """

    model: str
    votes: Mapping[str, int]
    unknown: int
    unread: int

    @property
    def sentence(self) -> str:
        text = f"predictions of {self.model}: {len(self.votes)} questions answered"
        text += f", {self.unread} replies name no option" if self.unread else ""
        text += f", {self.unknown} are to questions that are not here" if self.unknown else ""
        return printable(text)


def read_predicted_votes(
    paths: Sequence[str], questions: Sequence[Question]
) -> list[PredictedVotes]:
    """Return the votes of each model in `paths`: files of replies (`read_predictions`), named by
    their file, and output folders of evaluations. Raises UserError for a model named twice, and for
    one without a reply to any of the questions.
    """
    by_id = {q.question_id: q for q in questions}
    models = [
        _count_votes(path, model, named, by_id)
        for path in paths
        for model, named in _read_options(path, by_id)
    ]
    names = [each.model for each in models]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UserError(f"{SETTING}: {twice} are named twice; each model needs its own file name")
    return models


def _count_votes(
    path: str, model: str, named: NamedOptions, by_id: Mapping[str, Question]
) -> PredictedVotes:
    answered = {name: option for name, option in named.items() if name in by_id}
    if not answered:
        given, example = next(iter(named), "none"), next(iter(by_id), "none")
        raise UserError(
            f"{SETTING}={path!r}: none of its {len(named)} ids, such as {given!r}, is one of the "
            f"{len(by_id)} questions', such as {example!r}"
        )
    votes = {name: option for name, option in answered.items() if option is not None}
    return PredictedVotes(
        model=model,
        votes=votes,
        unknown=len(named) - len(answered),
        unread=len(answered) - len(votes),
    )


def _read_options(path: str, by_id: Mapping[str, Question]) -> Iterator[tuple[str, NamedOptions]]:
    """Yield each model of a file or folder, with what it names."""
    if Path(path).is_dir():
        yield from _evaluated_options(path, by_id).items()
        return
    replies = read_predictions(path, key=SETTING)
    yield Path(path).stem, {name: _read_option(by_id.get(name), r) for name, r in replies.items()}


def _read_option(question: Question | None, reply: str) -> int | None:
    if question is None or not question.options:
        return None
    letter = extract(reply, question.options).letter
    return None if letter is None else LETTERS.index(letter)


def _evaluated_options(path: str, by_id: Mapping[str, Question]) -> Mapping[str, NamedOptions]:
    """Return model -> what it names in every rotation of an evaluation."""
    by_model: dict[str, dict[str, int | None]] = {}
    for question in read(path, "ours"):
        letters: dict[str, set[str | None]] = {}
        for answer in answers(question):
            if answer.failed is None:
                letters.setdefault(answer.model, set()).add(answer.letter)
        mine = by_id.get(question.question_id)
        for model, named in letters.items():
            only = next(iter(named)) if len(named) == 1 else None
            text = None if only is None else question.options[LETTERS.index(only)]
            option = mine.options.index(text) if mine and text in mine.options else None
            by_model.setdefault(model, {})[question.question_id] = option
    if not by_model:
        raise UserError(f"{SETTING}={path!r}: not the output folder of an evaluation: no replies")
    return by_model
