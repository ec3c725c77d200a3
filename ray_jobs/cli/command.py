"""The command `mustsee`: runs any job from any folder.

    mustsee neptune videos=videos out=runs/mine       as python -m ray_jobs.neptune in the checkout
    mustsee doctor                                    what this machine has, and what it lacks
    eval "$(mustsee completion bash)"                 names, keys and choices by the Tab key

`pip install -e .` in a checkout installs it, or a wheel.
Relative paths are the caller's. Exit codes are the jobs'.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
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


# Bash splits words at `=`, so only the text after it is completed.
_BASH = r"""# eval "$(mustsee completion bash)" in ~/.bashrc
_mustsee() {
    local line=${COMP_LINE:0:COMP_POINT}
    local -a typed=($line)
    [[ $line == *[[:space:]] ]] && typed+=("")
    local last=${typed[${#typed[@]}-1]} IFS=$'\n'
    local cut=""
    [[ $last == *=* ]] && cut=${last%=*}=
    COMPREPLY=($(mustsee completion words "${typed[@]:1}" 2>/dev/null))
    COMPREPLY=("${COMPREPLY[@]#"$cut"}")
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -o default -F _mustsee mustsee"""
_ZSH = r"""# eval "$(mustsee completion zsh)" in ~/.zshrc, after compinit
_mustsee() {
    local -a candidates=("${(@f)$(mustsee completion words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    candidates=(${candidates:#})
    if (( $#candidates )); then
        compadd -Q -S '' -- $candidates
    else
        compset -P '*=' && _files
    fi
}
compdef _mustsee mustsee"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH}


def jobs(root: Path) -> dict[str, str]:
    """The first line of each job's `conf/NAME.yaml`, by job."""
    texts = {path.stem: path.read_text("utf-8") for path in sorted((root / "conf").glob("*.yaml"))}
    return {
        name: text.partition("\n")[0].lstrip("# ")
        for name, text in texts.items()
        if re.search(r"^job: ", text, re.MULTILINE)
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
        print("\n".join(complete_words(arguments[1:])))
        return 0
    if list(arguments) not in [[shell] for shell in SCRIPTS]:
        return _say(f"mustsee completion needs a shell: {' or '.join(SCRIPTS)}")
    print(SCRIPTS[arguments[0]])
    return 0


def complete_words(typed: Sequence[str]) -> list[str]:
    """Return the completions of the last word in `typed`; none for a path or a free value.

    It reads `conf/` only; nothing is composed and Ray is not imported.
    """
    from ray_jobs.cli.compose import CONF

    all_jobs, last = jobs(CONF.parent), typed[-1] if typed else ""
    if len(typed) < 2:
        offered = [*all_jobs, "completion", "--help", "--version"]
    elif typed[0] == "completion":
        offered = list(SCRIPTS)
    elif typed[0] in all_jobs:
        offered = _complete_key(typed[0], last)
    else:
        offered = []
    return sorted(word for word in offered if word.startswith(last))


def _complete_key(job: str, last: str) -> list[str]:
    from ray_jobs.cli import presets
    from ray_jobs.cli.compose import CONF, choices, comments, defaults

    groups = [g for item in defaults(job) if isinstance(item, dict) for g in item]
    groups = [group for group in groups if choices(group)]
    if last.startswith("+"):
        return [f"+experiment={name}" for name in presets.presets(CONF, job)]
    key, given, _ = last.partition("=")
    if given:
        return [f"{key}={choice}" for choice in (choices(key) if key in groups else [])]
    return [*(f"{name}=" for name in {*groups, *comments(job)}), "--help", "--cfg", "-m"]


def _say(message: str) -> int:
    print(f"mustsee: {message}", file=sys.stderr)
    return 2
