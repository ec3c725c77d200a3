"""`eval.yaml`: the tasks for a hub's benchmark pages and `inspect eval hf/ORG/NAME`.

The format has no videos: a model sees the question and its options only. Its tasks are therefore
named `<split>_without_video` and measure what the questions reveal. The tasks that show the video
are `layout=inspect`, `lmms_eval` and `vlmevalkit`.
"""

from __future__ import annotations

import json

from mustsee.layouts.card import CardCounts

FILE = "eval.yaml"
ABOUT = (
    "Questions on videos, asked without the videos: on a good set, models score at chance. "
    "The card names the tasks that show the video."
)
_TASK = """\
  - id: {split}_without_video
    config: default
    split: {split}
    field_spec:
      input: question
      target: answer_index
      choices: options
      metadata: [question_id, video_id, question_type, group, relation, form]
    solvers:
      - name: multiple_choice
    scorers:
      - name: choice
"""


def text(title: str, tally: CardCounts) -> str | None:
    """Return the tasks of the splits with multiple-choice questions only, or None without any.

    Other splits get no task, because the format cannot leave rows out.
    """
    complete = [n for n, count in tally.by_split.items() if count and not tally.open_ended[n]]
    if not complete:
        return None
    head = (
        f"name: {json.dumps(title, ensure_ascii=False)}\ndescription: {json.dumps(ABOUT)}\n"
        "evaluation_framework: inspect-ai\ntasks:\n"
    )
    return head + "".join(_TASK.format(split=name) for name in complete)
