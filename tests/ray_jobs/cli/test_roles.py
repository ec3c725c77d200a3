"""Every key whose value is `${GROUP}` is a role, set like a group, alone or in a sweep. All parts
that call an endpoint share one, with one list of prices.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from mustsee.errors import UserError
from mustsee.recipes.neptune import layout as neptune
from mustsee.verify.guess.counts import GuessRule
from ray_jobs.cli import compose as composing
from ray_jobs.cli.build import build
from ray_jobs.cli.compose import CONF, compose, compose_job, roles
from ray_jobs.cli.launch import launch
from tests.support.evaluation import questions

FILES = {
    "small.yaml": "defaults: [address, llm: rules, vet: two, _self_]\nout: ???\n",
    "address.yaml": "base_url: http://a\n",
    "llm/rules.yaml": "kind: rules\n",
    "llm/openai.yaml": "kind: openai\nmodel: m\nbase_url: ${base_url}\nlimits: {minute: 5}\n",
    "llm/local.yaml": "kind: local\nmodel: l\ndevice: cpu\n",
    "vet/two.yaml": "guesser: ${llm}\nverifier: ${llm}\ndeep:\n  repairer: ${llm}\nout: ${out}\n",
    "vet/spare.yaml": "guesser: ${llm}\nguesser_2: ${off:llm}\n",
    "experiment/own.yaml": "# @package _global_\ndefaults:\n  - override /llm: openai\n"
    "llm:\n  model: own\n",
}
OPENAI = {"kind": "openai", "model": "m", "base_url": "http://a", "limits": {"minute": 5}}


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small configuration with three roles."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(composing, "CONF", tmp_path)


def vetted(*overrides: str) -> Any:
    vet: Any = OmegaConf.to_container(compose("small", ["out=o", *overrides])["vet"])
    return vet


@pytest.mark.usefixtures("small")
def test_roles_are_found_at_any_depth() -> None:
    groups = roles(compose_job("small"))
    assert groups == dict.fromkeys(("vet.guesser", "vet.verifier", "vet.deep.repairer"), "llm")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("overrides", "second"),
    [
        ([], None),
        (["vet/guesser_2=openai"], OPENAI),
        (["vet.guesser_2.model=x", "llm=openai"], {**OPENAI, "model": "x"}),
        (["vet/guesser=openai"], None),
    ],
)
def test_a_role_that_is_off_is_null_until_it_is_set(overrides: list[str], second: Any) -> None:
    roles_set = vetted("vet=spare", *overrides)
    assert roles_set["guesser_2"] == second
    assert roles_set["guesser"] is not None


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("overrides", "guesser"),
    [
        ([], {"kind": "rules"}),
        (["vet/guesser=openai"], OPENAI),
        (["vet/guesser=openai", "vet.guesser.model=x"], {**OPENAI, "model": "x"}),
        (["vet.guesser.model=x", "llm=openai"], {**OPENAI, "model": "x"}),
        (
            ["llm=openai", "llm.limits.minute=7", "vet.guesser.model=x"],
            {**OPENAI, "model": "x", "limits": {"minute": 7}},
        ),
        # A role with its own choice takes nothing from the run's.
        (["llm=local", "llm.device=gpu", "vet/guesser=openai"], OPENAI),
        (["+experiment=own", "vet.guesser.limits.minute=1"],
         {**OPENAI, "model": "own", "limits": {"minute": 1}}),
        (["llm=openai", "+vet.guesser.more=1"], {**OPENAI, "more": 1}),
        (["vet/guesser=openai", "base_url=http://b"], {**OPENAI, "base_url": "http://b"}),
        (["vet.guesser=null"], None),
    ],
)  # fmt: skip
def test_a_role_is_set_like_a_group(overrides: list[str], guesser: Any) -> None:
    roles_set = vetted(*overrides)
    assert roles_set["guesser"] == guesser
    llm: Any = OmegaConf.to_container(
        compose("small", ["out=o", *(o for o in overrides if not re.match("vet|base", o))])["llm"]
    )
    assert roles_set["verifier"] == roles_set["deep"]["repairer"] == llm, (
        "other roles stay as they are"
    )


@pytest.mark.usefixtures("small")
def test_a_nested_role_can_be_set() -> None:
    roles_set = vetted(
        "vet/deep/repairer=openai", "vet.deep.repairer.model=x", "vet/verifier=local"
    )
    assert [roles_set["deep"]["repairer"]["model"], roles_set["verifier"]["model"]] == ["x", "l"]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("overrides", "parts"),
    [
        (["vet/guesser=opnai"], ["vet/guesser='opnai'", "openai, rules"]),
        (["vet/gueser=openai"], ["'vet/gueser'", "did you mean 'vet/guesser'"]),
        (["vet.gueser.model=x"], ["'vet.gueser'", "did you mean 'vet.guesser'"]),
        (
            ["vet/guesser=openai", "vet.guesser.modl=x"],
            ["'vet.guesser.modl'", "did you mean 'vet.guesser.model'"],
        ),
        (["vet.guesser.model=x"], ["'vet.guesser.model'", "vet/guesser=openai"]),
        (["llm.model=x"], ["'llm.model'", "llm=openai"]),
    ],
)
def test_mistakes_name_the_role(overrides: list[str], parts: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        compose("small", ["out=o", *overrides])
    assert "\n" not in str(caught.value)
    for part in parts:
        assert part in str(caught.value)


def test_the_model_of_the_grader_is_set_separately(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["questions=q", "out=o", "llm=openai", "judge=llm"]
    grade = build(compose("evaluate", [*arguments, "grade.llm.model=x", "base_url=http://b"])).grade
    assert (grade.llm.model, grade.llm.base_url) == ("x", "http://b")
    judge = grade.judge.engine.llm
    assert (judge.base_url, judge.key_env) == ("http://b", "OPENAI_API_KEY")
    local = build(compose("evaluate", [*arguments, "key_env=null", "grade/llm=offline"]))
    assert local.grade.judge.engine.llm.key_env is None
    assert local.grade.llm.identity.startswith("offline")
    assert local.answer.llm.key_env is None


def test_a_served_judge_has_the_same_endpoint() -> None:
    from serve.judge import JudgeServeSettings, configure_judge

    more: dict[str, Any] = {"base_url": "http://b", "key_env": "null", "engine.llm.model": "x"}
    llm: Any = configure_judge(JudgeServeSettings(judge="llm", **more)).engine.llm  # type: ignore[attr-defined]
    assert (llm.base_url, llm.key_env, llm.model) == ("http://b", None, "x")
    assert llm.prices == {}


def test_addresses_are_in_one_file() -> None:
    texts = {path: path.read_text() for path in CONF.rglob("*.yaml")}
    assert len([path for path, text in texts.items() if "api.openai.com" in text]) == 1


def test_all_combinations_of_a_sweep_are_checked_before_the_first_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> str:
        monkeypatch.setattr("sys.argv", ["report", *arguments])
        with pytest.raises(SystemExit) as ended:
            launch("report")
        assert ended.value.code == 2
        return capsys.readouterr().err

    wrong = run("-m", "out=/none/a,/none/b", "store=null,3")
    assert "in the combination out=/none/a store=3: store=3: " in wrong
    both = run("out=/none/a,/none/b", "--multirun")
    assert ["/none/a" in both, "/none/b" in both] == [True, True]


@pytest.mark.slow
def test_each_run_of_a_sweep_has_a_folder_of_its_own(tmp_path: Path) -> None:
    neptune.write(questions(), tmp_path / "neptune_full.json")
    given = [
        f"questions={tmp_path}/neptune_full.json",
        f"out={tmp_path}/o",
        "answer=guess",
        "answer.by=random,longest",
    ]
    command = [sys.executable, "-m", "ray_jobs.evaluate", "-m", *given]
    subprocess.run(command, check=True, capture_output=True, cwd=CONF.parent)
    results = sorted((tmp_path / "o").rglob("results.json"))
    assert [path.parent.name for path in results] == ["by-longest", "by-random"]
    models = [json.loads(path.read_text())["results"][0]["model"] for path in results]
    assert models == ["guess longest", "guess random"]


def test_help_lists_the_roles(capsys: pytest.CaptureFixture[str]) -> None:
    from ray_jobs.cli import explain

    explain.job("evaluate", ["answer=openai"])
    printed = capsys.readouterr().out
    for part in ("grade/llm", "answer/llm", "the run's llm", "base_url=", "+experiment=api"):
        assert part in printed
    explain.job("neptune", [])
    assert re.search(r"vet/guesser_2 +default: none", capsys.readouterr().out)


def test_a_repaired_question_of_neptune_may_have_each_of_its_types() -> None:
    from mustsee.recipes.neptune.ask import TYPES

    job = build(compose("neptune", ["videos=x", "out=y"]))
    assert list(job.vet.repair.kinds) == list(TYPES)
    assert job.vet.repair.of is None


def vet_of(*overrides: str) -> Any:
    return build(compose("neptune", ["videos=x", "out=y", *overrides])).vet


def test_a_second_guesser_is_off_until_it_is_set() -> None:
    default = vet_of()
    assert [f.name for f in default.chosen_filters] == [
        "giveaways", "blind", "options", "asr", "sight",
    ]  # fmt: skip
    assert (default.guesser_2, "guesser_2" in default.roles) == (None, False)
    for overrides in (
        ["vet/guesser_2=openai", "vet.guesser_2.model=other"],
        ["llm=openai", "vet.guesser_2.model=other"],
    ):
        second = vet_of(*overrides)
        assert "blind_2" in [f.name for f in second.chosen_filters]
        assert second.roles["guesser_2"].model == "other"
        assert second.roles["guesser"] != second.roles["guesser_2"]
    with pytest.raises(UserError, match="guesser=None, but 'asr' asks it"):
        vet_of("vet.guesser=null")


def test_the_rule_of_guesses_is_that_of_the_configuration() -> None:
    one = dict.fromkeys(("blind", "options", "asr"), (1, 1))
    assert vet_of().guess_rule == GuessRule(filters=one, rewrites=2, subset="mma")
    paper = vet_of("+experiment=paper").guess_rule
    assert paper.filters == dict.fromkeys(("blind", "asr"), (3, 2))
    assert vet_of("+vet.repair.of=[sight]").guess_rule.rewrites == 0
    assert vet_of("+vet.repair.of=[options]", "vet.repair.rounds=4").guess_rule.rewrites == 4
    assert vet_of("vet.repair=null").guess_rule.rewrites == 0


def test_cinepile_repairs_guessed_questions_as_its_authors_did() -> None:
    job = build(compose("cinepile", ["videos=x", "out=y", "descriptions=z"]))
    repair = job.vet.repair
    assert (repair.rounds, list(repair.of), repair.see, repair.near) == (5, ["refine"], None, None)
