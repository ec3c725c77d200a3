"""A small job to be killed: every row makes `CALLS` calls to an endpoint at once.

python -m tests.support.asking_job OUT STORE URL WORKERS [BUDGET]

WORKERS: 2, or 1-2 for at least 1 and at most 2. BUDGET: in USD.
"""

from __future__ import annotations

import sys

from actors.engine.hardware import Hardware
from actors.llm.openai import OpenAI
from benchmarks.llm import CallsOnly
from mustsee.errors import MustseeError
from mustsee.files import schemas
from mustsee.records import Video
from ray_jobs.runtime.cluster import Cluster
from ray_jobs.runtime.run import JobSettings

ROWS, CALLS = 4, 25


def main(out: str, store: str, url: str, workers: str, budget: str | None = None) -> int:
    fewest, _, most = workers.partition("-")
    count = int(most or fewest)  # A worker takes twice as many rows as it works on.
    pool = {"min": int(fewest), "max": count}
    hardware = {"ask": Hardware(workers=pool, cpus=1.0, concurrency=ROWS // count**2)}
    usd = None if budget is None else float(budget)
    run = JobSettings(
        out=out, store=store, cluster=Cluster(stages=hardware), try_endpoints=False,
        budget_usd=usd, config={"budget_usd": usd},
    )  # fmt: skip
    model = OpenAI(model="m", base_url=url, key_env=None, prices={"m": (1.0, 2.0)})
    with run.open("asking") as running:
        running.read(schemas.table([Video(video_id=f"v{i}", uri="x") for i in range(ROWS)], Video))
        running.stage("ask", CallsOnly(llm=model, calls=CALLS, rows=1))
        return running.publish()


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except MustseeError as error:
        sys.exit(f"mustsee: {error}")
