"""`eval.yaml`: what a hub's benchmark pages and `inspect eval hf/ORG/NAME` read of a dataset.

The form has no place for videos: a model that is asked by it sees the question and its options
alone. So its tasks are named `<split>_without_video`, and measure what the questions give away; the
tasks that show the video are `layout=inspect`, `lmms_eval` and `vlmevalkit`.
"""

from __future__ import annotations

import json

from mustsee.layouts.card import CardCounts

FILE = "eval.yaml"
ABOUT = (
    "Questions on long videos, asked without them: chance is what a good set comes to. With the "
    "video they are asked by the tasks that the card names."
)
_TASK = """\
  - id: {split}_without_video
    config: default
    split: {split}
    field_spec:
      input: question
      target: answer_index
      choices: options
      metadata: [question_id, video_id, question_type]
    solvers:
      - name: multiple_choice
    scorers:
      - name: choice
"""


def text(title: str, tally: CardCounts) -> str | None:
    """A task for each split whose questions are all multiple choice with a known answer: the form
    cannot leave rows out. None where there is no such split.
    """
    fit = [n for n, count in tally.parts.items() if count and not tally.open_ended[n]]
    if not fit:
        return None
    head = (
        f"name: {json.dumps(title, ensure_ascii=False)}\ndescription: {json.dumps(ABOUT)}\n"
        "evaluation_framework: inspect-ai\ntasks:\n"
    )
    return head + "".join(_TASK.format(split=name) for name in fit)
