"""The files for clusters are valid for Ray, Ray Serve and KubeRay, have the resources of the
presets, and open no port to the world.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import hydra
import jsonschema
import pytest
import yaml
from omegaconf import OmegaConf

from actors.engine.hardware import ResourceDemand, lacking_resources
from mustsee.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
LAUNCHER = [ROOT / "cluster.yaml", ROOT / "deploy" / "gcp.yaml"]
SERVE = [ROOT / "deploy" / "judge.yaml", ROOT / "deploy" / "llm.yaml"]
# KubeRay 1.6's fields (its CRD reference), as far as they are used or likely to be
KUBERAY = {
    "RayJob": "entrypoint runtimeEnvYAML submissionMode shutdownAfterJobFinishes backoffLimit "
    "ttlSecondsAfterFinished activeDeadlineSeconds jobId metadata entrypointNumCpus suspend "
    "entrypointNumGpus entrypointResources submitterPodTemplate submitterConfig rayClusterSpec",
    "RayService": "serveConfigV2 rayClusterConfig upgradeStrategy serveService suspend "
    "excludeHeadPodFromServeSvc rayClusterDeletionDelaySeconds",
    "cluster": "rayVersion authOptions enableInTreeAutoscaling autoscalerOptions headGroupSpec "
    "workerGroupSpecs gcsFaultToleranceOptions headServiceAnnotations suspend managedBy",
    "head": "serviceType rayStartParams template headService enableIngress resources labels",
    "worker": "groupName replicas minReplicas maxReplicas numOfHosts rayStartParams template "
    "idleTimeoutSeconds suspend scaleStrategy resources labels",
}  # fmt: skip


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@pytest.mark.parametrize("path", LAUNCHER, ids=lambda p: p.name)
def test_the_cluster_launcher_reads_the_file(path: Path) -> None:
    import ray.autoscaler

    schema = Path(ray.autoscaler.__file__).with_name("ray-schema.json")
    jsonschema.validate(read(path), json.loads(schema.read_text()))


@pytest.mark.parametrize("path", LAUNCHER, ids=lambda p: p.name)
def test_ray_starts_with_a_token_and_a_private_dashboard(path: Path) -> None:
    config = read(path)
    starts = [
        command
        for key in ("head_start_ray_commands", "worker_start_ray_commands")
        for command in config[key]
        if "ray start" in command
    ]
    assert starts
    assert all("RAY_AUTH_MODE=token" in command for command in starts)
    (head,) = [command for command in starts if "--head" in command]
    assert "--dashboard-host=127.0.0.1" in head
    assert "0.0.0.0" not in path.read_text()


def test_the_local_cluster_stops_no_other_ray() -> None:
    commands = read(ROOT / "cluster.yaml")["head_start_ray_commands"]
    assert not any("ray stop" in command for command in commands)
    (folder,) = {f for c in commands for f in re.findall(r"--temp-dir=(\S+)", c)}
    (pattern,) = {p for c in commands for p in re.findall(r"pkill -f '([^']+)'", c)}
    assert f"install -d -m 700 {Path(folder).parent}" in commands
    ours = f"/ray/raylet --session_dir={folder}/session_2026-01-01_00-00-00_1_1 --node=1"
    assert re.search(pattern, ours)
    for other in ("/ray/raylet --session_dir=/tmp/ray/session_2026_1", *commands):
        assert not re.search(pattern, other)


def test_the_node_types_exist_in_the_cloud() -> None:
    from ray._private.accelerators import TPUAcceleratorManager

    config = read(ROOT / "deploy" / "gcp.yaml")
    types = config["available_node_types"]
    assert config["head_node_type"] in types
    assert {"head", "decode", "gpu", "tpu"} == set(types)
    assert sum(t.get("max_workers", 0) for t in types.values()) <= config["max_workers"]
    for name, node in types.items():
        place = node["node_config"]
        if name == "tpu":
            chips = node["resources"]["TPU"]
            assert "machineType" not in place
            assert TPUAcceleratorManager.is_valid_tpu_accelerator_type(place["acceleratorType"])
            assert place["acceleratorType"] == f"v5litepod-{chips}"
            assert chips in (1, 4, 8)  # chips of one host
        else:
            assert place["machineType"]
            assert any(disk["boot"] for disk in place["disks"])
    assert any(to.endswith("/.ray/auth_token") for to in config["file_mounts"])


def nodes(path: Path) -> list[dict[str, float]]:
    """All nodes of a cluster at its largest size."""
    if path.name == "gcp.yaml":
        types = read(path)["available_node_types"].values()
        return [t["resources"] for t in types for _ in range(t.get("max_workers", 1))]
    cluster = next(cluster for kind, _, cluster in kuberay() if kind == "RayJob")
    groups = [(1, cluster["headGroupSpec"])]
    groups += [(g["maxReplicas"], g) for g in cluster["workerGroupSpecs"]]
    return [limits(group) for count, group in groups for _ in range(count)]


def limits(group: Any) -> dict[str, float]:
    given_fields = container(group)["resources"]["limits"]
    names = {"cpu": "CPU", "nvidia.com/gpu": "GPU", "google.com/tpu": "TPU"}
    return {names[k]: float(v) for k, v in given_fields.items() if k in names}


def most(workers: Any) -> int:
    return workers if isinstance(workers, int) else workers["max"]


@pytest.mark.parametrize("preset", ["gpu", "tpu"])
@pytest.mark.parametrize("file", ["gcp.yaml", "kuberay.yaml"])
def test_a_cluster_can_grow_to_the_resources_of_its_preset(file: str, preset: str) -> None:
    assert lacking_resources(demands(preset), nodes(ROOT / "deploy" / file)) is None


def demands(preset: str) -> list[ResourceDemand]:
    """The resources of a preset's stages, and those that it leaves free for serve/llm.py."""
    from ray_jobs.cli.launch import compose

    cluster = compose("neptune", [f"+experiment={preset}", "videos=x", "out=y"]).cluster
    cluster = hydra.utils.instantiate(cluster, _convert_="all")
    stages = cluster.stages
    pipeline = ("probe", "look", "hear", "caption", "embed", "ask", "vet")
    stage_demands = [
        ResourceDemand(
            name=name,
            key=name,
            count=most(stages[name].workers),
            resources={
                resource: float(getattr(stages[name], key))
                for resource, key in (("CPU", "cpus"), ("GPU", "gpus"), ("TPU", "tpus"))
                if getattr(stages[name], key)
            },
        )
        for name in pipeline
    ]
    assert bool(cluster.reserved) == (preset == "gpu")  # left free for serve/llm.py
    if cluster.reserved:
        held = dict(cluster.reserved)
        stage_demands.append(
            ResourceDemand(name="reserved", key="reserved", count=1, resources=held)
        )
    return stage_demands


def test_the_default_ray_job_needs_one_node_and_no_accelerator() -> None:
    spec, cluster = next((spec, cluster) for kind, spec, cluster in kuberay() if kind == "RayJob")
    (preset,) = re.findall(r"\+experiment=(\w+)", spec["entrypoint"])
    stage_demands = [d for d in demands(preset) if d.name not in ("look", "hear")]
    assert {r for d in demands(preset) for r in d.resources} == {"CPU"}
    assert lacking_resources(stage_demands, [limits(cluster["headGroupSpec"])]) is None
    assert sum(g["replicas"] for g in cluster["workerGroupSpecs"]) == 0


IMAGE = (ROOT / "deploy" / "Dockerfile").read_text()


def test_every_image_is_built_by_the_same_steps() -> None:
    stages = re.split(r"^FROM ", IMAGE, flags=re.M)[1:]
    names = [re.search(r" AS (\w+)\n", stage).group(1) for stage in stages]
    assert names == ["cpu", "tpu", "gpu", "llm"]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for stage in stages:
        (wanted,) = re.findall(r"^RUN sh deploy/install (\S+)", stage, re.M)
        assert set(wanted.split(",")) <= set(extras["optional-dependencies"])
    assert '"ray[llm]==' in stages[-1]
    clean = (ROOT / "deploy" / "clean-root").read_text()
    assert re.search(r"sh deploy/install \S+ ", clean)
    versions = {*re.findall(r"ray(?:\[llm\])?(?:==|:)([\d.]+)", IMAGE + install())}
    assert versions == {kuberay_version()}
    for name in ("install", "clean-root"):
        subprocess.run(["sh", "-n", str(ROOT / "deploy" / name)], check=True)


def install() -> str:
    return (ROOT / "deploy" / "install").read_text()


def kuberay_version() -> str:
    (version,) = {cluster["rayVersion"] for _, _, cluster in kuberay()}
    return version


def test_an_image_holds_the_project_and_nothing_of_this_machine(tmp_path: Path) -> None:
    """The copy uses the patterns of tar, as deploy/clean-root does."""
    for name in (".git/config", ".venv/x", "runs/a", "mustsee/__pycache__/a.pyc", "tests/a.py",
                 "mustsee/judge/a.py", "conf/a.yaml", "examples/videos/a.mp4", "pyproject.toml",
                 "mustsee/run/a.py", "constraints.txt", "deploy/install", "serve/judge.py",
                 "prompts/judge/x.j2", "docs/runs.md", "README.md"):  # fmt: skip
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    clean = (ROOT / "deploy" / "clean-root").read_text()
    steps = re.findall(r"^(?:sed|tar) .*", clean, re.M)
    (tmp_path / "tree" / ".dockerignore").write_text((ROOT / ".dockerignore").read_text())
    root = tmp_path / "root"
    (root / "mustsee").mkdir(parents=True)
    for step in steps:
        subprocess.run(["sh", "-euc", step], check=True, cwd=tmp_path / "tree",
                       env={**os.environ, "root": str(root)})  # fmt: skip
    tree = root / "mustsee"
    assert {str(p.relative_to(tree)) for p in tree.rglob("*") if p.is_file()} == {
        "mustsee/judge/a.py", "conf/a.yaml", "examples/videos/a.mp4", "pyproject.toml",
        "mustsee/run/a.py", "constraints.txt", "deploy/install", "serve/judge.py",
        "prompts/judge/x.j2", "docs/runs.md", "README.md",
    }  # fmt: skip


def kuberay() -> Iterator[tuple[str, Any, Any]]:
    """The kind, the spec and its cluster, of each document."""
    for document in yaml.safe_load_all((ROOT / "deploy" / "kuberay.yaml").read_text()):
        assert document["apiVersion"] == "ray.io/v1"
        assert re.fullmatch(r"[a-z0-9-]{1,47}", document["metadata"]["name"])
        spec = document["spec"]
        inside = {"RayJob": "rayClusterSpec", "RayService": "rayClusterConfig"}[document["kind"]]
        yield document["kind"], spec, spec[inside]


def container(group: Any) -> Any:
    (one,) = group["template"]["spec"]["containers"]
    return one


def check_fields(given_fields: Mapping[str, Any], kind: str) -> None:
    assert set(given_fields) <= set(KUBERAY[kind].split()), f"{kind}: no such field"


def test_the_files_have_the_fields_of_kuberay() -> None:
    kinds = []
    for kind, spec, cluster in kuberay():
        kinds.append(kind)
        check_fields(spec, kind)
        check_fields(cluster, "cluster")
        check_fields(cluster["headGroupSpec"], "head")
        assert cluster["authOptions"] == {"mode": "token"}
        assert cluster["headGroupSpec"]["serviceType"] == "ClusterIP"
        for group in cluster["workerGroupSpecs"]:
            check_fields(group, "worker")
            assert 0 <= group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
        for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
            resources = container(group)["resources"]
            assert resources["requests"] == resources["limits"]
            mounted = {m["name"] for m in container(group).get("volumeMounts", ())}
            assert mounted <= {v["name"] for v in group["template"]["spec"].get("volumes", ())}
    assert kinds == ["RayJob", "RayService"]


def test_the_ray_job_runs_an_existing_job() -> None:
    from ray_jobs.cli.launch import build, compose

    spec = next(spec for kind, spec, _ in kuberay() if kind == "RayJob")
    assert spec["submissionMode"] in ("K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode")
    assert spec["shutdownAfterJobFinishes"] is True
    assert isinstance(yaml.safe_load(spec["runtimeEnvYAML"]), dict)
    job, given = re.search(r"python -m ray_jobs\.(\w+) ([^\"]+)", spec["entrypoint"]).groups()
    assert callable(build(compose(job, given.split())))


def serve_configs() -> Iterator[Any]:
    yield from map(read, SERVE)
    yield yaml.safe_load(next(s["serveConfigV2"] for k, s, _ in kuberay() if k == "RayService"))


def test_serve_reads_its_configs_and_their_settings() -> None:
    from ray.serve.schema import ServeDeploySchema

    import serve.judge
    import serve.llm

    kinds: Mapping[str, Any] = {
        "serve.judge:app": serve.judge.JudgeServeSettings,
        "serve.llm:app": serve.llm.LlmServeSettings,
    }
    for config in serve_configs():
        for application in ServeDeploySchema.model_validate(config).applications:
            settings = kinds[application.import_path](**application.args)
            if application.import_path == "serve.judge:app":
                serve.judge.configure_judge(settings)


def test_the_arguments_for_ray_serve_llm_are_valid() -> None:
    # ray.serve.llm itself needs vLLM at import.
    from ray.llm._internal.serve.core.configs.llm_config import LLMConfig

    from serve.llm import LlmServeSettings, arguments

    llm_arguments = arguments(
        LlmServeSettings(model="m/m", gpus=2, max_replicas=3, engine='{"seed": 1}')
    )
    assert LLMConfig(**llm_arguments).model_id == "mustsee-llm"
    assert llm_arguments["engine_kwargs"]["tensor_parallel_size"] == 2
    assert llm_arguments["engine_kwargs"]["seed"] == 1
    assert llm_arguments["engine_kwargs"]["trust_remote_code"] is False
    assert llm_arguments["engine_kwargs"]["enable_prefix_caching"] is True
    assert "language_model_only" not in llm_arguments["engine_kwargs"]
    guesser = arguments(LlmServeSettings(model="m/m", text_only=True))
    assert guesser["engine_kwargs"]["language_model_only"] is True
    client = OmegaConf.load(ROOT / "conf" / "llm" / "serve.yaml")
    assert client["model"] == llm_arguments["model_loading_config"]["model_id"]
    for engine in ('{"trust_remote_code": true}', "[1]", "{"):
        with pytest.raises(UserError, match="engine="):
            arguments(LlmServeSettings(model="m", engine=engine))


def test_a_missing_vllm_is_reported() -> None:
    import importlib.util

    if importlib.util.find_spec("vllm"):
        pytest.skip("vllm is installed")
    from serve.llm import LlmServeSettings, app

    with pytest.raises(UserError, match="vllm"):
        app(LlmServeSettings(model="m"))
