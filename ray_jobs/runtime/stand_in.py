"""Replies in the place of a paid model, for a dry run: those of the offline rules, made-up ones
where the rules see far less than a model does, and those of the scripted model where there are no
rules.

Made up are transcripts, vectors, and what a writer sees in a video: facts, and questions with their
decoys and repairs, as many as are asked for. The rules can verify only their own kinds of
questions; of other questions some cannot be told, and the rest have their answer in their evidence
and nowhere else. Of the questions that a model writes many are guessed without the video.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any

from actors.llm.offline import OfflineLlm, revision, rules
from actors.llm.scripted import fill_reply
from mustsee.calls.llm import RULES, Request
from mustsee.errors import BadRow
from mustsee.records import Question, Span
from mustsee.text import LETTERS
from mustsee.verify.look_replies import HOLDS, OPEN, RIGHT, WRONG, OptionVerdict, say

WORDS_PER_SECOND = 2.3  # words per second of a stand-in transcript (140 a minute)
NARRATION = (
    "First we put the water on and wait until it boils. My brother built this table from the wood "
    "of an old door. The second box holds the small screws, and the long ones are over there. "
    "After an hour the rain stopped and we went down to the river. She asked him why the red "
    "boat had left without them. Turn it slowly until you hear it click, then let go. Nobody "
    "knew that the bridge had been closed for three weeks. In the end we painted all of it blue."
)
REMARK = NARRATION[:40]  # what a made-up reply adds to a verdict
# Kinds of made-up facts in turn, and how many of the facts that may be listed are: as strong
# readers listed them of the recorded videos (examples/replies).
FACT_KINDS = (
    "event", "place", "object", "event", "place", "person", "event", "place", "object", "state",
)  # fmt: skip
LISTED_SHARE = 0.85
# Shares of the questions that a model writes which are guessed without the video, and which cannot
# be told from it: strong readers of two runs guessed 69 of 134, and could not tell 4 of 67. What
# rules guess from the transcript and from the options comes on top.
GUESSED_SHARE, UNDECIDED_SHARE = 0.5, 0.06
GUESSES = ("filters/guess_set", "filters/blind")  # prompts that are answered so
VERIFIED_CHARS = 450  # characters in which a verifier says what it sees
HELD = " because "  # part of a made-up claim that holds; none of its altered versions has it
SEEN = "I see this. "  # begins a made-up answer of a reader who sees the video
OPEN_POINTS = 6  # points of a made-up open question
CLAIM_POINTS = 3  # claims among these points
SENT_BACK = 3  # open questions of which the editor sends one back
EVIDENCE_S = 8.0  # seconds of a made-up question's evidence, of each moment
LOOKS = ("in a red coat", "in black trousers", "with a grey beard", "in a striped shirt",
         "with a green scarf", "in a white apron", "with long hair", "in a yellow hat")  # fmt: skip
WHO = ("man", "woman", "boy", "girl", "waiter", "driver", "dancer", "soldier")
ACTS = ("opens", "carries", "paints", "pushes", "folds", "drops", "cuts", "fills", "throws",
        "closes", "breaks", "washes", "hides", "ties")  # fmt: skip
WHAT = ("wooden", "metal", "blue", "round", "brown", "tall", "cracked", "small", "dusty", "square",
        "silver", "orange")  # fmt: skip
THINGS = ("door", "box", "bottle", "lamp", "chair", "basket", "wheel", "mirror", "bucket", "drawer",
          "kettle", "ladder", "suitcase", "bicycle", "curtain", "barrel")  # fmt: skip
PLACES = ("street", "kitchen", "garden", "workshop", "hall", "field", "station", "harbour", "roof",
          "cellar", "bridge", "classroom")  # fmt: skip


async def stand_in_reply(
    request: Request, questions: MutableMapping[str, Question]
) -> tuple[str, int]:
    """Return a reply of the right form, and the number of its characters that are paid as tokens.

    `questions`: the questions of the rows, by their text; a repaired one is added. Raises BadRow
    for a question that the rules cannot verify, and of which nothing is known.
    """
    if request.prompt == "hear":
        return _transcription(request.messages[0].images[0]), 0
    if request.prompt == "embed":
        return _vectors([m.text for m in request.messages]), 0
    if request.prompt in MADE_UP:
        text = MADE_UP[request.prompt](request.variables)
        return text, len(text)
    if request.prompt in GUESSES and request.variables.get("transcript") is None:
        text = _guesses(request.variables, questions)
        if text is not None:
            return text, len(text)
    if request.prompt == "filters/repair":
        old: Question = request.variables["question"]
        text, new, answer = _repaired(request.variables)
        questions[new] = replace(old, question=new, answer=answer)
        return text, len(text)
    if request.prompt not in rules():
        text = fill_reply(request)
        return text, len(text)
    verifies = request.prompt.startswith("filters/sight")
    question = questions.get(request.variables["question"]) if verifies else None
    try:
        if question is not None and request.messages[-1].clips:  # Rules cannot watch clips.
            raise BadRow
        text = (await OfflineLlm(f"{RULES} {revision()}").complete(request)).text
    except BadRow:
        if question is None:
            raise
        text = _verification(question, request.variables)
    return text, len(text)


def _listed_facts(variables: Mapping[str, Any]) -> str:
    """Facts of a window, evenly over its moments, in the middle of each."""
    window = variables["window"]
    moments: Sequence[Span] = window.moments or (window.span,)
    kinds = [kind for kind in FACT_KINDS if kind in variables["kinds"]] or variables["kinds"]
    rng = random.Random(f"{window.span.start:.3f}/{window.span.end:.3f}")
    count = max(1, round(LISTED_SHARE * variables["most"]))
    facts: list[dict[str, Any]] = []
    for n in range(count):
        kind, moment = kinds[n % len(kinds)], moments[n * len(moments) // count]
        start, end = moment.start + 0.25 * moment.seconds, moment.end - 0.25 * moment.seconds
        span = {"start": round(start, 1), "end": round(end, 1)}
        facts.append({"kind": kind, "phrase": _phrase(kind, rng), "spans": [span], "of": ""})
        if kind == "cause":
            facts[-1]["of"] = _phrase("event", rng)
    return json.dumps({"facts": facts})


def _written_questions(variables: Mapping[str, Any]) -> str:
    """As many questions as are asked for, evenly over the video or part, each on one moment or, as
    many as must, on two that lie apart; with decoys where they are wanted in the same reply.
    """
    whole: Span = variables["video"] if "video" in variables else variables["part"].span
    rng, target = random.Random(f"{whole.start:.3f}/{whole.end:.3f}"), variables["target"]
    blocks: list[str] = []
    for n in range(target):
        moment = min(EVIDENCE_S, 0.1 * whole.seconds)
        starts = [whole.start + (whole.seconds - moment) * (n + 0.5) / target]
        if n < variables["joined"]:
            starts = [whole.start + place * (whole.seconds - moment) for place in (0.1, 0.9)]
        spans = [Span(start, start + moment) for start in starts]
        question, answer = _asked(rng)
        blocks.append(_block(n + 1, question, answer, rng, variables.get("count", 0), spans))
    return "\n\n".join(blocks)


def _written_decoys(variables: Mapping[str, Any]) -> str:
    """Decoys for each of the drafts."""
    count = variables["count"]
    return "\n\n".join(
        _block(n, draft.question, draft.answer, random.Random(draft.question), count)
        for n, draft in enumerate(variables["drafts"], 1)
    )


def _repaired(variables: Mapping[str, Any]) -> tuple[str, str, str]:
    """Another question with the evidence of one that failed; its reply, text and answer."""
    old: Question = variables["question"]
    rng = random.Random(old.question)
    question, answer = _asked(rng)
    text = _block(1, question, answer, rng, len(variables["now"].wrong), old.evidence)
    return text, question, answer


def _asked(rng: random.Random) -> tuple[str, str]:
    """A question and its answer."""
    who, looks = rng.choice(WHO), rng.choice(LOOKS)
    thing = f"{rng.choice(WHAT)} {rng.choice(THINGS)}"
    question = f"What does the {who} {looks} do with the {thing} in the {rng.choice(PLACES)}?"
    return question, _answer(rng)


def _answer(rng: random.Random) -> str:
    aside = f"a {rng.choice(WHAT)} {rng.choice(THINGS)}"
    return f"{rng.choice(WHO)} {rng.choice(ACTS)} it beside {aside}".capitalize()


def _block(
    number: int, question: str, answer: str, rng: random.Random, decoys: int,
    evidence: Sequence[Span] = (),
) -> str:  # fmt: skip
    """A question in the form of `mustsee.questions.drafts`."""
    lines = [f"QUESTION {number}: (Goal Reasoning) {question}", f"CORRECT ANSWER: {answer}"]
    lines += [f"WRONG ANSWER {n}: {_answer(rng)}" for n in range(1, decoys + 1)]
    if evidence:
        lines.append("EVIDENCE: " + "; ".join(f"{s.start:.1f}-{s.end:.1f}" for s in evidence))
    return "\n".join(lines)


def _phrase(kind: str, rng: random.Random) -> str:
    """A phrase in the form of its kind (prompts/facts/_kinds.j2)."""
    who, looks, act = rng.choice(WHO), rng.choice(LOOKS), rng.choice(ACTS)
    what, thing, place = rng.choice(WHAT), rng.choice(THINGS), rng.choice(PLACES)
    if kind == "event":
        return f"a {who} {looks} {act} a {what} {thing}"
    if kind == "place":
        return f"a {place} with a {what} {thing}"
    if kind == "person":
        return f"the {who} {looks}"
    if kind == "object":
        return f"a {what} {thing} beside a {rng.choice(THINGS)}"
    return f"the {thing} beside the {who} is {what}"


def _judged_facts(variables: Mapping[str, Any]) -> str:
    """Each phrase is seen where it is claimed, and nowhere else."""
    span: Span = variables["span"]
    seen, not_seen = list[int](), list[int]()
    for number, fact in enumerate(variables["phrases"], 1):
        claimed = any(spans_overlap(span, claim) for claim in fact.spans)
        (seen if claimed else not_seen).append(number)
    return json.dumps({"seen": seen, "not_seen": not_seen, "unsure": []})


def _guesses(variables: Mapping[str, Any], questions: Mapping[str, Question]) -> str | None:
    """Rankings of the options of written questions, all in one request or one alone, by a guesser
    that sees neither video nor transcript; None for other requests, which rules answer.
    """
    asked: Sequence[Mapping[str, Any]] = variables.get("asked") or [variables]
    rankings: list[str] = []
    for one in asked:
        question, options = questions.get(one["question"]), one["options"]
        if question is None or question.recipe != "neptune" or question.answer not in options:
            return None
        right = LETTERS[options.index(question.answer)]
        wrong = [letter for letter in LETTERS[: len(options)] if letter != right]
        is_guessed = random.Random(question.question).random() < GUESSED_SHARE
        rankings.append(" > ".join([right, *wrong] if is_guessed else [*wrong, right]))
    if "asked" not in variables:
        return f"* ANSWER: {rankings[0]}\n* EXPLANATION: {NARRATION[:60]}"
    lines = [f"QUESTION {n}: {ranked} | {NARRATION[:60]}" for n, ranked in enumerate(rankings, 1)]
    return "\n".join(lines)


def _verification(question: Question, variables: Mapping[str, Any]) -> str:
    """The verifier's reply: the answer where the evidence of a sound question is shown."""
    options: Sequence[str] = variables.get("options", ())
    seen = NARRATION[:VERIFIED_CHARS]
    cut = any(spans_overlap(c, e) for c in variables["cuts"] for e in question.evidence)
    cut |= random.Random(f"{question.question}/sight").random() < UNDECIDED_SHARE
    evidence = () if cut else question.evidence
    if options:
        right = OptionVerdict(RIGHT, evidence)
        other = OptionVerdict(OPEN if cut else WRONG)
        answer = None if cut else question.answer
        return say([right if o == answer else other for o in options], seen)
    spans = "; ".join(f"{span.start:.1f}-{span.end:.1f}" for span in evidence) or "NONE"
    return (
        f"* SEEN: {seen}\n* PREMISE: {HOLDS}\n* EVIDENCE: {spans}\n* LOOK: NONE\n"
        f"* ANSWER: {'CANNOT BE TOLD' if cut else question.answer}"
    )


def _listed_claims(variables: Mapping[str, Any]) -> str:
    """As many claims as may be listed, each on two facts that lie apart, with altered versions."""
    facts, most = len(variables["facts"]), variables["most"]
    rng = random.Random(f"{variables['span'].start:.3f}/claims")
    lines: list[str] = []
    for n in range(max(1, round(LISTED_SHARE * most))):
        first, second = 1 + n % facts, 1 + (n + facts // 2) % facts
        ids = f"F{first}, F{second if second != first else 1 + first % facts}"
        what, why = _phrase("event", rng), _phrase("event", rng)
        kind = variables["kinds"][n % len(variables["kinds"])]
        lines.append(f"CLAIM {n + 1}: {kind} | {ids} | {what}{HELD}{why}")
        lines += [
            f"ALTERED {n + 1}: cause | {what} although {_phrase('event', rng)}"
            for _ in range(variables["altered"])
        ]
    return "\n".join(lines)


def _weighed_claims(variables: Mapping[str, Any]) -> str:
    """Each listed claim holds, and none of its altered versions."""
    shown: Sequence[Span] = variables["spans"]
    where = "; ".join(f"{s.start:.1f}-{max(s.end, s.start + 0.5):.1f}" for s in shown)
    lines = [
        f"STATEMENT {n}: {f'HOLDS | {where}' if HELD in text else 'DOES NOT HOLD | NONE'} | "
        f"{REMARK}"
        for n, text in enumerate(variables["statements"], 1)
    ]
    return "\n".join(lines)


def _spread(count: int, most: int, first: int) -> list[int]:
    """Return `most` of `count` places, or as many as there are, spread evenly from the `first`."""
    size = min(most, count)
    return [(first + k * count // size) % count for k in range(size)]


def _open_questions(variables: Mapping[str, Any]) -> str:
    """As many open questions as are wanted, each on claims and facts from the whole video."""
    made_of = "/".join(str(len(variables[name])) for name in ("claims", "facts", "returned"))
    rng, lines = random.Random(made_of), list[str]()
    skills = [skill.name for skill in variables["wanted"] for _ in range(skill.count)]
    for n, skill in enumerate(skills):
        question, _ = _asked(rng)
        lines.append(f"QUESTION {n + 1}: {skill} | {question}")
        claims = _spread(len(variables["claims"]), CLAIM_POINTS, n)
        facts = _spread(len(variables["facts"]), OPEN_POINTS - len(claims), n)
        ids = [*(f"C{m + 1}" for m in claims), *(f"F{m + 1}" for m in facts)]
        lines += [f"POINT {n + 1}: 2 | {name}" for name in ids]
    return "\n".join(lines)


def _edited_questions(variables: Mapping[str, Any]) -> str:
    """Every third question is sent back, and passes when it is written again."""
    is_first = len(variables["drafts"]) > SENT_BACK
    return "\n".join(
        f"QUESTION {n}: {f'incomplete | {REMARK}' if is_first and n % SENT_BACK == 0 else 'none |'}"
        for n, _ in enumerate(variables["drafts"], 1)
    )


def _written_choices(variables: Mapping[str, Any]) -> str:
    """As many questions as are wanted, each on another claim, with the next ones as options."""
    claims, wrong = len(variables["claims"]), range(1, variables["wrong"] + 1)
    return "\n".join(
        f"QUESTION {n + 1}: C{n + 1} | {', '.join(f'C{(n + k) % claims + 1}' for k in wrong)} | "
        f"{_asked(random.Random(f'{n}/choice'))[0]}"
        for n in range(min(claims, variables["count"]))
    )


def _open_answers(variables: Mapping[str, Any]) -> str:
    """An answer to each question; who is shown frames begins it with `SEEN`."""
    others = len(variables.get("others", ()))
    own = f"NONE | {SEEN}" if "frames" in variables else f"Of {others} others: "
    return "\n".join(f"ANSWER {n}: {own}{NARRATION}" for n in range(1, len(variables["asked"]) + 1))


def _graded_points(variables: Mapping[str, Any]) -> str:
    """Who has seen the video states each point, and who has not states none."""
    verdict = "ENTAILED" if variables["answer"].startswith(SEEN) else "ABSENT"
    lines = [f"POINT {n}: {verdict} | {REMARK}" for n, _ in enumerate(variables["points"], 1)]
    wrong = (f"STATEMENT {n}: NO |" for n, _ in enumerate(variables["statements"], 1))
    return "\n".join([*lines, *wrong])


def _graded_answers(variables: Mapping[str, Any]) -> str:
    """The same of several answers."""
    answers = zip(LETTERS, variables["answers"], strict=False)
    by = ", ".join(x for x, answer in answers if answer.startswith(SEEN)) or "NONE"
    lines = [f"POINT {n}: {by} | NONE |" for n, _ in enumerate(variables["points"], 1)]
    wrong = (f"STATEMENT {n}: NONE" for n, _ in enumerate(variables["statements"], 1))
    return "\n".join([*lines, *wrong])


def _ratings(variables: Mapping[str, Any]) -> str:
    """High grades, or all conditions met where frames are shown."""
    cells = " | ".join(["YES"] * 5 if "frames" in variables else ["4"] * 3)
    rows = enumerate(variables["asked"], 1)
    return "\n".join(f"QUESTION {n}: {cells} | {REMARK}" for n, _ in rows)


def _wordings(variables: Mapping[str, Any]) -> str:
    asked, phrases = variables["asked"], variables["phrases"]
    lines = [f"QUESTION {n}: Tell me: {text}" for n, text in enumerate(asked, 1)]
    lines = [line if line.endswith("?") else f"{line}?" for line in lines]
    return "\n".join([*lines, *(f"PHRASE {n}: {text}" for n, text in enumerate(phrases, 1))])


def _readings(variables: Mapping[str, Any]) -> str:
    """Each wording is read back alike."""
    lines: list[str] = []
    for n, (one, right) in enumerate(zip(variables["asked"], variables["right"], strict=True), 1):
        others = [LETTERS[k] for k in range(len(one["options"])) if k != right]
        lines.append(f"QUESTION {n}: {LETTERS[right]} | {', '.join(others)}")
    return "\n".join(lines)


def spans_overlap(one: Span, other: Span) -> bool:
    return max(one.start, other.start) < min(one.end, other.end)


def _transcription(wav: bytes) -> str:
    """A stand-in transcript of `wav` at the pace of speech, in segments of three seconds.

    `wav`: 16,000 samples of two bytes a second.
    """
    seconds = len(wav) / 32_000
    words = itertools.cycle(NARRATION.split())
    starts = range(0, max(1, int(seconds)), 3)
    texts = [" ".join(itertools.islice(words, round(3 * WORDS_PER_SECOND))) for _ in starts]
    segments = [
        {"start": float(start), "end": min(start + 3.0, seconds), "text": text, "avg_logprob": -0.1}
        for start, text in zip(starts, texts, strict=True)
    ]
    text = " ".join(texts)
    return json.dumps({"language": "english", "text": text, "words": [], "segments": segments})


def _vectors(texts: Sequence[str]) -> str:
    """A random vector for each text, encoded as `actors.embed.openai` does."""
    import numpy as np

    from actors.embed.openai import encode_vectors

    rng = np.random.default_rng(0)
    return encode_vectors(rng.normal(size=(len(texts), 384)).astype(np.float32))


MADE_UP: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "facts/answer_blind": _open_answers,
    "facts/answer_seen": _open_answers,
    "facts/choices": _written_choices,
    "facts/claims": _listed_claims,
    "facts/edit": _edited_questions,
    "facts/extract": _listed_facts,
    "facts/grade": _graded_points,
    "facts/grade_answers": _graded_answers,
    "facts/look": _judged_facts,
    "facts/questions": _open_questions,
    "facts/read_back": _readings,
    "facts/weigh": _weighed_claims,
    "facts/word": _wordings,
    "filters/conditions": _ratings,
    "filters/worth": _ratings,
    "neptune/questions": _written_questions,
    "neptune/whole": _written_questions,
    "neptune/script": _written_questions,
    "neptune/decoys": _written_decoys,
}
