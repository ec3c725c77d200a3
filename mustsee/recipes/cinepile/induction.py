"""CinePile's template induction (2.2): question lists become clusters, and clusters templates.

Of its output folder `templates.md` is for a person to edit; `templates.json` records its hash, so
that a later run does not overwrite an edited page.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyarrow import fs

from mustsee.calls.llm import Asker
from mustsee.errors import BadRow, UserError
from mustsee.files.store import resolve
from mustsee.nn.vectors import Clusters, kmeans
from mustsee.questions.drafts import fields
from mustsee.questions.rows import NumberedTexts, complete_texts, item_list
from mustsee.recipes.cinepile import question_lists as listing
from mustsee.recipes.cinepile import templates as templating
from mustsee.recipes.cinepile.question_lists import ListedQuestion, QuestionList
from mustsee.recipes.cinepile.templates import QuestionCluster, Template
from mustsee.replies.forms import Form, form

Embed = Callable[[list[str]], NDArray[np.float32]]
ShowStep = Callable[[str | Callable[[], str]], AbstractContextManager[None]]
QUESTIONS_PER_CALL = 20  # questions whose names one call replaces


@dataclass(frozen=True, kw_only=True)
class InducedTemplates:
    """The templates of one set of questions, its clusters, and its entry of the run's report."""

    templates: list[Template]
    clusters: list[QuestionCluster]
    report: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Induction:
    """Induces templates from one set of questions. `conf/templates.yaml` explains the settings.

    `namer`: the model that replaces names; null where rules do. `show_step`: a context that
    reports its text, or what its function returns, while it is open.
    """

    asker: Asker
    embed: Embed
    show_step: ShowStep
    namer: Asker | None = None
    sample: int = 10
    each: int = 4
    alike: float = 0.95
    one_title: float = 0.5
    seed: int = 0

    def induce(self, listed: Sequence[ListedQuestion], k: int, kind: str) -> InducedTemplates:
        """Merge repeats, cluster the rest into `k`, and ask for templates of each cluster.

        `kind` ("reasoning" or "perceptual") names the set. A cluster with more than the share
        `one_title` of its questions on one video or show gives no templates.
        """
        unique = listing.neutralize_pronouns(listed)
        if self.namer is not None:
            unique = asyncio.run(replace_names(unique, self.namer, self.show_step))
        with self.show_step(f"embedding {len(unique)} {kind} questions"):
            vectors = self.embed([q.neutral for q in unique])
        with self.show_step(f"leaving out repeats among {len(unique)} {kind} questions"):
            rows = listing.keep_distinct(vectors, alike=self.alike)
        unique, vectors = [unique[row] for row in rows], vectors[rows]
        with self.show_step(f"clustering {len(unique)} {kind} questions into {k}"):
            clustering = kmeans(vectors, k, seed=self.seed)
        clusters, groups = describe_clusters(kind, unique, vectors, clustering)
        titles = Counter(q.title for q in unique if q.title)
        shares = {title: n / len(unique) for title, n in titles.items()}
        skipped = {c.number for c in templating.one_sided(clusters, shares, self.one_title)}
        wanted = {n: group for n, group in enumerate(groups) if n not in skipped}
        report = {
            "questions": len(listed),
            "without_names_and_repeats": len(unique),
            "k": k,
            "inertia": clustering.inertia,
            "silhouette": clustering.silhouette,
            "one_title": sorted(skipped),
            "clusters": [dataclasses.asdict(c) for c in clusters],
        }
        templates = asyncio.run(self._write_templates(wanted, kind))
        return InducedTemplates(templates=templates, clusters=clusters, report=report)

    async def _write_templates(
        self, groups: Mapping[int, Sequence[ListedQuestion]], kind: str
    ) -> list[Template]:
        done = 0

        async def ask_group(number: int, group: Sequence[ListedQuestion]) -> list[Template]:
            nonlocal done
            rng = random.Random(f"{self.seed}/{kind}/{number}/templates")
            sample = rng.sample(list(group), min(self.sample, len(group)))
            try:
                templates = await self.asker.ask(
                    "cinepile/templates",
                    templating.templates_form(self.each),
                    seed=rng.randrange(2**31),
                    questions=[q.neutral for q in sample],
                    count=self.each,
                    categories=templating.CATEGORIES,
                )
            except BadRow as error:
                print(f"cluster {number}: {error}")
                return []
            finally:
                done += 1
            size = sum(q.times for q in group)
            return [replace(t, kind=kind, cluster=number, members=size) for t in templates]

        def progress() -> str:
            return f"templates of {kind} questions: {done} of {len(groups)} clusters"

        with self.show_step(progress):
            replies = await asyncio.gather(*(ask_group(n, g) for n, g in groups.items()))
        return [template for templates in replies for template in templates]


async def replace_names(
    listed: Sequence[ListedQuestion], asker: Asker, show_step: ShowStep
) -> list[ListedQuestion]:
    """The questions with their names replaced by a model, `QUESTIONS_PER_CALL` in a call; equal
    questions are merged again.
    """
    done = 0

    async def neutralize_group(questions: Sequence[ListedQuestion]) -> list[ListedQuestion]:
        nonlocal done
        texts = await asker.ask(
            "cinepile/pronouns",
            rewrites_form(len(questions)),
            questions=[q.neutral for q in questions],
        )
        done += len(questions)
        return [replace(q, neutral=t) for q, t in zip(questions, texts, strict=True)]

    size = QUESTIONS_PER_CALL
    groups = [listed[at : at + size] for at in range(0, len(listed), size)]
    with show_step(lambda: f"names in questions: {done} of {len(listed)}"):
        rewritten = await asyncio.gather(*map(neutralize_group, groups))
    return listing.merge_equal([q for questions in rewritten for q in questions])


def rewrites_form(count: int) -> Form[tuple[str, ...]]:
    """`count` questions, each under its number."""

    def parse_rewrites(reply: str) -> NumberedTexts:
        rewrites = [f for f in fields(reply) if f.label == "question" and f.text]
        return [(int(f.number) if f.number.isdecimal() else n, f.text)
                for n, f in enumerate(rewrites, 1)]  # fmt: skip

    shape = item_list("questions", "number", "question")
    return form(text=parse_rewrites, shape=shape).map(lambda parsed: complete_texts(parsed, count))


def describe_clusters(
    kind: str,
    questions: Sequence[ListedQuestion],
    vectors: NDArray[np.float32],
    clustering: Clusters,
) -> tuple[list[QuestionCluster], list[list[ListedQuestion]]]:
    """A description of each cluster (size, fit, most frequent title, words), and its questions.

    `vectors`: one unit vector a question, shape (questions, dimensions).
    """
    texts = [q.neutral for q in questions]
    clusters: list[QuestionCluster] = []
    groups: list[list[ListedQuestion]] = []
    for number in range(len(clustering.sizes)):
        rows = np.flatnonzero(clustering.labels == number).tolist()
        group = [questions[row] for row in rows]
        ((title, title_count),) = Counter(q.title for q in group if q.title).most_common(1) or [
            ("", 0)
        ]
        lists = Counter(q.source for q in group)
        cosines = vectors[rows] @ clustering.centroids[number]
        own_texts = [q.neutral for q in group]
        groups.append(group)
        clusters.append(
            QuestionCluster(
                kind=kind,
                number=number,
                size=len(group),
                silhouette=clustering.silhouettes[number],
                cosine=float(cosines.mean()),
                title=title,
                share=title_count / len(group),
                list_share=max(lists.values()) / len(group),
                words=templating.distinctive_words(own_texts, texts),
                nearest=tuple(own_texts[i] for i in np.argsort(-cosines)[:3].tolist()),
            )
        )
    return clusters, groups


def question_lists(value: str | Sequence[Any]) -> list[QuestionList]:
    """The lists of a setting: one path, or paths and `{path, question, title, name}`.

    Raises UserError for an entry of another form.
    """
    return [_question_list(entry) for entry in ([value] if isinstance(value, str) else value)]


def _question_list(entry: Any) -> QuestionList:
    if isinstance(entry, QuestionList):
        return entry
    settings = {"path": entry} if isinstance(entry, str) else entry
    keys = {f.name for f in dataclasses.fields(QuestionList)}
    if not isinstance(settings, Mapping) or not set(settings) <= keys or "path" not in settings:
        raise UserError(
            f"questions={entry!r}: must be a path, or {{path: ..., question: column, title: ...}}"
        )
    return QuestionList(**{str(k): v for k, v in settings.items()})


REVIEW = "templates.md"
REPORT = "templates.json"


def check_unedited(out: str) -> None:
    """Raise UserError where `out` holds a page that a person has edited since it was written."""
    filesystem, folder = resolve(out)
    try:
        report = json.loads(filesystem.open_input_file(f"{folder}/{REPORT}").read())
        page = filesystem.open_input_file(f"{folder}/{REVIEW}").read()
    except (FileNotFoundError, ValueError):
        return
    if report.get("review") != _sha256(page):
        raise UserError(
            f"{folder}/{REVIEW} was edited since it was written: choose another out=, or delete it"
        )


def write_output(
    out: str,
    templates: Sequence[Template],
    clusters: Sequence[QuestionCluster],
    report: Mapping[str, Any],
) -> None:
    """Write the templates, their page and the report into `out`."""
    filesystem, folder = resolve(out)
    with tempfile.TemporaryDirectory() as local:
        templating.write_templates(templates, local, clusters)
        review = _sha256(Path(local, REVIEW).read_bytes())
        text = json.dumps({**report, "review": review}, indent=2)
        Path(local, REPORT).write_text(text + "\n")
        filesystem.create_dir(folder, recursive=True)
        fs.copy_files(local, folder, fs.LocalFileSystem(), filesystem)


def summary(report: Mapping[str, Any], kept: Sequence[Template]) -> str:
    """The lines that a run prints: each set's clusters, and the number of templates."""
    lines: list[str] = []
    for kind, entry in report["sets"].items():
        sizes = [c["size"] for c in entry["clusters"]]
        silhouettes = [c["silhouette"] for c in entry["clusters"]]
        lines.append(
            f"{kind}: {entry['questions']} questions, {entry['without_names_and_repeats']} without "
            f"names and repeats, {len(sizes)} clusters of {min(sizes)} to {max(sizes)}, inertia "
            f"{entry['inertia']:.3f}, silhouette {entry['silhouette']:.3f} (of the clusters "
            f"{min(silhouettes):.3f} to {max(silhouettes):.3f})"
        )
        for number in entry["one_title"]:
            c = entry["clusters"][number]
            lines.append(f"cluster {number} gives no templates: {c['share']:.0%} of its questions "
                         f"are on {c['title']!r} ({' '.join(c['words'])})")  # fmt: skip
    categories = Counter(t.category for t in kept)
    lines.append(f"{report['templates']} templates, {report['sound']} not over-specific, "
                 f"{len(kept)} distinct: {dict(categories)}")  # fmt: skip
    return "\n".join(lines)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
