"""The jobs from Python: `import mustsee; mustsee.make("videos", out="runs/mine")`.

The same jobs, keys and files as the command line has, in this process:

    import mustsee

    made = mustsee.make("videos", out="runs/mine", llm="openai", **{"llm.model": "gpt-6-luna"})
    made.questions[0].question
    made.to_hf()                  # a datasets.Dataset
    made.report()                 # the page, to be opened in a browser
"""

from __future__ import annotations

from typing import Any

from mustsee.errors import MustseeError
from mustsee.layouts.detect import Dataset
from ray_jobs.cli import early
from ray_jobs.cli.build import build
from ray_jobs.cli.compose import compose, format_hydra_value


def make(videos: str, *, out: str, **settings: Any) -> Dataset:
    """Make questions of videos, as `mustsee make` does, and return them. See `run_job`."""
    return run_job("make", videos=videos, out=out, **settings)


def run_job(job: str, *overrides: str, **settings: Any) -> Dataset:
    """Run a job, such as "make" or "evaluate", and return what it wrote in its folder `out`.

    `settings`: the keys of its command line: strings, numbers, booleans, None, lists and mappings.
    A key with a dot goes into a mapping: `**{"llm.model": "gpt-6-luna"}`. `overrides`: further
    words of the command line, such as "+experiment=gemini". Raises UserError for a wrong key, value
    or input, before any work, and MustseeError if the job fails. A second run computes nothing
    again.
    """
    given = [*overrides, *(f"{key}={format_hydra_value(value)}" for key, value in settings.items())]
    config = compose(job, given)
    early.check(config)
    if code := int(build(config)() or 0):
        raise MustseeError(f"{job} ended with exit code {code}; see {config.out}/problems.parquet")
    return Dataset(str(config.out))
