"""The preflight says yes only where every worker has a place, and names the key where not."""

from hypothesis import given
from hypothesis import strategies as st

from mustsee.run.preflight import ResourceDemand, lacking_resources, same_model_warnings

amounts = st.integers(1, 4)


def demand(name: str, count: int, **resources: float) -> ResourceDemand:
    return ResourceDemand(
        name=name, key=f"cluster.stages.{name}.workers", count=count, resources=resources
    )


def test_what_fits_fits() -> None:
    assert lacking_resources([demand("look", 2, CPU=1), demand("hear", 1, CPU=2, GPU=0.5)],
                    [{"CPU": 2}, {"CPU": 4, "GPU": 1}]) is None  # fmt: skip


def test_too_few_names_stage_key_and_both_numbers() -> None:
    told = lacking_resources([demand("look", 3, CPU=1), demand("hear", 1, GPU=1)], [{"CPU": 8}])
    assert told is not None
    assert "cluster.stages.hear.workers" in told
    assert "1 GPU are needed and 0 are free" in told


def test_a_worker_never_spans_nodes() -> None:
    told = lacking_resources([demand("caption", 1, TPU=4)], [{"TPU": 2}, {"TPU": 2}])
    assert told is not None
    assert "no node has over 2" in told


@given(st.lists(st.tuples(amounts, amounts), min_size=1, max_size=5), st.lists(amounts, min_size=1))
def test_a_yes_never_exceeds_what_there_is(wanted: list[tuple[int, int]], nodes: list[int]) -> None:
    demands = [demand(str(i), count, CPU=cpus) for i, (count, cpus) in enumerate(wanted)]
    if lacking_resources(demands, [{"CPU": n} for n in nodes]) is None:
        assert sum(count * cpus for count, cpus in wanted) <= sum(nodes)
        assert max(cpus for _, cpus in wanted) <= max(nodes)


def test_a_model_that_guesses_at_its_own_questions_is_named() -> None:
    others = {"ask.llm": "openai a", "vet.guesser": "openai b", "vet.verifier": "openai a"}
    assert same_model_warnings(others) == ()
    (line,) = same_model_warnings({**others, "vet.guesser": "openai a"})
    assert line.startswith("The same model writes and filters the questions")
    for part in ("ask.llm and vet.guesser", "openai a", "vet/guesser=openai vet.guesser.model="):
        assert part in line
    assert same_model_warnings({"ask.llm": "offline 5", "vet.guesser": "offline 5"}) == ()


def test_guessers_that_are_one_model_are_named() -> None:
    three = {f"vet.{role}": "openai b" for role in ("guesser", "guesser_2", "guesser_3")}
    (line,) = same_model_warnings({"ask.llms.reasoning": "openai a", **three})
    assert "vet.guesser, vet.guesser_2, vet.guesser_3 are one model" in line
    assert len(same_model_warnings({"ask.llms.reasoning": "openai b", **three})) == 2
