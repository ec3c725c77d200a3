"""Read answer-equivalence data: human labels that train, calibrate and test a judge.

The project ships readers for the published layouts, and none of the data.

- BEM / AE (Bulian et al. 2022, Apache-2.0): jsonl with `qid gold_index question reference
  candidate label score`.
- NQ301 (Kamalloo et al. 2023, MIT): `NQ301_human.tsv` has the human label, `NQ301_BEM.tsv` the gold
  answers; in every other file of the set "Acceptable?" is that judge's own verdict.
- EVOUNA (Wang et al. 2023, Apache-2.0): json, five systems' answers to each question. Answers
  whose judgement is null and questions marked improper are left out.

Splits are by question, so that no question is on both sides.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import random
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mustsee.errors import UserError

SYSTEMS = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")


@dataclass(frozen=True, kw_only=True)
class LabelledPair:
    """A candidate and its references with the human label.

    `group` names the question; pairs of one group stay on one side of a split.
    """

    question: str
    candidate: str
    references: tuple[str, ...]
    label: bool
    group: str
    system: str = ""


@dataclass(frozen=True, kw_only=True)
class OtherJudgeScore:
    """Another judge's score of a pair, 0 to 1; 0 or 1 for a verdict, null without one."""

    question: str
    candidate: str
    score: float | None


def group_of(question: str) -> str:
    """Return the question's words in lower case: equal for questions that differ in case,
    punctuation or spacing only.
    """
    flat = unicodedata.normalize("NFKC", question).casefold()
    return " ".join(re.findall(r"\w+", flat))


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"no answer-equivalence file {str(path)!r}: check the path") from None
    except UnicodeDecodeError as error:
        raise UserError(
            f"{str(path)!r} is not UTF-8 ({error.reason} at byte {error.start})"
        ) from None


def _fields(row: Mapping[str, Any], names: Sequence[str], path: str | Path, number: int) -> None:
    missing = [name for name in names if row.get(name) is None]
    if missing:
        raise UserError(
            f"{str(path)!r}, record {number}: no {', '.join(map(repr, missing))}; "
            f"its fields are {sorted(k for k in row if k)!r}"
        )


def read_bem(path: str | Path) -> list[LabelledPair]:
    """Read BEM's jsonl, where a line may be one of several ratings of a pair.

    Lines with the same (qid, gold_index, candidate) are merged. A mean score above one half is
    TRUE; pairs at exactly one half are left out.
    """
    merged: dict[tuple[str, str, str], tuple[dict[str, Any], list[float]]] = {}
    for number, line in enumerate(_text(path).split("\n"), 1):  # splitlines() would split at U+2028
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise UserError(f"{str(path)!r}, line {number} is not JSON: {error}") from None
        _fields(row, ("question", "reference", "candidate"), path, number)
        key = (str(row.get("qid", group_of(row["question"]))), str(row.get("gold_index", 0)))
        score = row.get("score")
        if score is None:
            score = float(str(row.get("label")).strip().lower() == "equivalent")
        merged.setdefault((*key, row["candidate"]), (row, []))[1].append(float(score))
    pairs: list[LabelledPair] = []
    for row, scores in merged.values():
        mean = sum(scores) / len(scores)
        if mean != 0.5:
            pairs.append(
                LabelledPair(
                    question=row["question"],
                    candidate=row["candidate"],
                    references=(row["reference"],),
                    label=mean > 0.5,
                    group=group_of(row["question"]),
                )
            )
    return pairs


def _rows(path: str | Path, *names: str) -> list[dict[str, str]]:
    rows = list(csv.DictReader(io.StringIO(_text(path), newline=""), delimiter="\t"))
    if rows:
        _fields(rows[0], names, path, 1)
    return rows


def _key(row: Mapping[str, str]) -> tuple[str, str]:
    """Return (question, answer) without the spelling differences between the files of the set."""
    answer = re.sub(r"\s+(?=%)|\.0+$", "", row["Model answer"].strip())
    return group_of(row["Question"]), " ".join(answer.split())


def read_nq301(human: str | Path, gold: str | Path) -> list[LabelledPair]:
    """Read the human labels of NQ301 and the gold answers of its BEM file; pairs are unique."""
    answers = {
        group_of(row["Question"]): tuple(a.strip() for a in row["Gold answers"].split(" | "))
        for row in _rows(gold, "Question", "Gold answers")
    }
    pairs: dict[tuple[str, str], LabelledPair] = {}
    for row in _rows(human, "Question", "Model answer", "Acceptable?"):
        group = group_of(row["Question"])
        if group not in answers:
            raise UserError(f"{str(gold)!r} has no gold answers for {row['Question']!r}")
        pairs.setdefault(
            (row["Question"], row["Model answer"]),
            LabelledPair(
                question=row["Question"],
                candidate=row["Model answer"],
                references=answers[group],
                label=row["Acceptable?"].strip().lower() == "yes",
                group=group,
            ),
        )
    return list(pairs.values())


def read_rival(path: str | Path) -> dict[tuple[str, str], OtherJudgeScore]:
    """Read a judge's own verdicts from a file of the NQ301 set; `match` looks a pair up.

    BEM's score is its highest probability over the gold answers.
    """
    rivals: dict[tuple[str, str], OtherJudgeScore] = {}
    for row in _rows(path, "Question", "Model answer", "Acceptable?"):
        verdict = (row["Acceptable?"] or "").strip().lower()
        score = {"yes": 1.0, "no": 0.0}.get(verdict)
        if row.get("BEM probs per gold answer"):
            score = max(p[1] for p in json.loads(row["BEM probs per gold answer"]))
        rivals.setdefault(
            _key(row),
            OtherJudgeScore(question=row["Question"], candidate=row["Model answer"], score=score),
        )
    return rivals


def match(
    pair: LabelledPair, rivals: Mapping[tuple[str, str], OtherJudgeScore]
) -> OtherJudgeScore | None:
    """Return the other judge's score of this pair, or None."""
    return rivals.get(_key({"Question": pair.question, "Model answer": pair.candidate}))


def parse_golden_answers(text: str) -> tuple[str, ...]:
    """Split EVOUNA's golden answers at slashes, except in a span of years ("1979/80")."""
    answers = re.split(r"/(?!(?<=\d{3}/)\d{1,2}\b)", text)
    return tuple(dict.fromkeys(p.strip() for p in answers if p and p.strip()))


def read_evouna(path: str | Path) -> list[LabelledPair]:
    """Read EVOUNA's judged answers to questions that are not marked improper."""
    try:
        rows = json.loads(_text(path))
    except json.JSONDecodeError as error:
        raise UserError(f"{str(path)!r} is not JSON: {error}") from None
    pairs: list[LabelledPair] = []
    for number, row in enumerate(rows, 1):
        _fields(row, ("question",), path, number)
        references = parse_golden_answers(row.get("golden_answer") or "")
        if row.get("improper") or not references:
            continue
        for system in SYSTEMS:
            answer, label = row.get(f"answer_{system}"), row.get(f"judge_{system}")
            if answer and answer.strip() and label is not None:
                pairs.append(
                    LabelledPair(
                        question=row["question"],
                        candidate=answer,
                        references=references,
                        label=bool(label),
                        group=group_of(row["question"]),
                        system=system,
                    )
                )
    return pairs


def drop_shared_questions(
    pairs: Iterable[LabelledPair], others: Iterable[LabelledPair]
) -> list[LabelledPair]:
    """Return the pairs whose question is not among the others' questions."""
    other_groups = {p.group for p in others}
    return [p for p in pairs if p.group not in other_groups]


def split(
    pairs: Sequence[LabelledPair], *, share: float, seed: int
) -> tuple[list[LabelledPair], list[LabelledPair]]:
    """Return (rest, held out), with a `share` (0 to 1) of the questions held out.

    The split depends on the seed and the set of questions, not on their order.
    """
    groups = sorted({p.group for p in pairs})
    random.Random(f"{seed}/questions/held-out").shuffle(groups)
    held_out = set(groups[: round(share * len(groups))])
    rest = [p for p in pairs if p.group not in held_out]
    return rest, [p for p in pairs if p.group in held_out]


def digest(pairs: Iterable[LabelledPair]) -> str:
    """Return the SHA-256 of the pairs, independent of their order."""
    lines = sorted(
        json.dumps([p.question, p.candidate, p.references, p.label], ensure_ascii=False)
        for p in pairs
    )
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, kw_only=True)
class JudgeDataSources:
    """Files of BEM (jsonl) and EVOUNA (json), and the folder of the NQ301 set.

    NQ301 is the test set: its questions are removed from the other data. A share `held_out` of the
    remaining questions is the dev set, for thresholds and early stopping.
    """

    bem: tuple[str, ...] = ()
    evouna: tuple[str, ...] = ()
    nq301: str | None = None
    held_out: float = 0.2
    seed: int = 0

    def test(self) -> list[LabelledPair]:
        if self.nq301 is None:
            return []
        folder = Path(self.nq301)
        return read_nq301(folder / "NQ301_human.tsv", folder / "NQ301_BEM.tsv")

    def rivals(self) -> dict[str, dict[tuple[str, str], OtherJudgeScore]]:
        """Return judge name -> its verdicts on the test set."""
        if self.nq301 is None:
            return {}
        files = {"BEM": "NQ301_BEM.tsv", "GPT-4": "NQ301_gpt-4.tsv"}
        paths = {name: Path(self.nq301) / file for name, file in files.items()}
        return {name: read_rival(path) for name, path in paths.items() if path.exists()}

    def split(self) -> tuple[list[LabelledPair], list[LabelledPair]]:
        """Return (train, dev). Raises UserError if there are no pairs."""
        pairs = [p for path in self.bem for p in read_bem(path)]
        pairs += [p for path in self.evouna for p in read_evouna(path)]
        pairs = drop_shared_questions(pairs, self.test())
        if not pairs:
            raise UserError(
                "no answer-equivalence pairs: set evouna= (NQ.json) or bem= (train.jsonl) to "
                "files; docs/judge.md says where they come from"
            )
        return split(pairs, share=self.held_out, seed=self.seed)

    def hashes(self) -> dict[str, str]:
        """Return file name -> SHA-256."""
        paths = [*map(Path, self.bem), *map(Path, self.evouna)]
        if self.nq301 is not None:
            paths += sorted(Path(self.nq301).glob("NQ301_*.tsv"))
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
