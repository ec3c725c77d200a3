"""CinePile's template induction: question lists to question templates (2.2).

    python -m ray_jobs.templates questions=Q out=O [llm=openai pronouns=llm]

Names become pronouns, repeats are dropped, the rest is clustered by its embeddings; ten random
questions of each cluster give four templates. Review O/templates.md: `ray_jobs.cinepile
templates=O` reads it.
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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pyarrow import fs

from actors.part import LlmConfig
from mustsee.calls.llm import Asker, Sampling
from mustsee.errors import BadRow, UserError
from mustsee.prompts import Prompts
from mustsee.questions.drafts import fields
from mustsee.questions.numbered import Items, complete, items
from mustsee.recipes.cinepile.question_lists import (
    ListedQuestion,
    QuestionList,
    keep_distinct,
    merge_equal,
    names_in,
    neutralize_pronouns,
    read_source,
)
from mustsee.recipes.cinepile.templates import (
    CATEGORIES,
    QuestionCluster,
    Template,
    distinct,
    distinctive_words,
    one_sided,
    templates_form,
    too_specific,
    write_templates,
)
from mustsee.replies.forms import Form, form
from mustsee.store import resolve
from mustsee.vectors import Clusters, kmeans
from ray_jobs.cli.launch import launch
from ray_jobs.runtime.heartbeat import show_step
from ray_jobs.runtime.run import JobSettings

Embed = Callable[[list[str]], NDArray[np.float32]]
REVIEW = "templates.md"
BATCH = 20  # questions whose names one call replaces


@dataclass(frozen=True, kw_only=True)
class Templates:
    """`questions`: a list or several (paths, or `{path, question, title, name}`); `perceptual`:
    those of them that are clustered by themselves, into `k_perceptual` clusters. `one_title`: a
    cluster with more than this share of its questions on one video or show gives no templates.
    """

    run: JobSettings
    questions: str | Sequence[Any]
    llm: LlmConfig
    encoder: str
    perceptual: str | Sequence[Any] = ()
    pronouns: Literal["rules", "llm"] = "rules"
    k: int = 50
    k_perceptual: int = 20
    sample: int = 10
    each: int = 4
    alike: float = 0.95
    alike_templates: float = 0.88
    least: int = 20
    one_title: float = 0.5

    def __call__(self) -> int:
        lists = {
            "reasoning": (_sources(self.questions), self.k),
            "perceptual": (_sources(self.perceptual), self.k_perceptual),
        }
        asked = {kind: [q for s in sources for q in read_source(s)]
                 for kind, (sources, _) in lists.items()}  # fmt: skip
        target, root = resolve(self.run.out)
        _not_reviewed(target, root)
        report: dict[str, Any] = {"sets": {}}
        found: list[Template] = []
        clusters: list[QuestionCluster] = []
        with self.run.open("templates") as running:
            asker = Asker(
                llm=running.model(self.llm),
                prompts=Prompts(),
                sampling=Sampling(temperature=0.7, max_tokens=2048),
            )
            # JAX comes after Ray has started: forking with its threads alive may deadlock.
            from mustsee.nn.bert import Encoder

            embed = Encoder.load(self.encoder).encode
            for kind, (sources, k) in lists.items():
                if sources:
                    made, each, told = self.induce(asked[kind], k, kind, asker, embed)
                    found += made
                    clusters += each
                    report["sets"][kind] = told
            if self.run.rehearsal.dry_run:
                return running.print_call_estimate()
        names = names_in([q.text for kind in asked.values() for q in kind])
        sound = [t for t in found if too_specific(t, least=self.least, names=names) is None]
        kept = distinct(sound, embed, alike=self.alike_templates)
        report.update(templates=len(found), sound=len(sound), kept=len(kept))
        with tempfile.TemporaryDirectory() as fresh:
            write_templates(kept, fresh, clusters)
            report["review"] = _sha256(Path(fresh, REVIEW).read_bytes())
            Path(fresh, "templates.json").write_text(json.dumps(report, indent=2) + "\n")
            target.create_dir(root, recursive=True)
            fs.copy_files(fresh, root, fs.LocalFileSystem(), target)
        print(summary(report, kept))
        return 0

    def induce(
        self, asked: Sequence[ListedQuestion], k: int, kind: str, asker: Asker, embed: Embed
    ) -> tuple[list[Template], list[QuestionCluster], dict[str, Any]]:
        """The templates of one set of questions, its clusters, and what there is to say of them."""
        unique = neutralize_pronouns(asked)
        if self.pronouns == "llm":
            unique = asyncio.run(_without_names(unique, asker))
        with show_step(f"embedding {len(unique)} {kind} questions"):
            vectors = embed([q.neutral for q in unique])
        with show_step(f"leaving out repeats among {len(unique)} {kind} questions"):
            rows = keep_distinct(vectors, alike=self.alike)
        unique, vectors = [unique[row] for row in rows], vectors[rows]
        with show_step(f"clustering {len(unique)} {kind} questions into {k}"):
            found = kmeans(vectors, k, seed=self.run.seed)
        members = [np.flatnonzero(found.labels == c).tolist() for c in range(len(found.sizes))]
        groups = [[unique[row] for row in rows] for rows in members]
        clusters = _described(kind, groups, members, vectors, found)
        titles = Counter(q.title for q in unique if q.title)
        shares = {title: n / len(unique) for title, n in titles.items()}
        sided = one_sided(clusters, shares, self.one_title)
        spoilt = {c.number for c in sided}
        made = asyncio.run(self._ask({n: g for n, g in enumerate(groups) if n not in spoilt},
                                     kind, asker))  # fmt: skip
        report = {
            "questions": len(asked),
            "without_names_and_repeats": len(unique),
            "k": k,
            "inertia": found.inertia,
            "silhouette": found.silhouette,
            "one_title": sorted(spoilt),
            "clusters": [dataclasses.asdict(c) for c in clusters],
        }
        return made, clusters, report

    async def _ask(
        self, groups: Mapping[int, Sequence[ListedQuestion]], kind: str, asker: Asker
    ) -> list[Template]:
        done = 0

        async def ask_group(number: int, group: Sequence[ListedQuestion]) -> list[Template]:
            nonlocal done
            rng = random.Random(f"{self.run.seed}/{kind}/{number}/templates")
            chosen = rng.sample(list(group), min(self.sample, len(group)))
            try:
                made = await asker.ask(
                    "cinepile/templates",
                    templates_form(self.each),
                    seed=rng.randrange(2**31),
                    questions=[q.neutral for q in chosen],
                    count=self.each,
                    categories=CATEGORIES,
                )
            except BadRow as error:
                print(f"cluster {number}: {error}")
                return []
            finally:
                done += 1
            size = sum(q.times for q in group)
            return [replace(t, kind=kind, cluster=number, members=size) for t in made]

        with show_step(lambda: f"templates of {kind} questions: {done} of {len(groups)} clusters"):
            made = await asyncio.gather(*(ask_group(n, g) for n, g in groups.items()))
        return [t for part in made for t in part]


def _not_reviewed(filesystem: fs.FileSystem, folder: str) -> None:
    """Raises UserError where a person has edited what an earlier run wrote: it is not lost."""
    try:
        written = json.loads(filesystem.open_input_file(f"{folder}/templates.json").read())
        found = filesystem.open_input_file(f"{folder}/{REVIEW}").read()
    except (FileNotFoundError, ValueError):
        return
    if written.get("review") != _sha256(found):
        raise UserError(
            f"{folder}/{REVIEW} was edited since it was written: choose another out=, or delete it"
        )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _sources(value: str | Sequence[Any]) -> list[QuestionList]:
    return [_source(item) for item in ([value] if isinstance(value, str) else value)]


def _source(value: Any) -> QuestionList:
    if isinstance(value, QuestionList):
        return value
    fields = {"path": value} if isinstance(value, str) else value
    known = {f.name for f in dataclasses.fields(QuestionList)}
    if not isinstance(fields, Mapping) or not set(fields) <= known or "path" not in fields:
        raise UserError(
            f"questions={value!r}: a path, or {{path: ..., question: column, title: ...}}"
        )
    return QuestionList(**{str(k): v for k, v in fields.items()})


async def _without_names(asked: Sequence[ListedQuestion], asker: Asker) -> list[ListedQuestion]:
    """Names replaced by the model, `BATCH` questions a call; equal ones merged again."""

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

    parts = [asked[at : at + BATCH] for at in range(0, len(asked), BATCH)]
    with show_step(lambda: f"names in questions: {done} of {len(asked)}"):
        made = await asyncio.gather(*map(neutralize_group, parts))
    return merge_equal([q for part in made for q in part])


def rewrites_form(count: int) -> Form[tuple[str, ...]]:
    """`count` questions, each under its number."""

    def parse_rewrites(reply: str) -> Items:
        found = [f for f in fields(reply) if f.label == "question" and f.text]
        return [(int(f.number) if f.number.isdecimal() else n, f.text)
                for n, f in enumerate(found, 1)]  # fmt: skip

    shape = items("questions", "number", "question")
    return form(text=parse_rewrites, shape=shape).map(lambda found: complete(found, count))


def _described(
    kind: str,
    groups: Sequence[Sequence[ListedQuestion]],
    members: Sequence[Sequence[int]],
    vectors: NDArray[np.float32],
    found: Clusters,
) -> list[QuestionCluster]:
    everything = [q.neutral for group in groups for q in group]
    done: list[QuestionCluster] = []
    for number, (group, rows) in enumerate(zip(groups, members, strict=True)):
        titles = Counter(q.title for q in group if q.title).most_common(1) or [("", 0)]
        lists = Counter(q.source for q in group)
        near = vectors[rows] @ found.centroids[number]
        texts = [q.neutral for q in group]
        done.append(
            QuestionCluster(
                kind=kind,
                number=number,
                size=len(group),
                silhouette=found.silhouettes[number],
                cosine=float(near.mean()),
                title=titles[0][0],
                share=titles[0][1] / len(group),
                list_share=max(lists.values()) / len(group),
                words=distinctive_words(texts, everything),
                nearest=tuple(texts[i] for i in np.argsort(-near)[:3].tolist()),
            )
        )
    return done


def summary(report: Mapping[str, Any], kept: Sequence[Template]) -> str:
    lines: list[str] = []
    for kind, found in report["sets"].items():
        sizes = [c["size"] for c in found["clusters"]]
        shapes = [c["silhouette"] for c in found["clusters"]]
        lines.append(
            f"{kind}: {found['questions']} questions, {found['without_names_and_repeats']} without "
            f"names and repeats, {len(sizes)} clusters of {min(sizes)} to {max(sizes)}, inertia "
            f"{found['inertia']:.3f}, silhouette {found['silhouette']:.3f} (of the clusters "
            f"{min(shapes):.3f} to {max(shapes):.3f})"
        )
        for number in found["one_title"]:
            c = found["clusters"][number]
            lines.append(f"cluster {number} gives no templates: {c['share']:.0%} of its questions "
                         f"are on {c['title']!r} ({' '.join(c['words'])})")  # fmt: skip
    count = Counter(t.category for t in kept)
    lines.append(f"{report['templates']} templates, {report['sound']} not over-specific, "
                 f"{len(kept)} distinct: {dict(count)}")  # fmt: skip
    return "\n".join(lines)


if __name__ == "__main__":
    launch("templates")
