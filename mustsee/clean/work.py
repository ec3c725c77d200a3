"""The passes over the parts of a training set, each of which leaves a file for each part.

    read    rows-N.parquet      the rows as questions
    learn   features-N.npz, learned-N.npz
    ask     replies-N.parquet   (`actors.answer.blind_rows`)
    write   piece-*-N.*, tally-N.json

A file appears whole or not at all, so a run that was killed goes on with the parts that lack one.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from mustsee.clean import rule as rules
from mustsee.clean.columns import TrainingColumns, TrainingRow, read_question
from mustsee.clean.rule import BlindRule, LearnedGuesser, ReaderScores, RowVerdict
from mustsee.clean.table_parts import TablePart, TableRow, read_part, write_part
from mustsee.files import schemas
from mustsee.files.folders import write_whole
from mustsee.layouts.chat import messages, option_text
from mustsee.questions.learned import Features, fit_folds, make_features
from mustsee.records import Question
from mustsee.text import LETTERS

COMMON, BEATING = "common.json", "beating.json"
ROWS, KEPT, DROPPED, CHAT = "rows", "kept", "dropped", "chat"
# Classes of the lengths of videos.
LENGTHS = ((60, "0 to 1 min"), (600, "1 to 10 min"), (3600, "10 to 60 min"))


@dataclass(frozen=True, kw_only=True)
class CleanWork:
    """The settings of a run, and its folder of parts. `readers`: names of the models' columns."""

    folder: str
    columns: TrainingColumns
    source: str
    rule: BlindRule
    learned: LearnedGuesser
    readers: tuple[str, ...]
    seed: int

    def path(self, name: str, part: TablePart, suffix: str = ".parquet") -> Path:
        """Return the file that a pass leaves for a part."""
        return Path(self.folder) / f"{name}-{part.number:06d}{suffix}"

    def rows(self, part: TablePart) -> list[TrainingRow]:
        """Return the rows of a part, as the pass "read" left them."""
        table = pq.read_table(self.path("rows", part))
        return [schemas.load(TrainingRow, row) for row in table.to_pylist()]

    def read(self, part: TablePart) -> None:
        """Read a part's rows as questions."""
        source = self.source if self.columns.source is None else ""
        rows = [
            read_question(
                row.values, self.columns, f"{part.name}/{part.first + n}", source or part.name,
                row.fault,
            )
            for n, row in enumerate(read_part(part))
        ]  # fmt: skip
        sink = io.BytesIO()
        pq.write_table(schemas.table(rows, TrainingRow), sink)
        write_whole(self.path("rows", part), sink.getvalue())

    def count_answers(self, parts: Sequence[TablePart]) -> None:
        """Count the common answers of open questions over all parts."""
        target = Path(self.folder) / COMMON
        if target.exists():
            return
        answers = rules.CommonAnswers()
        for part in parts:
            for row in self.rows(part):
                if row.kind is not None and not row.options:
                    answers.add(row)
        write_whole(target, json.dumps(answers.by_group(), ensure_ascii=False).encode())

    def make_features(self, part: TablePart) -> None:
        """Write the features of a part's rows for the learned guess."""
        features = make_features([rules.as_choice(r, self._common) for r in self.rows(part)])
        self._write_arrays("features", part, **dataclasses.asdict(features))

    def _write_arrays(self, name: str, part: TablePart, **arrays: Any) -> None:
        sink = io.BytesIO()
        np.savez(sink, **arrays)
        write_whole(self.path(name, part, ".npz"), sink.getvalue())

    @cached_property
    def _common(self) -> Mapping[str, Sequence[Sequence[str]]]:
        return json.loads((Path(self.folder) / COMMON).read_bytes())

    def features(self, part: TablePart) -> Features:
        with np.load(self.path("features", part, ".npz")) as arrays:
            return Features(**arrays)

    def fit(self, parts: Sequence[TablePart]) -> None:
        """Fit the learned guess on all parts, and write its guesses at each."""
        if all(self.path("learned", part, ".npz").exists() for part in parts):
            return
        read = [lambda part=part: self.features(part) for part in parts]
        models = fit_folds(read, self.learned.rate, self.seed)
        for part in parts:
            features = self.features(part)
            size = part.rows
            chance, hit, choices = np.zeros(size, np.float32), np.zeros(size), np.zeros(size, int)
            for row, right, guess in zip(
                features.rows, features.rights, models.guess(features), strict=True
            ):
                choices[row] = len(guess)
                if right >= 0:
                    chance[row], hit[row] = guess[right], int(guess.argmax()) == right
            self._write_arrays("learned", part, chance=chance, hit=hit, choices=choices)

    def guesses(self, part: TablePart) -> list[RowGuess | None]:
        """Return the learned guess at each row of a part; None where it has none."""
        if not self.learned.on:
            return [None] * part.rows
        with np.load(self.path("learned", part, ".npz")) as arrays:
            chance, hit, choices = arrays["chance"], arrays["hit"], arrays["choices"]
        return [
            RowGuess(chance=float(c), right=float(h), choices=int(n)) if n else None
            for c, h, n in zip(chance, hit, choices, strict=True)
        ]

    def replies(self, part: TablePart) -> list[list[list[int]]]:
        """Return [row][reader][reply] (RIGHT, WRONG, FAILED); empty for a row left alone."""
        if not self.readers:
            return [[]] * part.rows
        return pq.read_table(self.path("replies", part))["replies"].to_pylist()

    def scores(self, parts: Sequence[TablePart]) -> dict[str, ReaderScores]:
        """Return the scores of all readers over all parts, by their names."""
        scores = {name: ReaderScores() for name in self.names}
        for part in parts:
            self.add_scores(scores, self.rows(part), self.guesses(part), self.replies(part))
        beating = {name: sorted(each.beats_chance()) for name, each in scores.items()}
        write_whole(Path(self.folder) / BEATING, json.dumps(beating).encode())
        return scores

    def add_scores(
        self,
        scores: Mapping[str, ReaderScores],
        rows: Sequence[TrainingRow],
        guesses: Sequence[RowGuess | None],
        replies: Sequence[Sequence[Sequence[int]]],
    ) -> None:
        """Add what the readers said of some rows; failed replies do not count."""
        for row, guess, given in zip(rows, guesses, replies, strict=True):
            if guess is not None:
                scores[rules.LEARNED].add(row, guess.right, 1 / guess.choices)
            for name, own in zip(self.readers, given, strict=not row.left):
                answered = [r for r in own if r != rules.FAILED]
                if answered:
                    chance = rules.chance_of_row(row) * len(answered)
                    scores[name].add(row, answered.count(rules.RIGHT), chance, len(answered))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all readers."""
        return (*self.readers, *([rules.LEARNED] if self.learned.on else []))

    @cached_property
    def _beating(self) -> dict[str, frozenset[str]]:
        plain = json.loads((Path(self.folder) / BEATING).read_bytes())
        return {name: frozenset(groups) for name, groups in plain.items()}

    def verdict(
        self, row: TrainingRow, guess: RowGuess | None, given: Sequence[Sequence[int]],
        beating: Mapping[str, frozenset[str]] | None = None,
    ) -> RowVerdict:  # fmt: skip
        """Return the verdict on a row. `beating`: by reader, where it beats chance; null: as the
        whole set has it.
        """
        knows: dict[str, bool | None] = {}
        if not row.left:
            chance = rules.chance_of_row(row)
            knows = {
                n: self.rule.knows(r, chance) for n, r in zip(self.readers, given, strict=True)
            }
            if guess is not None:
                knows[rules.LEARNED] = self.learned.knows(guess.chance, guess.choices)
        return rules.decide(row, self.rule, knows, self._beating if beating is None else beating)

    def verdicts(self, part: TablePart) -> list[RowVerdict]:
        """Return the verdicts on a part's rows."""
        arrived = zip(self.rows(part), self.guesses(part), self.replies(part), strict=True)
        return [self.verdict(*each) for each in arrived]

    def write(self, part: TablePart) -> None:
        """Write the pieces of a part, and its tally last."""
        source, rows = read_part(part), self.rows(part)
        guesses, replies, verdicts = self.guesses(part), self.replies(part), self.verdicts(part)
        fates = [verdict.fate(self.rule) for verdict in verdicts]
        columns = self._columns(rows, guesses, replies, verdicts, fates)
        kept = [n for n, (fate, _) in enumerate(fates) if fate != "drop"]
        dropped = [n for n, (fate, _) in enumerate(fates) if fate == "drop"]
        weights = {"clean_weight": columns["clean_weight"]} if self.rule.then == "weigh" else {}
        for name, chosen, added in (
            (ROWS, range(part.rows), columns), (KEPT, kept, weights), (DROPPED, dropped, columns)
        ):  # fmt: skip
            self._write_piece(name, part, source, list(chosen), added)
        chat = (chat_record(rows[n], fates[n][1]) for n in kept if not rows[n].left)
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in chat)
        write_whole(self.path(CHAT, part, ".jsonl"), text.encode())
        tally: rules.Tally = {}
        for row, verdict in zip(rows, verdicts, strict=True):
            what = verdict.reason if verdict.decided == "left alone" else verdict.decided
            key = (row.source, row.question_type, row.kind or "", length_of(row), what)
            tally[key] = tally.get(key, 0) + 1
        known = [list(v.known_by) for v in verdicts if v.decided == "known"]
        content = json.dumps({"tally": [[*k, n] for k, n in tally.items()], "known_by": known})
        write_whole(self.path("tally", part, ".json"), content.encode())

    def _write_piece(
        self, name: str, part: TablePart, source: Sequence[TableRow], chosen: Sequence[int],
        added: Mapping[str, Sequence[Any]],
    ) -> None:  # fmt: skip
        target = self.piece(name, part)
        unfinished = target.with_name(f".{target.name}.{os.getpid()}")
        write_part(part, source, chosen, added, unfinished)
        unfinished.replace(target)

    def piece(self, name: str, part: TablePart) -> Path:
        """Return the piece of a part for one of the tables."""
        return self.path(f"piece-{name}", part, Path(part.name).suffix)

    def _columns(
        self,
        rows: Sequence[TrainingRow],
        guesses: Sequence[RowGuess | None],
        replies: Sequence[Sequence[Sequence[int]]],
        verdicts: Sequence[RowVerdict],
        fates: Sequence[tuple[str, float]],
    ) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {
            "clean_verdict": [v.decided for v in verdicts],
            "clean_weight": [weight for _, weight in fates],
            "clean_kind": [row.kind for row in rows],
            "clean_known_by": [", ".join(v.known_by) for v in verdicts],
            "clean_reason": [v.reason for v in verdicts],
        }
        for index, name in enumerate(self.readers):
            shares = (given[index] if given else [] for given in replies)
            columns[f"clean_{name}"] = [
                f"{r.count(rules.RIGHT)}/{len(r) - r.count(rules.FAILED)}" if r else None
                for r in shares
            ]
        if self.learned.on:
            columns["clean_learned"] = [None if g is None else round(g.chance, 4) for g in guesses]
        return columns

    @property
    def added_columns(self) -> list[str]:
        """The names of the columns of verdicts."""
        return list(self._columns((), (), (), (), ()))

    def tally(self, parts: Sequence[TablePart]) -> Iterator[dict[str, Any]]:
        """Yield what the pass "write" counted of each part."""
        for part in parts:
            yield json.loads(self.path("tally", part, ".json").read_bytes())


@dataclass(frozen=True, kw_only=True)
class RowGuess:
    """`chance`: the probability that it gives the right answer among `choices`. `right`: 1 if that
    is its guess.
    """

    chance: float
    right: float
    choices: int


def length_of(row: TrainingRow) -> str:
    """Return the range of the length of a row's video."""
    if row.seconds is None:
        return "not known"
    return next((name for most, name in LENGTHS if row.seconds < most), "over 1 h")


def chat_record(row: TrainingRow, weight: float) -> dict[str, Any]:
    """Return a row as a record of a chat (`mustsee.layouts.chat`), with its weight, and for a
    reward its answer: the letter of the right option, or the text.
    """
    question = as_question(row)
    index = row.answer_index
    answer = row.answer if index is None else option_text(question, index)
    return {
        "id": row.question_id, "video": row.video, "weight": weight,
        "answer": row.answer if index is None else LETTERS[index], "kind": row.kind,
        "messages": list(messages(question, answer)),
    }  # fmt: skip


def as_question(row: TrainingRow) -> Question:
    """Return a row as a question, without its type, by which some are asked in another way."""
    return Question(
        question_id=row.question_id,
        video_id=row.video,
        recipe="table",
        question=row.question,
        question_type="",
        options=row.options,
        answer_index=row.answer_index,
        answer=row.answer,
    )
