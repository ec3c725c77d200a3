"""The preflight accepts a job only if every worker fits, and names the key if not."""

from hypothesis import given
from hypothesis import strategies as st

from actors.engine.hardware import ResourceDemand, lacking_resources
from actors.part import same_model_warnings

amounts = st.integers(1, 4)


def demand(name: str, count: int, **resources: float) -> ResourceDemand:
    return ResourceDemand(
        name=name, key=f"cluster.stages.{name}.workers", count=count, resources=resources
    )


def test_workers_that_fit_are_accepted() -> None:
    assert lacking_resources([demand("look", 2, CPU=1), demand("hear", 1, CPU=2, GPU=0.5)],
                    [{"CPU": 2}, {"CPU": 4, "GPU": 1}]) is None  # fmt: skip


def test_a_lack_names_the_key_and_both_numbers() -> None:
    lack = lacking_resources([demand("look", 3, CPU=1), demand("hear", 1, GPU=1)], [{"CPU": 8}])
    assert lack is not None
    assert "cluster.stages.hear.workers" in lack
    assert "1 GPU are needed and 0 are free" in lack


def test_a_worker_never_spans_nodes() -> None:
    lack = lacking_resources([demand("caption", 1, TPU=4)], [{"TPU": 2}, {"TPU": 2}])
    assert lack is not None
    assert "no node has over 2" in lack


@given(st.lists(st.tuples(amounts, amounts), min_size=1, max_size=5), st.lists(amounts, min_size=1))
def test_accepted_workers_never_exceed_the_nodes(
    workers: list[tuple[int, int]], nodes: list[int]
) -> None:
    demands = [demand(str(i), count, CPU=cpus) for i, (count, cpus) in enumerate(workers)]
    if lacking_resources(demands, [{"CPU": n} for n in nodes]) is None:
        assert sum(count * cpus for count, cpus in workers) <= sum(nodes)
        assert max(cpus for _, cpus in workers) <= max(nodes)


def test_a_model_that_guesses_at_its_own_questions_gives_a_warning() -> None:
    others = {"ask.llm": "openai a", "vet.guesser": "openai b", "vet.verifier": "openai a"}
    assert same_model_warnings({**others, "ask.llm": "replay 1", "vet.guesser": "replay 1"}) == ()
    assert same_model_warnings(others) == ()
    (line,) = same_model_warnings({**others, "vet.guesser": "openai a"})
    assert line.startswith("The same model writes and filters the questions")
    for part in ("ask.llm and vet.guesser", "openai a", "vet/guesser=openai vet.guesser.model="):
        assert part in line
    assert same_model_warnings({"ask.llm": "offline 5", "vet.guesser": "offline 5"}) == ()
    facts = {"ask.writer": "openai a", "ask.guesser": "openai a", "vet.guesser": "openai b"}
    assert same_model_warnings(facts) == ()
    (line,) = same_model_warnings({**facts, "vet.guesser": "openai a"})
    assert "ask.writer and vet.guesser" in line


def test_guessers_that_are_one_model_give_a_warning() -> None:
    three = {f"vet.{role}": "openai b" for role in ("guesser", "guesser_2", "guesser_3")}
    (line,) = same_model_warnings({"ask.llms.reasoning": "openai a", **three})
    assert "vet.guesser, vet.guesser_2, vet.guesser_3 are one model" in line
    assert len(same_model_warnings({"ask.llms.reasoning": "openai b", **three})) == 2
