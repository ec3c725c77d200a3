"""CinePile's template prompts answered by rules: a question's opening gives its kind. Questions on
scenes are for a model.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from mustsee.calls.llm import Request
from mustsee.recipes.cinepile.question_lists import names_in, neutral
from mustsee.recipes.cinepile.templates import Template, categorize

KINDS: tuple[tuple[str, str, str], ...] = (  # opening (regular expression), name, prototype
    (r"^why .*\b(feel|upset|angry|happy|sad|cry|laugh|smil|excited)", "Reason for a feeling",
     "Why does [character] feel as they do after [event]?"),
    (r"^why .*\b(say|tell|ask|talk|call)", "Reason for words",
     "Why does [character] say this to [other character]?"),
    (r"^why .*\b(go|leave|run|walk|come|move|turn|enter)", "Reason for a movement",
     "Why does [character] leave or enter [place]?"),
    (r"^why ", "Reason for an action", "Why does [character] do [action]?"),
    (r"^how .*\b(feel|react|respond|behave)", "Reaction",
     "How does [character] react when [event] happens?"),
    (r"^how many ", "Number", "How many [people or things] take part in [event]?"),
    (r"^how (long|often)", "Duration and frequency", "How long or how often does [event] go on?"),
    (r"^how (old|tall|big|much)", "Measure", "How large, old or costly is [object or character]?"),
    (r"^how (do|does|did|is|are|was|were) ", "Manner of an action",
     "In which way does [character] bring about [event]?"),
    (r"^where .*\b(before|after|when|while|as)\b", "Place at a moment",
     "Where is [character] when [event] takes place?"),
    (r"^where ", "Place of an event", "Where does [event] take place?"),
    (r"^who .*\b(with|to|talk|tell|ask|call)\b", "Partner in a conversation",
     "With whom does [character] speak about [subject]?"),
    (r"^(who|whose|whom) ", "Person behind an action", "Who is responsible for [event]?"),
    (r"^what .*\b(do|does|did|doing)\b.*\b(after|once)\b", "Action afterwards",
     "What does [character] do after [event]?"),
    (r"^what .*\b(do|does|did|doing)\b.*\bbefore\b", "Action beforehand",
     "What does [character] do before [event]?"),
    (r"^what .*\b(do|does|did|doing)\b.*\b(when|while|as)\b", "Action meanwhile",
     "What does [character] do while [event] goes on?"),
    (r"^what (is|was|are|were)? ?.*\bcolou?r", "Colour", "Which colour is the [object]?"),
    (r"^what .*\b(wear|dress|shirt|hat|coat|jacket)", "Clothing", "What does [character] wear?"),
    (r"^what .*\b(hold|carry|hand|give|pick|put|take)", "Handling of a thing",
     "Which thing does [character] take, give or hold during [event]?"),
    (r"^what .*\b(say|said|tell|told|ask|call|mention|talk)", "Content of a remark",
     "What does [character] tell [other character] about [subject]?"),
    (r"^what .*\b(happen|occur)", "Outcome of an event", "What happens as a result of [event]?"),
    (r"^what .*\b(want|plan|decide|hope|offer|suggest)", "Aim",
     "What does [character] want to bring about?"),
    (r"^what .*\b(relation|friend|wife|husband|brother|mother|father)", "Relationship",
     "How do [character] and [other character] stand to each other?"),
    (r"^what (kind|type|sort|sport|style)", "Kind of thing",
     "Of which kind is the [object or activity]?"),
    (r"^(is|are|was|were) .*\b(in|on|at|outdoor|indoor)", "Setting",
     "Does the scene take place at [place]?"),
    (r"^(is|are|was|were|does|do|did|has|have|can) ", "Check of a fact",
     "Is it true that [character] does [action]?"),
    (r"^which ", "Choice", "Which of several [objects] does [character] choose?"),
    (r"^when ", "Moment", "At which moment does [event] happen?"),
    (r"^what ", "Object of an action", "What is it that [character] deals with during [event]?"),
)  # fmt: skip


def templates(request: Request) -> str:
    """Write the most frequent kinds of the questions, at most `count`."""
    counted: Counter[int] = Counter()
    for question in request.variables["questions"]:
        for number, (opening, _, _) in enumerate(KINDS):
            if re.search(opening, question.lower()):
                counted[number] += 1
                break
    lines: list[str] = []
    chosen = [n for n, _ in counted.most_common(request.variables["count"])] or [len(KINDS) - 1]
    for number, kind in enumerate(chosen, 1):
        _, name, prototype = KINDS[kind]
        category = categorize(Template(name=name, prototype=prototype, category=""))
        lines += [f"TEMPLATE {number}: {name}", f"PROTOTYPE: {prototype}", f"CATEGORY: {category}"]
    return "\n".join(lines)


def pronouns(request: Request) -> str:
    """Replace names by pronouns, by the rules of `mustsee.recipes.cinepile.question_lists`."""
    questions: tuple[str, ...] = tuple(request.variables["questions"])
    names = names_in(questions)
    return "\n".join(f"QUESTION {n}: {neutral(q, names)}" for n, q in enumerate(questions, 1))


RULES: dict[str, Callable[[Request], str]] = {
    "cinepile/pronouns": pronouns,
    "cinepile/templates": templates,
}
