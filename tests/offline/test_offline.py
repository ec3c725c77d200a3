"""The rules of the filters: their guessers guess."""

from dataclasses import replace
from itertools import permutations
from pathlib import Path

from mustsee.calls.llm import Message, Request
from mustsee.offline import filters, sight
from mustsee.prompts import ROOT
from mustsee.verify import worth
from mustsee.verify.guess.ask import ranking, rankings
from tests.support.neptune_video import SAID


def test_every_prompt_of_a_filter_has_a_rule() -> None:
    prompts = {f"filters/{path.stem}" for path in Path(ROOT, "filters").glob("[!_]*.j2")}
    prompts -= {worth.PROMPT, worth.CONDITIONS_PROMPT}  # of a rater, which is no filter
    rules = {name for name in filters.RULES | sight.RULES if name.startswith("filters/")}
    assert rules == prompts


def test_questions_guessed_together_are_guessed_as_alone() -> None:
    """By a dry run's rules: what a paid model would be asked is counted with their replies."""
    given = [
        {"question": f"What is said after “{SAID[n]}”?", "options": SAID[n + 1 : n + 6]}
        for n in range(3)
    ]
    transcript = "\n".join(f"[{n}.0-{n}.5] {text}" for n, text in enumerate(SAID))
    for heard in (transcript, None):
        variables = {"asked": given, "transcript": heard, "recognised": False}
        request = Request(prompt="filters/guess_set", digest="", messages=(), variables=variables)
        form = rankings([5] * len(given))
        together = form.read(filters.RULES["filters/guess_set"](request))
        for one, (rank, _) in zip(given, together, strict=True):
            single = replace(request, variables={**one, "transcript": heard or ""})
            assert ranking(len(rank)).read(filters.RULES["filters/asr"](single)) == rank


def test_the_blind_guesser_is_at_chance_without_hints() -> None:
    """It is right by chance (1 in 5) if options resemble neither the question nor each other."""
    names = ("alpha", "bravo", "delta", "gamma", "omega")
    firsts = []
    for n, order in enumerate(permutations(names)):
        request = ask("filters/blind", seed=n, question="What is it called?", options=order)
        firsts.append(order[ord(filters.blind(request)[10]) - 65])
    assert all(10 <= firsts.count(name) <= 42 for name in names)  # 24 expected of 120


def test_the_blind_guesser_uses_hints() -> None:
    options = ("A dog", "The long red scarf of the sailor", "A cat", "A cup", "A hat")
    question = "What does the sailor with the red scarf wear?"
    for seed in range(5):
        reply = filters.blind(ask("filters/blind", seed=seed, question=question, options=options))
        assert reply.startswith("* ANSWER: B")


def test_the_guesser_of_the_options_alone_uses_hints_of_the_options() -> None:
    longest = ("A dog", "A cat", "The long red scarf of the old sailor", "A cup", "A hat")
    twins = ("A red cup of tea", "A red cup of milk", "The moon", "Nobody", "Seven")
    for seed in range(10):
        reply = filters.options_alone(ask("filters/options_alone", seed=seed, options=longest))
        assert reply.startswith("* ANSWER: C")
        reply = filters.options_alone(ask("filters/options_alone", seed=seed, options=twins))
        assert reply.startswith(("* ANSWER: A", "* ANSWER: B"))


def test_a_guesser_that_reads_the_transcript_finds_what_it_says() -> None:
    transcript = "\n".join(f"[{n}.0-{n}.5] {text}" for n, text in enumerate(SAID))
    options = ("A glass of milk", "Two spoons", "Three eggs", "A red towel", "The door")
    question = "What is broken into a large bowl?"
    for seed in range(5):
        request = ask(
            "filters/asr", seed=seed, question=question, options=options, transcript=transcript
        )
        assert filters.RULES["filters/asr"](request).startswith("* ANSWER: C")


def ask(prompt: str, seed: int = 0, **variables: object) -> Request:
    return Request(
        prompt=prompt, digest="", messages=(Message("user", ""),), variables=variables, seed=seed
    )
