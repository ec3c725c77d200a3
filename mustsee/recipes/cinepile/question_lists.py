"""Human-written question lists, with pronouns in place of names (CinePile, 2.2).

Embeddings would group questions by the names in them, so names become pronouns before clustering.
The rules need no model: a capitalised word within a sentence is a name, and so is a word that is
mostly capitalised in all lists together.
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
from mustsee.files.store import resolve
from mustsee.files.tables import TABLES, one_line_error, read_table, suffix_of
from mustsee.questions.checks import normal

_TOKEN = re.compile(r"[A-Za-z][A-Za-z.]*(?:[-'’][A-Za-z]+)*|\d+|[^\sA-Za-z\d]")
_CAPITAL = re.compile(r"[A-Z][a-z'’.]|[A-Z]{2,}$")
_KEEP = frozenset(  # capitalised words that are not names
    """I I'm I'd I'll I've TV Mr Mrs Ms Dr Mr. Mrs. Ms. Dr. Monday Tuesday Wednesday Thursday Friday
    Saturday Sunday January February March April May June July August September October November
    December Christmas English
    """.split()  # noqa: SIM905
)
_OPENERS = frozenset(".?!\"“”'‘[(:;…")  # tokens before the first word of a sentence
_JOINERS = frozenset({"of", "the", "and", "&", "-"})


@dataclass(frozen=True, kw_only=True)
class QuestionList:
    """A list. `question`: column of the questions; `title`: column of the video or show that a
    question is about, or null; `name`: name of the list.
    """

    path: str
    question: str = "question"
    title: str | None = None
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class ListedQuestion:
    """A question of a list: as written, with pronouns for names (`neutral`), and with its source.
    `times`: number of equal questions that it stands for.
    """

    text: str
    neutral: str
    source: str
    title: str = ""
    times: int = 1


def read_source(source: QuestionList) -> list[ListedQuestion]:
    """Read a `.txt`, `.csv`, `.tsv`, `.json`, `.jsonl` or `.parquet` list.

    The rows of JSON are the objects, at any depth, that have the column. Raises UserError.
    """
    name = source.name or PurePosixPath(source.path).stem
    questions: list[ListedQuestion] = []
    for row in _rows(source):
        text = row.get(source.question)
        if isinstance(text, str) and text.strip():
            title = str(row.get(source.title) or "") if source.title else ""
            # Some lists have the options below the question.
            text = " ".join(text.strip().split("\n")[0].split())
            questions.append(ListedQuestion(text=text, neutral=text, source=name, title=title))
    if not questions:
        raise UserError(f"{source.path!r} has no questions in the column {source.question!r}")
    return questions


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
        raise UserError(
            f"cannot read the questions {source.path!r}: {one_line_error(error)}"
        ) from error


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
    """Return the words that are names in any position: capitalised within sentences, and in lower
    case at most a third as often.
    """
    capitalised: Counter[str] = Counter()
    lower_case: Counter[str] = Counter()
    for question in questions:
        tokens = _TOKEN.findall(question)
        for index, token in enumerate(tokens):
            if token[0].islower():
                lower_case[token] += 1
            elif index and _CAPITAL.match(token) and tokens[index - 1] not in _OPENERS:
                capitalised[_bare(token)] += 1
    return frozenset(
        word
        for word, count in capitalised.items()
        if word not in _KEEP and word != word.upper() and lower_case[word.lower()] <= 0.3 * count
    )


def _bare(token: str) -> str:
    """Return the token without a possessive ending and full stops."""
    return re.sub(r"['’]s?$", "", token).rstrip(".")


def neutral(question: str, names: frozenset[str]) -> str:
    """Replace the first name by "someone", any other by "someone else", and names joined by "and"
    by "some people".

    A run of names ("Penny Hofstadter") is one name; possessives stay possessives. A name between an
    article and a noun ("the Mustang car") is left out.
    """
    parts: list[str] = []
    replacements: dict[str, str] = {}
    copied_to = 0
    tokens = list(_TOKEN.finditer(question))
    words = [token.group() for token in tokens]
    index = 0
    while index < len(tokens):
        if not _is_name(words, index, names):
            index += 1
            continue
        last = index
        while last + 1 < len(tokens):
            width = 2 if words[last + 1] in _JOINERS and last + 2 < len(tokens) else 1
            if not _is_name(words, last + width, names):
                break
            last += width
        first = index - 1 if index and words[index - 1] in _TITLES else index
        text = question[tokens[index].start() : tokens[last].end()]
        after = words[last + 1] if last + 1 < len(words) else ""
        before = words[first - 1].lower() if first else ""
        possessive = "'s" if _owns(words[last], after, names) else ""
        if before in _ARTICLES:
            first -= 1
        if before in _ARTICLES and not possessive and after.isalpha() and after not in _FUNCTION:
            replacement = words[first]
        elif {"and", "&"} & set(words[index:last]):
            replacement = "some people" + possessive
        else:
            replacement = (
                replacements.setdefault(_bare(text), "someone else" if replacements else "someone")
                + possessive
            )
        parts.append(question[copied_to : tokens[first].start()] + replacement)
        copied_to = tokens[last].end()
        index = last + 1
    text = " ".join(("".join(parts) + question[copied_to:]).split())
    return text[:1].upper() + text[1:]


_TITLES = frozenset({"Mr", "Mr.", "Mrs", "Mrs.", "Ms", "Ms.", "Dr", "Dr.", "Uncle", "Aunt"})
_ARTICLES = frozenset({"the", "a", "an"})
_POINTERS = _ARTICLES | {
    "this", "his", "her", "their", "my", "your", "our", "its", "in", "at", "another",
}  # fmt: skip
_FUNCTION = frozenset(
    """is are was were be been has have had do does did will would can could should says said say
    and or but if when while after before as because since until then with without to from in on at
    of for by into onto over about around through during that who which
    """.split()  # noqa: SIM905
)


def _owns(token: str, after: str, names: frozenset[str]) -> bool:
    """Whether the name is a possessive: with an apostrophe, or without one before a noun."""
    if re.search(r"['’]s?$", token):
        return True
    singular = token.capitalize().removesuffix("s")
    plural = token.endswith("s") and singular in names
    return plural and after.isalpha() and after.lower() not in _FUNCTION


def _is_name(words: Sequence[str], index: int, names: frozenset[str]) -> bool:
    token, word = words[index], _bare(words[index])
    before = words[index - 1] if index else ""
    if token[0].islower():  # "house" may be a name, but not in "the house" and "Chandler chase".
        stands_alone = before.lower() not in _POINTERS and _bare(before) not in names
        return len(word) > 2 and word.capitalize() in names and stands_alone
    within_sentence = before and before not in _OPENERS and _CAPITAL.match(token)
    return bool(within_sentence and word not in _KEEP and word != word.upper()) or word in names


def neutralize_pronouns(questions: Sequence[ListedQuestion]) -> list[ListedQuestion]:
    """Replace names by pronouns, and merge questions that are then equal."""
    names = names_in([q.text for q in questions])
    return merge_equal([replace(q, neutral=neutral(q.text, names)) for q in questions])


def merge_equal(questions: Sequence[ListedQuestion]) -> list[ListedQuestion]:
    """Merge questions with equal neutral text into the first one, which counts them."""
    counts = Counter(normal(q.neutral) for q in questions)
    first: dict[str, ListedQuestion] = {}
    for question in questions:
        key = normal(question.neutral)
        if key:
            first.setdefault(key, replace(question, times=counts[key]))
    return list(first.values())


def keep_distinct(vectors: NDArray[np.float32], *, alike: float, neighbours: int = 20) -> list[int]:
    """Return the rows to keep so that no two have a cosine of `alike` or more: the first of each
    such group. Each row is compared with its `neighbours` nearest ones (FAISS).
    """
    from mustsee.nn.vectors import Index

    scores, rows = Index(vectors).search(vectors, neighbours)
    dropped: set[int] = set()
    for row in range(len(vectors)):
        if row in dropped:
            continue
        for score, other in zip(scores[row].tolist(), rows[row].tolist(), strict=True):
            if other > row and score >= alike:
                dropped.add(other)
    return [row for row in range(len(vectors)) if row not in dropped]
