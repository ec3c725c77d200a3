"""`ask=facts` on videos with known facts: are composed questions right, and wrong facts dropped?

    python -m benchmarks.bench what=facts [json=figures.json]

The videos are those of the proving set of `sight`. A scripted model behind the loopback endpoint
decides from the JPEGs that it receives; a tenth of the facts that it lists are wrong, and a tenth
of its replies are noise: prose, a refusal, or verdicts of which a fifth are turned round. Between
them work the run's own part `ask` and its gateway. Each question is then read against what was
drawn, moment by moment, by code that shares nothing with the forms; of questions that ask when
something is seen, the spans against those that were drawn.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from actors.calls.coordinator import Coordinator
from actors.llm.openai import OpenAI
from actors.stages.facts import AskFacts
from benchmarks import sight_videos
from benchmarks.figures import BenchTable, Cell
from benchmarks.harness import open_part, user_content
from benchmarks.sight_model import FrameFacts, frames_shown
from loopback.endpoint import Loopback
from mustsee import stats
from mustsee.facts.moments import moments_of
from mustsee.facts.settings import FactSettings
from mustsee.files.store import Store
from mustsee.prompts import fenced_texts
from mustsee.records import Fact, Question, Span, Video
from mustsee.text import LETTERS
from mustsee.verify.conditions.seen import merge_spans
from ray_jobs.cli.launch import build, compose

TURNED_SHARE = 0.2  # share of the verdicts of a noisy look that are turned
MAX_END_ERROR_S = 0.5  # error of an end of the answer to a question that asks when
LEAST_SHARED_S = 0.3  # seconds that a stop and a moment that shows it share, at least
TEMPLATES = {  # kind -> the form of its phrases
    "event": "a {colour} {form} stands in the {place}",
    "object": "a {form} on grey ground",
    "state": "the large shape is {colour}",
    "place": "the {place} of the picture",
}
_WINDOW = re.compile(r"List at most (\d+) fact")
_PHRASE = re.compile(r"^(\d+): \(\w+\) (.*)$", re.MULTILINE)
_ASKED = re.compile(r"^QUESTION (\d+): ", re.MULTILINE)
_ANSWER = re.compile(r"^([A-Z])\. ", re.MULTILINE)


def attributes_of(phrase: str) -> dict[str, str] | None:
    """Return what a phrase says of a shape; null for a phrase of another kind."""
    for template in TEMPLATES.values():
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[a-z ]+?)", template)
        if match := re.fullmatch(pattern, phrase):
            return match.groupdict()
    return None


@dataclass(frozen=True)
class ScriptedFacts:
    """Reply to chat payloads. `noise`: share of spoilt replies; `wrong`: of wrong facts."""

    noise: float = 0.1
    wrong: float = 0.1

    def __call__(self, payload: Mapping[str, Any]) -> str:
        parts, text = user_content(payload)
        content = json.dumps([payload["messages"], payload.get("seed")], sort_keys=True)
        rng = random.Random(hashlib.sha256(content.encode()).hexdigest())
        is_noisy = rng.random() < self.noise
        if is_noisy and rng.random() < 0.5:
            return rng.choice(("It depends on how one sees it.", "I'm sorry, I can't help."))
        if match := _WINDOW.search(text):
            return self.list_facts(frames_shown(parts, text), int(match[1]), rng)
        if phrases := _PHRASE.findall(fenced_texts(text)[-1]):
            shown = [facts for _, facts in frames_shown(parts, text)]
            return judge(phrases, shown, rng, is_noisy)
        return rank_by_chance(text, rng)

    def list_facts(self, shots: Sequence[tuple[float, FrameFacts]], most: int, rng: Any) -> str:
        spans: dict[tuple[str, str], list[list[float]]] = {}
        for number, (time_s, shape) in enumerate(shots):
            before = shots[number - 1][1] if number else None
            for kind, template in TEMPLATES.items():
                key = kind, template.format(**vars(shape))
                if before == shape:
                    spans[key][-1][1] = time_s
                else:
                    spans.setdefault(key, []).append([time_s, time_s + 0.5])
        lines: list[str] = []
        for (kind, phrase), found in sorted(spans.items(), key=lambda x: x[0][0] != "event"):
            if rng.random() < self.wrong:
                phrase = spoil(phrase, rng)
            written = "; ".join(f"{a:.1f}-{max(b, a + 0.5):.1f}" for a, b in found)
            lines.append(f"FACT {len(lines) + 1}: {kind} | {phrase} | {written}")
        return "\n".join(lines[:most]) or "NONE"


def spoil(phrase: str, rng: random.Random) -> str:
    """Return a phrase with another value of one of its attributes."""
    values = {
        "colour": [*sight_videos.COLOURS, *sight_videos.GREYS],
        "form": [*sight_videos.COMMON, *sight_videos.RARE],
        "place": list(sight_videos.PLACES),
    }
    name, value = rng.choice(sorted((attributes_of(phrase) or {}).items()))
    return phrase.replace(value, rng.choice([v for v in values[name] if v != value]))


def judge(
    phrases: Sequence[tuple[str, str]], shown: Sequence[FrameFacts], rng: Any, is_noisy: bool
) -> str:
    lines: list[str] = []
    for number, phrase in phrases:
        asked = attributes_of(phrase)
        if asked is None:
            lines.append(f"{number}: UNSURE")
            continue
        seen = any(asked.items() <= vars(shape).items() for shape in shown)
        if is_noisy and rng.random() < TURNED_SHARE:
            seen = not seen
        lines.append(f"{number}: {'SEEN' if seen else 'NOT SEEN'}")
    return "\n".join(lines)


def rank_by_chance(text: str, rng: Any) -> str:
    """Rank the answers of each question in any order."""
    asked = fenced_texts(text)[-1]
    blocks = re.split(_ASKED, asked)[1:]
    shared = len(_ANSWER.findall(blocks[-1]))
    lines: list[str] = []
    for number, block in zip(blocks[::2], blocks[1::2], strict=True):
        letters = list(LETTERS[: len(_ANSWER.findall(block)) or shared])
        rng.shuffle(letters)
        lines.append(f"QUESTION {number}: {' > '.join(letters)} | a guess")
    return "\n".join(lines)


@dataclass(frozen=True)
class DrawnTruth:
    """What was drawn at each moment, to read questions against."""

    video: sight_videos.DrawnVideo
    moments: Sequence[Span]
    phrases: Sequence[str]

    def at(self, phrase: str) -> list[int]:
        """Return the moments at which a phrase is so."""
        if phrase.startswith("“"):
            lines = [s.line for s in self.video.scenes if s.line.text == phrase.strip("“”")]
            return [n for n, m in enumerate(self.moments) if any(_share(x, m) > 0 for x in lines)]
        asked = attributes_of(phrase)
        assert asked is not None, phrase
        fits = [s.span for s in self.video.scenes if asked.items() <= vars(s).items()]
        return [
            n for n, m in enumerate(self.moments)
            if any(_share(s, m) > LEAST_SHARED_S for s in fits)
        ]  # fmt: skip

    def spans(self, phrase: str) -> list[Span]:
        """Return the spans of the video in which a phrase is so; those that touch are one."""
        asked = attributes_of(phrase)
        assert asked is not None, phrase
        fits = [s.span for s in self.video.scenes if asked.items() <= vars(s).items()]
        whole = Span(0.0, self.video.seconds)
        return list(merge_spans(fits, whole))

    def end_errors(self, question: Question) -> list[float]:
        """Return by how many seconds the ends of the answer are wrong to a question that asks when;
        nothing if it names other times than the phrase is so.
        """
        true = self.spans(self.find_given(question.question)[0])
        pairs = list(zip(question.evidence, true, strict=False))
        if len(true) != len(question.evidence) or any(_share(a, b) <= 0 for a, b in pairs):
            return []
        return [abs(e) for a, b in pairs for e in (a.start - b.start, a.end - b.end)]

    def find_given(self, question: str) -> list[str]:
        """Return the phrases that a question states, in its order."""
        found = [(question.find(p), p) for p in self.phrases if p in question]
        inner = {p for _, p in found for _, q in found if p != q and p in q}
        return [p for _, p in sorted(found) if p not in inner]

    def right_options(self, question: Question) -> list[str]:
        """Return the options that are right, by the form of the question; none where it states what
        happens nowhere.
        """
        options, form = question.options, question.form
        given = self.find_given(question.question)
        if not all(map(self.at, given)):
            return []
        if form == "order":
            return [o for o in options if _rises([self.at(p) for p in o.split("; ")])]
        if form in ("first", "last"):
            ends = {o: self.at(o)[0 if form == "first" else -1] for o in options if self.at(o)}
            best = (min if form == "first" else max)(ends.values(), default=-1)
            return [o for o, end in ends.items() if end == best]
        if form == "count_before":
            named, *things = (self.at(p) for p in given)
            return [o for o in options if int(o) == sum(t[-1] < named[0] for t in things)]
        if form in ("after", "before"):
            return self._nearest(options, self.at(given[0]), is_after=form == "after")
        if form == "longest":
            return [max(options, key=lambda o: sum(self.moments[n].seconds for n in self.at(o)))]
        asked = self._asked(form or "", question.question, given)
        if form in ("where", "holds", "state"):
            return [o for o in options if asked and set(asked) <= set(self.at(o))]
        return [o for o in options if set(asked) & set(self.at(o))]

    def _nearest(self, options: Sequence[str], own: Sequence[int], *, is_after: bool) -> list[str]:
        """Return the options that come first after some moments, or last before them."""
        gaps: dict[str, int] = {}
        for option in options if own else ():
            ahead = [n - own[-1] if is_after else own[0] - n for n in self.at(option)]
            gaps[option] = min((gap for gap in ahead if gap > 0), default=len(self.moments))
        return [o for o, gap in gaps.items() if gap == min(gaps.values())]

    def _asked(self, form: str, question: str, given: Sequence[str]) -> list[int]:
        """Return the moments that a question asks about."""
        last = len(self.moments) - 1
        if form == "part":
            words = ("first", "second", "last")
            third = next(n for n, word in enumerate(words) if word in question)
            whole = self.moments[-1].end
            return [
                n for n, m in enumerate(self.moments)
                if third * whole / 3 <= (m.start + m.end) / 2 < (third + 1) * whole / 3
            ]  # fmt: skip
        own = self.at(given[0])
        match form:
            case "between":
                later = self.at(given[1])
                return list(range(own[-1] + 1, later[0])) if own and later else []
            case "next_time":
                link = [n for n in self.at(given[1]) if n > own[-1]] if own else []
                gone = [n for n in range(own[-1], last + 1) if n not in self.at(given[1])]
                back = [n for n in link if gone and n > gone[0]]
                return back[:1]
            case _:
                return own


def _share(one: Any, other: Span) -> float:
    return min(one.end, other.end) - max(one.start, other.start)


def _rises(places: Sequence[Sequence[int]]) -> bool:
    starts = [p[0] if p else -1 for p in places]
    return -1 not in starts and starts == sorted(starts)


@dataclass(frozen=True, kw_only=True)
class FactsBench:
    """`journeys`: number of videos. `noise`: share of the model's replies that are spoilt. `wrong`:
    share of the facts listed that are wrong. `when`: questions of each video that ask when
    something is seen. `seed`: of videos and run.
    """

    journeys: int = 8
    noise: float = 0.1
    wrong: float = 0.1
    when: int = 12
    seed: int = 0

    @cached_property
    def settings(self) -> FactSettings:
        """The settings of `mustsee make`, without what only a model of language asks."""
        when = f"ask.settings.forms.when.questions={self.when}"
        job = build(compose("make", ["videos=none", "out=none", when]))
        return replace(job.ask.settings, seed=self.seed, deep=None)

    def __call__(self) -> BenchTable:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="mustsee-bench-") as name:
            folder = Path(name)
            videos = sight_videos.journeys(self.seed)[: self.journeys]
            for video in videos:
                sight_videos.write(video, folder)
            with Loopback(reply=ScriptedFacts(self.noise, self.wrong)) as server:
                done, calls = asyncio.run(self.ask_all(videos, folder, server.url))
                _, again = asyncio.run(self.ask_all(videos, folder, server.url))
        rows, wrong, facts, errors = self._read(videos, done)
        total = Counter[str]()
        for counts in rows.values():
            total.update(counts)
        found = stats.wilson(total["right"], total["made"])
        return BenchTable(
            title=f"facts on {len(videos)} videos, {self.noise:.0%} noise, {self.wrong:.0%} wrong",
            columns=("form", "made", "right"),
            rows=tuple(
                tuple[Cell, ...]((form, counts["made"], counts["right"]))
                for form, counts in (*sorted(rows.items()), ("all", total))
            ),
            notes=(
                f"{total['right']} of {total['made']} questions are right, "
                f"{total['right'] / max(1, total['made']):.1%} (95 % from {found[0]:.1%})",
                f"wrong facts: {facts['wrong']}, of these dropped {facts['wrong dropped']} "
                f"({facts['wrong dropped'] / max(1, facts['wrong']):.1%}); right ones: "
                f"{facts['right']}, dropped {facts['right dropped']}",
                f"{calls:.0f} calls, {calls / max(1, total['made']):.2f} a question; a second run "
                f"makes {again:.0f}",
                f"ends of answers to when: {len(errors)}, of these within {MAX_END_ERROR_S:g} s "
                f"{sum(e <= MAX_END_ERROR_S for e in errors) / max(1, len(errors)):.1%}; "
                f"the worst by {max(errors, default=0):.2f} s",
                *(f"wrong: {q.video_id}: {q.form}: {q.question} {q.answer!r}, right {right}"
                  for q, right in wrong),
                f"all in {time.monotonic() - began:.0f} s",
            ),
        )  # fmt: skip

    def _read(
        self, videos: Sequence[sight_videos.DrawnVideo], done: Sequence[Video]
    ) -> tuple[
        dict[str, Counter[str]], list[tuple[Question, list[str]]], Counter[str], list[float]
    ]:
        """Return the counts of each form, the wrong questions, the counts of facts, and the errors
        of ends of the answers to questions that ask when, in seconds.
        """
        rows: dict[str, Counter[str]] = {}
        wrong: list[tuple[Question, list[str]]] = []
        facts = Counter[str]()
        errors: list[float] = []
        for drawn, video in zip(videos, done, strict=True):
            listed = video.facts or ()
            moments = moments_of(video, self.settings.moments)
            truth = DrawnTruth(drawn, moments, sorted({f.phrase for f in listed}))
            for fact in (f for f in listed if f.kind in TEMPLATES):
                said = "right" if _is_so(fact, truth) else "wrong"
                facts[said] += 1
                facts[f"{said} dropped"] += fact.drop is not None
            for question in video.questions or ():
                counts = rows.setdefault(question.form or "", Counter())
                counts["made"] += 1
                if question.asks_when:
                    own = truth.end_errors(question)
                    errors += own
                    counts["right"] += bool(own)
                    if not own:
                        drawn_spans = map(str, truth.spans(truth.find_given(question.question)[0]))
                        wrong.append((question, list(drawn_spans)))
                    continue
                right = truth.right_options(question)
                counts["right"] += right == [question.answer]
                if right != [question.answer]:
                    wrong.append((question, right))
        return rows, wrong, facts, errors

    async def ask_all(
        self, videos: Sequence[sight_videos.DrawnVideo], folder: Path, url: str
    ) -> tuple[list[Video], float]:
        """Return the videos with their facts and questions, and the number of calls."""
        model = OpenAI(model="scripted", base_url=url, key_env=None, structured="none")
        part = AskFacts(
            settings=self.settings, writer=model, verifier=model, guesser=model,
        )  # fmt: skip
        coordinator = Coordinator()
        ask = open_part(part, model, model.open(), Store(str(folder / "store")), coordinator)
        rows = [video.row(folder, ()) for video in videos]
        done = await asyncio.gather(*map(ask, rows))
        return list(done), float(coordinator.snapshot().llm.summary()["calls"])


def _is_so(fact: Fact, truth: DrawnTruth) -> bool:
    """Whether a fact holds at a moment where it is claimed."""
    places = [truth.moments[n] for n in truth.at(fact.phrase)]
    return any(_share(span, moment) > 0 for span in fact.spans for moment in places)
