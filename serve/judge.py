"""The answer-equivalence judge on Ray Serve.

    serve run serve.judge:app                      the embedded judge, on 127.0.0.1:8000
    serve run serve.judge:app judge=gem engine.path=/models/gem record=/models/gem/record.json

There are two deployments. `Judge` holds the model; its replicas scale, and data actors may call it
through a handle. `Front` serves HTTP. Keys come from MUSTSEE_JUDGE_KEYS or from the file named by
MUSTSEE_JUDGE_KEYS_FILE. Without keys the app refuses to start, unless `no_auth=loopback`. Keys that
may only read `/metrics` come from MUSTSEE_JUDGE_METRICS_KEYS or its _FILE.
"""

# Annotations must not be postponed: Serve reads the type of the argument of `app` at run time.
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel, ConfigDict
from ray import serve
from ray.serve import Application
from ray.serve.handle import DeploymentHandle

from mustsee.errors import Transient, UserError
from mustsee.judge.judge import JudgeConfig, JudgeItem, Score
from serve.judge_batch import Full, LocalBackend
from serve.judge_guard import Keys, RequestLimits
from serve.judge_http import create_app

CONF = Path(__file__).resolve().parent.parent / "conf"
# Serve forwards a request with the first byte of its headers, so its limit would count bodies that
# never arrive. The app counts by itself (`judge_guard`), and this limit is higher than the app's.
MAX_CONNECTIONS = 100_000
BURST_REQUESTS = 64  # requests that Serve's proxy may queue; it takes some 5 ms to forward one


class JudgeServeSettings(BaseModel):
    """The settings of `serve run serve.judge:app key=value` and of the `args` of a Serve config.

    `judge`: a file of conf/judge. `engine.KEY`, `record` and `uncalibrated` override its keys, and
    `base_url` and `key_env` set the endpoint of a judge that calls one.
    `no_auth`: "loopback" serves without keys, to callers on this machine only.
    `seconds`: longest time of a request. One that is expected to take more than half of it is
    refused at once (429); one that takes longer is given up (503).
    `cpus`, `gpus`, `tpus`: what a replica asks of the cluster; chips share GEM's weights.
    `arrival`: seconds in which a body must be complete (408). It does not count as waiting before.
    `waiting`: requests at once. With several keys, no key may use more than it leaves free.
    `budget`: tokens in one batch. `drain`: seconds in which a stopping replica may finish.
    """

    model_config = ConfigDict(extra="allow")
    judge: str = "mini"
    no_auth: str | None = None
    replicas: int = 1
    max_replicas: int | None = None
    cpus: float = 1.0
    gpus: float = 0.0
    tpus: int = 0
    budget: int = 16384
    items: int = 512
    body: int = 4_000_000
    seconds: float = 30.0
    arrival: float = 10.0
    waiting: int = 256
    drain: float = 30.0


@serve.deployment(name="Judge")
class Replica:
    """One loaded judge. From a data actor: `serve.get_deployment_handle("Judge", "judge")
    .score.remote(items)` with items as plain dicts.
    """

    def __init__(self, name: str, config: JudgeConfig, settings: JudgeServeSettings) -> None:
        judge = config.open()
        self._backend = LocalBackend(
            judge, name, budget=settings.budget, patience=settings.seconds / 2
        )

    async def describe(self) -> dict[str, Any]:
        return dict(await self._backend.describe())

    async def score(
        self, items: list[dict[str, Any]], threshold: float | None = None
    ) -> dict[str, Any]:
        """Return `{"scores": [...]}`, or `{"full": seconds}` when overloaded.

        Overload is a value because Serve would log an exception as a failure of the replica.
        """
        parsed = [_item(plain) for plain in items]
        try:
            return {"scores": [asdict(s) for s in await self._backend.score(parsed, threshold)]}
        except Full as full:
            return {"full": full.retry_after}

    async def ready(self) -> str | None:
        return await self._backend.ready()

    async def __del__(self) -> None:
        await self._backend.drain()


def _item(plain: Mapping[str, Any]) -> JudgeItem:
    fields: dict[str, Any] = {**plain, "references": tuple(plain["references"])}
    return JudgeItem(**fields)


class HandleBackend:
    """A judge behind a Serve handle."""

    def __init__(self, handle: DeploymentHandle[Any]) -> None:
        self._handle = handle
        self._description: Mapping[str, Any] | None = None

    async def describe(self) -> Mapping[str, Any]:
        description = self._description
        if description is None:
            description = self._description = await self._call("describe")
        return description

    async def score(self, items: list[JudgeItem], threshold: float | None) -> list[Score]:
        reply = await self._call("score", [asdict(item) for item in items], threshold)
        if "full" in reply:
            raise Full("the judge has more work than it can take", reply["full"])
        return [Score(**row) for row in reply["scores"]]

    async def ready(self) -> str | None:
        return await self._call("ready")

    async def _call(self, method: str, *arguments: Any) -> Any:
        from ray.exceptions import RayActorError, RayError
        from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError

        try:
            return await self._handle.options(method_name=method).remote(*arguments)
        except BackPressureError:
            raise Full("the judge has more work than it can take", 2.0) from None
        except (RayActorError, DeploymentUnavailableError):
            raise Transient(
                "the replica that had this request was lost: send it again", 1.0
            ) from None
        except RayError as error:
            raise Transient(f"the judge failed: {type(error).__name__}", 1.0) from error


@serve.deployment(name="Front")
@serve.ingress()  # pyright: ignore[reportUntypedClassDecorator]
class Front:
    def __init__(self, judge: DeploymentHandle[Any], keys: Keys, limits: RequestLimits) -> None:
        self._arguments = HandleBackend(judge), keys, limits

    def __serve_build_asgi_app__(self) -> Any:
        return create_app(*self._arguments)


def keys_from_environment(no_auth: str | None) -> Keys:
    """Read the keys. Raises UserError without keys, unless `no_auth` is "loopback"."""
    if no_auth not in (None, "loopback"):
        raise UserError(f"no_auth={no_auth!r}: must be loopback, or unset")
    keys = Keys.read(_read_keys("MUSTSEE_JUDGE_KEYS"), _read_keys("MUSTSEE_JUDGE_METRICS_KEYS"))
    if not keys.digests and no_auth is None:
        raise UserError(
            "the judge has no keys: set MUSTSEE_JUDGE_KEYS (several with commas) or "
            "MUSTSEE_JUDGE_KEYS_FILE, or set no_auth=loopback to serve only this machine"
        )
    return keys


def _read_keys(name: str) -> str:
    """The text of a variable and of the file that NAME_FILE names. Raises UserError."""
    text, path = os.environ.get(name, ""), os.environ.get(f"{name}_FILE")
    if path:
        try:
            text += "\n" + Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise UserError(f"{name}_FILE={path!r}: {error.strerror}") from None
    return text


def configure_judge(settings: JudgeServeSettings) -> JudgeConfig:
    """The judge of conf/judge with the overrides of the settings. Raises UserError."""
    import hydra
    from hydra.errors import MissingConfigException
    from omegaconf import OmegaConf

    try:
        with hydra.initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
            config = hydra.compose("address", overrides=[f"+judge={settings.judge}"])
    except MissingConfigException as error:
        choices = ", ".join(error.options or ())
        raise UserError(f"judge={settings.judge!r} is not a choice; choices: {choices}") from None
    OmegaConf.set_struct(config, False)
    for key, value in (settings.model_extra or {}).items():
        node = config if key in ("base_url", "key_env") else config.judge
        if node is not config and key not in ("record", "uncalibrated") and key[:7] != "engine.":
            raise UserError(
                f"there is no setting {key!r}: see `JudgeServeSettings` in serve/judge.py"
            )
        typed = OmegaConf.from_dotlist([f"{key}={value}"]) if isinstance(value, str) else None
        OmegaConf.update(node, key, OmegaConf.select(typed, key) if typed else value)
    # The default path of the record depends on the engine's, so only engine keys are reported.
    missing = [k for k in _missing(config.judge) if k.startswith("engine.")]
    if missing:
        raise UserError(f"{missing[0]}= is not set: judge={settings.judge} needs it")
    return hydra.utils.instantiate(config.judge, _convert_="all")


def _missing(config: Any, place: str = "") -> list[str]:
    """The keys that are still `???`."""
    from omegaconf import DictConfig, OmegaConf

    missing: list[str] = []
    for key in config:
        if OmegaConf.is_missing(config, key):
            missing.append(f"{place}{key}")
        elif not OmegaConf.is_interpolation(config, key) and isinstance(config[key], DictConfig):
            missing += _missing(config[key], f"{place}{key}.")
    return missing


def app(settings: JudgeServeSettings) -> Application:
    """The application for `serve run`, `serve deploy` and `serve.run`.

    Raises ClickException for wrong settings, which the command prints as one line.
    """
    try:
        keys, config = keys_from_environment(settings.no_auth), configure_judge(settings)
    except UserError as error:
        raise click.ClickException(str(error)) from None
    return build_app(config, settings, keys)


def build_app(config: JudgeConfig, settings: JudgeServeSettings, keys: Keys) -> Application:
    """The application that serves a configured judge."""
    scaling: dict[str, Any] = {"num_replicas": settings.replicas}
    if settings.max_replicas is not None:
        scaling = {
            "autoscaling_config": {
                "min_replicas": settings.replicas,
                "max_replicas": settings.max_replicas,
                "target_ongoing_requests": 4,
            }
        }
    judge = Replica.options(
        **scaling,
        ray_actor_options={
            "num_cpus": settings.cpus,
            "num_gpus": settings.gpus,
            "resources": {"TPU": settings.tpus} if settings.tpus else {},
        },
        max_ongoing_requests=settings.waiting,
        max_queued_requests=settings.waiting,
        health_check_period_s=1,  # A lost replica is noticed by this check.
        graceful_shutdown_timeout_s=settings.drain,
        max_constructor_retry_count=2,
    ).bind(settings.judge, config, settings)
    limits = RequestLimits(
        body=settings.body,
        items=settings.items,
        seconds=settings.seconds,
        arrival=settings.arrival,
        waiting=settings.waiting,
    )
    return Front.options(
        num_replicas=1,
        ray_actor_options={"num_cpus": min(0.1, settings.cpus)},
        max_ongoing_requests=MAX_CONNECTIONS,
        max_queued_requests=BURST_REQUESTS,
        backpressure_config={"status_code": 429, "retry_after_s": 2},
        graceful_shutdown_timeout_s=settings.drain,
    ).bind(judge, keys, limits)
