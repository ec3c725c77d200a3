"""CinePile's scene prompts answered by rules: questions from the scene's own lines, a guesser by
likeness of words, decoys from other moments.
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
    """A question that the rules can ask: on `line`, answered by `answer`, which is of the scene."""

    question: str
    answer: SceneLine
    why: str


@lru_cache(maxsize=32)
def read(scene: str) -> tuple[SceneLine, ...]:
    """The lines of a scene text; of untagged ones all are said."""
    found: list[SceneLine] = []
    for row in scene.splitlines():
        tagged = _ROW.match(row.strip())
        timed = tagged or _PLAIN.match(row.strip())
        if timed:
            start, end, text = timed.groups()[-3:]
            visual = bool(tagged and tagged[1] == VISUAL)
            found.append(SceneLine(start=float(start), end=float(end), text=text, visual=visual))
    return tuple(found)


def shortlist(request: Request) -> str:
    """The templates nearest in words to the scene; those that no word reaches, in seeded order."""
    variables = request.variables
    texts = [f"{t['name']} {t['prototype']}" for t in variables["templates"]]
    likeness = TermVectors(texts).likeness(variables["scene"])
    rng = random.Random(f"{request.seed}/shortlist")
    ties = [rng.random() for _ in texts]
    order = sorted(range(len(texts)), key=lambda i: (-likeness[i], ties[i]))
    return "TEMPLATES: " + ", ".join(str(i + 1) for i in order[: variables["count"]])


def questions(request: Request) -> str:
    """For each template as many questions as the scene gives, none asked twice."""
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
        made = 0
        for item in pool:
            if made == variables["each"]:
                break
            if item.question in used:
                continue
            used.add(item.question)
            decoys = _decoys(item.answer, item.question, lines, rng)
            if len(decoys) < 4:
                continue
            made += 1
            block = _block(item.question, item.answer.text, decoys, item.why, rng)
            span = f"Evidence: {item.answer.start:.1f}-{item.answer.end:.1f}"
            blocks.append(f"Template: {template['name']}\n{block}\n{span}")
    return "\n\n".join(blocks) or "Question: nothing can be asked of this scene"


def _items(lines: Sequence[SceneLine], kind: str) -> list[SceneQuestion]:
    """What can be asked about pairs of moments. Texts that occur twice are no moments."""
    texts = Counter(normal(x.text) for x in lines)
    once = [x for x in lines if texts[normal(x.text)] == 1]
    long = [x for x in once if len(x.text.split()) >= 3]
    said, seen = [x for x in long if not x.visual], [x for x in long if x.visual]
    found: list[SceneQuestion] = []

    def add_after(
        cues: Sequence[SceneLine], answers: Sequence[SceneLine], form: str, why: str
    ) -> None:
        for cue in cues:
            later = next((a for a in answers if a.start > cue.start), None)
            if later is not None and later.start - cue.end < 30:
                found.append(SceneQuestion(form.format(_cue(cue)), later, why.format(later.start)))

    def add_before(
        cues: Sequence[SceneLine], answers: Sequence[SceneLine], form: str, why: str
    ) -> None:
        for cue in cues:
            earlier = [a for a in answers if a.start < cue.start]
            if earlier and cue.start - earlier[-1].end < 30:
                found.append(
                    SceneQuestion(form.format(_cue(cue)), earlier[-1], why.format(cue.start))
                )

    if kind == "perceptual":
        add_after(
            said, seen, "What can be seen soon after {}?", "It is shown right behind these words."
        )
        add_before(said, seen, "What is to be seen shortly before {}?", "It is shown just before.")
    elif kind == "temporal":
        add_after(
            seen, seen, "What comes next in the picture after {}?", "It is what is shown next."
        )
        add_before(seen, seen, "What was shown last before {}?", "It is what is shown before.")
        for group, verb in ((said, "said"), (seen, "shown")):
            if len(group) > 5:
                found.append(
                    SceneQuestion(f"Which of these is {verb} first?", group[0], "It comes first.")
                )
                found.append(
                    SceneQuestion(f"Which of these is {verb} last?", group[-1], "It comes last.")
                )
    else:
        add_after(seen, said, "Which words follow upon the moment {}?", "These words follow it.")
        add_before(
            seen, said, "Which words lead up to the moment {}?", "These words come before it."
        )
        add_after(said, said, "Which reply or remark comes after {}?", "It is said next.")
        add_before(said, said, "To which words is {} the sequel?", "They are said just before.")
    return found


def _cue(line: SceneLine) -> str:
    text = line.text.rstrip(" .,;:!?")
    return f'when this is shown: "{text}"' if line.visual else f'the words "{text}"'


def _decoys(
    answer: SceneLine, question: str, lines: Sequence[SceneLine], rng: random.Random
) -> tuple[str, ...]:
    """Four other lines of the answer's kind, of like length first, that are not in the question."""
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
    """With a context: the option that stands nearest to what the question quotes, on the side that
    it asks for. Without: the option that shares most with the question and the other options.
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
    """The option that `choose` takes, and those of the very same words."""
    given = request.variables
    lines, options = read(given["scene"]), tuple(given["options"])
    scores = [_fit(given["question"], option, lines) for option in options]
    best = max(range(len(options)), key=lambda i: (scores[i], -i))
    same = [i for i, o in enumerate(options) if set(terms(o)) == set(terms(options[best]))]
    letters = ", ".join(LETTERS[i] for i in {best, *same})
    return f"WHY: It stands at the moment in question.\nFITS: {letters}\nSPEAKER: NONE"


def _blind(question: str, options: Sequence[str]) -> list[float]:
    """Likeness to the question and, a little, to the other options; a longer one is likelier."""
    bags = TermVectors(options)
    asked = bags.likeness(question)
    mutual = bags.cosines.sum(axis=1)
    longest = max(len(o) for o in options) or 1
    return [
        float(asked[i]) + 0.1 * float(mutual[i]) + 0.05 * len(options[i]) / longest
        for i in range(len(options))
    ]


def _fit(question: str, option: str, lines: Sequence[SceneLine]) -> float:
    """How near an option lies to the line that the question quotes, in the direction asked."""
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
