"""What to show of a run first: its best questions, and the frames of a question's evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mustsee import schemas
from mustsee.records import Keyframe, Question, Video
from mustsee.store import Store

BEST_QUESTIONS = 3
FRAMES_PER_QUESTION = 4  # of one question


def best(questions: Iterable[Question], most: int = BEST_QUESTIONS) -> list[Question]:
    """Of the kept questions with evidence those that need the video most plainly: without their
    evidence they cannot be answered (`sight_needed`), no guesser found them (subsets), what they
    join lies far apart. Each of another video and of another type, as far as there are such.
    """
    left = _candidates(questions, most)
    chosen: list[Question] = []
    while left and len(chosen) < most:
        videos = {q.video_id for q in chosen}
        kinds = {q.question_type for q in chosen}
        chosen.append(
            max(
                left,
                key=lambda q: (q.video_id not in videos, q.question_type not in kinds, *_worth(q)),
            )
        )
        left.remove(chosen[-1])
    return chosen


def _candidates(questions: Iterable[Question], most: int) -> list[Question]:
    """Those among which the chosen are, however many there are: of each type the best of `most`
    videos, and of the first `most` videos (there may be no others) their best.
    """
    by_kind: dict[str, dict[str, Question]] = {}
    by_video: dict[str, list[Question]] = {}
    for question in questions:
        if question.drop is not None or not question.evidence:
            continue
        videos = by_kind.setdefault(question.question_type, {})
        before = videos.get(question.video_id)
        if before is None or _worth(question) > _worth(before):
            videos[question.video_id] = question
            if len(videos) > most:
                del videos[min(reversed(videos), key=lambda video: _worth(videos[video]))]
        if question.video_id in by_video or len(by_video) < most:
            kept = by_video.setdefault(question.video_id, [])
            kept.append(question)
            kept.sort(key=_worth, reverse=True)
            del kept[most:]
    found = [q for kept in by_video.values() for q in kept]
    found += (q for videos in by_kind.values() for q in videos.values())
    return list({q.question_id: q for q in found}.values())


def _worth(question: Question) -> tuple[float, ...]:
    told = question.metrics
    return (
        told.get("sight_needed", 0.0),
        len(question.subsets),
        told.get("sight_right", 0.0),
        told.get("reach_seconds", 0.0),
        len(question.evidence),
    )


def evidence_frames(question: Question, video: Video, store: Store) -> list[Keyframe]:
    """Frames of a question's evidence, of those that `look` left in the store."""
    return of_evidence(question, keyframes(video, store))


def keyframes(video: Video, store: Store) -> list[Keyframe]:
    """What `look` left of the video in the store; nothing where it left nothing."""
    key = video.lineage.get("look")
    kept = store.get_table("look", key) if key else None
    if kept is None or "keyframes" not in kept.column_names:
        return []
    return [schemas.load(Keyframe, k) for k in kept["keyframes"][0].as_py() or ()]


def of_evidence(
    question: Question, every: Sequence[Keyframe], most: int = FRAMES_PER_QUESTION
) -> list[Keyframe]:
    """At most `most` of the keyframes, spread over the evidence: from each span the one nearest to
    its middle, then more of what the spans hold.
    """
    middles = [(s.start + s.end) / 2 for s in question.evidence]
    chosen = {k.time: k for m in middles if (k := _nearest(every, m))}
    inside = [k for k in every if any(s.start <= k.time <= s.end for s in question.evidence)]
    spare = [k for k in inside if k.time not in chosen]
    step = max(1, len(spare) // max(1, most - len(chosen)))
    frames = [*chosen.values(), *spare[::step]][:most]
    return sorted(frames, key=lambda k: k.time)


def _nearest(frames: Sequence[Keyframe], time: float) -> Keyframe | None:
    return min(frames, key=lambda k: abs(k.time - time), default=None)
