"""The best questions of a run, and the frames of a question's evidence, for reports and cards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mustsee.files import schemas
from mustsee.files.store import Store
from mustsee.media.frames import is_black_jpeg
from mustsee.records import Keyframe, Question, Span, Video

BEST_QUESTIONS = 3  # shown without a script
FRAMES_PER_QUESTION = 4


def best(
    questions: Iterable[Question], most: int = BEST_QUESTIONS, *, subset: str | None = None
) -> list[Question]:
    """Return at most `most` kept questions with evidence, those that need the video most. `subset`:
    of the questions that passed every filter, to which they belong; None: there is none.

    A question ranks higher if it cannot be answered without its evidence (`sight_needed`), if no
    guesser answered it (subsets), and if its evidence is widely spread. The questions are of
    different videos and types as far as possible.
    """
    passed = (q for q in questions if subset is None or subset in q.subsets)
    left = _candidates(passed, most)
    chosen: list[Question] = []
    while left and len(chosen) < most:
        videos = {q.video_id for q in chosen}
        kinds = {q.skill_or_type for q in chosen}
        chosen.append(
            max(
                left,
                key=lambda q: (q.video_id not in videos, q.skill_or_type not in kinds, *_worth(q)),
            )
        )
        left.remove(chosen[-1])
    return chosen


def _candidates(questions: Iterable[Question], most: int) -> list[Question]:
    """Return a bounded number of questions that include the best ones.

    They are the best questions of `most` videos for each type, and the best ones of the first
    `most` videos, in case there are no others.
    """
    by_kind: dict[str, dict[str, Question]] = {}
    by_video: dict[str, list[Question]] = {}
    for question in questions:
        if question.drop is not None or not question.evidence:
            continue
        videos = by_kind.setdefault(question.skill_or_type, {})
        best_so_far = videos.get(question.video_id)
        if best_so_far is None or _worth(question) > _worth(best_so_far):
            videos[question.video_id] = question
            if len(videos) > most:
                del videos[min(reversed(videos), key=lambda video: _worth(videos[video]))]
        if question.video_id in by_video or len(by_video) < most:
            kept = by_video.setdefault(question.video_id, [])
            kept.append(question)
            kept.sort(key=_worth, reverse=True)
            del kept[most:]
    candidates = [q for kept in by_video.values() for q in kept]
    candidates += (q for videos in by_kind.values() for q in videos.values())
    return list({q.question_id: q for q in candidates}.values())


def _worth(question: Question) -> tuple[float, ...]:
    metrics = question.metrics
    return (
        metrics.get("sight_needed", 0.0),
        len(question.subsets),
        metrics.get("sight_right", 0.0),
        metrics.get("reach_seconds", 0.0),
        len(question.evidence),
    )


def evidence_frames(question: Question, video: Video, store: Store) -> list[Keyframe]:
    """Return frames of a question's evidence from the keyframes that `look` stored."""
    return of_evidence(question, keyframes(video, store))


def keyframes(video: Video, store: Store) -> list[Keyframe]:
    """Return the keyframes of the video that `look` stored, if any."""
    key = video.lineage.get("look")
    table = store.get_table("look", key) if key else None
    if table is None or "keyframes" not in table.column_names:
        return []
    return [schemas.load(Keyframe, k) for k in table["keyframes"][0].as_py() or ()]


def of_evidence(
    question: Question, every: Sequence[Keyframe], most: int = FRAMES_PER_QUESTION
) -> list[Keyframe]:
    """Return at most `most` keyframes of the evidence, in order of time.

    The one nearest to the middle of each span comes first, then others within the spans. A black
    one is taken only where a span has no other.
    """
    chosen = {k.time: k for span in question.evidence if (k := _nearest(every, span))}
    inside = [k for k in every if any(s.start <= k.time <= s.end for s in question.evidence)]
    spare = [k for k in inside if k.time not in chosen and not is_black_jpeg(k.jpeg)]
    step = max(1, len(spare) // max(1, most - len(chosen)))
    frames = [*chosen.values(), *spare[::step]][:most]
    return sorted(frames, key=lambda k: k.time)


def _nearest(frames: Sequence[Keyframe], span: Span) -> Keyframe | None:
    """The frame nearest to the middle of the span: none of the span's black ones where it has
    others.
    """
    middle = (span.start + span.end) / 2
    near = sorted(frames, key=lambda k: abs(k.time - middle))
    inside = (k for k in near if span.start <= k.time <= span.end)
    return next((k for k in inside if not is_black_jpeg(k.jpeg)), near[0] if near else None)
