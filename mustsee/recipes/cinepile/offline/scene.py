"""CinePile's scene prompts answered by rules: questions and decoys from the scene's own lines, and
a guesser by similar words.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from mustsee.calls.llm import Request
from mustsee.questions.checks import holds, normal
from mustsee.recipes.cinepile.scene import SUBTITLE, VISUAL, SceneLine
from mustsee.text import LETTERS, TermVectors, terms

_ROW = re.compile(rf"({re.escape(SUBTITLE)}|{re.escape(VISUAL)}) ([\d.]+) ([\d.]+) (.+)")
_PLAIN = re.compile(r"\[?([\d.]+)[-– ]+([\d.]+)\]? (.+)")
_QUOTED = re.compile(r"[\"“]([^\"”]+)[\"”]")


@dataclass(frozen=True)
class SceneQuestion:
    """A question that a line of the scene answers, and the rationale."""

    question: str
    answer: SceneLine
    why: str


@lru_cache(maxsize=32)
def read(scene: str) -> tuple[SceneLine, ...]:
    """Parse the lines of a scene text; untagged lines are dialogue."""
    lines: list[SceneLine] = []
    for row in scene.splitlines():
        tagged = _ROW.match(row.strip())
        timed = tagged or _PLAIN.match(row.strip())
        if timed:
            start, end, text = timed.groups()[-3:]
            visual = bool(tagged and tagged[1] == VISUAL)
            lines.append(SceneLine(start=float(start), end=float(end), text=text, visual=visual))
    return tuple(lines)


def shortlist(request: Request) -> str:
    """Rank the templates by words shared with the scene; equal ones are in seeded order."""
    variables = request.variables
    texts = [f"{t['name']} {t['prototype']}" for t in variables["templates"]]
    likeness = TermVectors(texts).likeness(variables["scene"])
    rng = random.Random(f"{request.seed}/shortlist")
    ties = [rng.random() for _ in texts]
    order = sorted(range(len(texts)), key=lambda i: (-likeness[i], ties[i]))
    return "TEMPLATES: " + ", ".join(str(i + 1) for i in order[: variables["count"]])


def questions(request: Request) -> str:
    """Write up to `each` questions for each template, no question twice."""
    variables = request.variables
    lines = read(variables["scene"])
    rng = random.Random(f"{request.seed}/questions")
    pools = {kind: _items(lines, kind) for kind in ("perceptual", "temporal", "reasoning")}
    for pool in pools.values():
        rng.shuffle(pool)
    pool = pools[variables["kind"]]
    if variables["kind"] != "perceptual":
        pool += [i for kind, other in pools.items() if kind != "perceptual" for i in other]
    used: set[str] = set()
    blocks: list[str] = []
    for template in variables["templates"]:
        written = 0
        for item in pool:
            if written == variables["each"]:
                break
            if item.question in used:
                continue
            used.add(item.question)
            decoys = _decoys(item.answer, item.question, lines, rng)
            if len(decoys) < 4:
                continue
            written += 1
            block = _block(item.question, item.answer.text, decoys, item.why, rng)
            span = f"Evidence: {item.answer.start:.1f}-{item.answer.end:.1f}"
            blocks.append(f"Template: {template['name']}\n{block}\n{span}")
    return "\n\n".join(blocks) or "Question: nothing can be asked of this scene"


def _items(lines: Sequence[SceneLine], kind: str) -> list[SceneQuestion]:
    """Return questions on pairs of lines. Lines that occur twice are left out."""
    texts = Counter(normal(x.text) for x in lines)
    once = [x for x in lines if texts[normal(x.text)] == 1]
    long_lines = [x for x in once if len(x.text.split()) >= 3]
    spoken, visual = [x for x in long_lines if not x.visual], [x for x in long_lines if x.visual]
    items: list[SceneQuestion] = []

    def add_after(
        cues: Sequence[SceneLine], answers: Sequence[SceneLine], form: str, why: str
    ) -> None:
        for cue in cues:
            later = next((a for a in answers if a.start > cue.start), None)
            if later is not None and later.start - cue.end < 30:
                items.append(SceneQuestion(form.format(_cue(cue)), later, why.format(later.start)))

    def add_before(
        cues: Sequence[SceneLine], answers: Sequence[SceneLine], form: str, why: str
    ) -> None:
        for cue in cues:
            earlier = [a for a in answers if a.start < cue.start]
            if earlier and cue.start - earlier[-1].end < 30:
                items.append(
                    SceneQuestion(form.format(_cue(cue)), earlier[-1], why.format(cue.start))
                )

    if kind == "perceptual":
        add_after(
            spoken,
            visual,
            "What can be seen soon after {}?",
            "It is shown right behind these words.",
        )
        add_before(
            spoken, visual, "What is to be seen shortly before {}?", "It is shown just before."
        )
    elif kind == "temporal":
        add_after(
            visual, visual, "What comes next in the picture after {}?", "It is what is shown next."
        )
        add_before(visual, visual, "What was shown last before {}?", "It is what is shown before.")
        for group, verb in ((spoken, "said"), (visual, "shown")):
            if len(group) > 5:
                items.append(
                    SceneQuestion(f"Which of these is {verb} first?", group[0], "It comes first.")
                )
                items.append(
                    SceneQuestion(f"Which of these is {verb} last?", group[-1], "It comes last.")
                )
    else:
        add_after(
            visual, spoken, "Which words follow upon the moment {}?", "These words follow it."
        )
        add_before(
            visual, spoken, "Which words lead up to the moment {}?", "These words come before it."
        )
        add_after(spoken, spoken, "Which reply or remark comes after {}?", "It is said next.")
        add_before(spoken, spoken, "To which words is {} the sequel?", "They are said just before.")
    return items


def _cue(line: SceneLine) -> str:
    text = line.text.rstrip(" .,;:!?")
    return f'when this is shown: "{text}"' if line.visual else f'the words "{text}"'


def _decoys(
    answer: SceneLine, question: str, lines: Sequence[SceneLine], rng: random.Random
) -> tuple[str, ...]:
    """Return four lines of the answer's kind and similar length, not quoted in the question."""
    taken = [answer.text]
    size = len(answer.text.split())
    others = [x for x in lines if x.visual == answer.visual and x.text != answer.text]
    rng.shuffle(others)
    others.sort(key=lambda x: abs(len(x.text.split()) - size) // 4)
    for other in others:
        if len(taken) == 5:
            break
        clash = any(holds(a, other.text) or holds(other.text, a) for a in taken)
        if not clash and not holds(question, other.text) and normal(other.text):
            taken.append(other.text)
    return tuple(taken[1:5])


def _block(question: str, answer: str, decoys: Sequence[str], why: str, rng: random.Random) -> str:
    options = [answer, *decoys]
    rng.shuffle(options)
    listed = "\n".join(f"- {LETTERS[i]}) {o}" for i, o in enumerate(options))
    letter = LETTERS[options.index(answer)]
    return f"Question: {question}\n{listed}\nCorrect Answer: {letter}\nRationale: {why}"


def choose(request: Request) -> str:
    """Choose the option nearest to the quoted line, on the side that the question asks for. Without
    a context, choose the option that shares most words with the question and the other options.
    """
    variables = request.variables
    question, options = variables["question"], tuple(variables["options"])
    lines = read(variables["context"] or "")
    if lines:
        scores = [_fit(question, option, lines) for option in options]
        why = "It is the nearest to the moment in question."
    else:
        scores = _blind(question, options)
        why = "Its words are closest to those of the question and of the other options."
    best = max(range(len(options)), key=lambda i: (scores[i], -i))
    return f"Answer: {LETTERS[best]}\nRationale: {why}"


def fits(request: Request) -> str:
    """Name the option that `choose` chooses, and those with the same words."""
    given = request.variables
    lines, options = read(given["scene"]), tuple(given["options"])
    scores = [_fit(given["question"], option, lines) for option in options]
    best = max(range(len(options)), key=lambda i: (scores[i], -i))
    same = [i for i, o in enumerate(options) if set(terms(o)) == set(terms(options[best]))]
    letters = ", ".join(LETTERS[i] for i in {best, *same})
    return f"WHY: It stands at the moment in question.\nFITS: {letters}\nSPEAKER: NONE"


def _blind(question: str, options: Sequence[str]) -> list[float]:
    """Score options by words shared with the question, slightly by those shared with other options,
    and by length.
    """
    vectors = TermVectors(options)
    question_scores = vectors.likeness(question)
    mutual = vectors.cosines.sum(axis=1)
    longest = max(len(o) for o in options) or 1
    return [
        float(question_scores[i]) + 0.1 * float(mutual[i]) + 0.05 * len(options[i]) / longest
        for i in range(len(options))
    ]


def _fit(question: str, option: str, lines: Sequence[SceneLine]) -> float:
    """Score an option by its distance from the quoted line, in the direction of the question."""
    place = _find(option, lines)
    quoted = _QUOTED.search(question)
    cue = _find(quoted[1], lines) if quoted else None
    if place is None:
        return -1e6 + len(set(terms(option)) & set(terms(question)))
    if cue is None:
        return -lines[place].start if "last" not in question else lines[place].start
    backwards = re.search(r"\b(before|lead up|sequel)\b", question) is not None
    step = cue - place if backwards else place - cue
    return -step if step > 0 else -1000.0 + step


def _find(text: str, lines: Sequence[SceneLine]) -> int | None:
    return next((i for i, x in enumerate(lines) if holds(x.text, text)), None)
