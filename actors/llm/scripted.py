"""A scripted model: it fills in the form of any reply with words, times and numbers of the request.

Parsers accept its replies, so that a job goes through to its end, and they mean nothing: a dry run
counts with them in place of paid models, and tests run jobs with them. It is no choice of `llm=`,
since it asks no real questions.

An answer quotes the request, and a wrong one has the words of a quotation in reverse. What is asked
for beyond the quotations is made of words of the request, at places evenly over the video: it lists
as many facts, claims and questions as strong readers do, since further calls follow from each.

As a verifier it tells its own false statements by a word of theirs, knows the answers of the
questions that it is given, and else finds an option right if a line that it is shown holds the
option, and leaves all open if no line does. It guesses the questions that it knows as often as
strong readers do, and draws other guesses.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from actors.part import Capabilities
from mustsee.calls.llm import Llm, Reply, Request
from mustsee.prompts import ENGLISH
from mustsee.questions.checks import holds, normal
from mustsee.records import Line, Question, Span
from mustsee.text import LETTERS

QUOTED = re.compile(r"[A-Za-z][A-Za-z'-]*(?: [A-Za-z][A-Za-z'-]*){3,7}")  # four words to eight
FENCED = re.compile(r"<<<(.*?)>>>", re.DOTALL)  # text of a video in a prompt
TIMES = re.compile(r"\b(\d+(?:\.\d+)?)(?: ?[-–] ?| )(\d+(?:\.\d+)?)\b")
WORD = re.compile(r"\b[a-z]{4,10}\b")
FEW, MANY = 3, 20  # quotations and words of a video, below which other words are taken
ONE_OF = re.compile(r"\bone of (\w[\w ]*),")
# Variables that say how many items a list has: the length of a list, or the number itself.
SIZES = ("units", "drafts", "target", "count", "questions", "asked", "times", "watched", "most",
         "templates")  # fmt: skip
SEGMENT_SHOTS = 3  # shots of a topic
PLACE_S = 8.0  # seconds of a place for which no row of the request has times
KINDS = ("cause and effect", "comparison", "goal reasoning", "other")
# What strong readers listed of the recorded videos (examples/replies): kinds of facts in turn, the
# share of the facts, claims and questions that may be listed, and points of an open question, with
# the claims among them.
FACT_KINDS = ("event", "place", "object", "event", "place", "person", "event", "place", "object",
              "state")  # fmt: skip
LISTED_SHARE = 0.85
POINTS, CLAIM_POINTS = 6, 3
PARTS = 3  # parts of a claim
SENT_BACK = 5  # open questions of which an editor mends one; the recorded one sent back 4 of 22
# Shares of the questions that a model writes which are guessed without the video, and which cannot
# be told from it: strong readers of two runs guessed 69 of 134, and could not tell 4 of 67.
GUESSED_SHARE, UNDECIDED_SHARE = 0.5, 0.06
FALSE = "falsely"  # a word of each altered statement
SEEN = "I see that"  # begins the answer of a reader who is shown frames
CANNOT = "CANNOT BE TOLD"


@dataclass(frozen=True)
class Quotation:
    """Words of the request, and the span of the row that they stand in."""

    words: str
    span: Span


def fill_reply(request: Request, questions: Mapping[str, Question] | None = None) -> str:
    """Return a reply in the request's form: a JSON object, or else an option's letter, a verdict or
    prose. `questions`: those whose answers the model knows, by their text.
    """
    return _Filler(request, questions or {}).reply()


class _Filler:
    """Fills in the form of one request. Items of a list are numbered from 0 (`n`)."""

    def __init__(self, request: Request, questions: Mapping[str, Question]) -> None:
        self.form, self.variables, self.known = request.form, request.variables, questions
        said = "\n".join(m.text for m in request.messages if m.role == "user")
        text = "\n".join(FENCED.findall(said))
        extents = (self.variables.get(name) for name in ("window", "part", "video", "span"))
        extent = next((getattr(e, "span", e) for e in extents if e is not None), None)
        self.extent = extent if isinstance(extent, Span) else Span(0.0, 1.0)
        self.earlier = "".join(m.text for m in request.messages if m.role == "assistant")
        failed = self.variables.get("now")  # the wording that is to be repaired
        seed = f"{request.prompt}/{request.seed}/{self.extent}/{failed}/{self.earlier}/{text}"
        self.key = hashlib.sha256(seed.encode()).hexdigest()
        self.rng = random.Random(self.key)
        self.fenced, self.said = text, said
        self.listed = ""  # the list whose items are filled in

    @cached_property
    def quotations(self) -> list[Quotation]:
        if "now" in self.variables:  # The request also quotes other questions and wrong answers.
            return []
        quotations = {frozenset(normal(q.words).split()): q for q in quote(self.fenced)}
        drawn = list(quotations.values()) if len(quotations) >= FEW else []
        self.rng.shuffle(drawn)
        return drawn

    @cached_property
    def new_quotations(self) -> list[str]:
        """The quotations of which no earlier reply asked."""
        return [q.words for q in self.quotations if f"“{q.words}”" not in self.earlier]

    @cached_property
    def words(self) -> list[str]:
        """Words of the video's texts, or of the whole request where these are few."""
        words = set(WORD.findall(self.fenced)) - {FALSE}
        return sorted(words if len(words) > MANY else {*WORD.findall(self.said), "word"} - {FALSE})

    def reply(self) -> str:
        if self.form is not None:
            filled = self.value("", self.form, 0)
            return json.dumps(filled, ensure_ascii=False, separators=(",", ":"))
        if options := self.variables.get("options"):
            letter, *_ = self.rank({**self.variables, "options": options})
            return f"By the words alone. ANSWER: {letter}"
        if "reference" in self.variables:
            return str(self.variables["candidate"] == self.variables["reference"]).upper()
        return ". ".join(self.answer(n).words for n in range(5)) + "."

    def value(self, name: str, schema: Mapping[str, Any], n: int) -> Any:
        """Return the value of a property, of the `n`th item that has it."""
        kind, parts = schema.get("type"), schema.get("properties", {})
        if kind == "object" and name.startswith("option_"):
            return self.verdict(LETTERS.index(name[-1].upper()))
        if kind == "object":
            return {part: self.value(part, inner, n) for part, inner in parts.items()}
        if kind == "array":
            return self.items(name, schema["items"], n)
        if name in ("start", "end"):
            return getattr(self.answer(n).span, name)
        if kind in ("integer", "number"):
            number = n // self.rows_each + 1
            return SENT_BACK * number if self.mends else number
        if name == "correct_answer" and "enum" in schema:
            return LETTERS[n % 5]
        if "enum" in schema:
            return self.choice(name, schema["enum"], n)
        return self.text(name, n, schema.get("description", ""))

    def items(self, name: str, schema: Mapping[str, Any], n: int) -> list[Any]:
        if set(schema.get("properties", ())) == {"start", "end"}:
            return [{"start": s.start, "end": s.end} for s in self.find_spans(name, n)]
        if name == "cast":
            return []
        if "phrases" in self.variables and name in ("seen", "not_seen", "unsure"):
            return self.find_phrases(name)
        if name == "segments":
            firsts = range(1, self.size(name) + 1, SEGMENT_SHOTS)
            lasts = (min(first + SEGMENT_SHOTS - 1, self.size(name)) for first in firsts)
            runs = zip(firsts, lasts, strict=True)
            return [{"first": a, "last": b, "topic": self.answer(a).words} for a, b in runs]
        if name == "fits":
            return self.find_fitting(self.variables["scene"])
        if "enum" in schema:
            ranked = self.rank(self.variables) if "options" in self.variables else []
            return ranked if len(ranked) == len(schema["enum"]) else self.draw(schema["enum"])
        outer, self.listed = self.listed, name
        items = [self.value(name, schema, k) for k in range(self.size(name))]
        self.listed = outer
        return items

    def draw(self, choices: Sequence[str]) -> list[str]:
        return self.rng.sample(choices, len(choices))

    def size(self, name: str) -> int:
        """Number of items that the request asks for in a list."""
        given = self.variables
        if name in ("facts", "claim"):
            return max(1, round(LISTED_SHARE * given["most"]))
        if name == "altered":
            return given["altered"] * self.size("claim")
        if name == "best":
            return 1
        if name == "part":
            return PARTS * len(given["statements"])
        if name in ("mended", "point") and "drafts" in given:
            sent_back = sum(self.fault(n) != "none" for n in range(len(given["drafts"])))
            return sent_back * (POINTS if name == "point" else 1)
        if "wanted" in given:  # open questions, by skill
            wanted = sum(each.count for each in given["wanted"])
            return max(1, round(LISTED_SHARE * wanted)) * self.rows_each
        if "wrong" in given and "claims" in given:
            return min(given["count"], len(given["claims"]))
        found = (given[each] for each in (f"{name}s", *SIZES) if given.get(each))
        size = next(found, 1)
        return given.get("each", 1) * (size if isinstance(size, int) else len(size))

    @property
    def rows_each(self) -> int:
        """Number of rows that belong to one number."""
        if self.listed == "point" and ("wanted" in self.variables or self.mends):
            return POINTS
        return {"altered": self.variables.get("altered", 1), "part": PARTS}.get(self.listed, 1)

    @property
    def mends(self) -> bool:
        """Whether the rows are those of questions that an editor mends."""
        return self.listed in ("mended", "point") and "drafts" in self.variables

    def choice(self, name: str, choices: Sequence[str], n: int) -> str:
        if name == "kind":
            kinds = [kind for kind in FACT_KINDS if kind in choices] or choices
            return kinds[n % len(kinds)]
        fitting = self.find_fitting(self.variables.get("context") or "") if name == "answer" else []
        return next((x for x in (*fitting, "NONE") if x in choices), self.rng.choice(choices))

    def find_fitting(self, text: str) -> list[str]:
        """Return the letters of the options that a text holds."""
        options = zip(LETTERS, self.variables["options"], strict=False)
        return [letter for letter, option in options if holds(text, option)]

    def text(self, name: str, n: int, about: str) -> str:
        if write := FIELDS.get((self.listed, name)) or FIELDS.get(("", name)):
            return write(self, n)
        if name == "question":
            return self.find_given(name, n) or self.write_question(n)
        if name == "correct_answer":
            return self.find_given("answer", n) or self.answer(n).words
        if name.startswith("option_"):
            number = LETTERS.index(name[-1].upper())
            return self.answer(n).words if number == n % 5 else self.write_wrong_answer(n, number)
        if name.startswith("wrong_answer_"):
            return self.write_wrong_answer(n, int(name.rpartition("_")[2]))
        if one_of := ONE_OF.search(about):
            return one_of[1]
        if "empty if" in about:
            return ""
        return self.answer(n).words

    def find_given(self, name: str, n: int) -> str:
        """Return a text of the `n`th question that the request is about, or nothing."""
        given = self.variables.get("drafts") or self.variables.get("questions") or ()
        if n >= len(given):
            return ""
        return getattr(given[n], name, given[n] if name == "question" else "")

    def write_question(self, n: int) -> str:
        turn, place = divmod(n, len(self.new_quotations) or 1)
        asked = ("What goes with", "What belongs to", "What stands beside")[turn % 3]
        words = (
            self.new_quotations[place]
            if self.new_quotations and turn < 3
            else self.phrase(n, half=1)
        )
        return f"{asked} “{words}”?"

    def answer(self, n: int) -> Quotation:
        """Return a quotation, or words of the request where they are used up."""
        if n < len(self.quotations):
            return self.quotations[(n + 1) % len(self.quotations)]
        return Quotation(self.phrase(n), self.place(n))

    def phrase(self, n: int, length: int = 6, *, half: int = 0) -> str:
        """Return words of the request, others for each `n` and each request; those of one `half` of
        its words are not among those of the other.
        """
        rng = random.Random(f"{self.key}/{n}")
        return " ".join(rng.choices(self.words[half::2] or self.words, k=length))

    def place(self, n: int) -> Span:
        """Return the `n`th of as many places as items are listed, evenly over the video or part."""
        window = self.variables.get("window")
        share = (n + 0.5) / max(self.size(self.listed), n + 1)
        if moments := window and window.moments:
            moment = moments[int(share * len(moments))]
            start, seconds = moment.start + 0.25 * moment.seconds, 0.5 * moment.seconds
        else:
            seconds = min(PLACE_S, 0.1 * self.extent.seconds)
            start = self.extent.start + share * (self.extent.seconds - seconds)
        return Span(round(start, 2), round(start + seconds, 2))

    def write_wrong_answer(self, n: int, number: int) -> str:
        """Return the words of another quotation in reverse, so that no line holds it."""
        words = self.answer(n + number).words.lower().split()
        return " ".join((*reversed(words), *["again"] * (number // max(1, len(self.quotations)))))

    def find_question(self, asked: Mapping[str, Any]) -> Question | None:
        """Return the question of variables, where its answer is known."""
        question = self.known.get(str(asked.get("question")))
        options = asked.get("options") or ()
        return question if question and (question.answer in options or not options) else None

    def rank(self, asked: Mapping[str, Any]) -> list[str]:
        """Return the letters of the options in the order of a guess."""
        letters = list(LETTERS[: len(asked["options"])])
        self.rng.shuffle(letters)
        question = self.find_question(asked)
        if question is not None and question.recipe != "facts":
            right = LETTERS[list(asked["options"]).index(question.answer)]
            letters.remove(right)
            is_guessed = random.Random(question.question).random() < GUESSED_SHARE
            letters.insert(0 if is_guessed else len(letters), right)
        return letters

    def find_evidence(self) -> tuple[Span, ...] | None:
        """Return where the video shows the answer of a known question; nothing where its evidence
        was cut out and for the questions that cannot be told, None for one that is not known.
        """
        question = self.find_question(self.variables)
        if question is None:
            return None
        cuts = self.variables.get("cuts", ())
        is_cut = any(c.start < e.end and e.start < c.end for c in cuts for e in question.evidence)
        open_ = random.Random(f"{question.question}/sight").random() < UNDECIDED_SHARE
        return () if is_cut or open_ else question.evidence

    def find_spans(self, name: str, n: int) -> Sequence[Span]:
        if "now" in self.variables:  # A repaired question keeps its evidence.
            return self.variables["question"].evidence or [self.answer(n).span]
        if self.listed or name not in ("evidence", "look"):
            spans = [self.answer(n).span if self.listed != "facts" else self.place(n)]
            joined = self.variables.get("joined", 0) if "failed" not in self.variables else 0
            if n < joined:  # a question on two moments that lie apart
                every = self.quotations or [Quotation("", self.place(k)) for k in (0, n + 1)]
                spans.append(
                    max((q.span for q in every), key=lambda s: abs(s.start - spans[0].start))
                )
            return spans
        shown = self.find_evidence()
        return (shown or ()) if name == "evidence" or shown is not None else ()

    def find_phrases(self, name: str) -> list[int]:
        """Return the numbers of the facts that are seen where they are claimed, or of others."""
        span: Span = self.variables["span"]
        claimed = [
            any(span.start < claim.end and claim.start < span.end for claim in fact.spans)
            for fact in self.variables["phrases"]
        ]
        return [
            n for n, seen in enumerate(claimed, 1) if name != "unsure" and seen == (name == "seen")
        ]

    def verdict(self, number: int) -> dict[str, Any]:
        """Return the verifier's verdict on an option: RIGHT if it is the answer of a known
        question, or if a line holds it.
        """
        options = self.variables["options"]
        evidence = self.find_evidence()
        if evidence is not None:
            right = (
                bool(evidence) and options[number] == self.known[self.variables["question"]].answer
            )
            spans = [{"start": s.start, "end": s.end} for s in evidence if right]
            return {
                "verdict": "RIGHT" if right else "WRONG" if evidence else "OPEN",
                "spans": spans,
            }
        lines: tuple[Line, ...] = self.variables["lines"]
        where = [[x for x in lines if holds(x.text, o)] for o in options]
        spans = [{"start": line.start, "end": line.end} for line in where[number]]
        return {"verdict": "RIGHT" if spans else "WRONG" if any(where) else "OPEN", "spans": spans}

    def answer_open(self) -> str:
        """Return the verifier's own answer to a question."""
        question = self.find_question(self.variables)
        if question is None:
            return self.answer(0).words
        return question.answer if self.find_evidence() else CANNOT

    def answer_long(self, n: int) -> str:
        return f"{SEEN if 'frames' in self.variables else 'Likely'} {self.phrase(n, 50)}."

    def ids(self, n: int) -> str:
        """Return the ids of two facts that lie apart, or of a point of an open question."""
        facts = len(self.variables["facts"])
        if self.listed != "point":
            return f"F{n % facts + 1}, F{(n + max(1, facts // 2)) % facts + 1}"
        number, place = divmod(n, POINTS)
        claims = min(CLAIM_POINTS, len(self.variables["claims"]))
        letter, listed = ("C", len(self.variables["claims"])) if place < claims else ("F", facts)
        size = min(claims if letter == "C" else POINTS - claims, listed)
        turn = place if letter == "C" else place - claims
        return f"{letter}{(number + turn * listed // size) % listed + 1}"

    def skill(self, n: int) -> str:
        return [skill.name for skill in self.variables["wanted"] for _ in range(skill.count)][n]

    def fault(self, n: int) -> str:
        """Return what an editor holds against a question: few pass at once."""
        drafts = len(self.variables["drafts"])
        return "incomplete" if drafts > SENT_BACK and n % SENT_BACK == SENT_BACK - 1 else "none"

    def weigh(self, n: int) -> tuple[str, str]:
        """Return the verdict on a statement, and where it is shown."""
        if FALSE in self.variables["statements"][n].lower():
            return "DOES NOT HOLD", "NONE"
        spans = (
            f"{s.start:.1f}-{max(s.end, s.start + 0.5):.1f}" for s in self.variables["spans"][:2]
        )
        return "HOLDS", "; ".join(spans)

    def stated_by(self, _: int) -> str:
        """Return the letters of the answers by readers who see the video."""
        answers = zip(LETTERS, self.variables["answers"], strict=False)
        return ", ".join(x for x, answer in answers if answer.startswith(SEEN)) or "NONE"

    def find_point(self, _: int) -> str:
        """Whether the answer is by a reader who sees the video."""
        return "ENTAILED" if self.variables["answer"].startswith(SEEN) else "ABSENT"

    def letters(self, n: int, *, right: bool) -> str:
        """Return the letters of the right option of a question, or of the others."""
        options, key = self.variables["asked"][n]["options"], self.variables["right"][n]
        return ", ".join(x for k, x in enumerate(LETTERS[: len(options)]) if (k == key) == right)


def in_turn(items: Sequence[Any], n: int) -> Any:
    return items[n % len(items)]


# What stands in a text of a reply, by its list ("": any) and its name.
FIELDS: Mapping[tuple[str, str], Callable[[_Filler, int], str]] = {
    ("", "premise"): lambda f, n: "HOLDS",
    ("", "seen"): lambda f, n: f.phrase(n, 60),
    ("", "name"): lambda f, n: f"Name {n + 1}",
    ("", "answer"): lambda f, n: f.answer_open() if f.known else f.answer(n).words,
    ("", "template"): lambda f, n: in_turn(f.variables["templates"], n)["name"],
    ("", "kind"): lambda f, n: in_turn(f.variables.get("kinds") or KINDS, n),
    ("guesses", "guess"): lambda f, n: " > ".join(f.rank(f.variables["asked"][n])),
    ("matches", "answer"): lambda f, n: LETTERS[n],
    ("facts", "phrase"): lambda f, n: f.phrase(n),
    ("facts", "of"): lambda f, n: f.phrase(n + 1),
    ("claim", "rests_on"): _Filler.ids,
    ("claim", "statement"): lambda f, n: f.phrase(n, 14),
    ("altered", "statement"): lambda f, n: f"{FALSE} {f.phrase(n, 14)}",
    ("statement", "verdict"): lambda f, n: f.weigh(n)[0],
    ("statement", "stretches"): lambda f, n: f.weigh(n)[1],
    ("statement", "made"): lambda f, n: "NO",
    ("statement", "made_by"): lambda f, n: "NONE",
    ("question", "skill"): _Filler.skill,
    ("point", "rests_on"): _Filler.ids,
    ("point", "weight"): lambda f, n: "2",
    ("question", "fault"): _Filler.fault,
    ("mended", "question"): lambda f, n: f.write_question(n),
    ("best", "numbers"): lambda f, n: ", ".join(map(str, range(1, len(f.variables["asked"]) + 1))),
    ("answer", "fault"): lambda f, n: "NONE",
    ("answer", "answer"): _Filler.answer_long,
    ("point", "verdict"): _Filler.find_point,
    ("point", "stated_by"): _Filler.stated_by,
    ("point", "contradicted_by"): lambda f, n: "NONE",
    ("question", "right"): lambda f, n: f"C{n + 1}",
    ("question", "wrong"): lambda f, n: ", ".join(
        f"C{(n + k) % len(f.variables['claims']) + 1}" for k in range(1, f.variables["wrong"] + 1)
    ),
    ("question", "fits"): lambda f, n: f.letters(n, right=True),
    ("question", "does_not_fit"): lambda f, n: f.letters(n, right=False),
    ("question", "wording"): lambda f, n: f"Tell me: {f.variables['asked'][n].rstrip('?')}?",
    ("phrase", "wording"): lambda f, n: f.variables["phrases"][n],
    **{("question", name): lambda f, n: "YES" for name in "abcde"},
    **{("question", name): lambda f, n: "4" for name in ("english", "worth", "depth")},
}  # fmt: skip


def quote(text: str) -> Iterator[Quotation]:
    """Yield runs of words of a text, with the times of their row or of the row before."""
    span = Span(0.0, 1.0)
    for row in text.splitlines():
        for start, end in map(re.Match.groups, TIMES.finditer(row)):
            if float(start) < float(end):
                span = Span(float(start), float(end))
                break
        for words in QUOTED.findall(row):
            yield Quotation(words, span)


@dataclass(frozen=True)
class ScriptedModel:
    """The scripted model as a configured one, for tests."""

    capabilities: ClassVar[Capabilities] = Capabilities(images=True, local=True)
    language: str = ENGLISH
    identity: ClassVar[str] = "scripted"

    def open(self) -> Llm:
        return ScriptedLlm()


@dataclass(frozen=True)
class ScriptedLlm:
    """The scripted model; replies depend on the request alone."""

    identity: str = ScriptedModel.identity

    async def complete(self, request: Request) -> Reply:
        return Reply(text=fill_reply(request), model="scripted")
