"""MLVU's tasks from tables: Ego4D's natural-language queries (F.5), and labels of surveillance
videos (F.2).
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mustsee.errors import UserError
from mustsee.questions.checks import normal
from mustsee.questions.drafts import Draft
from mustsee.recipes.mlvu.annotated import FilledForm
from mustsee.records import Span, Video
from mustsee.synth.insertions import cycle_choices, with_question


@dataclass(frozen=True, kw_only=True)
class Query:
    """One of Ego4D's natural-language queries, with the span that answers it."""

    query_id: str
    video_id: str
    text: str
    template: str
    evidence: Span


def queries(data: Any) -> list[Query]:
    """Parse Ego4D's `nlq_*.json`. Queries without text or span are left out.

    Raises UserError for data of another form.
    """
    try:
        queries_found: list[Query] = []
        for video in data["videos"]:
            for clip in video["clips"]:
                for annotation in clip["annotations"]:
                    uid = annotation.get("annotation_uid", clip["clip_uid"])
                    for n, query in enumerate(annotation["language_queries"]):
                        start, end = query.get("video_start_sec"), query.get("video_end_sec")
                        if not query.get("query") or start is None or end is None or end < start:
                            continue
                        queries_found.append(
                            Query(
                                query_id=f"{uid}_{n}",
                                video_id=video["video_uid"],
                                text=str(query["query"]).strip(),
                                template=str(query.get("template") or ""),
                                evidence=Span(float(start), float(end)),
                            )
                        )
        return queries_found
    except (KeyError, TypeError) as error:
        raise UserError(f"not Ego4D's natural-language queries: {error!r} is missing") from error


def ego_forms(
    ego_queries: Sequence[Query], answers: Mapping[str, str], *, options: int = 4, seed: int = 0
) -> list[FilledForm]:
    """Return queries with answers as filled-in forms. `answers`: query id -> a few words, because
    Ego4D has spans only. Decoys are answers to other queries, first of the same template, in seeded
    order.
    """
    pool: dict[str, list[str]] = defaultdict(list)
    for query in ego_queries:
        if query.query_id in answers:
            pool[query.template].append(answers[query.query_id])
    forms: list[FilledForm] = []
    for query in ego_queries:
        answer = answers.get(query.query_id)
        if answer is None:
            continue
        same_template, rest = (
            pool[query.template],
            [a for answers_of in pool.values() for a in answers_of],
        )
        rng = random.Random(f"{seed}/{query.query_id}/wrong")
        wrong: dict[str, str] = {}
        for source in (sorted(set(same_template)), sorted(set(rest))):
            rng.shuffle(source)
            wrong |= {normal(a): a for a in source if normal(a) not in (normal(answer), *wrong)}
        forms.append(
            FilledForm(
                video_id=query.video_id,
                kind="ego",
                question=query.text if query.text.endswith("?") else f"{query.text}?",
                answer=answer,
                wrong=tuple(wrong.values())[: options - 1],
                evidence=(query.evidence,),
            )
        )
    return forms


ANOMALIES = (
    *("Abuse", "Arrest", "Arson", "Assault", "Burglary", "Explosion", "Fighting"),
    *("RoadAccidents", "Robbery", "Shooting", "Shoplifting", "Stealing", "Vandalism", "Normal"),
)
ANOMALY_QUESTIONS = (
    "Does this surveillance footage contain an anomaly, and of what kind?",
    "Which kind of anomaly, if any, can be seen in this video?",
    "What type of abnormal event does the video show?",
    "Which of these labels fits what happens in this surveillance video?",
)


@dataclass(frozen=True, kw_only=True)
class Anomaly:
    """Anomaly recognition from a table of labels (MLVU, F.2)."""

    options: int = 4
    least: float = 180
    """Shortest video, seconds; shorter ones are left out."""
    labels: Sequence[str] = ANOMALIES
    """Options."""
    questions: Sequence[str] = field(default=ANOMALY_QUESTIONS)
    seed: int = 0

    def rows(self, labelled: Sequence[tuple[Video, str]]) -> list[Video]:
        """Return the videos, which need a duration, with a question each. Raises UserError for a
        label that is not in `labels`.
        """
        unknown = sorted({label for _, label in labelled} - set(self.labels))
        if unknown:
            raise UserError(f"labels {unknown!r} are not among labels={list(self.labels)!r}")
        long_videos = sorted(
            ((v, label) for v, label in labelled if (v.duration or 0.0) >= self.least),
            key=lambda pair: pair[0].video_id,
        )
        slots = cycle_choices(len(long_videos), range(self.options), f"{self.seed}/anomaly/slots")
        rows: list[Video] = []
        for (video, label), slot in zip(long_videos, slots, strict=True):
            rng = random.Random(f"{self.seed}/{video.video_id}/anomaly")
            others = [other for other in self.labels if other != label]
            draft = Draft(
                question=rng.choice(list(self.questions)),
                answer=label,
                decoys=tuple(rng.sample(others, self.options - 1)),
            )
            rows.append(with_question(video, "anomaly_reco", draft, slot, ()))
        return rows
