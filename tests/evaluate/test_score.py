"""Scores from replies: what is counted, what is counted separately, and figures by hand."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mustsee import stats
from mustsee.errors import UserError
from mustsee.evaluate import score, score_show
from mustsee.evaluate.answers import GRADE, verdict_on_failure, verdict_on_reply, with_answers
from mustsee.evaluate.open_metrics import resolve_metrics
from mustsee.records import Question, Verdict, Video
from mustsee.text import LETTERS

TYPES = ("Counting", "Summarization", "Goal Reasoning")


def ask(number: int, kind: str = "Counting", **fields: object) -> Question:
    base = Question(question_id=f"q{number}", video_id=f"v{number // 3}", recipe="neptune",
                    question="?", question_type=kind, options=("one x", "two y", "three z"),
                    answer_index=number % 3)  # fmt: skip
    return replace(base, **fields)  # type: ignore[arg-type]


def say(question: Question, reply: str, model: str = "m", rotation: int = 0) -> Question:
    given = verdict_on_reply(question, reply, model=model, rotation=rotation)
    return replace(question, verdicts=(*question.verdicts, given))


def right(question: Question, model: str = "m") -> Question:
    return say(question, LETTERS[question.answer_index or 0], model)


def wrong(question: Question, model: str = "m") -> Question:
    return say(question, LETTERS[((question.answer_index or 0) + 1) % 3], model)


def test_unparsed_replies_are_wrong_and_failed_calls_are_counted_separately() -> None:
    questions = [right(ask(0)), wrong(ask(3)), say(ask(6), "no idea"),
                 with_answers(ask(9), [verdict_on_failure("down", model="m")]), ask(12),
                 right(ask(15, drop="blind")), right(ask(18, answer_index=None))]  # fmt: skip
    (found,) = score.score(questions)
    assert found.weighted is not None
    assert found.weighted.value == pytest.approx(1 / 3)
    assert found.weighted.n == 3
    assert (found.asked, found.failed, found.no_key) == (5, 2, 1)
    assert found.unparsed == pytest.approx(1 / 3)
    assert found.types["Counting"].failed == 2


def test_macro_and_weighted_differ_and_each_has_its_interval() -> None:
    questions = [right(ask(i * 3, "Goal Reasoning")) for i in range(4)]
    questions += [(right if i % 2 else wrong)(ask(100 + i * 3, "Counting")) for i in range(40)]
    (found,) = score.score(questions)
    assert found.weighted is not None
    assert found.macro is not None
    assert found.weighted.value == pytest.approx(24 / 44)
    assert found.macro.value == pytest.approx(0.75)
    small = found.types["Goal Reasoning"].accuracy
    assert small is not None
    assert small.low is not None
    assert small.low == pytest.approx(stats.wilson(4, 4)[0])
    assert small.high == 1.0


def test_clips_of_one_video_are_one_cluster() -> None:
    questions = [(right if i < 30 else wrong)(ask(i)) for i in range(60)]
    separate = score.score(questions)[0].weighted
    videos = [Video(video_id=f"v{i}", uri="", source=f"video{i // 5}") for i in range(20)]
    joined = score.score(questions, videos)[0].weighted
    assert separate is not None
    assert joined is not None
    assert (separate.clusters, joined.clusters) == (20, 4)
    assert separate.value == joined.value
    assert (joined.high or 0) - (joined.low or 0) > (separate.high or 0) - (separate.low or 0)


def test_rotations_are_averaged_before_they_are_counted() -> None:
    base = ask(0)
    shown = [LETTERS[(0 + r) % 3] for r in range(3)]  # where option A stands
    turned = [verdict_on_reply(base, shown[r], model="m", rotation=r) for r in range(2)]
    turned += [
        verdict_on_reply(
            base, LETTERS[(int(LETTERS.index(shown[2])) + 1) % 3], model="m", rotation=2
        )
    ]
    (found,) = score.score([with_answers(base, turned), right(ask(3))])
    assert found.weighted is not None
    assert found.weighted.n == 2
    assert found.weighted.value == pytest.approx((2 / 3 + 1) / 2)


def test_splits_by_hardness_and_vision() -> None:
    hard = ask(0, metrics={"hardness": 1.0, "vision_reliance": 0.0})
    easy = ask(3, metrics={"hardness": 0.0, "vision_reliance": 1.0}, subsets=("mma",))
    (found,) = score.score([wrong(hard), right(easy)])
    values = {k: g.accuracy.value for k, g in found.splits.items() if g.accuracy}
    assert values == {"hard": 0, "not hard": 1, "not vision-reliant": 0, "vision-reliant": 1,
                      "subset mma": 1}  # fmt: skip


def test_mlvu_averages_are_named_and_need_all_tasks() -> None:
    kinds = ("topic_reasoning", "anomaly_reco", "findNeedle", "ego", "plotQA", "order", "count")
    questions = [right(ask(3 * i, kind)) for i, kind in enumerate(kinds)]
    questions += [wrong(ask(300, "count"))]
    (found,) = score.score(questions)
    assert found.named == {"M-Avg (7 tasks)": pytest.approx(6.5 / 7)}
    assert score.score(questions[1:])[0].named == {}


def grade(
    question: Question, reply: str, detail: dict[str, object], correct: bool | None
) -> Question:
    text = json.dumps({"of": "m", "rotation": 0, **detail})
    spoken = verdict_on_reply(replace(question, options=(), answer_index=None), reply, model="m")
    verdict = Verdict(filter=GRADE, model="judge x", correct=correct, detail=text)
    return replace(question, verdicts=(spoken, verdict))


def test_open_ended_scores_are_corrected_for_the_judges_errors() -> None:
    judge = {"judge": [0.8, 0.9, 100, 200]}
    questions = [
        grade(ask(3 * i, answer="a red car"), "a red car" if i % 2 else "a dog", judge, i % 2 == 1)
        for i in range(60)
    ]
    (found,) = score.score(questions, draws=300)
    written = found.written
    assert written is not None
    assert written.judged is not None
    assert written.corrected is not None
    assert written.judged.value == pytest.approx(0.5)
    assert written.corrected.value == pytest.approx((0.5 + 0.9 - 1) / 0.7)
    f1 = written.metrics["token_f1"]
    assert f1 is not None
    assert f1.value == pytest.approx(0.5)
    assert written.ungraded == 0
    blind = [grade(q, "x", {"judge": [0.5, 0.55, 50, 50]}, True) for q in questions]
    refused = score.score(blind)[0].written
    assert refused is not None
    assert refused.corrected is None
    assert "cannot be corrected" in refused.note


def test_metrics_of_open_ended_answers_are_chosen_by_path() -> None:
    chosen = resolve_metrics([
        "mustsee.evaluate.open_metrics.cider_d", "mustsee.evaluate.open_metrics.token_f1",
    ])  # fmt: skip
    (result,) = score.score([grade(ask(0, answer="a car"), "a car", {}, True)], open_metrics=chosen)
    assert result.written is not None
    f1 = result.written.metrics["token_f1"]
    assert list(result.written.metrics) == ["cider_d", "token_f1"]
    assert result.written.metrics["cider_d"] is None  # one answer alone has no CIDEr-D
    assert f1 is not None
    assert f1.value == 1.0


@pytest.mark.parametrize("path", [
    "", "rouge_l", "mustsee.evaluate.open_metrics.missing", "mustsee.text.LETTERS",
])  # fmt: skip
def test_a_path_that_leads_to_no_metric_is_refused(path: str) -> None:
    with pytest.raises(UserError, match="metrics"):
        resolve_metrics([path])


def test_a_failed_call_of_an_open_ended_run_is_a_failed_answer_and_no_choice() -> None:
    judge: dict[str, object] = {"judge": [0.8, 0.9, 100, 200]}
    questions = [grade(ask(0, answer="a car"), "a car", judge, True),
                 with_answers(ask(3, answer="a dog"), [verdict_on_failure("down", model="m")]),
                 grade(ask(6, answer="", answer_index=None), "a cat", judge, None)]  # fmt: skip
    (found,) = score.score(questions)
    assert (found.asked, found.types, found.no_key) == (0, {}, 1)
    assert found.written is not None
    assert (found.written.asked, found.written.failed, found.written.ungraded) == (2, 1, 0)


def test_rubrics_keep_fractions_and_failed_grades_are_not_negative() -> None:
    def rubric(number: int, kind: str, **detail: object) -> Question:
        base = ask(number, kind, options=(), answer_index=None, answer="x")
        return grade(base, "x", detail, None)

    questions = [
        rubric(0, "subPlot", first=4.5, second=3.0), rubric(3, "subPlot", first=2.0, second=2.0),
        rubric(6, "subPlot", error="no JSON"), rubric(9, "summary", first=1.5, second=2.0),
    ]  # fmt: skip
    (found,) = score.score(questions)
    assert found.rubric is not None
    assert found.rubric.tasks["subPlot"].value == pytest.approx(5.75)
    assert found.rubric.tasks["summary"].value == pytest.approx(3.5)
    assert found.rubric.g_avg == pytest.approx((5.75 + 3.5) / 2)
    assert found.rubric.failed == {"subPlot": 1, "summary": 0}
    assert found.written is None


def two_models(seed: int = 0) -> list[Question]:
    rng, made = random.Random(seed), list[Question]()
    for i in range(240):
        question = ask(i, TYPES[i % 3])
        for model, share in (("good", 0.8), ("bad", 0.4), ("also bad", 0.4)):
            question = (right if rng.random() < share else wrong)(question, model)
        made.append(question)
    return made


def test_written_results_can_be_read_back(tmp_path: Path) -> None:
    questions = two_models()
    results = score.score(questions)
    score_show.write(tmp_path, results, questions, about={"frames": 8})
    assert score_show.draw(tmp_path, results) == []
    record = json.loads((tmp_path / "results.json").read_text())
    assert [r["model"] for r in record["results"]] == ["good", "bad", "also bad"]
    assert record["results"][0]["weighted"]["n"] == 240
    replies = pq.read_table(tmp_path / "replies.parquet")
    assert replies.num_rows == 720
    shares = replies.filter([m == "good" for m in replies["model"].to_pylist()])[
        "correct"
    ].to_pylist()
    assert sum(shares) / 240 == pytest.approx(record["results"][0]["weighted"]["value"])
    charts = sorted(p.name for p in (tmp_path / "pictures").iterdir())
    assert len(charts) == 3


def test_the_tables_show_every_model_and_number() -> None:
    from rich.console import Console

    console = Console(width=200)
    with console.capture() as shown:
        console.print(score_show.table(score.score(two_models())))
    text = shown.get()
    for word in (
        *TYPES,
        "good",
        "also bad",
        "all questions",
        "mean of the types",
        "unparsed",
    ):
        assert word in text


def test_a_model_with_only_failed_calls_is_listed() -> None:
    (found,) = score.score([ask(0), ask(3)], models=["m"])
    assert (found.asked, found.failed, found.weighted) == (2, 2, None)


def test_the_released_scorers_are_shown_beside_ours() -> None:
    """CinePile's rejects a plain reply that ours reads; rotated options are scored as shown."""
    plain = say(ask(0, recipe="cinepile"), "The answer is A.")
    strict = say(ask(1, recipe="cinepile"), "Answer: B")
    turned = say(ask(2, recipe="mlvu"), "A) because", rotation=1)
    other = say(ask(3, recipe="neptune"), "A")
    (found,) = score.score([plain, strict, turned, other])
    assert found.weighted is not None
    assert found.weighted.value == 1.0
    assert found.released == {"CinePile": 0.5, "MLVU": 1.0}


def test_the_page_gets_the_line_and_the_rows_of_the_table() -> None:
    found = score.score([right(ask(0)), wrong(ask(3)), right(ask(6, kind="[Odd] kind"))])
    shown = score_show.for_page(found)
    assert shown["lines"] == score_show.headline(found)
    assert shown["head"] == ["", "n", "chance", "m"]
    rows = {row[0]: row[1:] for row in shown["rows"]}
    assert rows["[Odd] kind"][0] == "1"
    assert rows["all questions"][2].startswith("66.7 (")


def test_several_questions_on_one_video_have_no_interval_and_it_is_said() -> None:
    (line,) = score_show.headline(score.score([right(ask(0)), wrong(ask(1))]))
    assert "50.0 % of 2 questions right (chance 33.3 %; one video: no interval)" in line


def test_the_summary_lists_only_files_that_were_written(tmp_path: Path) -> None:
    """The score is the last line; without question types no chart is drawn or listed."""
    drawn = [right(ask(0)), wrong(ask(3))]
    score_show.write(tmp_path, score.score(drawn), drawn)
    assert score_show.draw(tmp_path, score.score(drawn)) == []
    assert score_show.describe_folder(tmp_path).endswith(
        "replies.parquet (2 replies), pictures/ (1)"
    )
    (line,) = score_show.headline(score.score(drawn))
    assert line.startswith("score: m: 50.0 (")
    assert "name no option" not in line
    (line,) = score_show.headline(score.score([right(ask(0)), say(ask(3), "no idea")]))
    assert line.endswith("; 50.0 % of the replies name no option")
    written = [grade(ask(0, "summary", options=(), answer_index=None, answer="x"), "x",
                     {"first": 4, "second": 3}, None)]  # fmt: skip
    bare = tmp_path / "bare"
    bare.mkdir()
    score_show.write(bare, score.score(written), written)
    assert score_show.draw(bare, score.score(written)) == []
    assert sorted(p.name for p in bare.iterdir()) == ["replies.parquet", "results.json"]
    assert "pictures" not in score_show.describe_folder(bare)
    assert score_show.headline(score.score(written)) == [
        "score: m: summary 7.00 of 10; graded by judge x"
    ]
    assert "nothing" in score_show.headline(score.score([ask(0)], models=["m"]))[0]


def test_metrics_of_replies_to_multiple_choice_compare_them_with_the_right_option() -> None:
    from mustsee.evaluate.open_metrics import rouge_l

    questions = [right(ask(n)) for n in range(3)]
    (plain,) = score.score(questions)
    (found,) = score.score(questions, choice_metrics={"rouge_l": rouge_l})
    assert plain.choice_metrics == {}
    estimate = found.choice_metrics["rouge_l"]
    assert estimate is not None
    assert estimate.n == 3
