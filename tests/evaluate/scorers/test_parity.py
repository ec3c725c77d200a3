"""Our rules beside the own functions of lmms-eval and VLMEvalKit, on 2,000 replies: known forms,
and made to differ.

pip download --no-deps lmms-eval==0.7.3 ms-vlmeval==0.0.20; unzip both into X;
PYTHONPATH=X python -m pytest ...
"""

import ast
import copy
import importlib.util
import json
import random
import re
import string
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mustsee.evaluate.scorers import SCORERS

SPECS = {name: importlib.util.find_spec(name) for name in ("lmms_eval", "vlmeval")}
pytestmark = pytest.mark.skipif(
    None in SPECS.values(), reason="they are not on the path: see the first lines of this file"
)
LETTERS = string.ascii_uppercase
FILE = Path(__file__).parents[2] / "replies" / "reply_forms.jsonl"
FORMS = [json.loads(line) for line in FILE.read_text().splitlines()]
Case = tuple[str, tuple[str, ...], int]  # reply, five options, place of the right one


def own_functions(file: str, *names: str, **given: Any) -> Any:
    """Return functions and constants of a file, without importing what it imports."""
    package, _, path = file.partition("/")
    spec = SPECS[package]
    assert spec is not None
    (folder,) = spec.submodule_search_locations or ()
    tree = ast.parse((Path(folder) / path).read_text())
    body = [
        node
        for node in tree.body
        if (isinstance(node, ast.FunctionDef) and node.name in names)
        or (isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in names)
    ]
    space: dict[str, Any] = {"re": re, "np": np, "random": random, **given}
    source = ast.unparse(ast.Module(body, []))
    exec("from typing import List, Optional\n" + source, space)
    return SimpleNamespace(**{name: space[name] for name in names})


def cases(count: int = 2000) -> list[Case]:
    rng, made = random.Random(1), list[Case]()
    while len(made) < count:
        form = rng.choice(FORMS)
        options = tuple([*form["options"], "one more", "and another", "nothing"][:5])
        place = rng.randrange(5)
        letter, text = LETTERS[rng.randrange(5)], rng.choice(options)
        reply: str = form["response"]
        noise = "".join(rng.choice("ABCDEab c.,:;()!'\"-\n") for _ in range(rng.randrange(25)))
        changed = rng.choice([
            reply, reply, reply, reply.lower(), reply.upper(), noise, "", " ", "?", f"{letter}\n",
            f"The answer is ({letter}).", f"Answer: {letter}) {text}", f"**{letter}. {text}**",
            text, f"I think {text}", f"a man, so {letter}", f"({letter}", f"{letter}: {text}",
            f"the answer is clearly {letter} because A is wrong", f"{letter}.{letter}",
            f"my answer is {letter}, but the answer is A", f"{letter}, {text}, 1,000",
            f"I'd say '{letter}'.", f"정답은 {letter}", f"{letter} and B", f"{reply}\n\n{letter}",
            "Sorry, I cannot see that in the video that you have sent",
        ])  # fmt: skip
        made.append((changed, options, place))
    return made


def check_scores(
    benchmark: str,
    theirs: Callable[[str, Sequence[str], int], float | None],
    scorer: str = "lmms_eval",
) -> None:
    """Compare reply by reply, and so the mean."""
    read, differing = SCORERS[scorer][benchmark].read, list[tuple[Any, ...]]()
    right = 0.0
    for reply, options, place in cases():
        ours, own = read(reply, options, place), theirs(reply, options, place)
        right += own or 0.0
        if (None if ours.guesses else ours.points) != own:
            differing.append((reply, options, place, ours, own))
    assert not differing
    assert right > 30


@pytest.mark.parametrize("benchmark", ["videomme", "mlvu", ""])
def test_the_shared_extractor(benchmark: str) -> None:
    names = ("extract_mcq_answer", "_DEFAULT_CHOICES", "_ANSWER_PHRASES", "_FORMAT_PRIORITY")
    extract = own_functions("lmms_eval/tasks/_task_utils/mcq_extract.py", *names).extract_mcq_answer
    choices = [*(SCORERS["lmms_eval"][benchmark].letters or "ABCDE")]
    check_scores(
        benchmark, lambda reply, _, place: float(extract(reply, choices) == LETTERS[place])
    )


@pytest.mark.filterwarnings("ignore:invalid escape sequence")
def test_mvbench() -> None:
    accuracy = own_functions("lmms_eval/tasks/mvbench/utils.py", "mcq_acc").mcq_acc
    check_scores(
        "mvbench", lambda reply, _, n: float(accuracy(LETTERS[n], reply)) if reply else None
    )


def test_egoschema() -> None:
    own = own_functions(
        "lmms_eval/tasks/egoschema/utils.py", "get_multi_choice_info", "parse_multi_choice_response"
    )

    def score(reply: str, options: Sequence[str], place: int) -> float | None:
        labelled = {"option": [f"{x}. {o}" for x, o in zip("ABCDE", options, strict=True)]}
        texts, letters = own.get_multi_choice_info(labelled)
        letter, is_read = own.parse_multi_choice_response(reply, letters, texts)
        return float(letter == LETTERS[place]) if is_read else None

    check_scores("egoschema", score)


def test_neptune() -> None:
    names = ("_normalize_text_for_matching", "_parse_choice_from_response")
    parse = own_functions("lmms_eval/tasks/neptune/utils.py", *names)._parse_choice_from_response
    check_scores("neptune", lambda reply, options, place: float(
        parse(reply, dict(zip("ABCDE", options, strict=True))) == LETTERS[place]))  # fmt: skip


def test_cinepile() -> None:
    names = ("normalize_string", "evaluate_semantic_similarity", "eval_response")
    judge = own_functions("lmms_eval/tasks/cinepile/utils.py", *names).eval_response
    check_scores("cinepile", lambda reply, options, place: float(
        judge(reply, LETTERS[place], options[place])[0]))  # fmt: skip


@pytest.mark.parametrize("benchmark", ["", "mlvu", "mvbench"])
def test_vlmevalkit(benchmark: str) -> None:
    environment = SimpleNamespace(environ={})
    own = own_functions("vlmeval/utils/matching_util.py", "can_infer_option", "can_infer_text",
                        cp=copy, os=environment, string=string)  # fmt: skip

    def infer(_: None, item: dict[str, Any], __: str) -> dict[str, Any]:
        given = item["prediction"], item["choices"]
        return {"opt": own.can_infer_option(*given) or own.can_infer_text(*given)}

    file = f"vlmeval/dataset/utils/{benchmark}.py"
    check = (
        benchmark
        and own_functions(
            file, "check_ans_with_model", extract_answer_from_item=infer
        ).check_ans_with_model
    )

    def score(reply: str, options: Sequence[str], place: int) -> float:
        letter, choices = LETTERS[place], dict(zip("ABCDE", options, strict=True))
        item = {"prediction": reply, "choices": choices, "answer": letter}
        if not check:
            return float(infer(None, item, "")["opt"] == letter)
        return float(check(reply, f"({letter}) {options[place]}", None, item))

    check_scores(benchmark, score, "vlmevalkit")


def test_vlmevalkit_s_video_mme() -> None:
    names = ("extract_characters_regex",)
    extract = own_functions("vlmeval/dataset/utils/videomme.py", *names).extract_characters_regex
    check_scores("videomme", lambda reply, _, n: float(extract(reply) == LETTERS[n]), "vlmevalkit")
