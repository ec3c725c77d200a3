"""Open questions with points, written of verified claims and facts.

    drafts = await write_some(work, statements, wanted)

QUESTION 1: cause | How does it come about that the box is opened, and what comes of it?
POINT 1: 3 | C4
POINT 1: 1 | F12

A point is a verified claim or fact, word for word: the writer chooses which make up the full answer
and words the question. What an editor holds against it is found by `mustsee.facts.edit`; what is
guessed, and what nobody who sees it says, by `mustsee.facts.point_exam`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mustsee.errors import Unparsed
from mustsee.facts.claims import claim_spans, sentence
from mustsee.facts.mix import Skill
from mustsee.facts.settings import PointRules
from mustsee.facts.table import TruthTable
from mustsee.facts.work import VideoWork
from mustsee.questions.drafts import Draft
from mustsee.questions.rows import Row, Rows, rows_form
from mustsee.records import Claim, Fact, Point, Question, Span
from mustsee.replies.forms import Form
from mustsee.verify.conditions.seen import merge_spans

PROMPT = "facts/questions"
FORM = "points"  # `form` of the questions
POINT_KINDS = ("event", "state", "cause", "object")  # kinds of facts that may be points
MAX_FACTS = 150  # facts that the writer is shown beside the claims
MAX_QUESTION_WORDS = 60
MAX_SPANS = 8  # spans of a statement that the writer is shown, at most
QUESTION_TYPE = "Other"
# What the reply of a writer, or of an editor, has under a question.
ANSWER_CELLS: Mapping[str, Mapping[str, str]] = {
    "point": {
        "weight": "1, 2 or 3",
        "rests_on": "the id of the statement that the answer to the question of this number "
        "makes, such as C3 or F12",
    },
    "answer": {"answer": "the full answer to the question of this number, in a few sentences"},
}
_ID = re.compile(r"[\[(]?\s*([CF])\s*(\d{1,4})\s*[\])]?", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A verified claim or fact as a point may state it.

    `facts`: ids that it rests on, its own first. `spans`: where it is shown. `wrong`: altered
    versions of it that looks refused. `at`: the spans in words, for the prompt.
    """

    text: str
    facts: tuple[str, ...]
    spans: tuple[Span, ...]
    wrong: tuple[str, ...] = ()

    @property
    def at(self) -> str:
        return "; ".join(f"{span.start:.1f}-{span.end:.1f}" for span in self.spans[:MAX_SPANS])


@dataclass(frozen=True, kw_only=True)
class Statements:
    """What points can be made of: `claims` C1, C2, ... and `facts` F1, F2, ... in their order; by
    which `rules`, for questions of which `skills`.
    """

    claims: tuple[Statement, ...]
    facts: tuple[Statement, ...]
    rules: PointRules
    skills: tuple[Skill, ...] = ()

    def show(self, drafts: Sequence[OpenDraft]) -> list[dict[str, str]]:
        """Return drafts as prompts show them, their points by the ids of the statements."""
        letters = (("C", self.claims), ("F", self.facts))
        ids = {o.facts[0]: f"{c}{n}" for c, some in letters for n, o in enumerate(some, 1)}
        return [
            {
                "skill": draft.skill,
                "question": draft.question,
                "ids": ", ".join(ids[one.facts[0]] for one in draft.statements),
                "answer": draft.answer,
                "remark": draft.remark,
            }
            for draft in drafts
        ]

    def variables(self, published: Sequence[OpenDraft]) -> dict[str, Any]:
        """Return what prompts show of them and of drafts that are `published` already; `uses_left`:
        of how many further questions each claim may be a point.
        """
        used = Counter(one.facts[0] for draft in published for one in draft.statements)
        most = self.rules.of_claim
        return {
            "claims": self.claims,
            "facts": self.facts,
            "least": self.rules.least,
            "most": self.rules.most,
            "of_claim": most,
            "one_scene": self.rules.one_scene,
            "uses_left": [max(0, most - used[claim.facts[0]]) for claim in self.claims],
            "published": self.show(published),
        }


@dataclass(frozen=True, kw_only=True)
class OpenDraft:
    """An open question and its points, before an exam. `weights`: of the statements. `answer`: a
    full one in the writer's words; empty: there is none. `remark`: what an editor holds against it;
    empty: nothing.
    """

    skill: str
    question: str
    statements: tuple[Statement, ...]
    weights: tuple[int, ...]
    answer: str = ""
    remark: str = ""


@dataclass(frozen=True)
class WantedSkill:
    """A skill in the prompt, and the number of questions that are wanted of it."""

    name: str
    count: int
    definition: str = field(default="")


def make_statements(
    table: TruthTable, claims: Sequence[Claim], rules: PointRules, skills: Sequence[Skill]
) -> Statements:
    """Return what points can be made of: the claims that hold, and verified facts of some kinds, of
    many as many as may be shown, evenly over time.
    """
    held = [claim for claim in claims if claim.drop is None]
    facts = [fact for fact in table.facts if fact.drop is None and fact.kind in POINT_KINDS]
    most = min(MAX_FACTS, len(facts))
    return Statements(
        claims=tuple(_claim_statement(claim, table) for claim in held),
        facts=tuple(_fact_statement(facts[n * len(facts) // most]) for n in range(most)),
        rules=rules,
        skills=tuple(skills),
    )


def _claim_statement(claim: Claim, table: TruthTable) -> Statement:
    return Statement(
        text=claim.text,
        facts=(claim.claim_id, *claim.facts),
        spans=claim.shown or claim_spans(claim, table),
        wrong=tuple(altered.text for altered in claim.altered if altered.holds is False),
    )


def _fact_statement(fact: Fact) -> Statement:
    text = f"{fact.of}, because {fact.phrase}" if fact.kind == "cause" else fact.phrase
    return Statement(text=sentence(text, "a fact"), facts=(fact.fact_id,), spans=fact.spans)


async def write_some(
    work: VideoWork,
    statements: Statements,
    wanted: Mapping[str, int],
    *,
    published: Sequence[OpenDraft] = (),
    returned: Sequence[OpenDraft] = (),
) -> tuple[OpenDraft, ...]:
    """Return open questions of one request, none like those `published`. `returned`: what an editor
    sent back, to be written again. Raises BadRow if no reply can be parsed.
    """
    defined = {skill.name: skill.definition for skill in statements.skills}
    asked = [WantedSkill(name, n, defined[name]) for name, n in wanted.items() if n > 0]
    return await work.roles.writer.ask(
        PROMPT,
        questions_form(statements, [skill.name for skill in asked]),
        seed=work.seed,
        seconds=work.span.seconds,
        **statements.variables(published),
        wanted=asked,
        returned=statements.show(returned),
    )


def questions_form(statements: Statements, skills: Sequence[str]) -> Form[tuple[OpenDraft, ...]]:
    """Return the form of a reply with open questions. Its `read` raises Unparsed for an unknown
    skill, statement or weight, and for a question with fewer points than `least`.
    """
    cells: Mapping[str, Mapping[str, str]] = {
        "question": {
            "skill": f"one of {', '.join(skills)}",
            "question": "the question, as a person would ask it aloud",
        },
        **ANSWER_CELLS,
    }

    folded = {name.casefold(): name for name in skills}

    def read_questions(rows: Rows) -> tuple[OpenDraft, ...]:
        check_numbers(rows, "question")
        drafts: list[OpenDraft] = []
        for row in rows["question"]:
            skill = folded.get(row["skill"].casefold())
            if skill is None:
                raise Unparsed(
                    f"question {row.number} has the skill {row['skill'][:40]!r}, not one of "
                    f"{', '.join(skills)}"
                )
            drafts.append(read_draft(row, skill, rows, statements))
        return tuple(drafts)

    return rows_form(cells, optional=cells).map(read_questions)


def check_numbers(rows: Rows, kind: str) -> None:
    """Raise Unparsed if two rows of a kind have one number, or a point has that of none."""
    numbers = [row.number for row in rows[kind]]
    if len(set(numbers)) < len(numbers):
        raise Unparsed("two questions have the same number")
    if strays := {row.number for row in rows["point"]} - set(numbers):
        raise Unparsed(f"POINT {min(strays)} belongs to no question of this number")


def read_draft(row: Row, skill: str, rows: Rows, statements: Statements) -> OpenDraft:
    """Return the question of a row, with the points and the answer of its number. Raises Unparsed
    for an unknown statement or weight, and for fewer points than `least`.
    """
    text, rules = row["question"], statements.rules
    if not 4 <= len(text.split()) <= MAX_QUESTION_WORDS:
        raise Unparsed(f"question {row.number} has {len(text.split())} words; 8 to 25 are wanted")
    chosen: dict[str, tuple[Statement, int]] = {}
    for point in rows["point"]:
        if point.number == row.number:
            statement, weight = _read_point(point, statements)
            chosen.setdefault(statement.facts[0], (statement, weight))
    if len(chosen) < rules.least:
        raise Unparsed(
            f"question {row.number} has {len(chosen)} points; {rules.least} to {rules.most} are "
            "wanted"
        )
    kept = list(chosen.values())[: rules.most]
    return OpenDraft(
        skill=skill,
        question=text,
        statements=tuple(statement for statement, _ in kept),
        weights=tuple(weight for _, weight in kept),
        answer=next((r["answer"] for r in rows["answer"] if r.number == row.number), ""),
    )


def _read_point(row: Row, statements: Statements) -> tuple[Statement, int]:
    what = f"a point of question {row.number}"
    weight, match = row["weight"].strip(" ()"), _ID.fullmatch(row["rests_on"].strip(" ."))
    if weight not in ("1", "2", "3"):
        raise Unparsed(f"{what} has the weight {weight[:20]!r}; expected 1, 2 or 3")
    if match is None:
        raise Unparsed(f"{what} rests on {row['rests_on'][:40]!r}; expected one id such as C3")
    letter, number = match[1].upper(), int(match[2])
    listed = statements.claims if letter == "C" else statements.facts
    if not 1 <= number <= len(listed):
        raise Unparsed(f"{what} rests on {letter}{number}, but there are {len(listed)} of these")
    return listed[number - 1], int(weight)


def compose_open(draft: OpenDraft, work: VideoWork) -> Question:
    """Return the record of an open question before its exam: all points count."""
    answer = " ".join(statement.text for statement in draft.statements)
    points = tuple(
        Point(text=statement.text, weight=weight, facts=statement.facts)
        for statement, weight in zip(draft.statements, draft.weights, strict=True)
    )
    return work.make_question(
        Draft(question=draft.question, answer=answer),
        question_type=QUESTION_TYPE,
        evidence=evidence_of(draft.statements, work.span),
        form=FORM,
        skill=draft.skill,
        points=points,
    )


def evidence_of(statements: Sequence[Statement], video: Span) -> tuple[Span, ...]:
    """Return the spans where statements are shown, in order and merged."""
    return merge_spans([span for statement in statements for span in statement.spans], video)
