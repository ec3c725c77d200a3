"""Paraphrases of the offline rules' forms of question, and back, so that the verifier knows each
form only once; and orders from the last to the first.
"""

from __future__ import annotations

import re

PAIRS = (  # a form and its paraphrase; `{}` is the text that both contain
    (
        "In what order do these words come up on the screen: {}?",
        "These words come up on the screen: {}. In what order do they first appear there?",
    ),
    (
        "In what order are these things said: {}?",
        "These things are said: {}. In what order does one hear them?",
    ),
    (
        "In what order do these colours first fill a large part of the picture: {}?",
        "These colours fill a large part of the picture, one after another: {}. In what order do "
        "they first do so?",
    ),
    (
        "Which of these words come up on the screen soonest after “{}”?",
        "“{}” comes up on the screen. Of these other words, which are the next to come up?",
    ),
    (
        "Which of these words are on the screen together with “{}”?",
        "While “{}” can be read on the screen, which of these words can be read there, too?",
    ),
    (
        "Which word is missing in these words on the screen: “{}”?",
        "“{}” can be read on the screen, but here a word is left out. Which?",
    ),
    (
        "Which words come up on the screen at about the time of “{}”?",
        "“{}” is said, and at about that time words come up on the screen. Which?",
    ),
    (
        "What is said in the part in which “{}” comes up on the screen?",
        "“{}” comes up on the screen. What does one hear in that part?",
    ),
    (
        "Which colour fills a large part of the picture at the end of the video, but not at the "
        "beginning?",
        "At its beginning no large part of the picture is of this colour, at the end of the video "
        "one is. Of which colour?",
    ),
    (
        "Which colour fills a large part of the picture at the beginning of the video, but not at "
        "the end?",
        "At the beginning of the video a large part of the picture is of this colour, at its end "
        "none is. Of which colour?",
    ),
    ("What is said right after “{}”?", "Which words follow directly upon “{}”?"),
    ("What is said right before “{}”?", "Upon which words does “{}” follow directly?"),
    (
        "What is the reason given for this: “{}”?",
        "“{}”: why is that so, or why should it be done, according to the video?",
    ),
)
BACKWARDS = (  # texts in the question for an order, and for its reverse
    ("come up on the screen: ", "come up on the screen, from the last to the first: "),
    ("are these things said: ", "are these things said, from the last to the first: "),
    (
        "first fill a large part of the picture: ",
        "first fill a large part of the picture, from the last to the first: ",
    ),
)


def paraphrase(question: str) -> str | None:
    """Return the paraphrase of a question; null for an unknown form."""
    return next((to for plain, other in PAIRS if (to := _convert(question, plain, other))), None)


def canonical(question: str) -> str:
    """Return the form of a paraphrase; another question is returned unchanged."""
    forms = (_convert(question, other, plain) for plain, other in PAIRS)
    return next((to for to in forms if to), question)


def reversed_order(question: str) -> str | None:
    """Return the question for an order from the last to the first; null for other forms."""
    for ahead, back in BACKWARDS:
        if question.startswith("In what order") and ahead in question:
            return question.replace(ahead, back, 1)
    return None


def forwards(question: str) -> tuple[str, bool]:
    """Return the question from the first to the last, and whether it was reversed."""
    for ahead, back in BACKWARDS:
        if question.startswith("In what order") and back in question:
            return question.replace(back, ahead, 1), True
    return question, False


def _convert(question: str, form: str, to: str) -> str | None:
    """Return the question in the form `to` if it is in `form`, else null."""
    pattern = "(.+)".join(re.escape(part) for part in form.split("{}"))
    match = re.fullmatch(pattern, question)
    return to.replace("{}", match[1]) if match and match.groups() else (to if match else None)
