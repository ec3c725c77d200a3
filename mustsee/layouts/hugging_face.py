"""A Hugging Face dataset folder: `data/<split>.parquet`, `videos.parquet`, a README card,
`croissant.json` and `eval.yaml`.

`datasets.load_dataset(folder)` reads it without a network. The card says where the data comes from:
the funnel, the prompts' hashes, the models, licences by video, and what is known to be biased in
it. Films lie in `videos/` where they may be published: no path in the folder is absolute.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from mustsee import schemas
from mustsee.layouts import croissant, eval_yaml
from mustsee.layouts.reading import by_id, kept
from mustsee.records import Question, Video

if TYPE_CHECKING:
    import pyarrow as pa

SPLITS = ("train", "validation", "test")
FILM = (
    "video_id", "uri", "title", "license", "source_url", "movie_name", "source", "start", "end",
    "digest", "duration", "language",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Card:
    """What the card says beyond the questions. `run`: a job's `run.json`. `licence`: of the
    questions; of the videos `video_licence` says, and by video their own `license`.

    `uses`, `limits`, `sensitive`, `impact`: what only a person can say, for the responsible-AI
    fields of `croissant.json`; without a word of yours these say that nobody has looked.
    """

    title: str = "A long-video question-answering dataset"
    licence: str = "other"
    video_licence: str = "not included; the rights stay with their owners"
    run: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notes: str = ""
    uses: str = "Measuring how well models understand long videos; training on the split train."
    limits: str = "Questions were written and sifted by models and may be wrong."
    sensitive: str = "Not examined: people may be seen, heard and named in the films."
    impact: str = "Not examined."


def write(
    questions: Sequence[Question],
    path: str | Path,
    videos: Iterable[Video] = (),
    card: Card | None = None,
) -> None:
    """The kept questions into the folder `path`, split by the subsets "train", "validation" and
    "test" (all of them are "test" where none occurs).
    """
    import pyarrow.parquet as pq

    path, chosen, told = Path(path), kept(questions), card or Card()
    (path / "data").mkdir(parents=True, exist_ok=True)
    asked, parts = {q.video_id for q in chosen}, split(chosen)
    films = {i: v for i, v in by_id(videos).items() if i in asked}
    tables = {f"data/{name}.parquet": with_films(part, films) for name, part in parts.items()}
    if films:
        tables["videos.parquet"] = _films(list(films.values()))
    for name, table in tables.items():
        pq.write_table(table, path / name, compression="zstd")
    text = card_text(told, parts, questions, list(films.values()), files="data/{}.parquet")
    (path / "README.md").write_text(text, encoding="utf-8")
    if (tasks := eval_yaml.text(told.title, parts)) is not None:
        (path / eval_yaml.FILE).write_text(tasks, encoding="utf-8")
    croissant.write(
        path,
        tables,
        title=told.title,
        licence=told.licence,
        told=_responsible(told, questions, films.values()),
    )


def with_films(questions: Sequence[Question], films: Mapping[str, Video]) -> pa.Table:
    """The questions, with the film's file name, the stretch of it where it is a clip, and the film
    that a clip is from (`film`: questions on one film err together).
    """
    import pyarrow as pa

    found = schemas.questions_table(questions)
    rows = [films.get(q.video_id) or Video(video_id=q.video_id, uri="") for q in questions]
    columns = {
        "video": pa.array([_file(v) for v in rows], pa.string()),
        "start": schemas.column("start", [v.start for v in rows]),
        "end": schemas.column("end", [v.end for v in rows]),
        "film": pa.array([v.source or v.video_id for v in rows], pa.string()),
    }
    for name, column in columns.items():
        found = found.append_column(name, column)
    return found


def _films(videos: Sequence[Video]) -> pa.Table:
    """What a reader must know of the films; `uri` counts from the folder, as in `videos=`."""
    rows = [replace(v, uri=f"videos/{name}" if (name := _file(v)) else "") for v in videos]
    return schemas.table(rows, Video).select(FILM)


def _file(video: Video) -> str | None:
    return PurePosixPath(video.uri).name or None


def _responsible(
    card: Card, questions: Sequence[Question], films: Iterable[Video]
) -> croissant.Responsible:
    chosen = kept(questions)
    verdicts = {v.model for q in chosen for v in q.verdicts}
    models = {q.provenance.llm for q in chosen if q.provenance} | verdicts
    return croissant.Responsible(
        collection=_funnel(card.run, questions),
        models=tuple(sorted(filter(None, models))),
        annotation=_provenance(card.run, chosen),
        biases=_biases(chosen),
        limits=card.limits,
        uses=card.uses,
        sensitive=card.sensitive,
        impact=card.impact,
        sources=tuple(sorted({v.source_url for v in films if v.source_url})),
    )


def split(questions: Sequence[Question]) -> dict[str, list[Question]]:
    """Split -> its questions; those in no split join "train" if there is one, else "test"."""
    found: dict[str, list[Question]] = {}
    rest = "train" if any("train" in q.subsets for q in questions) else "test"
    for question in questions:
        name = next((s for s in SPLITS if s in question.subsets), rest)
        found.setdefault(name, []).append(question)
    return found or {"test": []}


def biases(questions: Sequence[Question]) -> dict[str, float | int]:
    """What gives answers away without the video: the longest option being right, and uneven places
    of the answer. Chance counts ties.
    """
    choice = [q for q in questions if q.options and q.answer_index is not None]
    if not choice:
        return {}
    longest = chance = 0.0
    for question in choice:
        sizes = [len(o) for o in question.options]
        most = sizes.count(max(sizes))
        longest += sizes[question.answer_index or 0] == max(sizes)
        chance += most / len(sizes)
    places = Counter(q.answer_index for q in choice)
    return {
        "questions": len(choice),
        "answer_is_longest": longest / len(choice),
        "answer_is_longest_by_chance": chance / len(choice),
        "most_common_place": max(places.values()) / len(choice),
    }


def card_text(
    card: Card,
    parts: Mapping[str, Sequence[Question]],
    questions: Sequence[Question],
    videos: Sequence[Video],
    *,
    files: str,
) -> str:
    """The README of a dataset folder. `parts`: split -> its kept questions; `files`: the path of a
    split's file, with {} for its name; `questions`: all that were made.
    """
    chosen = [q for part in parts.values() for q in part]
    listed = "\n".join(f"  - split: {n}\n    path: {files.format(n)}" for n in parts)
    if videos:
        films = "  data_files:\n  - split: videos\n    path: videos.parquet"
        listed += f"\n- config_name: videos\n{films}"
    head = (
        f"---\nlicense: {card.licence}\ntask_categories:\n- multiple-choice\n"
        f"- visual-question-answering\ntags:\n- video\n- long-video\n- question-answering\n"
        f"configs:\n- config_name: default\n  default: true\n  data_files:\n{listed}\n---\n"
    )
    kinds = Counter(q.question_type or "(no type)" for q in chosen)
    sections = [
        f"# {card.title}",
        f"{len(chosen)} questions on {len({q.video_id for q in chosen})} videos, "
        + ", ".join(f"{len(part)} in {name}" for name, part in parts.items())
        + ". Made with Mustsee; each row carries its evidence, the verdict of every filter with "
        "the raw reply, and its provenance.",
        "## Question types\n\n" + _listed(kinds),
        "## How many were made, and what fell\n\n" + _funnel(card.run, questions),
        "## Models and prompts\n\n" + _provenance(card.run, chosen),
        "## Checked\n\n" + _checked(card.run),
        "## Known biases\n\n" + _biases(chosen) + _perceived(videos),
        f"## Licences\n\nQuestions: {card.licence}. Videos: {card.video_licence}."
        + _licences(videos),
    ]
    if card.notes:
        sections.append(f"## Notes\n\n{card.notes}")
    return head + "\n" + "\n\n".join(sections) + "\n"


def _listed(counts: Mapping[str, int]) -> str:
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return "\n".join(["| type | questions |", "|---|---:|", *(f"| {k} | {n} |" for k, n in rows)])


def _licences(videos: Sequence[Video]) -> str:
    """Licence and origin by video; nothing where the input said neither of any."""
    told = [v for v in videos if v.license or v.source_url]
    if not told:
        return ""
    rows = [f"| {_cell(v.video_id)} | {_cell(v.license)} | {_cell(v.source_url)} |" for v in videos]
    missing = len(videos) - sum(bool(v.license) for v in videos)
    note = f"\n\nOf {missing} of {len(videos)} videos the licence is not known." * (missing > 0)
    return "\n\n" + "\n".join(["| video | licence | source |", "|---|---|---|", *rows]) + note


def _cell(text: str | None) -> str:
    return " ".join((text or "not known").split()).replace("|", "\\|")


def _funnel(run: Mapping[str, Any], questions: Sequence[Question]) -> str:
    lines = [
        f"- {step['stage']}: {step['in']} in, {step['out']} out" for step in run.get("funnel", ())
    ]
    fallen = Counter((q.drop or "").split(":")[0] for q in questions if q.drop)
    counted: Mapping[str, Any] = run.get("questions", {"made": len(questions), "dropped": fallen})
    lines.append(f"- questions made: {counted['made']}")
    reasons = sorted(counted["dropped"].items(), key=lambda item: (-item[1], item[0]))
    lines += [f"- dropped as {reason}: {n}" for reason, n in reasons]
    return "\n".join(lines)


def _provenance(run: Mapping[str, Any], questions: Sequence[Question]) -> str:
    made = Counter(
        (q.provenance.llm, q.provenance.prompts, q.provenance.git or run.get("git", ""))
        for q in questions
        if q.provenance
    )
    lines = [
        f"- {n} questions ({n / len(questions):.0%}) by `{llm}`, prompts `{p}`, source `{g}`"
        for (llm, p, g), n in made.items()
    ]
    judges = Counter((v.filter, v.model) for q in questions for v in q.verdicts)
    lines += [f"- {n} verdicts of `{name}` by `{model}`" for (name, model), n in judges.items()]
    recipes = {q.recipe for q in questions}
    prompts: Mapping[str, str] = run.get("prompts", {})
    used = {k: v for k, v in prompts.items() if k.split("/")[0] in {*recipes, "filters"}}
    lines += [f"- prompt `{name}`: `{digest}`" for name, digest in sorted(used.items())]
    return "\n".join(lines) or "Not recorded."


def _checked(run: Mapping[str, Any]) -> str:
    """How many of the questions somebody has looked at and found right, by each form."""
    told = [f"- {entry['said']}" for entry in run.get("checked", ()) if "said" in entry]
    return "\n".join(told) or "Nobody has checked a sample of these questions."


def _biases(questions: Sequence[Question]) -> str:
    found = biases(questions)
    if not found:
        return "No multiple-choice questions with a public answer."
    return (
        f"- The answer is the longest option (or one of them) in "
        f"{100 * found['answer_is_longest']:.1f} % of {found['questions']} questions; by chance "
        f"{100 * found['answer_is_longest_by_chance']:.1f} %.\n"
        f"- The most frequent place of the answer holds "
        f"{100 * found['most_common_place']:.1f} % of the answers."
    )


def _perceived(videos: Sequence[Video]) -> str:
    """What was guessed about people, by whom, and for what."""
    by = sorted({v.perceived_by for v in videos if v.perceived_by})
    if not by:
        return ""
    counts = (Counter(v.perceived_age for v in videos if v.perceived_by),
              Counter(v.perceived_gender for v in videos if v.perceived_by))  # fmt: skip
    age, gender = (", ".join(f"{k} {n}" for k, n in c.most_common()) for c in counts)
    return (
        f"\n- The videos were sampled with tags of the age and gender that `{', '.join(by)}` "
        "perceived in pictures of them: impressions of a model, not facts about anybody. "
        f"Perceived age: {age}. Perceived gender: {gender}."
    )


def read_run(folder: str | Path) -> Mapping[str, Any]:
    """The record of the job that made `folder` (or the folder of that file), or nothing."""
    place = Path(folder)
    file = (place if place.is_dir() else place.parent) / "run.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
