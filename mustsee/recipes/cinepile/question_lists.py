"""Human-written question lists, read and made free of names (CinePile, 2.2).

Embeddings group questions by the names in them, so names become pronouns before clustering. The
rules here need no model: a word with a capital inside a sentence is a name, and so is any word that
is mostly written like that in all lists together.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mustsee.errors import UserError
from mustsee.questions.checks import normal
from mustsee.store import resolve
from mustsee.tables import TABLES, read_table, suffix_of

_TOKEN = re.compile(r"[A-Za-z][A-Za-z.]*(?:[-'’][A-Za-z]+)*|\d+|[^\sA-Za-z\d]")
_CAPITAL = re.compile(r"[A-Z][a-z'’.]|[A-Z]{2,}$")
_KEEP = frozenset(
    re.split(
        r"\s+",
        "I I'm I'd I'll I've TV Mr Mrs Ms Dr Mr. Mrs. Ms. Dr. Monday Tuesday Wednesday Thursday "
        "Friday Saturday Sunday January February March April May June July August September "
        "October November December Christmas English",
    )
)
_OPENERS = frozenset(".?!\"“”'‘[(:;…")  # what stands before a word that begins a sentence
_JOINERS = frozenset({"of", "the", "and", "&", "-"})


@dataclass(frozen=True, kw_only=True)
class QuestionList:
    """One list. `question`: the column of the questions; `title`: the column of the video, show or
    video that a question is on, where there is one; `name`: what the list is called.
    """

    path: str
    question: str = "question"
    title: str | None = None
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class ListedQuestion:
    """A question of a list: as written, with pronouns for names, and where it is from. `times`:
    how many questions became this one.
    """

    text: str
    neutral: str
    source: str
    title: str = ""
    times: int = 1


def read_source(source: QuestionList) -> list[ListedQuestion]:
    """The questions of a `.txt`, `.csv`, `.tsv`, `.json`, `.jsonl` or `.parquet` list.

    In JSON, the rows are the objects, at whatever depth, that have the column. Raises UserError.
    """
    name = source.name or PurePosixPath(source.path).stem
    found: list[ListedQuestion] = []
    for row in _rows(source):
        text = row.get(source.question)
        if isinstance(text, str) and text.strip():
            title = str(row.get(source.title) or "") if source.title else ""
            # Some lists hold the options below the question.
            text = " ".join(text.strip().split("\n")[0].split())
            found.append(ListedQuestion(text=text, neutral=text, source=name, title=title))
    if not found:
        raise UserError(f"{source.path!r} has no questions in the column {source.question!r}")
    return found


def _rows(source: QuestionList) -> Iterator[Mapping[str, Any]]:
    suffix = suffix_of(source.path)
    if suffix in TABLES:
        yield from read_table(source.path)
        return
    filesystem, path = resolve(source.path)
    try:
        text = filesystem.open_input_file(path).read().decode("utf-8-sig")
        if suffix == "json":
            yield from _objects(json.loads(text), source.question)
        else:
            yield from ({source.question: line} for line in text.splitlines())
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read the questions {source.path!r}: {error}") from error


def _objects(value: Any, key: str) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        if isinstance(value.get(key), str):
            yield cast(Mapping[str, Any], value)
            return
        value = list(cast(Mapping[str, Any], value).values())
    if isinstance(value, list):
        for item in cast(list[Any], value):
            yield from _objects(item, key)


def names_in(questions: Sequence[str]) -> frozenset[str]:
    """The words of the questions that are names wherever they stand: with a capital inside of
    sentences, and without one at most a third as often.
    """
    inside: Counter[str] = Counter()
    small: Counter[str] = Counter()
    for question in questions:
        tokens = _TOKEN.findall(question)
        for place, token in enumerate(tokens):
            if token[0].islower():
                small[token] += 1
            elif place and _CAPITAL.match(token) and tokens[place - 1] not in _OPENERS:
                inside[_bare(token)] += 1
    return frozenset(
        word
        for word, count in inside.items()
        if word not in _KEEP and word != word.upper() and small[word.lower()] <= 0.3 * count
    )


def _bare(token: str) -> str:
    """The token without a possessive ending and full stops."""
    return re.sub(r"['’]s?$", "", token).rstrip(".")


def neutral(question: str, names: frozenset[str]) -> str:
    """The question with "someone" for the first name, "someone else" for any other, "some people"
    for names that are joined by "and".

    A run of names ("Penny Hofstadter") is one; possessives stay possessives. A name that stands
    before a noun with an article ("the Mustang car") says which one, and goes.
    """
    parts: list[str] = []
    known: dict[str, str] = {}
    at = 0
    tokens = list(_TOKEN.finditer(question))
    words = [token.group() for token in tokens]
    index = 0
    while index < len(tokens):
        if not _is_name(words, index, names):
            index += 1
            continue
        last = index
        while last + 1 < len(tokens):
            step = 2 if words[last + 1] in _JOINERS and last + 2 < len(tokens) else 1
            if not _is_name(words, last + step, names):
                break
            last += step
        first = index - 1 if index and words[index - 1] in _TITLES else index
        text = question[tokens[index].start() : tokens[last].end()]
        after = words[last + 1] if last + 1 < len(words) else ""
        before = words[first - 1].lower() if first else ""
        owner = "'s" if _owns(words[last], after, names) else ""
        if before in _ARTICLES:
            first -= 1
        if before in _ARTICLES and not owner and after.isalpha() and after not in _FUNCTION:
            who = words[first]
        elif {"and", "&"} & set(words[index:last]):
            who = "some people" + owner
        else:
            who = known.setdefault(_bare(text), "someone else" if known else "someone") + owner
        parts.append(question[at : tokens[first].start()] + who)
        at = tokens[last].end()
        index = last + 1
    text = " ".join(("".join(parts) + question[at:]).split())
    return text[:1].upper() + text[1:]


_TITLES = frozenset({"Mr", "Mr.", "Mrs", "Mrs.", "Ms", "Ms.", "Dr", "Dr.", "Uncle", "Aunt"})
_ARTICLES = frozenset({"the", "a", "an"})
_POINTERS = _ARTICLES | {
    "this",
    "his",
    "her",
    "their",
    "my",
    "your",
    "our",
    "its",
    "in",
    "at",
    "another",
}
_FUNCTION = frozenset(
    re.split(
        r"\s+",
        "is are was were be been has have had do does did will would can could should says said "
        "say and or but if when while after before as because since until then with without to "
        "from in on at of for by into onto over about around through during that who which",
    )
)


def _owns(token: str, after: str, names: frozenset[str]) -> bool:
    """Is the name a possessive, with an apostrophe or (where a noun may follow) without?"""
    if re.search(r"['’]s?$", token):
        return True
    singular = token.capitalize().removesuffix("s")
    plural = token.endswith("s") and singular in names
    return plural and after.isalpha() and after.lower() not in _FUNCTION


def _is_name(words: Sequence[str], place: int, names: frozenset[str]) -> bool:
    token, word = words[place], _bare(words[place])
    before = words[place - 1] if place else ""
    if token[0].islower():  # "house" is a name; in "the house" and "Chandler chase" it is none
        alone = before.lower() not in _POINTERS and _bare(before) not in names
        return len(word) > 2 and word.capitalize() in names and alone
    inside = before and before not in _OPENERS and _CAPITAL.match(token)
    return bool(inside and word not in _KEEP and word != word.upper()) or word in names


def neutralize_pronouns(questions: Sequence[ListedQuestion]) -> list[ListedQuestion]:
    """The questions with pronouns by the rules; equal ones (by their words) become one."""
    names = names_in([q.text for q in questions])
    return merge_equal([replace(q, neutral=neutral(q.text, names)) for q in questions])


def merge_equal(questions: Sequence[ListedQuestion]) -> list[ListedQuestion]:
    """Equal neutral questions become the first of them, which counts them."""
    counts = Counter(normal(q.neutral) for q in questions)
    first: dict[str, ListedQuestion] = {}
    for question in questions:
        key = normal(question.neutral)
        if key:
            first.setdefault(key, replace(question, times=counts[key]))
    return list(first.values())


def keep_distinct(vectors: NDArray[np.float32], *, alike: float, neighbours: int = 20) -> list[int]:
    """Rows to keep so that no two are at a cosine of `alike` or more: of each such group the first.

    Each row is compared with its `neighbours` nearest (FAISS).
    """
    from mustsee.vectors import Index

    scores, rows = Index(vectors).search(vectors, neighbours)
    dropped: set[int] = set()
    for row in range(len(vectors)):
        if row in dropped:
            continue
        for score, other in zip(scores[row].tolist(), rows[row].tolist(), strict=True):
            if other > row and score >= alike:
                dropped.add(other)
    return [row for row in range(len(vectors)) if row not in dropped]
