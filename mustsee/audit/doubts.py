"""Doubtful keys: questions whose key the models that saw the video do not name.

Each model has one vote on a question: the option that it names in every rotation under the
condition that shows most, the option of its reply in a file, or the option of all its looks in a
run's `sight`. Key and models are taken as annotators of one unknown right option (Dawid and Skene
1979, with one accuracy for each annotator and equally likely errors). The accuracies are estimated
from all questions together, and `doubt` is the probability that the key is not the right option.
Models that share an error look like a wrong key, so doubts are proposals for a person.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mustsee.audit.battery import SHORTCUTS, ConditionRun, Replies
from mustsee.errors import UserError
from mustsee.evaluate.answers import answers, read_predictions
from mustsee.layouts import read
from mustsee.layouts.errata import RULE, Erratum, key_of, option_value, whole_span
from mustsee.records import Question, group_pairs
from mustsee.replies.extract import extract
from mustsee.stats import Floats
from mustsee.text import LETTERS, printable

WATCHED = ("evidence", "whole", "frames")  # conditions in which a right model agrees with the key
SIGHT = "sight"  # filter whose verdicts are looks at the evidence
MIN_DOUBT = 0.15  # two of three good models against the key, where one key in twenty is wrong
MIN_NAMED = 2 / 3  # share of the doubt that falls on one other option, which is then named
MIN_VOTES = 2  # one model that disagrees with a key is more often wrong than the key
PRIOR_MODEL = (0.7, 10.0)  # accuracy of a model before any vote, and how many votes that weighs
PRIOR_KEY = (0.95, 20.0)
ROUNDS = 100  # rounds of the estimation, which ends before when nothing changes
AGREED, SPLIT = "agreed", "votes"
PREDICTIONS = "predictions"  # the key of the job, as messages name it
NamedOptions = Mapping[str, int | None]
"""Question id -> the index of the option that a model names; None where its reply names none."""
Votes = Mapping[str, Mapping[str, int]]
"""Voter -> question id -> the option's index."""


@dataclass(frozen=True, kw_only=True)
class SuspectQuestion:
    """A question whose key looks wrong.

    `named`: the likeliest other option; null where the doubt is spread over several.
    `models`: number of answerers that name it under `conditions`. `doubt`: probability that the
    key is wrong; null without votes. `rule`: "agreed", if all answerers that saw the video name
    `named` in every rotation; "votes", if `doubt` reaches the wanted one. `against`: voters that
    name another option than the key; `for_key`: those that name it; `blind_right`: answerers that
    name the key without the video.
    """

    question: str
    key: str
    named: str | None
    models: int
    conditions: tuple[str, ...]
    doubt: float | None = None
    rule: str = AGREED
    against: tuple[str, ...] = ()
    for_key: tuple[str, ...] = ()
    blind_right: tuple[str, ...] = ()

    @property
    def evidence(self) -> str:
        """What speaks against the key and for it, as one sentence."""
        named = "" if self.named is None else f" ({self.named!r} is likeliest)"
        parts = [f"not the key but another option{named}: {', '.join(self.against)}"]
        parts += [f"the key: {', '.join(self.for_key)}"] if self.for_key else []
        if self.blind_right:
            parts.append(f"the key without the video: {', '.join(self.blind_right)}")
        if self.doubt is not None:
            parts.append(f"estimated probability that the key is wrong: {self.doubt:.2f}")
        return "; ".join(parts)


def find_suspects(
    questions: Sequence[Question],
    replies: Replies,
    runs: Sequence[ConditionRun],
    votes: Votes,
    least: float = MIN_DOUBT,
) -> list[SuspectQuestion]:
    """Return the questions whose key is in doubt, the most doubtful first. `votes`: from
    `collect_votes`. `least`: lowest doubt by votes.
    """
    shares = estimate_shares(questions, votes)
    suspects = [
        suspect
        for number, question in enumerate(questions)
        if (suspect := _suspect(question, replies, runs, votes, shares[number], least)) is not None
    ]
    return sorted(suspects, key=lambda s: -(s.doubt or 0.0))


def _suspect(
    question: Question,
    replies: Replies,
    runs: Sequence[ConditionRun],
    votes: Votes,
    shares: Floats,
    least: float,
) -> SuspectQuestion | None:
    name, key = question.question_id, question.answer_index or 0
    cast = {voter: by_id[name] for voter, by_id in votes.items() if name in by_id}
    against = {voter: option for voter, option in cast.items() if option != key}
    doubt = float(1 - shares[key]) if cast else None
    agreed = find_agreed_option(question, replies, runs)
    if agreed is not None and agreed != key and key not in cast.values():
        option: int | None = agreed
    elif len(cast) >= MIN_VOTES and against and (doubt or 0.0) >= least:
        others = [0.0 if k == key else float(share) for k, share in enumerate(shares)]
        best = max(range(len(question.options)), key=lambda k: others[k])
        option = best if others[best] >= MIN_NAMED * sum(others) else None
    else:
        return None
    watched = [a for a in runs if a.condition in WATCHED
               and replies.find_steady_option(question, a) == option]  # fmt: skip
    return SuspectQuestion(
        question=name,
        key=question.options[key],
        named=None if option is None else question.options[option],
        models=sum(chosen == option for chosen in against.values()),
        conditions=tuple(dict.fromkeys(a.condition for a in watched)) if option is not None else (),
        doubt=doubt,
        rule=AGREED if agreed is not None and agreed == option else SPLIT,
        against=tuple(against),
        for_key=tuple(voter for voter, chosen in cast.items() if chosen == key),
        blind_right=_blind_right(question, replies, runs),
    )


def find_agreed_option(
    question: Question, replies: Replies, runs: Sequence[ConditionRun]
) -> int | None:
    """Return the option that the runs that saw the video agree on; None if they do not."""
    answered = [a for a in runs if a.condition in WATCHED and replies.answered_replies(question, a)]
    best = min((WATCHED.index(a.condition) for a in answered), default=None)
    if best is None:
        return None
    named = {a: replies.find_steady_option(question, a) for a in answered}
    nearest = {o for a, o in named.items() if WATCHED.index(a.condition) == best}
    options = {o for o in named.values() if o is not None}
    if len(nearest) != 1 or len(options) != 1 or None in nearest:
        return None
    return options.pop()


def _blind_right(
    question: Question, replies: Replies, runs: Sequence[ConditionRun]
) -> tuple[str, ...]:
    right = (
        a.answerer
        for a in runs
        if a.condition in SHORTCUTS
        and replies.find_steady_option(question, a) == question.answer_index
    )
    return tuple(dict.fromkeys(right))


def collect_votes(
    questions: Sequence[Question],
    replies: Replies,
    runs: Sequence[ConditionRun],
    predictions: Votes | None = None,
) -> dict[str, dict[str, int]]:
    """Return the votes of all that saw the video. `predictions`: those of replies from files."""
    votes: dict[str, dict[str, int]] = {}
    for question in questions:
        for answerer in dict.fromkeys(a.answerer for a in runs if a.condition in WATCHED):
            if (option := _vote(question, replies, runs, answerer)) is not None:
                votes.setdefault(answerer, {})[question.question_id] = option
        for model, option in looked_options(question).items():
            votes.setdefault(f"{model} ({SIGHT})", {})[question.question_id] = option
    ids = {q.question_id for q in questions}
    for voter, by_id in (predictions or {}).items():
        votes[voter] = {name: option for name, option in by_id.items() if name in ids}
    return votes


def _vote(
    question: Question, replies: Replies, runs: Sequence[ConditionRun], answerer: str
) -> int | None:
    """Return the option that an answerer names under the first of `WATCHED` that it answered."""
    for condition in WATCHED:
        for run in runs:
            if (run.answerer, run.condition) == (answerer, condition) and replies.answered_replies(
                question, run
            ):
                return replies.find_steady_option(question, run)
    return None


def looked_options(question: Question) -> dict[str, int]:
    """Return verifier -> the option of all its looks at the question as it is worded now, where
    every look chose the same one.
    """
    chosen = group_pairs(
        (v.model, str(json.loads(v.detail or "{}").get("chose")))
        for v in question.verdicts[question.earlier_verdicts :]
        if v.filter == SIGHT
    )
    letters = LETTERS[: len(question.options)]
    return {
        model: letters.index(only)
        for model, several in chosen.items()
        if len(set(several)) == 1 and len(only := several[0]) == 1 and only in letters
    }


def estimate_shares(questions: Sequence[Question], votes: Votes) -> Floats:
    """Return by question and option the probability that the option is right; 0 beyond the
    question's options. `questions`: with a key and at least two options each.
    """
    counts = np.array([len(q.options) for q in questions], dtype=np.int64)
    keys = [q.answer_index for q in questions]
    cast = [[votes[voter].get(q.question_id, -1) for q in questions] for voter in votes]
    ballots = np.array([keys, *cast], dtype=np.int64).reshape(1 + len(votes), len(questions))
    ballots[ballots >= counts] = -1  # the other version of a question has more options
    priors = np.array([PRIOR_KEY, *([PRIOR_MODEL] * len(votes))])
    accuracies: Floats = priors[:, 0]
    shares = _expected(ballots, counts, accuracies)
    for _ in range(ROUNDS):
        right = [float(shares[np.flatnonzero(row >= 0), row[row >= 0]].sum()) for row in ballots]
        given = (ballots >= 0).sum(axis=1)
        updated = (np.array(right) + priors[:, 0] * priors[:, 1]) / (given + priors[:, 1])
        shares = _expected(ballots, counts, updated)
        if np.abs(updated - accuracies).max(initial=0.0) < 1e-6:
            break
        accuracies = updated
    return shares


def _expected(ballots: NDArray[np.int64], counts: NDArray[np.int64], accuracies: Floats) -> Floats:
    """Return by question and option its probability under these accuracies."""
    most = int(counts.max(initial=1))
    logs = np.where(np.arange(most) < counts[:, None], 0.0, -np.inf)
    for row, accuracy in zip(ballots, accuracies, strict=True):
        voted = np.flatnonzero(row >= 0)
        chance = 1 / counts[voted]
        right = np.clip(accuracy, chance, 0.999)
        wrong = (1 - right) / (counts[voted] - 1)
        logs[voted] += np.log(wrong)[:, None]
        logs[voted, row[voted]] += np.log(right) - np.log(wrong)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def proposals(questions: Sequence[Question], suspects: Sequence[SuspectQuestion]) -> list[Erratum]:
    """Return an entry for each suspect, in their order. `new` is null where the key is likelier
    right than wrong: no file of proposals makes keys worse by itself.
    """
    by_id = {q.question_id: q for q in questions}
    entries: list[Erratum] = []
    for suspect in suspects:
        question = by_id[suspect.question]
        new = None
        if suspect.named is not None and (suspect.doubt or 0.0) > 0.5:
            new = option_value(question, question.options.index(suspect.named))
        entries.append(
            Erratum(
                id=suspect.question,
                old=key_of(question),
                new=new,
                span=whole_span(question),
                evidence=suspect.evidence,
                who=f"{RULE}audit {suspect.rule}",
            )
        )
    return entries


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
        raise UserError(
            f"{PREDICTIONS}: {twice} are named twice; each model needs its own file name"
        )
    return models


def _count_votes(
    path: str, model: str, named: NamedOptions, by_id: Mapping[str, Question]
) -> PredictedVotes:
    answered = {name: option for name, option in named.items() if name in by_id}
    if not answered:
        given, example = next(iter(named), "none"), next(iter(by_id), "none")
        raise UserError(
            f"{PREDICTIONS}={path!r}: none of its {len(named)} ids, such as {given!r}, is one of "
            f"the {len(by_id)} questions', such as {example!r}"
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
    replies = read_predictions(path, key=PREDICTIONS)
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
        letters = group_pairs((a.model, a.letter) for a in answers(question) if a.failed is None)
        mine = by_id.get(question.question_id)
        for model, named in letters.items():
            only = named[0] if len(set(named)) == 1 else None
            text = None if only is None else question.options[LETTERS.index(only)]
            option = mine.options.index(text) if mine and text in mine.options else None
            by_model.setdefault(model, {})[question.question_id] = option
    if not by_model:
        raise UserError(
            f"{PREDICTIONS}={path!r}: not the output folder of an evaluation: no replies"
        )
    return by_model
