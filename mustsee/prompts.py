"""Prompt texts: one strict Jinja file per prompt in `prompts/`, with a `system` and a `user` block.

    {% block system %}You are ...{% endblock %}
    {% block user %}{{ transcript | untrusted }}{% endblock %}

An undefined variable is an error. Text that people or models wrote (transcripts, titles, candidate
answers) goes through `| untrusted`, which fences it and takes its power to close the fence or to
open a chat turn.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateNotFound

from mustsee.errors import UserError

ROOT = Path(__file__).resolve().parent.parent / "prompts"
_TOKENS = (
    r"start_of_turn|end_of_turn|bos|eos|s>|im_start|im_end|endoftext|eot_id|begin_of_text|"
    r"start_header_id|end_header_id|system|user|assistant|think|\|"
)
_CONTROL = re.compile(rf"<(?=[|/]?\s*(?:{_TOKENS}))|\[(?=/?INST\])", re.IGNORECASE)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffc]")
OPEN, CLOSE = "<<<", ">>>"
ENGLISH = "English"
NOTE = "_language.j2"  # what is said of the language; another folder of prompts may do without
_LANGUAGE = re.compile(r"[A-Z][^\W\d_]+(?:[ -][^\W\d_]+)*(?: \([^\W\d_ ]+\))?")


def neutral(text: str) -> str:
    """Text without chat control tokens, fence marks and unprintable characters; what a reader sees
    stays the same.
    """
    text = _UNPRINTABLE.sub(" ", text)
    text = _CONTROL.sub(lambda m: m.group() + " ", text)
    return text.replace(OPEN, "<< <").replace(CLOSE, "> >>")


def untrusted(text: object) -> str:
    """The text between fences that it cannot close."""
    return f"{OPEN}\n{neutral(str(text)).strip()}\n{CLOSE}"


@dataclass(frozen=True)
class Rendered:
    """A prompt made ready: its name, its texts, and the hash of the file that it came from."""

    name: str
    system: str
    user: str
    digest: str


@dataclass(frozen=True)
class Prompts:
    """The prompt files under one folder (`prompts/` of the project unless told otherwise).
    `language`: that replies are written in, by its English name; every prompt then ends with
    `_language.j2`, which says so.
    """

    root: str = str(ROOT)
    language: str = ENGLISH

    def __post_init__(self) -> None:
        if not _LANGUAGE.fullmatch(self.language):
            raise UserError(
                f"language={self.language!r}: the English name of a language, such as German, "
                "Brazilian Portuguese or Chinese (Traditional)"
            )

    @cached_property
    def _environment(self) -> Environment:
        env = Environment(
            loader=FileSystemLoader(self.root),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        env.filters.update(untrusted=untrusted, neutral=neutral)
        return env

    @property
    def _note(self) -> Path:
        own = Path(self.root) / NOTE
        return own if own.is_file() else ROOT / NOTE

    def render(self, name: str, **variables: Any) -> Rendered:
        """Prompt `name` ("neptune/questions") with its variables filled in.

        Raises UserError when there is no such file, jinja2.UndefinedError when a variable is
        missing.
        """
        try:
            template = self._environment.get_template(f"{name}.j2")
        except TemplateNotFound:
            raise UserError(
                f"no prompt {name!r} in {self.root}: expected the file {name}.j2 there"
            ) from None

        def block(part: str) -> str:
            if part not in template.blocks:
                return ""
            return "".join(template.blocks[part](template.new_context(variables))).strip()

        user = block("user")
        if self.language != ENGLISH:
            note = self._environment.from_string(self._note.read_text(encoding="utf-8"))
            user = f"{user}\n\n{note.render(language=self.language).strip()}"
        return Rendered(name, block("system"), user, self.digest(name))

    def digest(self, *names: str) -> str:
        """Hash (16 hex digits) of the named prompt files, or of every file in a named folder, and
        of the language.
        """
        root, total = Path(self.root), hashlib.sha256()
        if self.language != ENGLISH:
            total.update(self.language.encode() + self._note.read_bytes() + b"\0")
        for name in names:
            folder = root / name
            for path in sorted(folder.rglob("*.j2")) if folder.is_dir() else [root / f"{name}.j2"]:
                total.update(
                    str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0"
                )
        return total.hexdigest()[:16]
