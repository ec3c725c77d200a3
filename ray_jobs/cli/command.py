"""The command `mustsee`: runs any job from any folder.

    mustsee neptune videos=videos out=runs/mine       as python -m ray_jobs.neptune in the checkout
    mustsee doctor                                    what this machine has, and what it lacks
    eval "$(mustsee completion bash)"                 names, keys and choices by the Tab key

`pip install -e .` in a checkout installs it, or a wheel.
Relative paths are the caller's. Exit codes are the jobs'.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

from ray_jobs.cli.jobs import ROOT, jobs
from ray_jobs.cli.shells import SCRIPTS

FOLDERS = ("actors", "benchmarks", "loopback", "mustsee", "ray_jobs", "serve")
FIRST = {  # first steps that --help shows
    "make questions of your videos": "make videos=FOLDER out=runs/mine",
    "see them in a browser": "report out=runs/mine serve=true",
    "test a model on them": "evaluate questions=runs/mine videos=FOLDER answer=openai llm=openai "
    "out=runs/test",
}
SECTIONS = {  # jobs by purpose, as --help lists them
    "make questions": ("make", "neptune", "cinepile", "egoschema", "mlvu"),
    "view, rate and export questions": ("report", "rate", "export"),
    "test models and datasets": ("probe", "evaluate", "rescore", "audit", "clean", "certificate"),
    "set up, train, measure": (),  # all other jobs
}


def main() -> None:
    """Run the command line and exit."""
    sys.exit(run(sys.argv[1:], Path.cwd()))


def run(arguments: Sequence[str], folder: Path, root: Path = ROOT) -> int:
    """Return the exit code; a job exits by itself."""
    name = arguments[0] if arguments else "--help"
    if name == "--version":
        from mustsee import __version__

        print(__version__)
        return 0
    all_jobs = jobs(root)
    if name in ("--help", "-h", "help"):
        print(help_text(all_jobs))
        return 0
    if name != "completion" and name not in all_jobs:
        near = difflib.get_close_matches(name, [*all_jobs, "completion"], n=1)
        hint = f"did you mean {near[0]!r}?" if near else "mustsee --help lists them"
        return _say(f"there is no job {name!r}; {hint}")
    if name == "completion":
        return _completion(arguments[1:], root)
    hiding = [f for f in FOLDERS if (folder / f / "__init__.py").exists()] if folder != root else []
    if hiding:  # Ray's workers import from the caller's folder first.
        return _say(
            f"{folder} has its own package {hiding[0]!r}, which would hide the command's: run it "
            "from another folder (the jobs of that checkout are python -m ray_jobs.NAME)"
        )
    sys.path.insert(0, str(root))
    sys.argv = [f"mustsee {name}", *arguments[1:]]
    from ray_jobs.cli.launch import launch

    launch(name)
    raise AssertionError("launch() exits")


def help_text(first_lines: dict[str, str]) -> str:
    """The text of `--help`. `first_lines`: the first line of each job."""
    lines = ["first steps:"]
    lines += [f"  {purpose:<30} mustsee {command}" for purpose, command in FIRST.items()]
    others = first_lines.keys() - {name for names in SECTIONS.values() for name in names}
    for title, names in SECTIONS.items():
        section = [name for name in names or sorted(others) if name in first_lines]
        lines += ["", f"{title}:", *(f"  {name:<16} {first_lines[name]}" for name in section)]
    return "\n".join(
        [
            "mustsee JOB key=value ...   run a job; mustsee JOB --help explains its keys",
            "mustsee completion SHELL    completion for bash or zsh",
            "mustsee --version",
            "",
            *lines,
        ]
    )


def _completion(arguments: Sequence[str], root: Path) -> int:
    if arguments and arguments[0] == "words":
        sys.path.insert(0, str(root))
        from ray_jobs.cli.completion import words

        print("\n".join(words(arguments[1:])))
        return 0
    if list(arguments) not in [[shell] for shell in SCRIPTS]:
        return _say(f"mustsee completion needs a shell: {' or '.join(SCRIPTS)}")
    print(SCRIPTS[arguments[0]])
    return 0


def _say(message: str) -> int:
    print(f"mustsee: {message}", file=sys.stderr)
    return 2
