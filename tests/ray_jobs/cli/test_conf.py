"""Every job and every choice of every group composes and can be built. A mistake gives one line
that names the key, the value and the choices.
"""

import errno
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast, get_type_hints

import hydra
import pytest
from omegaconf import DictConfig, OmegaConf

from actors.engine.stage import Stage
from mustsee.calls.llm import Asker
from mustsee.errors import UserError
from mustsee.facts.forms import DEFAULT_FORMS
from mustsee.media.speech import windows
from mustsee.prompts import Prompts
from mustsee.verify.filters import by_stage
from ray_jobs.cli import launch as launching
from ray_jobs.cli import presets
from ray_jobs.cli.build import kinds
from ray_jobs.cli.compose import compose_job, files
from ray_jobs.cli.launch import CONF, build, compose, launch
from ray_jobs.runtime.cluster import check_stages, connect_ray
from ray_jobs.runtime.dry_run import DryRun
from ray_jobs.runtime.run import JobSettings

JOBS = sorted(p.stem for p in CONF.glob("*.yaml") if re.search(r"^job:", p.read_text(), re.M))
GROUPS = {
    (job, group)
    for job in JOBS
    for group in re.findall(r"^ +- /?(\w+)(?:@\w+)?: ", (CONF / f"{job}.yaml").read_text(), re.M)
    if (CONF / group).is_dir()
}


def _job_for(group: str, choice: str) -> str:
    """The job to test a group with: of the same name, neptune, or any job that has the group."""
    having = sorted(job for job, name in GROUPS if name == group)
    return next((job for job in (choice, "neptune") if job in having), having[0])


CHOICES = sorted(
    (_job_for(group, path.stem), group, path.stem)
    for group in {group for _, group in GROUPS}
    for path in (CONF / group).glob("*.yaml")
)
EXPERIMENTS = presets.all_presets(CONF)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")


def given(job: str, *overrides: str) -> list[str]:
    """The overrides, with the value "x" for every required key."""
    return [*overrides, *(f"{key}=x" for key in _open(job, overrides))]


def _open(job: str, overrides: Sequence[str] = ()) -> list[str]:
    """The required keys. Without overrides they are read from the job's files, since a composition
    takes half a second.
    """
    if overrides:
        return _missing(OmegaConf.to_container(compose_job(job, overrides)), "")
    texts = [path.read_text() for path in files(job)]
    return [key for text in texts for key in re.findall(r"^(\w+): \?\?\?", text, re.M)]


def neptune(*overrides: str) -> DictConfig:
    """Neptune's composed configuration."""
    return compose("neptune", ["videos=x", "out=y", *overrides])


def part(name: str, *overrides: str) -> Any:
    """Build one part of Neptune only."""
    return hydra.utils.instantiate(neptune(*overrides)[name], _convert_="all")


def _missing(value: Any, path: str) -> list[str]:
    if isinstance(value, dict):
        return [key for k, v in value.items() for key in _missing(v, f"{path}.{k}".lstrip("."))]
    return [path] if value == "???" else []


def test_all_jobs_are_listed() -> None:
    assert "neptune" in JOBS


@pytest.mark.parametrize("job", JOBS)
def test_a_job_composes_and_is_built(job: str) -> None:
    assert callable(build(compose(job, given(job))))


@pytest.mark.slow  # It composes a hundred configurations; make check runs it.
@pytest.mark.parametrize(("job", "group", "choice"), CHOICES)
def test_every_choice_can_be_built(job: str, group: str, choice: str) -> None:
    assert callable(build(compose(job, given(job, f"{group}={choice}"))))


PAIRS = [(job, preset) for job in JOBS for preset in EXPERIMENTS]
SERVED = [(job, preset) for job, preset in PAIRS if preset in presets.presets(CONF, job)]


@pytest.mark.parametrize(("job", "preset"), SERVED)
def test_a_job_takes_from_a_preset_the_keys_that_it_has(job: str, preset: str) -> None:
    needed = [f"{key}=x" for key in _open(job)]
    config = compose(job, given(job, f"+experiment={preset}"))
    chosen = presets.choices_of(CONF, preset, job)
    taken = [(group, choice) for group, choice in chosen.items() if (job, group) in GROUPS]
    assert taken or config != compose(job, needed)  # a preset may set keys only
    for group, choice in taken:
        text = (CONF / group / f"{choice}.yaml").read_text()
        assert re.findall(r"^_target_: (\S+)", text, re.M) in ([], [config[group]["_target_"]])
    assert callable(build(config))


def test_each_of_the_four_recipes_has_its_paper() -> None:
    assert {"neptune", "cinepile", "egoschema", "mlvu"} <= {*presets.jobs_of_preset(CONF, "paper")}


def test_neptune_s_paper_retells_without_frames_and_filters_by_guesses_alone() -> None:
    ours, paper = (part("ask", *x).settings for x in ([], ["+experiment=paper"]))
    assert (ours.dense_words, ours.support_words, ours.sheets.most > 0) == (0, 0, True)
    assert (paper.dense_words, paper.support_words, paper.sheets.most) == (None, 200, 0)
    assert (ours.tweaks, paper.tweaks) == (False, True)
    vet = part("vet", "+experiment=paper")
    guesses = [(f.name, f.runs, f.min_failures, f.together) for f in vet.chosen_filters]
    assert guesses == [("blind", 3, 2, 1), ("asr", 3, 2, 1)]
    assert vet.repair is None
    config = neptune("+experiment=paper")
    assert config.filters.static.share == 1.0
    assert not config.filters.talking_head.speaking
    assert config.hear._target_ == "actors.hear.whisperx.WhisperX"
    assert config.caption._target_ == "actors.stages.caption.OpenAICaptioner"


def test_cinepile_s_paper_has_three_guessers_and_a_shortlister_of_its_own() -> None:
    job = build(compose("cinepile", [*(f"{k}=x" for k in _open("cinepile")), "+experiment=paper"]))
    guessers = {job.vet.guesser.model, job.vet.guesser_2.model, job.vet.guesser_3.model}
    assert len(guessers) == 3
    asked = {role: llm.model for role, llm in job.ask.llms.items()}
    assert asked["shortlister"] == asked["perceptual"] != asked["reasoning"]
    assert [f.name for f in job.vet.chosen_filters] == [
        "refine",
        "degenerate",
        "vision",
        "hardness",
    ]
    assert job.align.encoder == "WhereIsAI/UAE-Large-V1"


def test_evaluation_s_paper_has_frames_and_dialogue_for_neptune_and_cinepile() -> None:
    given = [*(f"{k}=x" for k in _open("evaluate")), "+experiment=paper", "llm=openai"]
    answer = build(compose("evaluate", given)).answer
    assert (answer.see.frames, answer.see.transcript) == (32, True)
    assert tuple(answer.transcript_of) == ("neptune", "cinepile")


def test_the_paper_s_templates_are_written_by_another_model_than_replaces_names() -> None:
    needed = [f"{k}=x" for k in _open("templates")]
    job = build(compose("templates", [*needed, "+experiment=paper"]))
    assert (job.pronouns, job.llm.model) == ("llm", "openai/gpt-5.6-sol")
    namer = job.llms["namer"]
    assert (namer.model, namer.thought_tokens) == ("openai/gpt-5.6-terra", 4096)
    own = build(compose("templates", [*needed, "llm=openai", "llms.namer.model=other"]))
    assert (own.llms["namer"].model, own.llm.model != "other") == ("other", True)


def test_egoschema_s_paper_draws_both_chains_with_longer_decoys() -> None:
    config = compose("egoschema", [*(f"{k}=x" for k in _open("egoschema")), "+experiment=paper"])
    settings = build(config).ask.settings
    assert (tuple(settings.chains), settings.length) == (("set_a", "set_b"), "longer")
    assert "captions" not in settings.keywords.words


@pytest.mark.parametrize(("job", "preset"), sorted({*PAIRS} - {*SERVED}))
def test_a_preset_for_other_jobs_is_refused_with_their_names(job: str, preset: str) -> None:
    with pytest.raises(UserError, match=rf"{preset} is not for '{job}': it is for "):
        compose(job, [f"+experiment={preset}"])


def test_every_job_that_calls_models_takes_the_presets() -> None:
    asking = {job for job, group in GROUPS if group == "llm"}
    assert (
        asking
        == set(presets.jobs_of_preset(CONF, "api"))
        == set(presets.jobs_of_preset(CONF, "gpu")) - {"doctor"}
    )
    assert presets.jobs_of_preset(CONF, "whole_video") == ["neptune"]


@pytest.mark.parametrize(
    ("given", "sets"),
    [
        (["+experiment=whole_video"], "google/gemini-3.8-flash"),
        (["experiment=whole_video", "llm=openai"], "google/gemini-3.8-flash"),
        (["+experiment=whole_video", "llm=offline"], None),  # It has nothing for this model.
        (["+experiment=whole_video", "llm.model=mine"], "mine"),
    ],
)
def test_the_command_line_overrides_a_preset(given: list[str], sets: str | None) -> None:
    config = neptune(*given)
    assert (config.llm.get("model"), config.vet.watch) == (sets, False)
    assert config.ask.recipe.path.endswith("whole")


@pytest.mark.parametrize(
    "path", sorted(CONF.rglob("*.yaml")), ids=lambda p: str(p.relative_to(CONF))
)
def test_every_file_begins_with_a_description(path: Path) -> None:
    lines = [x for x in path.read_text().splitlines() if not x.startswith("# @package")]
    assert lines[0].startswith("# "), f"{path.name} begins without a comment that says what it is"


@pytest.mark.parametrize(
    ("overrides", "parts"),
    [
        (["hera=tiny"], ["'hera'", "did you mean 'hear'", "videos"]),
        (["hear=tinny"], ["hear='tinny'", "tiny", "subtitles"]),
        (["out=x"], ["videos= is not set", "folder"]),
        (["videos=x"], ["out= is not set"]),
        (["videos=x", "out=y", "seed=many"], ["seed='many'", "int"]),
        (["videos=x", "out=y", "max_problem_share=2"], ["max_problem_share=2", "0 to 1"]),
        (["videos=x", "out=y", "cluster.stages.look.workers=few"], ["workers='few'"]),
        (["videos=x", "out="], ["out= is not set"]),
        (["videos='video [1].mp4", "out=y"], ["cannot read", "check its quotes"]),
        (["videos=x", "out=y", "exports=[ü]"], ["cannot read", """'exports=["a b"]'"""]),
        (["videos", "out=y"], ["'videos' is not key=value: write videos=..."]),
        (["clips", "out=y"], ["did you mean videos=clips?"]),
        (["my/video.mp4"], ["did you mean videos=my/video.mp4?"]),
        (["videos=x", "runs/y"], ["did you mean out=runs/y?"]),
        (["videos=x", "out=y", "z"], ["'z' is not key=value; mustsee --help"]),
        (["videos=x", "out=y", "resume=true"], ["'resume', and none is needed", "same command"]),
        (["videos=x", "out=y", "vet.tires=2"], ["'vet.tires'", "did you mean 'vet.tries'"]),
        (["videos=x", "out=y", "llm=openai", "llm.modl=z"], ["did you mean 'llm.model'"]),
        (["videos=x", "out=y", "filters.metadata.unsafe_tags=racy"], ["'racy'", "tuple"]),
        (["videos=x", "out=y", "llm=openai", "llm.omit=seed"], ["llm.omit='seed'"]),
        (["videos=x", "out=y", "ask.settings.questions=three"], ["ask.settings.questions='three'"]),
        (["videos=x", "out=y", "caption=x y"], ["caption='x y'", "pixels"]),
        (["videos=x", "out=y", "hear=null"], ["NoneType"]),
        (["videos=x", "out=y", "~hear"], ["hear= is not set"]),
        (["videos=x", "out=y", "llm.model=gpt-6-luna"], ["'llm.model'", "llm=openai"]),
        (["videos=x", "out=y", "llm.model=gpt-6-luna"], ["add llm=openai"]),
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


def test_a_value_of_a_key_in_place_of_a_choice_is_answered_with_what_works() -> None:
    with pytest.raises(
        UserError, match=r"write answer=guess answer.by=longest; choices for answer"
    ):
        compose("evaluate", ["questions=q", "out=o", "answer=longest"])


@pytest.mark.parametrize(
    "path",
    ["Über uns/Häuser (1).mp4", "video [1].mp4", "it's.mp4", "a#b & 50%.mp4", "x's (\\'2).mp4"],
)
def test_a_path_needs_no_quotes_but_those_of_the_shell(path: str) -> None:
    given = [f"videos={path}", "out=o", "vet.guesser.language=German"]
    assert compose("neptune", given).videos == path


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        (["--videos", "videos", "out=y"], ["'--videos'", "write videos=videos"]),
        (["--budget-usd=5", "videos=x"], ["write budget_usd=5"]),
        (["--vidoes=a"], ["write videos=a"]),
        (["--dry-run", "videos=x", "out=y"], ["write dry_run=true"]),
        (["--llm.model=m", "videos=x"], ["write llm.model=m"]),
        (["videos=x", "out=y", "--resume"], ["'--resume', and none is needed", "same command"]),
        (["videos=x", "out=y", "--gpu"], ["'--gpu', and no key of that name"]),
        (["videos=x", "out=y", "total_seconds=3"], ["'total_seconds'", "did you mean"]),
        (["-m", "videos=/", "out=y", "seed=1,x"], ["combination seed=x", "int"]),
        (["-m", "videos=x", "out=y", "llm=offline,opnai"], ["combination llm=opnai", "openai"]),
        (["videos=/", "out=y", "budget_usd=five"], ["budget_usd='five'", "number"]),
        (["videos=/", "out=y", "dry_run=3"], ["dry_run=3", "bool"]),
        (["videos=/nowhere", "out=y"], ["videos='/nowhere' does not exist"]),
        (["videos=/urs", "out=y"], ["did you mean '/usr'?"]),
        (["videos=https://host/video.mp4", "out=y"], ["with curl -LO 'https://host/video.mp4'"]),
        (["videos=https://www.youtube.com/watch?v=a", "out=y"], ["with yt-dlp 'https://www.you"]),
        (['videos="https://youtu.be/a"', "out=y"], ["with yt-dlp 'https://youtu.be/a'"]),
        (["videos=/", "out=y", "llm=openai", "key_env=NO_SUCH_KEY"], ["export NO_SUCH_KEY=..."]),
    ],
)
def test_a_mistake_is_reported_before_the_job_is_imported(
    given: list[str],
    parts: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["neptune", *given])
    monkeypatch.setattr(launching, "build", None)  # It would import the job.
    with pytest.raises(SystemExit) as ended:
        launch("neptune")
    error_lines = capsys.readouterr().err.splitlines()
    assert (ended.value.code, len(error_lines)) == (2, 1), error_lines
    for part in parts:
        assert part in error_lines[0]


def test_types_read_from_the_source_of_a_job_equal_those_of_its_class() -> None:
    for job in JOBS:
        target = OmegaConf.load(CONF / f"{job}.yaml").job
        read = kinds(target)
        fields = get_type_hints(hydra.utils.get_class(target))
        fields |= (
            get_type_hints(JobSettings) | get_type_hints(DryRun)
            if fields.get("run") is JobSettings
            else {}
        )
        assert {key: fields[key] for key in read} == read
    assert kinds("ray_jobs.neptune.Neptune")["budget_usd"] == float | None


@pytest.mark.parametrize(
    ("given", "parts"),
    [(["videos=/", "out=y", "filters.metadata=off"], ["filters.metadata='off'"])],
)
def test_a_mistake_ends_a_command_with_one_line_before_any_work(
    given: list[str],
    parts: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["neptune", *given])
    monkeypatch.setitem(sys.modules, "ray", None)  # An import of Ray fails.
    with pytest.raises(SystemExit) as ended:
        launch("neptune")
    error_lines = [x for x in capsys.readouterr().err.splitlines() if not x.endswith(": starting")]
    assert (ended.value.code, len(error_lines)) == (2, 1), error_lines
    for part in parts:
        assert part in error_lines[0]


def test_a_full_disk_ends_a_command_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def write() -> int:
        raise RuntimeError("of Ray") from OSError(errno.ENOSPC, "as pyarrow says it", "out/q")

    monkeypatch.setattr("sys.argv", ["export", "questions=/", f"out={tmp_path}/o", "layout=hf"])
    monkeypatch.setattr(launching, "build", lambda config: write)
    with pytest.raises(SystemExit) as ended:
        launch("export")
    error = capsys.readouterr().err
    assert (ended.value.code, error.count("\n")) == (1, 1)
    assert "out/q: No space left on device" in error


def test_a_video_filter_runs_after_its_stage_unless_it_is_null() -> None:
    stages = ("probe", "look", "hear")

    def behind(*overrides: str) -> dict[str, list[str]]:
        found = by_stage(part("filters", *overrides), stages)
        return {stage: [f.name for f in some] for stage, some in found.items()}

    placed = behind()
    assert [stage for stage, names in placed.items() if "metadata" in names] == ["probe"]
    assert [stage for stage, names in placed.items() if "static" in names] == ["look"]
    assert [stage for stage, names in placed.items() if "talking_head" in names] == ["hear"]
    assert "static" not in behind("filters.static=null")["look"]
    assert behind("filters.static.after=hear")["hear"][:2] == ["static", "talking_head"]
    with pytest.raises(UserError, match=r"filters\.static\.after='ask'"):
        behind("filters.static.after=ask")


@pytest.mark.parametrize("llm", [path.stem for path in (CONF / "llm").glob("*.yaml")])
def test_the_api_preset_accepts_another_model(llm: str) -> None:
    """The endpoint is set for the parts that call one, and for no others."""
    overrides = ["base_url=http://host/v1", "key_env=null", f"llm={llm}"]
    config = neptune("+experiment=api", *overrides)
    endpoints = [config.hear.model.endpoint, config.caption.endpoint, config.embed.model.endpoint]
    endpoints += [config.llm] if llm == "openai" else []
    endpoints += [config.llm.record] if llm == "record" else []
    assert {(e.base_url, e.key_env) for e in endpoints} == {("http://host/v1", None)}
    alone = neptune(f"llm={llm}").llm
    called = {"openai": alone, "record": alone.get("record")}
    assert llm in called or config.llm == alone
    assert llm not in called or called[llm].base_url.endswith("openai.com/v1")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("cluster.stages.look.workers=0", "cluster.stages.look.workers=0: must be at least 1"),
        ("cluster.stages.look.workers={min: 0, max: 2}", "'max': 2}: must be at least 1"),
        ("cluster.stages.hear.workers={min: 3, max: 2}", "{'min': 3, 'max': 2}: max is less"),
        ("cluster.stages.probe.workers={least: 1}", "must be a number, or {min: 1, max: 8}"),
        ("++cluster.stages.caption={workers: {min: 1, max: 2}, tpus: 4}", "has a fixed size"),
        ("+cluster.stages.look.concurrency=0", "cluster.stages.look.concurrency=0"),
        ("cluster.stages.hear.cpus=-1", "cluster.stages.hear.cpus=-1"),
    ],
)
def test_impossible_hardware_is_reported_before_any_work(override: str, message: str) -> None:
    cluster = part("cluster", override)
    none: Any = None  # a part that is never opened
    stages = [Stage(name=n, part=none, hardware=h) for n, h in cluster.stages.items()]
    with pytest.raises(UserError, match=re.escape(message)):
        check_stages(stages)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["look.sample_every=0"], "look.sample_every=0"),
        (["hear=openai", "hear.together=0"], "hear.together=0"),
        (["hear=openai", "hear.chunk=-1"], "hear.chunk=-1"),
        (["caption=openai", "caption.frames=0"], "caption.frames=0"),
    ],
)
def test_impossible_numbers_are_reported_before_any_work(
    overrides: list[str], message: str
) -> None:
    found = part(overrides[0].split("=")[0].split(".")[0], *overrides)
    with pytest.raises(UserError, match=re.escape(message)):
        found.check(None)


def test_a_negative_budget_is_refused() -> None:
    job = build(neptune("budget_usd=-1"))
    with pytest.raises(UserError, match="budget_usd=-1"), job.run.open("neptune"):
        pass


def test_numbers_that_would_stall_a_run_are_refused() -> None:
    with pytest.raises(UserError, match="tries=0"):
        Asker(llm=cast(Any, None), prompts=Prompts(), tries=0)
    with pytest.raises(UserError, match="window=0"):
        next(windows([], seconds=0))


def test_an_address_without_a_server_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    with pytest.raises(UserError, match=r"RAY_ADDRESS='127\.0\.0\.1:9'"), connect_ray():
        pass


@pytest.mark.parametrize("given", [["--cfg", "job", "seed=7"], ["seed=7", "-c", "job"]])
def test_hydra_flags_work_in_any_position(
    given: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["neptune", *given, "--package", "seed"])
    with pytest.raises(SystemExit) as ended:
        launch("neptune")
    assert (ended.value.code, *capsys.readouterr()) == (0, "7\n", "")


def test_a_reference_to_a_key_that_a_choice_leaves_to_its_class_has_its_value() -> None:
    assert build(neptune()).vet.spare == build(neptune()).ask.settings.spare == 2.5
    assert build(neptune("ask.settings.spare=3")).vet.spare == 3
    assert build(neptune("ask=facts", "vet=facts")).vet.spare == 1


def test_shuffled_frames_are_shown_for_forms_that_there_are() -> None:
    job = build(compose("make", ["videos=x", "out=y"]))
    assert {*job.vet.filters["shuffled"].forms} <= DEFAULT_FORMS.keys()


def test_every_cluster_lists_every_stage() -> None:
    names = [path.stem for path in (CONF / "cluster").glob("*.yaml")]
    stages_of = {
        name: set(compose_job("make", [f"cluster={name}"]).cluster.stages) for name in names
    }
    assert len(set(map(frozenset, stages_of.values()))) == 1, stages_of
    used = {
        name
        for path in (CONF.parent / "ray_jobs").glob("*.py")
        for name in re.findall(r"\.stage\(\s*\"(\w+)\"", path.read_text())
    }
    assert used <= stages_of["laptop"]


def test_videos_are_not_sampled_without_vectors() -> None:
    job = build(compose("neptune", given("neptune", "diversity.size=9", "embed=none")))
    with pytest.raises(UserError, match="embed=minilm"):
        job()


def test_a_filter_behind_embed_needs_vectors() -> None:
    job = build(compose("neptune", given("neptune", "filters.static.after=embed", "embed=none")))
    with pytest.raises(UserError, match=r"filters\.static\.after='embed'"):
        job()


@pytest.mark.parametrize(
    ("choice", "lines"),
    [
        ("embed=none", 0),
        ("embed=efficientnet", 0),
        ("embed=minilm", 1),
        ("embed=siglip", 1),
        ("+experiment=api", 1),
    ],
)
def test_make_says_which_vectors_it_leaves_out(
    choice: str, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object) -> None:
        raise UserError("before any work")

    monkeypatch.setattr(JobSettings, "open", stop)
    job = build(compose("make", given("make", choice)))
    with pytest.raises(UserError, match="before any work"):
        job()
    assert capsys.readouterr().err.count("embed=efficientnet") == lines
