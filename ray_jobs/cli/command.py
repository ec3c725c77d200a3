"""The command `mustsee`: any job of the checkout that this package stands in, from any folder.

    mustsee neptune videos=videos out=runs/mine        what python -m ray_jobs.neptune does there
    mustsee doctor                                    what this machine has, and what it lacks
    eval "$(mustsee completion bash)"                 names, keys and choices by the Tab key

`pip install -e .` of a checkout installs it. Relative paths are the caller's. A wheel holds the
library and the judge's client alone, and says so. Exit codes are those of the jobs.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

from ray_jobs.cli.jobs import ROOT, jobs
from ray_jobs.cli.shells import SCRIPTS

FOLDERS = ("actors", "benchmarks", "loopback", "mustsee", "ray_jobs", "serve")
FIRST = {  # what most begin with
    "make questions of your videos": "neptune videos=FOLDER out=runs/mine",
    "see them in a browser": "report out=runs/mine serve=true",
    "test a model on them": "evaluate questions=runs/mine videos=FOLDER answer=openai llm=openai "
    "out=runs/test",
}
SECTIONS = {  # --help lists the jobs by what they are for
    "make questions": ("neptune", "cinepile", "egoschema", "mlvu"),
    "look at them, check them, pass them on": ("report", "rate", "export"),
    "test models and datasets": ("evaluate", "audit", "certificate"),
    "set up, train, measure": (),  # all others
}


def main() -> None:
    """Run what the command line asks for, and exit."""
    sys.exit(run(sys.argv[1:], Path.cwd()))


def run(given: Sequence[str], here: Path, root: Path = ROOT) -> int:
    """The exit code; a job exits by itself."""
    name = given[0] if given else "--help"
    if name == "--version":
        from mustsee import __version__

        print(__version__)
        return 0
    known = jobs(root)
    if name in ("--help", "-h", "help"):
        print(help_text(known))
        return 0
    if not known:
        return _say(
            f"{name!r} needs a checkout, and {root} holds the library and the judge's client alone "
            "(import mustsee): in a clone of the project, pip install -e . adds the jobs"
        )
    if name != "completion" and name not in known:
        near = difflib.get_close_matches(name, [*known, "completion"], n=1)
        hint = f"did you mean {near[0]!r}?" if near else "mustsee --help lists them"
        return _say(f"there is no job {name!r}; {hint}")
    if name == "completion":
        return _completion(given[1:], root)
    hiding = [f for f in FOLDERS if (here / f / "__init__.py").exists()] if here != root else []
    if hiding:  # Ray's workers look for code in the caller's folder first
        return _say(
            f"{here} has a package {hiding[0]!r} of its own, which would hide the command's: run "
            "it from another folder (a checkout's own jobs are python -m ray_jobs.NAME)"
        )
    sys.path.insert(0, str(root))
    sys.argv = [f"mustsee {name}", *given[1:]]
    from ray_jobs.cli.launch import launch

    launch(name)
    raise AssertionError("launch() exits")


def help_text(known: dict[str, str]) -> str:
    """What `--help` prints."""
    if not known:
        listed = ["this is the library alone; a checkout (pip install -e .) has the jobs"]
    else:
        listed = ["to begin with:"]
        listed += [f"  {what:<30} mustsee {command}" for what, command in FIRST.items()]
        others = known.keys() - {name for names in SECTIONS.values() for name in names}
        for title, names in SECTIONS.items():
            of = [name for name in names or sorted(others) if name in known]
            listed += ["", f"{title}:", *(f"  {name:<16} {known[name]}" for name in of)]
    return "\n".join(
        [
            "mustsee JOB key=value ...   run a job; mustsee JOB --help explains its keys",
            "mustsee completion SHELL    completion for bash or zsh",
            "mustsee --version",
            "",
            *listed,
        ]
    )


def _completion(given: Sequence[str], root: Path) -> int:
    if given and given[0] == "words":
        sys.path.insert(0, str(root))
        from ray_jobs.cli.completion import words

        print("\n".join(words(given[1:])))
        return 0
    if list(given) not in [[shell] for shell in SCRIPTS]:
        return _say(f"completion for which shell? One of {', '.join(SCRIPTS)}")
    print(SCRIPTS[given[0]])
    return 0


def _say(message: str) -> int:
    print(f"mustsee: {message}", file=sys.stderr)
    return 2
