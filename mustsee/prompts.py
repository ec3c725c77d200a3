"""Prompt texts: one strict Jinja file per prompt in `prompts/`, with a `system` and a `user` block.

    {% block system %}You are ...{% endblock %}
    {% block user %}{{ transcript | untrusted }}{% endblock %}
    {% block lines %}Answer in this form and nothing else: ...{% endblock %}

`lines` asks for a reply in labelled lines. It is appended to `user` for a model that gets no JSON
schema; with a schema, the descriptions of its fields say the same. An undefined variable is an
error. Text by people or models (transcripts, titles, candidate answers) goes through `| untrusted`,
which puts it into a fence, or through `| inline`, within a line of the prompt. Such text cannot end
its fence or line, or open a chat turn.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateNotFound, meta

from mustsee.errors import UserError

ROOT = Path(__file__).resolve().parent.parent / "prompts"
_TAGS = (  # control tokens in angle brackets: of Gemma, Llama 2, GLM, Qwen(-VL), T5 and others
    r"img>|box>|ref>|quad>|bos|eos|pad|unk|mask|sep|cls|s>|system|user|assistant|human|model>|think|thinking|thought|"
    r"reasoning|reflection|analysis|tools?>|function|parameter|image>|video>|audio>|sop>|eop>|"
    r"unused\d|fim|\w+[_:]\w"
)
_WORDS = (  # control tokens in square brackets: of Mistral and GLM; not [music] or [APPLAUSE]
    r"INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|CALL_ID|ARGS|IMG|"
    r"IMG_BREAK|IMG_END|THINK|BEGIN_AUDIO|BEGIN_SYSTEM|PREFIX|SUFFIX|MIDDLE|gMASK|CLS|SEP|MASK|PAD"
)
_MINIMAX = r"\](?=~!?b[\]\[])|\[(?=e~\[)"  # ]~b]  ]~!b[  [e~[
_CONTROL = re.compile(
    rf"<(?=\||/?(?:{_TAGS}))|<(?=</?SYS>>)|\[(?=\||/?(?:{_WORDS})\])|[◁◀](?=/?\w)|{_MINIMAX}",
    re.IGNORECASE,
)
# Characters that look like those of control tokens, and full-width ones; invisible ones.
_LOOKS = {
    **{0xFEE0 + code: code for code in range(0x21, 0x7F)},
    **{ord(char): "<" for char in "‹〈⟨❮˂ᐸ﹤⧼≺"},
    **{ord(char): ">" for char in "›〉⟩❯˃ᐳ﹥⧽≻"},
    **{ord(char): "|" for char in "￨∣│┃ǀ❘⏐"},
    **{ord(char): "[" for char in "〔❲⟦﹝"},
    **{ord(char): "]" for char in "〕❳⟧﹞"},
    **{ord(char): "/" for char in "⁄∕⧸"},
}
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e0fff]"
)
_RUN = re.compile(r"<{3,}|>{3,}")  # two are an arrow, or mark a change of speaker in captions
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffc]")
OPEN, CLOSE = "<<<", ">>>"
MARK_LENGTH = 8  # hexadecimal digits of a fence's mark
_FENCE = re.compile(
    rf"^{OPEN}([0-9a-f]{{{MARK_LENGTH}}}|)\n(.*?)\n\1{CLOSE}$", re.DOTALL | re.MULTILINE
)
ENGLISH = "English"
NOTE = "_language.j2"  # the sentence on the reply's language; a folder of prompts may lack it
_COMMENT = re.compile(rb"\{#.*?#\}", re.DOTALL)
_LANGUAGE = re.compile(r"[A-Z][^\W\d_]+(?:[ -][^\W\d_]+)*(?: \([^\W\d_ ]+\))?")


def neutral(text: str) -> str:
    """Break up chat control tokens and runs of fence marks with spaces, and blank out unprintable
    characters. A reader sees the same text.
    """
    text = _break_up_tokens(_UNPRINTABLE.sub(" ", text))
    return _RUN.sub(lambda m: " ".join(m.group()), text)


def _break_up_tokens(text: str) -> str:
    """Put a space after the first character of each control token, also where it is written with
    characters that look like its own, or with invisible ones between them.
    """
    looks = text if text.isascii() else text.translate(_LOOKS)
    places = list(range(len(text))) if _INVISIBLE.search(looks) else None
    if places is not None:
        places = [place for place in places if not _INVISIBLE.match(looks[place])]
        looks = _INVISIBLE.sub("", looks)
    starts = [match.start() for match in _CONTROL.finditer(looks)]
    ends = [0, *((start if places is None else places[start]) + 1 for start in starts), len(text)]
    return " ".join(text[a:b] for a, b in pairwise(ends))


def inline(text: object) -> str:
    """Return `neutral` text on one line, for use within a line of a prompt."""
    return " ".join(neutral(str(text)).split())


def fence(text: object, *, marked: bool = True) -> str:
    """Return the text in a fence that it cannot close.

    Both ends have a mark that the text does not contain. The mark is a hash of the text, so that
    the same text always has the same fence. `marked=False` leaves the mark out, for a model that
    was trained on this exact form; then only `neutral` keeps the text inside.
    """
    bare = neutral(str(text)).strip()
    mark = _mark(bare) if marked else ""
    return f"{OPEN}{mark}\n{bare}\n{mark}{CLOSE}"


def _mark(text: str) -> str:
    digits = hashlib.sha256(text.encode()).hexdigest()
    while digits[:MARK_LENGTH] in text:
        digits = hashlib.sha256(digits.encode()).hexdigest()
    return digits[:MARK_LENGTH]


def fenced_texts(prompt: str) -> list[str]:
    """Return the texts in the fences of a rendered prompt, in order."""
    return [match[2] for match in _FENCE.finditer(prompt)]


def without_fenced_texts(prompt: str) -> str:
    """Return a rendered prompt with its fences emptied."""
    return _FENCE.sub(f"{OPEN}\n{CLOSE}", prompt)


@lru_cache
def _environment(root: str) -> Environment:
    """Return the Jinja environment of a folder, which keeps its compiled templates."""
    env = Environment(
        loader=FileSystemLoader(root),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(untrusted=fence, neutral=neutral, inline=inline)
    return env


@dataclass(frozen=True)
class RenderedPrompt:
    """A rendered prompt: its name, its texts, and the hash of its file.

    `lines`: asks for the reply in labelled lines, for a model that gets no JSON schema.
    """

    name: str
    system: str
    user: str
    digest: str
    lines: str = ""


@dataclass(frozen=True)
class Prompts:
    """The prompt files under the folder `root`.

    `language`: English name of the language of the replies. Unless it is English, the user's text
    ends with `_language.j2`, which names it.
    """

    root: str = str(ROOT)
    language: str = ENGLISH

    def __post_init__(self) -> None:
        if not _LANGUAGE.fullmatch(self.language):
            raise UserError(
                f"language={self.language!r}: the English name of a language, such as German, "
                "Brazilian Portuguese or Chinese (Traditional)"
            )

    @property
    def _note(self) -> Path:
        own = Path(self.root) / NOTE
        return own if own.is_file() else ROOT / NOTE

    def render(self, name: str, **variables: Any) -> RenderedPrompt:
        """Render prompt `name` ("neptune/questions").

        Raises UserError when the file does not exist, jinja2.UndefinedError when a variable is
        missing.
        """
        try:
            template = _environment(self.root).get_template(f"{name}.j2")
        except TemplateNotFound:
            raise UserError(
                f"no prompt {name!r} in {self.root}: expected the file {name}.j2 there"
            ) from None

        def block(name: str) -> str:
            if name not in template.blocks:
                return ""
            return "".join(template.blocks[name](template.new_context(variables))).strip()

        user = block("user")
        if self.language != ENGLISH:
            note = _environment(self.root).from_string(self._note.read_text(encoding="utf-8"))
            user = f"{user}\n\n{note.render(language=self.language).strip()}"
        return RenderedPrompt(name, block("system"), user, self.digest(name), block("lines"))

    def digest(self, *names: str) -> str:
        """Return the hash (16 hex digits) of the named prompt files, or of every file in a named
        folder, and of the language. Comments do not change it, because no model reads them.
        """
        root, total = Path(self.root), hashlib.sha256()
        if self.language != ENGLISH:
            total.update(self.language.encode() + self._note.read_bytes() + b"\0")
        for name in names:
            folder = root / name
            for path in sorted(folder.rglob("*.j2")) if folder.is_dir() else [root / f"{name}.j2"]:
                text = _COMMENT.sub(b"", path.read_bytes())
                total.update(str(path.relative_to(root)).encode() + b"\0" + text + b"\0")
        return total.hexdigest()[:16]

    def has(self, name: str) -> bool:
        """Return whether there is a prompt of this name."""
        return (Path(self.root) / f"{name}.j2").is_file()

    def sources(self, name: str) -> dict[str, str]:
        """Return the text of a prompt's file and of the files that it imports, by file."""
        texts, names = dict[str, str](), [f"{name}.j2"]
        while names:
            file = names.pop()
            text = (Path(self.root) / file).read_text(encoding="utf-8")
            texts[file] = text
            named = meta.find_referenced_templates(_environment(self.root).parse(text))
            names += [other for other in named if other is not None and other not in texts]
        return texts
