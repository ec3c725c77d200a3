"""The card of a dataset folder: where its questions come from, how many fell, who wrote and checked
them, licences by video, and what is known to be biased in them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mustsee.calls.llm import untested_note
from mustsee.errors import UserError
from mustsee.records import Question, Video


@dataclass(frozen=True, kw_only=True)
class Card:
    """What the card says beyond the questions. `run`: a job's `run.json`; `audit`: an audit's
    `audit.json`. `licence`: of the questions; of the videos `video_licence` says, and by video
    their own `license`.

    `uses`, `limits`, `sensitive`, `impact`: what only a person can say, for the responsible-AI
    fields of `croissant.json`; without a word of yours these say that nobody has looked.
    """

    title: str = "A long-video question-answering dataset"
    licence: str = "other"
    video_licence: str = "the rights stay with their owners"
    run: Mapping[str, Any] = field(default_factory=dict[str, Any])
    audit: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notes: str = ""
    uses: str = "Measuring how well models understand long videos; training on the split train."
    limits: str = "Questions were written and filtered automatically and may be wrong."
    sensitive: str = "Not examined: people may be seen, heard and named in the videos."
    impact: str = "Not examined."


class CardCounts:
    """What a card says of questions, counted as they go by: `made` all, `keep` those of a split.
    `parts`: questions by split, in the order of the splits.
    """

    def __init__(self, parts: Iterable[str] = ()) -> None:
        self.parts = Counter(dict.fromkeys(parts, 0))
        self.open_ended = Counter[str]()  # by split: they have no options, or no known answer
        self.videos = set[str]()
        self.all = 0
        self.fallen = Counter[str]()
        self.types = Counter[str]()
        self.recipes = set[str]()
        self.writers = Counter[tuple[str, str, str]]()  # model, prompts, source revision
        self.verdicts = Counter[tuple[str, str]]()  # filter, model
        self._places = Counter[int]()
        self._longest = self._chance = 0.0

    def count_made(self, question: Question) -> None:
        self.all += 1
        if question.drop:
            self.fallen[question.drop.split(":")[0]] += 1

    def keep(self, question: Question, part: str) -> None:
        self.parts[part] += 1
        self.videos.add(question.video_id)
        self.types[question.question_type or "(no type)"] += 1
        self.recipes.add(question.recipe)
        if (by := question.provenance) is not None:
            self.writers[by.llm, by.prompts, by.git] += 1
        self.verdicts.update((v.filter, v.model) for v in question.verdicts)
        if not question.options or question.answer_index is None:
            self.open_ended[part] += 1
            return
        sizes = [len(o) for o in question.options]
        self._places[question.answer_index] += 1
        self._longest += sizes[question.answer_index] == max(sizes)
        self._chance += sizes.count(max(sizes)) / len(sizes)

    @property
    def kept_count(self) -> int:
        return self.parts.total()

    @property
    def models(self) -> list[str]:
        """Those that wrote the questions, and those that looked at them."""
        return sorted({m for m, _, _ in self.writers} | {m for _, m in self.verdicts} - {""})

    @property
    def untested_note(self) -> str:
        """What is to be said where rules stood in for a language model; else empty."""
        asked: dict[str, list[str]] = {}
        for name, model in self.verdicts:
            asked.setdefault(name, []).append(model)
        return untested_note(asked)

    @property
    def biases(self) -> dict[str, float | int]:
        """What gives answers away without the video: the longest option being right, and uneven
        places of the answer. Chance counts ties. Empty without multiple-choice questions.
        """
        count = self._places.total()
        if not count:
            return {}
        return {
            "questions": count,
            "answer_is_longest": self._longest / count,
            "answer_is_longest_by_chance": self._chance / count,
            "most_common_place": max(self._places.values()) / count,
        }


def card_text(
    card: Card, tally: CardCounts, videos: Sequence[Video], *, files: str, where: str = ""
) -> str:
    """The README of a dataset folder. `files`: the path of a split's file, with {} for its name;
    `where`: says where the video files are.
    """
    parts = tally.parts
    listed = "\n".join(f"  - split: {n}\n    path: {files.format(n)}" for n in parts)
    if videos:
        videos_config = "  data_files:\n  - split: videos\n    path: videos.parquet"
        listed += f"\n- config_name: videos\n{videos_config}"
    head = (
        f"---\nlicense: {card.licence}\ntask_categories:\n- multiple-choice\n"
        f"- visual-question-answering\ntags:\n- video\n- long-video\n- question-answering\n"
        f"configs:\n- config_name: default\n  default: true\n  data_files:\n{listed}\n---\n"
    )
    sections = [
        f"# {card.title}",
        f"{tally.kept_count} questions on {len(tally.videos)} videos, "
        + ", ".join(f"{count} in {name}" for name, count in parts.items())
        + ". Made with Mustsee; each row carries its evidence, the verdict of every filter with "
        "the raw reply, and its provenance.",
        *([f"**{said}**"] if (said := tally.untested_note) else []),
        "## Question types\n\n" + _listed(tally.types),
        "## How many were made, and what fell\n\n" + funnel(card.run, tally),
        "## Models and prompts\n\n" + provenance(card.run, tally),
        "## Checked\n\n" + _checked(card.run),
        "## Audited\n\n" + _audited(card.audit),
        "## Known biases\n\n" + biases(tally) + _perceived(videos),
        *([f"## Videos\n\n{where}"] if where else []),
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


def funnel(run: Mapping[str, Any], tally: CardCounts) -> str:
    """What went into each stage and came out of it, and why questions fell."""
    lines = [
        f"- {step['stage']}: {step['in']} in, {step['out']} out" for step in run.get("funnel", ())
    ]
    counted: Mapping[str, Any] = run.get("questions", {"made": tally.all, "dropped": tally.fallen})
    lines.append(f"- questions made: {counted['made']}")
    reasons = sorted(counted["dropped"].items(), key=lambda item: (-item[1], item[0]))
    lines += [f"- dropped as {reason}: {n}" for reason, n in reasons]
    return "\n".join(lines)


def provenance(run: Mapping[str, Any], tally: CardCounts) -> str:
    """Who wrote the questions and who looked at them, with which prompts."""
    lines = [
        f"- {n} questions ({n / tally.kept_count:.0%}) by `{llm}`, prompts `{p}`, "
        f"source `{git or run.get('git', '')}`"
        for (llm, p, git), n in tally.writers.items()
    ]
    judges = tally.verdicts.items()
    lines += [f"- {n} verdicts of `{name}` by `{model}`" for (name, model), n in judges]
    prompts: Mapping[str, str] = run.get("prompts", {})
    used = {k: v for k, v in prompts.items() if k.split("/")[0] in {*tally.recipes, "filters"}}
    lines += [f"- prompt `{name}`: `{digest}`" for name, digest in sorted(used.items())]
    return "\n".join(lines) or "Not recorded."


def _checked(run: Mapping[str, Any]) -> str:
    """How many of the questions somebody has looked at and found right, by each form."""
    told = [f"- {entry['said']}" for entry in run.get("checked", ()) if "said" in entry]
    return "\n".join(told) or "Nobody has checked a sample of these questions."


def _audited(audit: Mapping[str, Any]) -> str:
    """How many questions can be answered without what they ask about."""
    if not audit:
        return "Nobody has audited these questions for shortcuts."
    doubts = len(audit["suspects"]) if audit.get("keys_tested", True) else "not tested"
    guessers = [t["name"] for t in audit["battery"] if t["alarm"] and t["kind"] == "guesser"]
    return "\n".join(
        [
            f"- {audit['clean']} of {audit['questions']} multiple-choice questions on "
            f"{audit['videos']} videos pass the audit.",
            *([f"- {told}"] if (told := audit.get("said", {}).get("rules")) else []),
            f"- Guessers that beat chance: {', '.join(guessers) or 'none'}.",
            *(
                f"- Shortcut ratio with `{one['answerer']}`: {_share(one['shortcuts']['ratio'])}."
                for one in audit["figures"]
            ),
            f"- Asked twice: {len(audit['duplicates'])} pairs; in other benchmarks: "
            f"{len(audit['overlap'])}; answers in doubt: {doubts}.",
        ]
    )


def _share(estimate: Mapping[str, Any] | None) -> str:
    if estimate is None:
        return "not measured"
    low, high = estimate["low"], estimate["high"]
    span = "" if low is None else f" ({100 * low:.1f} to {100 * high:.1f})"
    value = estimate["value"]
    return (f"{100 * value:.1f} %" if value > 0 else "none measured") + span


def biases(tally: CardCounts) -> str:
    """What gives answers away without the video."""
    found = tally.biases
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


def read_audit(folder: str | None) -> Mapping[str, Any]:
    """What an audit found, or nothing where none is named. Raises UserError where the folder has
    none.
    """
    if folder is None:
        return {}
    file = Path(folder) / "audit.json"
    if not file.exists():
        raise UserError(f"no audit.json in {folder!r}: layout.card.audit.folder= is what "
                        "`ray_jobs.audit` wrote")  # fmt: skip
    return json.loads(file.read_text(encoding="utf-8"))
