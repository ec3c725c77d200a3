"""Every job's configuration composes and becomes a job; every choice of every group does too; a
mistake gives one line that names the key, the value and the choices.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import hydra
import pytest
from omegaconf import OmegaConf

from actors.stage import Stage
from mustsee.errors import UserError
from mustsee.filters.videos import by_stage
from mustsee.llm import Asker
from mustsee.media.speech import windows
from mustsee.prompts import Prompts
from ray_jobs.running.cluster import connected, preflight
from ray_jobs.running.launch import CONF, build, compose, launch

JOBS = sorted(p.stem for p in CONF.glob("*.yaml") if re.search(r"^job:", p.read_text(), re.M))
GROUPS = {
    (job, group)
    for job in JOBS
    for group in re.findall(r"^ +- /?(\w+)(?:@\w+)?: ", (CONF / f"{job}.yaml").read_text(), re.M)
    if (CONF / group).is_dir()
}


def _job_for(group: str, choice: str) -> str:
    """The job of the same name, or neptune, or any that has the group."""
    having = sorted(job for job, name in GROUPS if name == group)
    return next((job for job in (choice, "neptune") if job in having), having[0])


CHOICES = sorted(
    (_job_for(group, path.stem), group, path.stem)
    for group in {group for _, group in GROUPS}
    for path in (CONF / group).glob("*.yaml")
)
EXPERIMENTS = sorted(p.stem for p in (CONF / "experiment").glob("*.yaml"))


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")


def given(job: str, *overrides: str) -> list[str]:
    """The overrides, and a value for every key that is still open: "x"."""
    with hydra.initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        config = hydra.compose(job, overrides=list(overrides))
    missing = _missing(OmegaConf.to_container(config), "")
    return [*overrides, *(f"{key}=x" for key in missing)]


def _missing(value: Any, path: str) -> list[str]:
    if isinstance(value, dict):
        return [key for k, v in value.items() for key in _missing(v, f"{path}.{k}".lstrip("."))]
    return [path] if value == "???" else []


def test_there_are_jobs() -> None:
    assert "neptune" in JOBS


@pytest.mark.parametrize("job", JOBS)
def test_a_job_composes_and_is_built(job: str) -> None:
    assert callable(build(compose(job, given(job))))


@pytest.mark.slow  # a hundred compositions; make check runs them
@pytest.mark.parametrize(("job", "group", "choice"), CHOICES)
def test_every_choice_can_be_built(job: str, group: str, choice: str) -> None:
    assert callable(build(compose(job, given(job, f"{group}={choice}"))))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_preset_can_be_built(name: str) -> None:
    assert callable(build(compose("neptune", given("neptune", f"+experiment={name}"))))


@pytest.mark.parametrize(
    "path", sorted(CONF.rglob("*.yaml")), ids=lambda p: str(p.relative_to(CONF))
)
def test_every_file_says_what_it_is(path: Path) -> None:
    lines = [x for x in path.read_text().splitlines() if not x.startswith("# @package")]
    assert lines[0].startswith("# "), f"{path.name} begins without a comment that says what it is"


@pytest.mark.parametrize(
    ("overrides", "parts"),
    [
        (["hera=sphinx"], ["'hera'", "did you mean 'hear'", "videos"]),
        (["hear=sphynx"], ["hear='sphynx'", "sphinx", "subtitles"]),
        (["out=x"], ["videos= is not set", "folder"]),
        (["videos=x"], ["out= is not set"]),
        (["videos=x", "out=y", "seed=many"], ["seed='many'", "int"]),
        (["videos=x", "out=y", "max_problem_share=2"], ["max_problem_share=2", "0 to 1"]),
        (["videos=x", "out=y", "cluster.stages.look.workers=few"], ["workers='few'"]),
        (["videos=x", "out="], ["out= is not set"]),
        (["videos=film [1].mp4", "out=y"], ["""'videos="film [1].mp4"'"""]),
        (["videos", "out=y"], ["'videos'", "key=value"]),
        (["videos=x", "out=y", "vet.tires=2"], ["'vet.tires'", "did you mean 'vet.tries'"]),
        (["videos=x", "out=y", "llm=openai", "llm.modl=z"], ["did you mean 'llm.model'"]),
        (["videos=x", "out=y", "filters.metadata.unsafe_tags=racy"], ["'racy'", "tuple"]),
        (["videos=x", "out=y", "llm=openai", "llm.omit=seed"], ["llm.omit='seed'"]),
        (["videos=x", "out=y", "ask.settings.questions=three"], ["ask.settings.questions='three'"]),
        (["videos=x", "out=y", "caption=x y"], ["caption='x y'", "pixels"]),
        (["videos=x", "out=y", "hear=null"], ["NoneType"]),
        (["videos=x", "out=y", "~hear"], ["hear= is not set"]),
        (["videos=x", "out=y", "llm.model=gpt-4o"], ["'llm.model'", "llm=openai"]),
        (["videos=x", "out=y", "llm.model=gpt-4o"], ["add llm=openai"]),
        (["videos=x,z", "out=y"], ["videos=x,z", "--multirun"]),
        (["videos=x", "out=y", "unit_second=9"], ["did you mean 'ask.settings.unit_seconds'?"]),
        (["videos=x", "out=y", "base_url=http://host/v1"], ["base_url=", "no part", "llm=openai"]),
        (["videos=x", "out=y", "key_env=KEY"], ["key_env=KEY", "no part", "llm=openai"]),
    ],
)
def test_mistakes_are_named_in_one_line(overrides: list[str], parts: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        build(compose("neptune", overrides))
    assert "\n" not in str(caught.value)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        (["--videos", "films", "out=y"], ["'--videos'", "write videos=films"]),
        (["--budget-usd=5", "videos=x"], ["write budget_usd=5"]),
        (["videos=x", "out=y", "total_seconds=3"], ["'total_seconds'", "did you mean"]),
        (["videos=x", "out=y", "filters.metadata=off"], ["filters.metadata='off'"]),
        (["-m", "videos=x", "out=y", "seed=1,x"], ["combination seed=x", "int"]),
        (["-m", "videos=x", "out=y", "llm=offline,opnai"], ["combination llm=opnai", "openai"]),
        (["videos=/nowhere", "out=y"], ["videos='/nowhere' does not exist"]),
        (["videos=https://host/film.mp4", "out=y"], ["https://host/film.mp4", "download"]),
    ],
)
def test_a_mistake_ends_a_command_in_one_line_before_any_work(
    given: list[str],
    parts: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["neptune", *given])
    monkeypatch.setitem(sys.modules, "ray", None)  # whoever imports it fails
    with pytest.raises(SystemExit) as ended:
        launch("neptune")
    said = [x for x in capsys.readouterr().err.splitlines() if not x.endswith(": starting")]
    assert (ended.value.code, len(said)) == (2, 1), said
    for part in parts:
        assert part in said[0]


def test_a_video_filter_is_off_where_it_is_null_and_stands_behind_its_stage() -> None:
    stages = ("probe", "look", "hear")

    def behind(*overrides: str) -> dict[str, list[str]]:
        job = build(compose("neptune", ["videos=x", "out=y", *overrides]))
        found = by_stage(job.filters, stages)
        return {stage: [f.name for f in some] for stage, some in found.items()}

    assert behind() == {"probe": ["metadata"], "look": ["static", "talking_head"], "hear": []}
    assert behind("filters.static=null")["look"] == ["talking_head"]
    assert behind("filters.static.after=hear")["hear"] == ["static"]
    with pytest.raises(UserError, match=r"filters\.static\.after='ask'"):
        behind("filters.static.after=ask")


@pytest.mark.parametrize("llm", [path.stem for path in (CONF / "llm").glob("*.yaml")])
def test_the_api_preset_takes_another_model(llm: str) -> None:
    """Its endpoint is that of the parts which ask one, and of no other."""
    overrides = ["base_url=http://host/v1", "key_env=null", f"llm={llm}"]
    config = compose("neptune", given("neptune", "+experiment=api", *overrides))
    endpoints = [config.hear.model.endpoint, config.caption.endpoint, config.embed.model.endpoint]
    endpoints += [config.llm] if llm == "openai" else []
    assert {(e.base_url, e.key_env) for e in endpoints} == {("http://host/v1", None)}
    alone = compose("neptune", given("neptune", f"llm={llm}")).llm
    assert llm == "openai" or config.llm == alone
    assert llm != "openai" or alone.base_url.endswith("openai.com/v1")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("cluster.stages.look.workers=0", "cluster.stages.look.workers=0: at least 1"),
        ("cluster.stages.look.workers={min: 0, max: 2}", "{'min': 0, 'max': 2}: at least 1"),
        ("cluster.stages.hear.workers={min: 3, max: 2}", "{'min': 3, 'max': 2}: max is less"),
        ("cluster.stages.probe.workers={least: 1}", "{'least': 1}: a number, or {min: 1, max: 8}"),
        ("++cluster.stages.caption={workers: {min: 1, max: 2}, tpus: 4}", "has a fixed size"),
        ("+cluster.stages.look.concurrency=0", "cluster.stages.look.concurrency=0"),
        ("cluster.stages.hear.cpus=-1", "cluster.stages.hear.cpus=-1"),
    ],
)
def test_impossible_hardware_is_said_before_any_work(
    override: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ray.nodes", list)
    cluster = build(compose("neptune", given("neptune", override))).run.cluster
    parts: Any = None  # not asked for
    stages = [Stage(name=n, part=parts, hardware=h) for n, h in cluster.stages.items()]
    with pytest.raises(UserError, match=re.escape(message)):
        preflight([stages], cluster)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["look.sample_every=0"], "look.sample_every=0"),
        (["hear=openai", "hear.together=0"], "hear.together=0"),
        (["hear=openai", "hear.chunk=-1"], "hear.chunk=-1"),
        (["caption=openai", "caption.frames=0"], "caption.frames=0"),
    ],
)
def test_impossible_numbers_are_said_before_any_work(overrides: list[str], message: str) -> None:
    job = build(compose("neptune", given("neptune", *overrides)))
    part = getattr(job, overrides[0].split("=")[0].split(".")[0])
    with pytest.raises(UserError, match=re.escape(message)):
        part.check(None)


def test_a_budget_is_no_debt() -> None:
    job = build(compose("neptune", given("neptune", "budget_usd=-1")))
    with pytest.raises(UserError, match="budget_usd=-1"), job.run.open("neptune"):
        pass


def test_numbers_that_would_never_end_or_never_begin() -> None:
    with pytest.raises(UserError, match="tries=0"):
        Asker(llm=cast(Any, None), prompts=Prompts(), tries=0)
    with pytest.raises(UserError, match="window=0"):
        next(windows([], seconds=0))


def test_an_address_at_which_nobody_is_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    with pytest.raises(UserError, match=r"RAY_ADDRESS='127\.0\.0\.1:9'"), connected():
        pass


def test_hydras_flags_work_wherever_they_stand() -> None:
    for given in (["--cfg", "job", "seed=7"], ["seed=7", "-c", "job"]):
        command = [sys.executable, "-m", "ray_jobs.neptune", *given, "--package", "seed"]
        run = subprocess.run(command, capture_output=True, text=True, cwd=CONF.parent, check=False)
        assert (run.stdout.strip(), run.stderr) == ("7", "")


def test_every_cluster_knows_every_stage() -> None:
    known = {p.stem: set(OmegaConf.load(p).stages) for p in (CONF / "cluster").glob("*.yaml")}
    assert len(set(map(frozenset, known.values()))) == 1, known
    used = {
        name
        for path in (CONF.parent / "ray_jobs").glob("*.py")
        for name in re.findall(r"\.stage\(\s*\"(\w+)\"", path.read_text())
    }
    assert used <= known["laptop"]
