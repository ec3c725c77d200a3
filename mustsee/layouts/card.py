"""The card of a dataset folder: sources of the questions, numbers made and dropped, models and
prompts, checks, licences by video, and known biases.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mustsee.errors import UserError
from mustsee.layouts.card_figures import (
    TextLengths,
    are_long,
    compared_ids,
    lengths_text,
    scores_text,
)
from mustsee.layouts.errata import CORRECTED_BY
from mustsee.records import PAIR, SET, Question, Video, group_pairs, untested_note

CONTENTS = (  # what a row holds: `Question.evidence`, `.verdicts`, `.provenance`
    "evidence",
    "the verdicts of its filters with their raw replies",
    "provenance",
)


@dataclass(frozen=True, kw_only=True)
class Card:
    """The content of a card beyond the questions.

    `run` is a job's `run.json`, `audit` an audit's `audit.json`, `compared` the `compare.json` of
    `mustsee compare`. `licence` is that of the questions, `video_licence` that of the videos; a
    video's own `license` is listed too.

    `uses`, `limits`, `sensitive` and `impact` fill the responsible-AI fields of `croissant.json`
    and need a person's judgement; the defaults state that nothing was examined. Empty `limits`:
    what is known of who wrote the questions.
    """

    title: str = "A video question-answering dataset"
    """Title of the dataset: heading of the card, and name in `croissant.json` and `eval.yaml`."""
    licence: str = "other"
    """Licence of the questions, by its Hugging Face name."""
    video_licence: str = "the rights stay with their owners"
    run: Mapping[str, Any] = field(default_factory=dict[str, Any])
    audit: Mapping[str, Any] = field(default_factory=dict[str, Any])
    compared: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notes: str = ""
    uses: str = "Measuring how well models understand long videos; training on the split train."
    limits: str = ""
    sensitive: str = "Not examined: people may be seen, heard and named in the videos."
    impact: str = "Not examined."


class CardCounts:
    """Counts of questions for a card: `count_made` takes every question, `keep` those of a split.

    `by_split` holds the number of questions by split, in the order of the splits. `compared` is
    the card's; of the questions' ids only those in it are held.
    """

    def __init__(
        self, splits: Iterable[str] = (), compared: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        self.by_split = Counter(dict.fromkeys(splits, 0))
        self.open_ended = Counter[str]()  # by split: questions without options or known answer
        self.questions = set[str]()  # ids of those that were compared
        self._compared = compared_ids(compared)
        self.videos = set[str]()
        self.all = 0
        self.dropped = Counter[str]()
        self.skills = Counter[str]()  # a question without one counts by its type
        self.texts = TextLengths()
        self.forms = Counter[str]()
        self.groups = Counter[tuple[str, str]]()  # relation ("set", "pair"), id of the group
        self.recipes = set[str]()
        self.writers = Counter[tuple[str, str, str]]()  # model, prompts, source revision
        self.verdicts = Counter[tuple[str, str]]()  # filter, model
        self.corrected = 0  # kept questions whose key `errata=` corrected
        self.holding = Counter[str]()  # kept questions by what their rows hold (`CONTENTS`)
        self._answer_places = Counter[int]()
        self._longest = self._chance = 0.0

    def count_made(self, question: Question) -> None:
        self.all += 1
        if question.drop:
            self.dropped[question.dropped_by] += 1

    def keep(self, question: Question, split: str) -> None:
        self.by_split[split] += 1
        if question.question_id in self._compared:
            self.questions.add(question.question_id)
        self.videos.add(question.video_id)
        self.skills[question.skill_or_type or "(no type)"] += 1
        self.texts.add(question)
        self.recipes.add(question.recipe)
        if question.form:
            self.forms[question.form] += 1
        if question.group is not None and question.relation in (SET, PAIR):
            self.groups[question.relation, question.group] += 1
        if (by := question.provenance) is not None:
            self.writers[by.llm, by.prompts, by.git] += 1
        self.verdicts.update((v.filter, v.model) for v in question.verdicts)
        self.corrected += any(r.by.startswith(CORRECTED_BY) for r in question.repairs)
        held = question.evidence, question.verdicts, question.provenance
        self.holding.update(c for c, value in zip(CONTENTS, held, strict=True) if value)
        if not question.options or question.answer_index is None:
            self.open_ended[split] += 1
            return
        sizes = [len(o) for o in question.options]
        self._answer_places[question.answer_index] += 1
        self._longest += sizes[question.answer_index] == max(sizes)
        self._chance += sizes.count(max(sizes)) / len(sizes)

    @property
    def kept_count(self) -> int:
        return self.by_split.total()

    @property
    def models(self) -> list[str]:
        """The models that wrote the questions or gave verdicts on them."""
        return sorted({m for m, _, _ in self.writers} | {m for _, m in self.verdicts} - {""})

    @property
    def untested_note(self) -> str:
        """A warning if rules replaced a language model; else empty."""
        return untested_note(group_pairs(self.verdicts))

    @property
    def biases(self) -> dict[str, float | int]:
        """Figures of what reveals answers without the video; empty without multiple choice.

        These are how often the longest option is right, with its share by chance (which counts
        ties), and the share of the answer's most common position.
        """
        count = self._answer_places.total()
        if not count:
            return {}
        return {
            "questions": count,
            "answer_is_longest": self._longest / count,
            "answer_is_longest_by_chance": self._chance / count,
            "most_common_place": max(self._answer_places.values()) / count,
        }


def _scores(card: Card, tally: CardCounts) -> str:
    return scores_text(card.compared, tally.questions, tally.kept_count)


def card_text(
    card: Card, tally: CardCounts, videos: Sequence[Video], *, files: str, where: str = ""
) -> str:
    """Return the README of a dataset folder.

    `files` is the path of a split's file, with {} for the split's name. `where` is the text on the
    location of the video files.
    """
    by_split, videos = tally.by_split, [v for v in videos if v.video_id in tally.videos]
    choices = tally.kept_count - tally.open_ended.total()
    data_files = "\n".join(f"  - split: {n}\n    path: {files.format(n)}" for n in by_split)
    if videos:
        videos_config = "  data_files:\n  - split: videos\n    path: videos.parquet"
        data_files += f"\n- config_name: videos\n{videos_config}"
    tasks = [*(["multiple-choice"] if choices else []), "video-text-to-text"]
    tags = ["video", *(["long-video"] if are_long(videos) else []), "question-answering"]
    head = (
        f"---\npretty_name: {json.dumps(card.title, ensure_ascii=False)}\n"
        f"license: {card.licence}\ntask_categories:\n{_yaml_list(tasks)}"
        f"tags:\n{_yaml_list(tags)}"
        f"configs:\n- config_name: default\n  default: true\n  data_files:\n{data_files}\n---\n"
    )
    sections = [
        f"# {card.title}",
        f"{_many(tally.kept_count, 'question')} on {_many(len(tally.videos), 'video')}, "
        + ", ".join(f"{count} in {name}" for name, count in by_split.items())
        + f". {describe_contents(tally)}",
        *([f"**{note}**"] if (note := tally.untested_note) else []),
        f"## Lengths\n\n{lengths_text(tally.texts, videos)}",
        "## Skills\n\n" + _count_table("skill or type", tally.skills),
        *([f"## Forms\n\n{_count_table('form', tally.forms)}"] if tally.forms else []),
        *([f"## Sets and pairs\n\n{text}"] if (text := _groups(tally.groups)) else []),
        "## How many were made, and how many were dropped\n\n" + funnel(card.run, tally),
        "## Models and prompts\n\n" + provenance(card.run, tally),
        "## Checked\n\n" + _checked(card.run),
        "## Audited\n\n" + _audited(card.audit),
        *([f"## Scores\n\n{_scores(card, tally)}"] if card.compared else []),
        "## Known biases\n\n" + biases(tally) + _perceived(videos),
        *([f"## Videos\n\n{text}"] if (text := _describe_videos(videos, where)) else []),
        f"## Licences\n\nQuestions: {card.licence}. Videos: {card.video_licence}."
        + _licences(videos),
    ]
    if card.notes:
        sections.append(f"## Notes\n\n{card.notes}")
    return head + "\n" + "\n\n".join(sections) + "\n"


def describe_contents(tally: CardCounts) -> str:
    """Return sentences on who made the questions, as far as known, and what their rows hold."""
    total = tally.kept_count
    in_all = [content for content in CONTENTS if total and tally.holding[content] == total]
    return " ".join(
        [
            f"{'Made' if tally.writers else 'Exported'} with Mustsee.",
            *([f"Every row has: {', '.join(in_all)}."] if in_all else []),
            *(
                f"{tally.holding[content]} of {total} rows have: {content}."
                for content in CONTENTS
                if 0 < tally.holding[content] < total
            ),
        ]
    )


def describe_limits(tally: CardCounts) -> str:
    """Return what is known of who wrote and filtered the questions, as a limit of the dataset."""
    done = [*(["written"] if tally.writers else []), *(["filtered"] if tally.verdicts else [])]
    if tally.writers:
        return f"Questions were {' and '.join(done)} automatically and may be wrong."
    filtered = "Questions were filtered automatically. " if done else ""
    return f"{filtered}Who wrote the questions is not recorded; they may be wrong."


def _count_table(head: str, counts: Mapping[str, int]) -> str:
    rows, total = sorted(counts.items(), key=lambda item: (-item[1], item[0])), sum(counts.values())
    return "\n".join(
        [
            f"| {head} | questions | share |",
            "|---|---:|---:|",
            *(f"| {_cell(k)} | {n} | {n / total:.0%} |" for k, n in rows),
        ]
    )


def _describe_videos(videos: Sequence[Video], where: str) -> str:
    """Return how many videos are of each genre (Neptune, figure 6), and `where` they are; empty if
    nothing is known.
    """
    genres = Counter(genre for v in videos for genre in v.genre).most_common()
    rows = "\n".join(f"| {_cell(genre)} | {count} |" for genre, count in genres)
    table = f"| genre | videos |\n|---|---:|\n{rows}" if genres else ""
    return "\n\n".join(filter(None, (table, where)))


def _yaml_list(values: Iterable[str]) -> str:
    return "".join(f"- {value}\n" for value in values)


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


def _groups(counts: Mapping[tuple[str, str], int]) -> str:
    """Return how many sets and pairs there are, and how they score; empty without any."""
    sizes = {
        kind: [n for (relation, _), n in counts.items() if relation == kind and n > 1]
        for kind in (SET, PAIR)
    }
    lines: list[str] = []
    if sets := sizes[SET]:
        size = f"{min(sets)}" if min(sets) == max(sets) else f"{min(sets)} to {max(sets)}"
        lines.append(
            f"- {len(sets)} sets of {size} questions ({sum(sets)} questions; "
            "`relation` is `set`, `group` the id of the first): the questions of a set share their "
            "options, each of which is right for one of them. Besides single questions, report the "
            "share of sets with all questions right, and the mean of (right / all) squared."
        )
    if pairs := sizes[PAIR]:
        lines.append(
            f"- {len(pairs)} pairs (`relation` is `pair`): two questions with opposite answers, of "
            "which both must be right."
        )
    return "\n".join(lines)


def _licences(videos: Sequence[Video]) -> str:
    """Return licence and origin by video; empty if neither is known of any video."""
    if not any(v.license or v.source_url for v in videos):
        return ""
    rows = [f"| {_cell(v.video_id)} | {_cell(v.license)} | {_cell(v.source_url)} |" for v in videos]
    missing = len(videos) - sum(bool(v.license) for v in videos)
    note = f"\n\nThe licence of {missing} of {len(videos)} videos is not known." * (missing > 0)
    return "\n\n" + "\n".join(["| video | licence | source |", "|---|---|---|", *rows]) + note


def _cell(text: str | None) -> str:
    return " ".join((text or "not known").split()).replace("|", "\\|")


def funnel(run: Mapping[str, Any], tally: CardCounts) -> str:
    """Return the rows in and out of each stage, the reasons of dropped questions, the number of
    corrected keys, and how guesses compare with chance.
    """
    lines = [
        f"- {step['stage']}: {step['in']} in, {step['out']} out" for step in run.get("funnel", ())
    ]
    counts: Mapping[str, Any] = run.get("questions", {"made": tally.all, "dropped": tally.dropped})
    lines.append(f"- questions made: {counts['made']}")
    reasons = sorted(counts["dropped"].items(), key=lambda item: (-item[1], item[0]))
    lines += [f"- dropped as {reason}: {n}" for reason, n in reasons]
    if tally.corrected:
        keys = _many(tally.corrected, "key")
        lines.append(f"- {keys} corrected by errata: the column `repairs` says how")
    lines += [f"- {line}" for line in (counts.get("guesses") or {}).get("said", ())]
    if sampled := counts.get("sampled"):
        lines.append(f"- {sampled['said']}")
    if worth := counts.get("worth"):
        lines.append(f"- {worth['said']}")
    return "\n".join(lines)


def provenance(run: Mapping[str, Any], tally: CardCounts) -> str:
    """Return the models that wrote the questions or gave verdicts, and the prompts used."""
    lines = [
        f"- {n} questions ({n / tally.kept_count:.0%}) by `{llm}`, prompts `{p}`, "
        f"source `{git or run.get('git', '')}`"
        for (llm, p, git), n in tally.writers.items()
    ]
    judges = tally.verdicts.items()
    lines += [f"- {n} verdicts of `{name}` by `{model}`" for (name, model), n in judges]
    prompts: Mapping[str, str] = run.get("prompts", {})
    folders = {*(tally.recipes if tally.writers else ()), *(["filters"] if tally.verdicts else [])}
    used = {name: digest for name, digest in prompts.items() if name.split("/")[0] in folders}
    lines += [f"- prompt `{name}`: `{digest}`" for name, digest in sorted(used.items())]
    return "\n".join(lines) or "Not recorded."


def _checked(run: Mapping[str, Any]) -> str:
    """Return the share of right questions in each checked sample, and people's own accuracy."""
    checked: Sequence[Mapping[str, Any]] = run.get("checked", ())
    lines = [f"- {entry['said']}" for entry in checked if "said" in entry]
    lines += [
        f"- People's own answers ({entry['form']}, {name.partition('.')[0]}): "
        f"{_share(share)} right."
        for entry in checked
        for name, share in entry.get("answered", {}).items()
    ]
    return "\n".join(lines) or "No sample of these questions has been checked by people."


def _audited(audit: Mapping[str, Any]) -> str:
    """Return the audit's figures on questions that can be answered without the video."""
    if not audit:
        return "These questions have not been audited for shortcuts."
    doubts = len(audit["suspects"]) if audit.get("keys_tested", True) else "not tested"
    guessers = [t["name"] for t in audit["battery"] if t["alarm"] and t["kind"] == "guesser"]
    return "\n".join(
        [
            f"- {audit['clean']} of {audit['questions']} multiple-choice questions on "
            f"{audit['videos']} videos pass the audit.",
            *([f"- {note}"] if (note := audit.get("said", {}).get("rules")) else []),
            f"- Guessers that beat chance: {', '.join(guessers) or 'none'}.",
            *(
                f"- Shortcut ratio with `{f['answerer']}`: {_share(f['shortcuts']['ratio'])}."
                for f in audit["figures"]
            ),
            f"- Duplicates: {len(audit['duplicates'])} pairs; in other benchmarks: "
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
    """Return the figures of `CardCounts.biases` as text."""
    figures = tally.biases
    if not figures:
        return "No multiple-choice questions with a public answer."
    return (
        "- The answer is the longest option (or one of them) in "
        f"{100 * figures['answer_is_longest']:.1f} % of {figures['questions']} questions; "
        "by chance "
        f"{100 * figures['answer_is_longest_by_chance']:.1f} %.\n"
        f"- The most frequent position of the answer holds "
        f"{100 * figures['most_common_place']:.1f} % of the answers."
    )


def _perceived(videos: Sequence[Video]) -> str:
    """Return the note on perceived age and gender: the model, and its use for sampling."""
    by = sorted({v.perceived_by for v in videos if v.perceived_by})
    if not by:
        return ""
    counts = (Counter(v.perceived_age for v in videos if v.perceived_by),
              Counter(v.perceived_gender for v in videos if v.perceived_by))  # fmt: skip
    age, gender = (", ".join(f"{k} {n}" for k, n in c.most_common()) for c in counts)
    return (
        f"\n- The videos were sampled with tags of the age and gender that `{', '.join(by)}` "
        "perceived in their frames: impressions of a model, not facts about people. "
        f"Perceived age: {age}. Perceived gender: {gender}."
    )


def read_run(folder: str | Path) -> Mapping[str, Any]:
    """Return `run.json` of the job that wrote `folder` (or the file's folder); empty without one,
    and for an evaluation, whose stages and prompts made no questions.
    """
    place = Path(folder)
    file = (place if place.is_dir() else place.parent) / "run.json"
    run = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {} if run.get("recipe") == "evaluate" else run


def read_audit(folder: str | None) -> Mapping[str, Any]:
    """Return an audit's `audit.json`; empty for None. Raises UserError if the folder has none."""
    if folder is None:
        return {}
    file = Path(folder) / "audit.json"
    if not file.exists():
        raise UserError(f"no audit.json in {folder!r}: set layout.card.audit.folder= to the output "
                        "folder of `ray_jobs.audit`")  # fmt: skip
    return json.loads(file.read_text(encoding="utf-8"))
