"""The offline model has rules for the prompts of jobs that need no model, and refuses all other
prompts.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

import mustsee
from actors.llm.offline import Offline, digest, has_rules, revision, rules
from mustsee.calls.llm import Message, Request
from mustsee.errors import BadRow, UserError
from mustsee.prompts import ROOT

# Claims and open questions, the wording of composed ones, questions on scenes, and a probe are
# asked of models alone, as is all of Neptune and EgoSchema.
MODELS_ONLY = {
    f"{paper}/{path.stem}"
    for paper in ("neptune", "egoschema")
    for path in Path(ROOT, paper).glob("[!_]*.j2")
} | {
    f"cinepile/{name}" for name in ("shortlist", "questions", "choose", "fits")
} | {
    f"server_probe/{name}"
    for name in ("digits", "fruit", "images", "prefix", "times", "tones", "video", "word")
} | {
    f"facts/{name}"
    for name in (
        "claims", "weigh", "parts", "questions", "edit", "best", "answer_blind", "answer_seen",
        "grade", "grade_answers", "choices", "word", "read_back",
    )
} | {"filters/worth", "filters/conditions"}  # fmt: skip


def test_every_prompt_has_a_rule_but_those_that_only_models_are_asked() -> None:
    # A file that begins with _ is included by others. A dry run counts with these rules.
    files = {str(p.relative_to(ROOT).with_suffix("")) for p in Path(ROOT).rglob("[!_]*.j2")}
    assert set(rules()) == files - MODELS_ONLY
    assert files > MODELS_ONLY


def test_a_folder_of_prompts_has_rules_if_one_of_its_prompts_has() -> None:
    assert has_rules("facts")
    assert has_rules("filters/blind")
    assert not has_rules("facts/claims")
    assert not has_rules("fact")
    assert not has_rules("neptune")


def test_a_prompt_without_a_rule_is_named() -> None:
    request = Request(prompt="no/prompt", digest="", messages=(Message("user", "?"),))
    with pytest.raises(BadRow, match="'no/prompt'"):
        asyncio.run(Offline().open().complete(request))


def test_the_rules_are_part_of_the_identity() -> None:
    assert Offline().identity == Offline().identity
    assert Offline().identity.startswith("offline ")


@pytest.mark.parametrize(
    ("module", "changes"),
    [
        ("recipes/cinepile/offline.py", True),
        ("recipes/cinepile/question_lists.py", True),
        ("text.py", True),
        ("questions/checks.py", True),
        ("media/colours.py", True),  # by way of offline/looking.py
        ("judge/lexical.py", True),
        ("synth/make.py", False),
        ("evaluate/score.py", False),
    ],
)
def test_a_change_in_a_module_that_the_rules_import_is_another_model(
    tmp_path: Path, module: str, changes: bool
) -> None:
    package = tmp_path / "mustsee"
    shutil.copytree(mustsee.__path__[0], package, ignore=shutil.ignore_patterns("__pycache__"))
    assert digest(package) == revision()
    with (package / module).open("a") as file:
        file.write("# changed\n")
    assert (digest(package) != revision()) == changes


def test_another_language_is_refused_before_the_job() -> None:
    Offline().check()
    with pytest.raises(UserError, match="write and read English only"):
        Offline(language="German").check()
