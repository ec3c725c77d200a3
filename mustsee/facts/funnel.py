"""What became of the questions of each form, and why a video has none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from mustsee.facts.select import ChosenGroup
from mustsee.facts.stem import Stem
from mustsee.facts.steps import explains_steps
from mustsee.questions.fact_funnel import explain_loss, funnel_of_video
from mustsee.records import FormCount, Video, is_rules


def count_forms(
    possible: Iterable[Stem],
    drafts: Sequence[ChosenGroup],
    unguessed: Sequence[ChosenGroup],
    guessed: Sequence[ChosenGroup],
    chosen: Sequence[ChosenGroup],
) -> tuple[FormCount, ...]:
    """Return the number of questions of each form after each step. Of the `drafts`, those that are
    neither `unguessed` nor `guessed` are those whose exam had no readable reply.
    """
    by_form = Counter(stem.key for stem in possible)
    drafted, left, known, taken = map(_by_question, (drafts, unguessed, guessed, chosen))
    unread = {question: form for question, form in drafted.items() if question not in left | known}
    counts = [Counter(names.values()) for names in (drafted, known, unread, taken)]
    return tuple(
        FormCount(
            form=form, possible=number, drafted=counts[0][form], guessed=counts[1][form],
            unread=counts[2][form], chosen=counts[3][form],
        )
        for form, number in by_form.items()
    )  # fmt: skip


def _by_question(groups: Sequence[ChosenGroup]) -> dict[str, str]:
    """Return the key of the form of each question of some groups."""
    return {one.stem.question: one.stem.key for group in groups for one in group.members}


def explain_no_questions(video: Video, writer: str) -> str:
    """Return why a video with facts has no question, and what to do. `writer`: identity of the
    model that listed the facts.
    """
    written = sum(question.skill is not None for question in video.questions or ())
    funnel = funnel_of_video(video, written=written)
    reason = explain_loss(funnel, video.requests, by_rules=is_rules(writer))
    if explains_steps(video.facts or ()):
        reason += "; its lines explain steps, so nothing is asked of its words alone"
    return reason
