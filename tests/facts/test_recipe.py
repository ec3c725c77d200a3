"""From facts to questions: what is looked at, what a second look settles, and what is composed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mustsee.calls.llm import Asker, Reply, Request
from mustsee.calls.usage import RequestTally
from mustsee.errors import BadRow, UserError
from mustsee.facts.blind_exam import EXAM_ANSWERS, MAX_UNREAD_PARTS, examine
from mustsee.facts.extract import make_fact
from mustsee.facts.fact_looks import LOOKS, look_at, plan_own_looks, plan_table_looks
from mustsee.facts.forms.after import AfterForm
from mustsee.facts.forms.at import AtForm
from mustsee.facts.listing import list_facts, merge_fact, pick_texts
from mustsee.facts.recipe import AlikeMoments, compose, spoken_entries
from mustsee.facts.select import Chosen, ChosenGroup, SelectRules
from mustsee.facts.settings import FactSettings
from mustsee.facts.stem import Stem
from mustsee.facts.stems import drop_near_acts, drop_twins
from mustsee.facts.table import TruthTable
from mustsee.facts.work import VideoWork
from mustsee.prompts import Prompts
from mustsee.records import PAIR, SET, Fact, RequestCount, Span, Video
from tests.facts.tables import table_of, work_on

MOMENTS = tuple(Span(6.0 * n, 6.0 * n + 6) for n in range(5))
SETTINGS = FactSettings(forms={"after": AfterForm()}, closer_from=1)
VERBS = ("opens a red door", "pours milk", "lifts a cup", "rides a horse", "paints a wall")


def event(number: int) -> Fact:
    span = Span(6.0 * number + 1, 6.0 * number + 4)
    return make_fact("event", f"a man number {number} {VERBS[number]}", [span], "m")


def table(facts: Sequence[Fact] = tuple(map(event, range(5)))) -> TruthTable:
    return TruthTable(facts=tuple(facts), moments=MOMENTS, scenes=(0,) * 5)


class Model:
    """Replies by a function of the request; remembers the requests."""

    identity = "model"

    def __init__(self, reply: Any) -> None:
        self.reply, self.asked = reply, list[Request]()

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        return Reply(text=self.reply(request), model="model")


def asker(model: Model) -> Asker:
    return Asker(llm=model, prompts=Prompts(), tries=1)


class Frames:
    async def jpegs(self, times: Sequence[float], see: Any) -> tuple[bytes, ...]:
        return tuple(b"jpeg" for _ in times)


def verdicts(request: Request, truth: Mapping[str, str]) -> str:
    phrases = request.variables["phrases"]
    return "\n".join(f"{n}: {truth.get(f.phrase, 'NOT SEEN')}" for n, f in enumerate(phrases, 1))


def work_of(model: Model) -> VideoWork:
    frames: Any = Frames()
    return work_on(Video(video_id="v", uri="v.mp4", duration=30.0), frames, asker(model))


def look(model: Model, settings: FactSettings = SETTINGS) -> tuple[TruthTable, RequestTally]:
    own, work = table(), work_of(model)
    planned = plan_table_looks(own, settings)
    looked = asyncio.run(look_at(work, own, planned, settings.closer_from))
    return looked, work.requests


def by_moment(looked: TruthTable, settings: FactSettings) -> dict[int, list[Fact]]:
    """The facts that planned looks judge, by moment."""
    facts: dict[int, list[Fact]] = {}
    for name, moment in (e for one in plan_table_looks(looked, settings) for e in one.entries):
        facts.setdefault(moment, []).append(looked.by_id[name])
    return facts


def claimed_at(request: Request) -> str:
    return event(int(request.variables["span"].start // 6)).phrase


def test_what_is_claimed_comes_first_and_no_look_has_too_many_phrases() -> None:
    wanted = by_moment(table(), replace(SETTINGS, phrases=2))
    assert set(wanted) <= set(range(5))
    assert all(len(facts) <= 2 for facts in wanted.values())
    for moment, facts in wanted.items():
        assert facts[0] == event(moment)


def test_forms_of_which_few_questions_are_taken_ask_for_few_entries() -> None:
    """With little room, what `after` needs is asked, and not what `holds` needs."""
    things = ("cup", "hat", "saw", "pen", "jug", "key", "box", "fan", "mop", "net", "pan", "bow")
    facts = [("event", f"a man of kind {n} jumps", [n]) for n in range(12)]
    facts += [("object", f"the {thing} on a table", [n]) for n, thing in enumerate(things)]
    claimed = replace(table_of(facts, [0] * 12), truth={})

    def kinds(share: float) -> Counter[str]:
        forms = {"after": AfterForm(), "holds": AtForm(of="object")}
        select = SelectRules(beside_share=share)
        wanted = by_moment(claimed, FactSettings(forms=forms, phrases=6, select=select))
        return Counter(fact.kind for asked in wanted.values() for fact in asked)

    low, high = kinds(0.01), kinds(1.0)
    assert low["object"] < high["object"]
    assert low["event"] > high["event"]
    assert low.total() == high.total()


def test_where_nothing_is_composed_one_look_judges_facts_of_some_moments_and_few_others() -> None:
    """Each fact is judged in the moment where it is claimed; what is not claimed there is false or
    unknown, whatever one look says.
    """
    every_fifth = replace(SETTINGS, moments=replace(SETTINGS.moments, window=4))
    looks = plan_own_looks(own := table(), every_fifth)
    assert [sorted({m for _, m in one.entries}) for one in looks] == [[0, 1, 2, 3], [4]]
    claimed = {(event(n).fact_id, n) for n in range(5)}
    others = [{e for e in one.entries if e not in claimed} for one in looks]
    assert [len(some) for some in others] == [1, 1]
    assert all(abs(own.claims[name][0] - m) > 1 for some in others for name, m in some)

    def reply(request: Request) -> str:
        phrases, moments = request.variables["phrases"], request.variables["moments"]
        assert len(phrases) == len(moments) or not moments
        assert list(moments) == sorted(moments, key=lambda span: span.start)
        return "\n".join(
            f"{n}: {'NOT SEEN' if fact.phrase == event(2).phrase else 'SEEN'}"
            for n, fact in enumerate(phrases, 1)
        )

    work = work_of(Model(reply))
    looked = asyncio.run(look_at(work, own, looks, every_fifth.closer_from))
    assert work.requests.counts == (RequestCount(what=LOOKS, sent=2),)
    drops = {fact.phrase: fact.drop for fact in looked.facts}
    assert drops.pop(event(2).phrase) == "not seen where it is claimed"
    assert set(drops.values()) == {None}
    assert {looked.truth[e] for some in others for e in some} <= {None, False}
    assert looked.truth[event(1).fact_id, 1] is True


def test_a_fact_that_is_not_seen_where_it_is_claimed_is_dropped() -> None:
    hidden = event(2).phrase
    model = Model(lambda r: verdicts(r, {} if claimed_at(r) == hidden else {claimed_at(r): "SEEN"}))
    looked, requests = look(model)
    drops = {fact.phrase: fact.drop for fact in looked.facts}
    assert drops.pop(hidden) == "not seen where it is claimed"
    assert set(drops.values()) == {None}
    assert requests.counts == (RequestCount(what=LOOKS, sent=5),)
    assert looked.by_id[event(0).fact_id].seen == (MOMENTS[0],)


def test_a_second_look_settles_what_is_open_and_confirms_what_nobody_claims() -> None:
    seen: list[list[str]] = []

    def by_round(request: Request) -> str:
        phrases = [f.phrase for f in request.variables["phrases"]]
        moment = int(request.variables["span"].start // 6)
        seen.append([str(moment), *phrases])
        second = sum(s[0] == str(moment) for s in seen) > 1
        truth = {claimed_at(request): "SEEN"}
        if moment == 1:
            doubted = {event(3).phrase: "SEEN", event(4).phrase: "SEEN", event(0).phrase: "UNSURE"}
            settled = {event(4).phrase: "NOT SEEN", event(0).phrase: "NOT SEEN"}
            truth |= doubted | (settled if second else {})
        return verdicts(request, truth)

    looked, _ = look(Model(by_round))
    rounds = [s for s in seen if s[0] == "1"]
    asked_again = set(rounds[1][1:])
    assert asked_again <= {event(n).phrase for n in (0, 3, 4)}
    assert all(sum(s[0] == str(m) for s in seen) == 1 for m in (0, 2, 3, 4))
    entry = {n: looked.truth[event(n).fact_id, 1] for n in (0, 3, 4)}
    assert entry == {0: False, 3: True, 4: None}


def test_without_a_second_look_what_is_open_stays_unknown() -> None:
    model = Model(lambda r: verdicts(r, {claimed_at(r): "UNSURE"}))
    looked, _ = look(model, replace(SETTINGS, closer=None))
    assert {fact.drop for fact in looked.facts} == {"not settled where it is claimed"}
    assert len(model.asked) == 5


def test_too_little_for_a_second_look_stays_unknown() -> None:
    def reply(request: Request) -> str:
        seen = {claimed_at(request): "SEEN", event(3).phrase: "SEEN", event(4).phrase: "UNSURE"}
        return verdicts(request, seen)

    looked, _ = look(model := Model(reply), replace(SETTINGS, closer_from=3))
    assert len(model.asked) == 5
    assert {looked.truth[event(n).fact_id, 1] for n in (3, 4)} == {None}
    assert looked.truth[event(1).fact_id, 1] is True


def test_a_look_that_cannot_be_read_leaves_its_entries_unknown() -> None:
    hidden = event(2).phrase
    seen = Model(
        lambda r: (
            "I cannot tell." if claimed_at(r) == hidden else verdicts(r, {claimed_at(r): "SEEN"})
        )
    )
    looked, requests = look(seen)
    (count,) = requests.counts
    assert (count.what, count.sent, count.unread) == (LOOKS, 5, 1)
    assert "none of 1 replies" in count.error
    assert {moment for _, moment in looked.truth} == {0, 1, 3, 4}
    assert {fact.drop for fact in looked.facts} == {None}


def test_looks_of_which_none_can_be_read_are_a_problem_and_not_a_result() -> None:
    with pytest.raises(BadRow, match="none of the 5 looks"):
        look(Model(lambda r: "I cannot tell."))


def test_equal_facts_are_one_with_all_spans() -> None:
    facts: dict[str, Fact] = {}
    for spans in ([Span(0, 2)], [Span(1, 4)], [Span(9, 10)]):
        merge_fact(facts, make_fact("place", "a shed", spans, "m"))
    merge_fact(facts, make_fact("event", "a shed", [Span(0, 1)], "m"))
    spans = {fact.kind: fact.spans for fact in facts.values()}
    assert spans == {"event": (Span(0, 1),), "place": (Span(0, 4), Span(9, 10))}


def test_lines_are_known_without_a_look_and_texts_of_a_moment_are_few() -> None:
    line = make_fact("line", "“We leave at noon today.”", [Span(7, 9)], "lines")
    entries = spoken_entries(table([line]))
    assert [entries[line.fact_id, n] for n in range(5)] == [False, True, False, False, False]
    texts = [make_fact("text", f"the words “{'A' * n}”", [Span(1, 2)], "texts") for n in (4, 9, 6)]
    assert pick_texts(texts, MOMENTS, 2) == [texts[1], texts[2]]


def stem(number: int, list_name: str = "list") -> Stem:
    answers = [f"answer {n}" for n in range(5)]
    return Stem(
        form="after", key="after", question=f"question {number}", question_type="Other",
        answer=answers[number], pool=tuple(a for a in answers if a != answers[number]),
        list_name=list_name, evidence=(Span(number, number + 1),),
    )  # fmt: skip


def drafts(count: int) -> list[ChosenGroup]:
    """Questions whose answers are "answer N"."""
    stems = [replace(stem(n % 5), question=f"question {n}") for n in range(count)]
    return [
        ChosenGroup(members=(Chosen(stem=s, options=(s.answer, *s.pool), rank=2),)) for s in stems
    ]


def even(question: str, answers: Sequence[str]) -> list[float]:
    return [0.0] * len(answers)


def sit(model: Model, count: int, settings: FactSettings) -> tuple[dict[str, int], int]:
    """The questions that are left of drafts, with their ranks, and the number of lost answers."""
    work = work_of(model)
    left, _ = asyncio.run(examine(work, drafts(count), even, settings))
    ranks = {one.stem.question: one.rank for group in left for one in group.members}
    return ranks, work.requests.unread(EXAM_ANSWERS)


def answer_right(known: Callable[[int, int], bool]) -> Callable[[Request], str]:
    """A guesser that ranks the truth of a question first where `known` says so of the question's
    number and of the seed, and last where not.
    """

    def reply(request: Request) -> str:
        lines: list[str] = []
        for n, one in enumerate(request.variables["asked"], 1):
            number = int(one["question"].split()[1])
            right = "ABCDE"[list(one["options"]).index(f"answer {number % 5}")]
            others = [x for x in "ABCDE" if x != right]
            first = known(number, request.seed)
            lines.append(
                f"QUESTION {n}: {' > '.join([right, *others] if first else [*others, right])} | so"
            )
        return "\n".join(lines)

    return reply


def test_what_an_exam_answers_right_is_left_out_and_the_rest_is_asked_again() -> None:
    settings = replace(SETTINGS, together=4, exams=2)
    model = Model(answer_right(lambda number, seed: number == 3 or (number == 7 and seed == 1)))
    left, _ = sit(model, 10, settings)
    assert left == {f"question {n}": 4 for n in range(10) if n not in (3, 7)}
    asked = [{one["question"] for one in r.variables["asked"]} for r in model.asked]
    assert [len(names) for names in asked] == [4, 3, 3, 3, 3, 3]
    assert set().union(*asked[3:]) == set().union(*asked[:3]) - {"question 3"}
    assert not set(map(frozenset, asked[3:])) & set(map(frozenset, asked[:3]))
    assert {r.prompt for r in model.asked} == {"facts/rank"}


def test_what_passed_two_exams_sits_no_more() -> None:
    model = Model(answer_right(lambda number, seed: False))
    left, _ = sit(model, 10, replace(SETTINGS, together=10, exams=6))
    assert (len(left), len(model.asked)) == (10, 2)


class Refusing(Model):
    """Refuses requests as an endpoint does, by a function of their questions."""

    def __init__(self, refuses: Callable[[set[str]], bool]) -> None:
        super().__init__(answer_right(lambda number, seed: False))
        self.refuses = refuses

    async def complete(self, request: Request) -> Reply:
        reply = await super().complete(request)
        if self.refuses({one["question"] for one in request.variables["asked"]}):
            raise BadRow("HTTP 400: content_filter")
        return reply


@pytest.mark.parametrize("together", [3, 5, 10, 20])
@pytest.mark.parametrize("bad", [{3}, {0, 9}, {2, 4, 6, 8}])
def test_only_the_questions_that_are_refused_are_lost(bad: set[int], together: int) -> None:
    """The others sit the exam in halves of the part that was refused."""
    names = {f"question {n}" for n in bad}
    model = Refusing(lambda asked: bool(asked & names))
    left, lost = sit(model, 10, replace(SETTINGS, together=together, exams=2))
    assert left == {f"question {n}": 4 for n in range(10) if n not in bad}
    assert lost == len(bad)  # In the second exam they do not sit.


@pytest.mark.parametrize("most", [1, 2, 5, 11])
def test_an_exam_that_is_too_long_for_the_model_is_halved_until_it_fits(most: int) -> None:
    model = Refusing(lambda asked: len(asked) > most)
    left, lost = sit(model, 40, replace(SETTINGS, together=20, exams=2))
    assert (len(left), lost) == (40, 0)


def test_unreadable_replies_of_an_exam_are_halved_as_refusals_are() -> None:
    right = answer_right(lambda number, seed: False)
    model = Model(
        lambda r: (
            "no" if any(o["question"] == "question 3" for o in r.variables["asked"]) else right(r)
        )
    )
    left, lost = sit(model, 10, replace(SETTINGS, together=5, exams=2))
    assert (len(left), lost) == (9, 1)


def test_an_exam_without_any_reply_is_a_problem_after_few_requests() -> None:
    model = Refusing(lambda asked: True)
    with pytest.raises(BadRow, match=r"none of the 60 questions .* HTTP 400: content_filter"):
        sit(model, 60, replace(SETTINGS, together=20))
    assert len(model.asked) <= 3 + MAX_UNREAD_PARTS + 1


def test_a_refused_last_exam_costs_only_the_questions_that_sit_it() -> None:
    """What passed before stays. A second exam that all sit is a problem, too."""
    right = answer_right(lambda number, seed: number == 3 and seed == 0)

    def reply(request: Request) -> str:
        return "no" if request.seed == 2 else right(request)

    pool = tuple(f"answer {n}" for n in (0, 1, 2, 4, 5, 6, 7, 8))
    groups = drafts(10)
    other = replace(groups[3].members[0], stem=replace(groups[3].members[0].stem, pool=pool))
    groups[3] = ChosenGroup(members=(other,))
    work = work_of(Model(reply))
    sat = examine(work, groups, even, replace(SETTINGS, exams=4))
    left, _ = asyncio.run(sat)
    assert {g.members[0].stem.question for g in left} == {f"question {n}" for n in range(10)} - {
        "question 3"
    }
    assert work.requests.unread(EXAM_ANSWERS) == 1
    never = Model(lambda r: "no" if r.seed == 1 else right(r))
    with pytest.raises(BadRow, match="could be answered"):
        sit(never, 10, SETTINGS)


def test_a_set_and_a_pair_have_one_name_and_one_list() -> None:
    options = ("answer 1", "answer 0", "answer 2")
    members = tuple(Chosen(stem=stem(n), options=options, rank=n) for n in range(3))
    work = work_of(Model(lambda request: ""))
    questions = compose(ChosenGroup(members=members), work)
    assert {q.group for q in questions} == {questions[0].question_id}
    assert {q.relation for q in questions} == {SET}
    assert [q.answer_index for q in questions] == [1, 0, 2]
    assert [q.metrics["rank"] for q in questions] == [0, 1, 2]
    assert {q.form for q in questions} == {"after"}
    pair = compose(ChosenGroup(members=members[:2]), work)
    assert [(q.group, q.relation) for q in pair] == [(pair[0].question_id, PAIR)] * 2
    (alone,) = compose(ChosenGroup(members=members[:1]), work)
    assert (alone.group, alone.relation) == (None, None)


def test_stems_are_alike_if_their_first_moments_are_and_differ() -> None:
    scenes = (0, 1, 0, 2, 3)
    alike = AlikeMoments(replace(table(), scenes=scenes), ())
    at = {n: replace(stem(n), evidence=(MOMENTS[n], MOMENTS[4 - n])) for n in range(5)}
    found = {(a, b) for a in at for b in at if a < b and alike(at[a], at[b])}
    assert found == {(0, 2)}
    assert not alike(at[0], replace(at[0], question="another"))


def test_a_video_of_which_no_window_can_be_read_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(BadRow, match="facts/extract"):
        asyncio.run(list_facts(work_of(Model(lambda r: "Well.")), MOMENTS, SETTINGS))


def test_windows_that_name_one_thing_twice_list_one_fact() -> None:
    facts: dict[str, Fact] = {}
    for kind, phrase, start in (
        ("event", "a man in the gray suit leans forward", 1.0),
        ("event", "a man in a grey suit leans forward", 8.0),
        ("event", "a man in a grey suit leans back", 20.0),
        ("text", "the words “A GRAY DAY”", 2.0),
        ("text", "the words “THE GREY DAY”", 9.0),
    ):
        merge_fact(facts, make_fact(kind, phrase, [Span(start, start + 2)], "m"))
    assert [(f.phrase, len(f.spans)) for f in facts.values()] == [
        ("a man in the gray suit leans forward", 2),
        ("a man in a grey suit leans back", 1),
        ("the words “A GRAY DAY”", 1),
        ("the words “THE GREY DAY”", 1),
    ]


def test_two_wordings_of_one_thing_do_not_stand_beside_each_other() -> None:
    answers = [("place", f"a {what} hall", [n]) for n, what in enumerate(("green", "red"))]
    others = [("place", f"a {what} yard", [3]) for what in ("stone", "paved")]
    table = table_of([*answers, *others], scenes=[0] * 5)
    stem = Stem(
        form="where", question="Where?", question_type="Identification", answer="a green hall",
        pool=("a red hall", "a stone yard", "a paved yard"), evidence=(Span(0, 6),),
    )  # fmt: skip
    (left,) = drop_twins([stem], table)
    assert left.pool == ("a red hall", "a stone yard")
    seen_apart = {**table.truth, ("a stone yard", 4): True, ("a paved yard", 4): False}
    assert drop_twins([stem], replace(table, truth=seen_apart)) == [stem]


def test_an_act_beside_the_evidence_is_no_wrong_answer() -> None:
    """Looks judge whole moments, and it may reach into the evidence."""
    spans = {"a man sits": Span(7.4, 9), "a dog runs": Span(7.6, 9), "a boy waves": Span(13, 14)}
    facts = [make_fact("event", phrase, [span], "m") for phrase, span in spans.items()]
    hall = make_fact("place", "a red hall", [Span(6, 12)], "m")
    stem = Stem(
        form="after", question="Next?", question_type="Temporal Ordering", answer="a man leaves",
        pool=(*spans, hall.phrase), evidence=(Span(0, 3), Span(3, 6)),
    )  # fmt: skip
    (left,) = drop_near_acts([stem], table([*facts, hall]))
    assert left.pool == ("a dog runs", "a boy waves", "a red hall")


def test_what_an_exam_answers_right_gets_other_options() -> None:
    """It is kept only if two further exams do not answer it right beside these."""
    more = tuple(f"more {n}" for n in range(4))
    known = replace(drafts(1)[0].members[0])
    wide = replace(known, stem=replace(known.stem, pool=(*known.stem.pool, *more)))
    groups = [ChosenGroup(members=(wide,)), *drafts(3)[1:]]

    def examined(*seeds: int) -> list[Chosen]:
        right = answer_right(lambda number, seed: number == 0 and seed in seeds)
        sat = examine(work_of(Model(right)), groups, even, SETTINGS)
        left, guessed = ([one for g in part for one in g.members] for part in asyncio.run(sat))
        assert (wide.stem in [one.stem for one in left]) != (wide.stem in [g.stem for g in guessed])
        assert all(one.rank == 0 for one in guessed)
        return left

    assert SETTINGS.exams == 4
    assert [one.options for one in examined()][:1] == [wide.options]
    for seeds in [(0,), (1,)]:
        (redrawn,) = [one for one in examined(*seeds) if one.stem == wide.stem]
        assert set(redrawn.options) == {"answer 0", *more}
    assert wide.stem in [one.stem for one in examined(0, 1)]
    for seeds in [(0, 2), (0, 1, 2), (0, 1, 3)]:
        assert wide.stem not in [one.stem for one in examined(*seeds)]


@pytest.mark.parametrize("name", ["drafts", "together", "exams"])
def test_exams_that_nothing_can_pass_are_refused(name: str) -> None:
    with pytest.raises(UserError, match=rf"ask\.settings\.{name}=0: at least"):
        replace(SETTINGS, **{name: 0})
    with pytest.raises(UserError, match="exams=1: at least 2"):
        replace(SETTINGS, exams=1)
