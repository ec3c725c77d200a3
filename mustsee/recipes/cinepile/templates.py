"""Question templates: their record, their two files, and rules that merge and drop (CinePile, 2.2).

`templates.parquet` is for programs. `templates.md` is for a person, whose edits are read back:
wording, category (the heading), a cleared box, new lines.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import fs

from mustsee.errors import Unparsed, UserError
from mustsee.files.parquet import open_parquet, write_parquet
from mustsee.files.store import resolve
from mustsee.questions.checks import normal
from mustsee.questions.drafts import fields
from mustsee.replies.forms import Form, form, list_of, object_with, one_of, record, words

CATEGORIES = (  # CinePile, Table 1, and its temporal prompts
    "Character and Relationship Dynamics",
    "Narrative and Plot Analysis",
    "Setting and Technical Analysis",
    "Temporal",
    "Theme Exploration",
)
_SIGNS = (  # words that decide a category, in this order; an underscore stands for a space
    (
        "Temporal",
        "before after when while first last then order sequence next how_long how_many_times "
        "how_often during until finally immediately",
    ),
    (
        "Theme Exploration",
        "theme symbol moral meaning represent parallel motif metaphor message mood tone irony",
    ),
    (
        "Setting and Technical Analysis",
        "where color colour wear wearing holding room look_like camera weather background object "
        "location place outdoor indoor how_many sport type_of kind_of made_of hanging sitting",
    ),
    (
        "Character and Relationship Dynamics",
        "feel feeling relationship emotion attitude react trust angry happy upset friend love "
        "personality who why_did_someone why_does_someone why_is_someone",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Template:
    """A kind of question: its name and a prototype. `kind`: "reasoning", "perceptual" or
    "temporal"; `members`: number of human questions in its cluster.
    """

    name: str
    prototype: str
    category: str
    kind: str = "reasoning"
    cluster: int | None = None
    members: int = 0

    @property
    def template_id(self) -> str:
        """Hash of name and prototype (12 hex digits)."""
        text = f"{normal(self.name)}\n{normal(self.prototype)}"
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def templates_form(most: int = 4) -> Form[tuple[Template, ...]]:
    """Parse `TEMPLATE 1: name`, `PROTOTYPE: question`, `CATEGORY: one of the five`. The words
    decide the category if it is not one of the five.
    """

    def check_templates(templates: Sequence[Template]) -> tuple[Template, ...]:
        if not templates:
            raise Unparsed("it holds no line of the form 'TEMPLATE 1: name'")
        for template in templates:
            if not template.name or not template.prototype:
                raise Unparsed(f"the template {template.name!r} has no name or no PROTOTYPE line")
        return tuple(replace(_without_colon(t), category=categorize(t)) for t in templates[:most])

    template = record(
        Template,
        name=words("the name"),
        prototype=words("the prototype, a question"),
        category=one_of(CATEGORIES, "the category"),
    )
    shape = object_with("templates", list_of(template, f"{most} kinds of question"))
    return form(text=_written, shape=shape).map(check_templates)


def _without_colon(template: Template) -> Template:
    """Replace colons in the name, because a colon ends the name in templates.md."""
    return replace(template, name=re.sub(r"\s*:\s*", " - ", template.name))


def _written(reply: str) -> Sequence[Template]:
    labels = {"template": "template", "prototype": "prototype(?: question)?"}
    templates: list[Template] = []
    for field in fields(reply, {**labels, "category": "category"}):
        if field.label == "template":
            templates.append(Template(name=field.text, prototype="", category=""))
        elif templates and field.label == "prototype":
            templates[-1] = replace(templates[-1], prototype=field.text)
        elif templates:
            templates[-1] = replace(templates[-1], category=field.text)
    return templates


def categorize(template: Template) -> str:
    """Return the template's category if it is one of the five, else one by its words."""
    for category in CATEGORIES:
        if normal(category) == normal(template.category):
            return category
    text = f" {normal(f'{template.name} {template.prototype}')} "
    for category, signs in _SIGNS:
        if any(f" {sign.replace('_', ' ')} " in text for sign in signs.split()):
            return category
    return "Narrative and Plot Analysis"


def too_specific(template: Template, *, least: int, names: frozenset[str]) -> str | None:
    """Return why a template is over-specific (a name in it, a small cluster), or None."""
    if template.members < least:
        return f"its cluster has {template.members} questions, fewer than {least}"
    without_slots = re.sub(r"\[[^\]]*\]", " ", template.prototype)
    names_left = [w for w in re.findall(r"[A-Za-z'’]+", without_slots)[1:] if w in names]
    return f"it names {names_left[0]!r}" if names_left else None


def distinct(
    templates: Sequence[Template],
    embed: Callable[[list[str]], NDArray[np.float32]],
    *,
    alike: float = 0.88,
) -> list[Template]:
    """Drop near-identical templates: of two, the one of the larger cluster is kept."""
    from mustsee.recipes.cinepile.question_lists import keep_distinct

    ordered = sorted(templates, key=lambda t: (-t.members, t.template_id))
    unique = list({normal(t.prototype): t for t in reversed(ordered)}.values())[::-1]
    if not unique:
        return []
    vectors = embed([f"{t.name}: {t.prototype}" for t in unique])
    return [unique[row] for row in keep_distinct(np.asarray(vectors, np.float32), alike=alike)]


_HEAD = re.compile(r"^##\s+(.+?)\s*$")
_ITEM = re.compile(r"^[-*]\s+(?:\[(?P<box>[ xX])\]\s+)?(?P<name>[^:]+?):\s+(?P<prototype>.+?)\s*$")
_NOTE = re.compile(r"<!--\s*(.*?)\s*-->")


@dataclass(frozen=True, kw_only=True)
class QuestionCluster:
    """A cluster of questions, for a person who judges its templates. `silhouette`: -1 to 1;
    `title`: video or show that most of its questions are about, and their `share`; `words`:
    distinctive words; `nearest`: questions nearest to its centre.
    """

    kind: str
    number: int
    size: int
    silhouette: float
    cosine: float
    title: str
    share: float
    list_share: float
    words: tuple[str, ...]
    nearest: tuple[str, ...]


def distinctive_words(
    cluster: Sequence[str], everything: Sequence[str], most: int = 6
) -> tuple[str, ...]:
    """Return the words that are in many of the cluster's texts and in few others."""
    inside, outside = (Counter(w for t in texts for w in set(normal(t).split()))
                       for texts in (cluster, everything))  # fmt: skip

    def gain(word: str) -> float:
        share = inside[word] / len(cluster)
        return share * max(0.0, math.log2(share * len(everything) / outside[word])) ** 2

    return tuple(sorted(inside, key=lambda w: (-gain(w), w))[:most])


def one_sided(
    clusters: Sequence[QuestionCluster], titles: Mapping[str, float], most: float
) -> list[QuestionCluster]:
    """Return the clusters with a share of more than `most` questions on one title, unless all lists
    have such a share (`titles`). Their templates would be about that title's subject.
    """
    return [c for c in clusters if c.share > most and titles.get(c.title, 0.0) <= most]


def to_markdown(templates: Sequence[Template], clusters: Sequence[QuestionCluster] = ()) -> str:
    """Write the templates for review, by category, and their clusters."""
    lines = [
        "# Question templates", "",
        "Edit freely: clear a box or delete a line to drop a template, move it under another",
        "heading, change its words, add lines of this form. What stands behind it is information.",
    ]  # fmt: skip
    for category in CATEGORIES:
        lines += ["", f"## {category}", ""]
        for t in templates:
            if t.category == category:
                note = f"{t.kind}, cluster {'-' if t.cluster is None else t.cluster}, {t.members}"
                lines.append(f"- [x] {t.name}: {t.prototype} <!-- {note} -->")
    if clusters:
        lines += [
            "", "### Clusters", "",
            "| set | cluster | questions | silhouette | its words | most on one title |",
            "| --- | ---: | ---: | ---: | --- | --- |",
        ]  # fmt: skip
    for c in clusters:
        title = f"{c.share:.0%} {c.title}" if c.title else ""
        lines.append(
            f"| {c.kind} | {c.number} | {c.size} | {c.silhouette:.3f} | {' '.join(c.words)} "
            f"| {title} |"
        )
    return "\n".join(lines) + "\n"


def from_markdown(
    text: str, *, kind: str = "reasoning", where: str = "templates"
) -> list[Template]:
    """Parse the ticked templates of a reviewed file. Raises UserError naming the line."""
    templates: list[Template] = []
    category: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        note = _NOTE.search(line)
        entry = _NOTE.sub("", line).rstrip()
        if head := _HEAD.match(entry):
            category = next((c for c in CATEGORIES if normal(c) == normal(head[1])), None)
            if category is None:
                raise UserError(
                    f"{where}, line {number}: {head[1]!r} is not a category; "
                    f"the five are {', '.join(CATEGORIES)}"
                )
        elif item := _ITEM.match(entry):
            if category is None:
                raise UserError(f"{where}, line {number}: a template above the first category")
            if item["box"] != " ":
                templates.append(_noted(item["name"], item["prototype"], category, kind, note))
        elif entry.startswith(("-", "*")) and category is not None:
            raise UserError(
                f"{where}, line {number}: {entry!r} is not of the form '- [x] Name: prototype'"
            )
    return templates


def _noted(
    name: str, prototype: str, category: str, kind: str, note: re.Match[str] | None
) -> Template:
    parts = re.fullmatch(r"(\w+), cluster (-|\d+), (\d+)", note[1]) if note else None
    return Template(
        name=name,
        prototype=prototype,
        category=category,
        kind=parts[1] if parts else kind,
        cluster=int(parts[2]) if parts and parts[2] != "-" else None,
        members=int(parts[3]) if parts else 0,
    )


def write_templates(
    templates: Sequence[Template], folder: str | Path, clusters: Sequence[QuestionCluster] = ()
) -> None:
    """Write `templates.parquet` and `templates.md` into a local folder."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    rows = [{"template_id": t.template_id, **vars(t)} for t in templates]
    text, number = pa.string(), pa.int64()
    kinds = {"template_id": text, "name": text, "prototype": text, "category": text, "kind": text,
             "cluster": number, "members": number}  # fmt: skip
    write_parquet(pa.Table.from_pylist(rows, pa.schema(kinds.items())), place / "templates.parquet")
    (place / "templates.md").write_text(to_markdown(templates, clusters))


def read_templates(path: str | Path, *, kind: str = "reasoning") -> list[Template]:
    """Read templates from a `.md` or `.parquet` file, or from the reviewed `templates.md` of a
    folder. Raises UserError.
    """
    filesystem, place = resolve(str(path))
    try:
        if filesystem.get_file_info(place).type == fs.FileType.Directory:
            place = f"{place}/templates.md"
        data = filesystem.open_input_file(place).read()
        if place.endswith(".md"):
            templates = from_markdown(data.decode(), kind=kind, where=place)
        else:
            rows = open_parquet(io.BytesIO(data)).read().to_pylist()
            for row in rows:
                row.pop("template_id", None)
            templates = [Template(**row) for row in rows]
    except (OSError, KeyError, ValueError) as error:
        raise UserError(f"cannot read the templates {str(path)!r}: {error}") from error
    if not templates:
        raise UserError(f"no templates in {str(path)!r}")
    return templates
