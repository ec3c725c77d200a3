"""Probe: what a server sees, hears, orders, times and counts of what it is sent.

    python -m ray_jobs.probe base_url=http://HOST:PORT/v1 key_env=null model=M out=O

It sends cards with random numerals as images and as videos, spoken digits and tones, and writes
probe.json and probe.html. `mustsee evaluate` reads the former (docs/probe.md). The stage `probe` of
other jobs, which reads the containers of videos, is something else.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

import mustsee
from actors.calls.parameters import Learned, read
from actors.calls.trial import is_local_address
from actors.llm.probe_asking import ProbeAsker, ProbedModel, plan_calls
from actors.llm.probe_server import ServerProbe
from actors.part import LlmConfig
from mustsee.calls.models import find_model, model_table
from mustsee.calls.refusals import SCHEMA
from mustsee.calls.usage import price
from mustsee.errors import UserError
from mustsee.files.store import Store, is_local
from mustsee.run import outputs
from mustsee.run.record import Snapshot
from mustsee.server_probe import summary
from mustsee.server_probe.findings import Findings, price_hour
from mustsee.server_probe.record import FILE, PAGE, ProbeRecord, RefusedParameter, keep_in_store
from mustsee.server_probe.steps import ProbeSettings
from mustsee.server_probe.summary import summary_lines
from ray_jobs.cli.launch import launch
from ray_jobs.runtime import trials
from ray_jobs.runtime.asked_models import Listings, model_notes
from ray_jobs.runtime.heartbeat import show_step
from ray_jobs.runtime.provenance import versions
from ray_jobs.runtime.run import JobSettings

RECIPE = "probe"
ALL_FAILED = 3  # exit code where the server answers nothing
CLIP = "probe.mp4"  # the clip whose file URL is sent


@dataclass(frozen=True, kw_only=True)
class ProbeJob:
    """`conf/probe.yaml` explains the fields."""

    run: JobSettings
    settings: ProbeSettings
    llm: LlmConfig
    model: str | None

    def __call__(self) -> int:
        settings = self.settings
        model = ProbedModel.of(self.llm, self.model, settings.failures, settings.patience)
        self.check(model)
        console = Console()
        for line in plan_calls(model, settings, self.run.seed).lines(model.place):
            console.print(Text(line), soft_wrap=True)
        if self.run.rehearsal.dry_run:
            return 0
        with self.run.open(RECIPE, light=True) as running:
            mark = hashlib.sha256(str(time.time_ns()).encode()).hexdigest()[:8]
            asker = ProbeAsker(model, running.model(model), mark, settings.max_tokens)
            found = asyncio.run(self.probe(model, asker).run())
            if found.ended:
                console.print(Text(f"nothing was measured: {found.ended}"), soft_wrap=True)
                return ALL_FAILED
            record = self.record(model, found, asker, running.session.snapshot())
            self.publish(record)
        for text, style in summary_lines(record.plain()):
            console.print(Text(text, style=style), soft_wrap=True)
        console.print(Text(f"{self.run.out}/{PAGE}"), soft_wrap=True)
        return 0

    def check(self, model: ProbedModel) -> None:
        """Raise UserError for what cannot work, before any call."""
        trials.check(model, self.run.budget_usd, endpoints=not self.run.rehearsal.dry_run)
        if not is_local(self.run.out):
            raise UserError(f"out={self.run.out!r}: a probe needs a local folder")
        if self.settings.file_urls and not is_local_address(model.base_url):
            raise UserError(
                f"file_urls=true: {model.base_url} is not on this machine, so that its server "
                "cannot read the file; leave file_urls= out"
            )

    def probe(self, model: ProbedModel, asker: ProbeAsker) -> ServerProbe:
        file = Path(self.run.out) / CLIP if self.settings.file_urls else None
        return ServerProbe(
            asker, self.settings, self.run.seed, part=model.video.part, file=file, show=show_step
        )

    def record(
        self, model: ProbedModel, found: Findings, asker: ProbeAsker, snapshot: Snapshot
    ) -> ProbeRecord:
        """Compose what was found with what the table of models and the store know."""
        tokens = found.count_tokens(model.model, model.detail)
        rate, rate_is_least = found.rate
        learned = read(Store(self.run.store), model)
        limits = {name: quota.per_minute for name, quota in asker.quotas.items()}
        return ProbeRecord(
            model=model.model, base_url=model.base_url, mustsee=mustsee.__version__,
            taken=datetime.now(UTC).isoformat(timespec="seconds"), seed=self.run.seed,
            replied=list(model.log.models), faults=found.faults, notes=found.notes,
            images=found.images, videos=found.videos, part=found.part,
            rate=rate, rate_is_least=rate_is_least, longest=found.longest,
            longest_is_least=found.longest == self.settings.longest_seconds,
            times=found.times, sounds=found.sounds, tokens=tokens,
            structured=describe_structure(model, found, learned),
            logprobs=found.logprobs,
            parameters=[RefusedParameter(name=name, instead=refusal.instead, says=refusal.said)
                        for name, refusal in sorted(learned.refused.items())],
            parameters_tried=sorted({name.partition("=")[0] for name in
                                     learned.taken | learned.refused.keys()}),
            prefix_tokens=next((u.prompt for u in found.prefixes), None),
            cached=[u.cached for u in found.prefixes],
            ramp=found.ramp, limits=limits or None,
            price=price_hour(tokens, model.known_price, price_source(model)),
            shutdown=describe_end(model),
            served=[*model_notes(model, Listings().get(model), datetime.now(UTC).date())],
            calls=asker.sent, usd=snapshot.llm.total.usd,
        )  # fmt: skip

    def publish(self, record: ProbeRecord) -> None:
        """Write the files of `out`, and keep the probe in the store."""

        def write(folder: Path) -> Mapping[str, Any]:
            (folder / FILE).write_text(record.dump(), encoding="utf-8")
            (folder / PAGE).write_text(summary.render(record.plain()), encoding="utf-8")
            return {"recipe": RECIPE, "config": self.run.config, "versions": versions()}

        outputs.publish(self.run.out, write)
        keep_in_store(Store(self.run.store), record)


def describe_structure(model: ProbedModel, found: Findings, learned: Learned) -> str:
    """Return whether schemas are kept to, refused, or not sent at all."""
    if model.structured == "none":
        return "off"
    return "refused" if SCHEMA in learned.refused else found.structured


def price_source(model: ProbedModel) -> str:
    """Say where the price of a model comes from."""
    if price(model.prices, model.model) is not None:
        return "prices="
    if find_model(model.model, model.base_url) is not None:
        return str(model_table())
    return "no key, no bill" if model.key_env is None else "not in the table of models"


def describe_end(model: ProbedModel) -> str | None:
    """The day on which a model stops, by the table of models."""
    known = model.table_row
    return known.shutdown.isoformat() if known is not None and known.shutdown is not None else None


if __name__ == "__main__":
    launch("probe")
