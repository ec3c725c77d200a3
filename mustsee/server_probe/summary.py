"""What a probe found, in plain lines for the terminal, and as `probe.html`: one page that needs no
script and fetches nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mustsee.run.report import environment
from mustsee.server_probe.findings import NAMES
from mustsee.server_probe.stimuli import draw_card
from mustsee.text import money

Mark = Literal["ok", "no", "maybe", "soft"]
STRUCTURED: Mapping[str, tuple[Mark, str]] = {
    "kept": ("ok", "kept"),
    "around": ("maybe", "kept, with words around the JSON"),
    "wrong": ("maybe", "kept, but its content is wrong"),
    "off": ("soft", "not asked for (structured=none)"),
    "ignored": ("maybe", "ignored: replies are asked for in labelled lines"),
    "refused": ("maybe", "refused: replies are asked for in labelled lines"),
}
STATES = {"refused": "refused", "failed": "no reply", "unasked": "not asked", "untold":
          "could not be told"}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ProbeLine:
    """One line: a figure, and whether it is good (`ok`), a fault (`no`) or neither."""

    name: str
    value: str
    mark: Mark = "soft"
    more: str = ""


def headline(record: Mapping[str, Any]) -> str:
    """Return one sentence on the whole probe."""
    faults = record["faults"]
    untold = [line.name for line in seen_lines(record) if line.value == STATES["untold"]]
    if faults:
        return f"{len(faults)} {'fault' if len(faults) == 1 else 'faults'} found"
    if untold:
        return f"no fault found; could not be told: {', '.join(untold)}"
    return "no fault found"


def seen_lines(record: Mapping[str, Any]) -> Iterator[ProbeLine]:
    """Yield what was seen, ordered, timed and heard."""
    for name in ("images", "videos"):
        results = _counted(record[name])
        if results:
            yield _seen_line(name.removesuffix("s") if name == "videos" else name, results, record)
            if (order := _order_line(name, results, record)) is not None:
                yield order
    yield from _video_lines(record)
    yield from _time_lines(record["times"])
    yield from _sound_lines(record)


def _counted(results: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The results of images or of the plain video, without second draws of a read reply."""
    plain = [r for r in results if r["kind"] in ("images", "video")]
    first = {(r["count"], r["draw"]): r for r in plain if r["draw"] == 0}
    return [r for r in plain if r["draw"] == 0 or first[r["count"], 0]["frames"] is None]


def _seen_line(
    name: str, results: Sequence[Mapping[str, Any]], record: Mapping[str, Any]
) -> ProbeLine:
    read = [r for r in results if r["frames"]]
    about = "images" if name == "images" else "video"
    faults = [f for f in record["faults"] if f["about"] == about and f["kind"] != "shuffled"]
    if not read:
        last = results[-1]
        return ProbeLine(name=f"{name} seen", value=STATES[last["state"]], more=last["why"],
                         mark="no" if faults else "maybe")  # fmt: skip
    most = read[-1]["frames"]
    value = f"{most['seen']} of {most['sent']} sent"
    more = [f"{most['misread']} misread" if most["misread"] else ""]
    more += [f"{r['count']}: {STATES[r['state']]} ({r['why']})" for r in results
             if not r["frames"] and r["count"] > read[-1]["count"]]  # fmt: skip
    return ProbeLine(
        name=f"{name} seen", value=value, more="; ".join(filter(None, more)),
        mark="no" if faults else "ok" if most["missing"] == 0 else "maybe",
    )  # fmt: skip


def _order_line(
    name: str, results: Sequence[Mapping[str, Any]], record: Mapping[str, Any]
) -> ProbeLine | None:
    frames = [r["frames"] for r in results if r["frames"] and r["frames"]["in_order"] is not None]
    if not frames:
        return None
    share = min(f["in_order"] for f in frames)
    about = "images" if name == "images" else "video"
    title = f"order of {'images' if name == 'images' else 'the video'}"
    if share == 1:
        return ProbeLine(name=title, value="kept", mark="ok")
    named = any(f["kind"] == "shuffled" and f["about"] == about for f in record["faults"])
    value = f"{100 * share:.0f} % of pairs"
    return ProbeLine(name=title, value=value, mark="no" if named else "maybe")


def _video_lines(record: Mapping[str, Any]) -> Iterator[ProbeLine]:
    if record["rate"] is not None:
        least = "at least " if record["rate_is_least"] else ""
        yield ProbeLine(name="frames of a second of video", value=f"{least}{record['rate']:.2g}",
                        mark="ok" if record["rate"] >= 1 else "no")  # fmt: skip
    if record["longest"] is not None:
        least = "at least " if record["longest_is_least"] else ""
        yield ProbeLine(
            name="longest video seen whole", value=f"{least}{record['longest']:g} s",
            more="" if record["longest_is_least"] else "a frame a second",
            mark="ok" if record["longest_is_least"] else "maybe",
        )  # fmt: skip
    for result in record["videos"]:
        if result["kind"] in ("video_as_image_url", "file_url"):
            frames = result["frames"]
            value = f"{frames['seen']} of {frames['sent']} seen" if frames else (
                STATES[result["state"]])  # fmt: skip
            yield ProbeLine(name=NAMES[result["kind"]], value=value, more=result["why"])


def _time_lines(times: Sequence[Mapping[str, Any]]) -> Iterator[ProbeLine]:
    if not times:
        return
    first = next((t for t in times if t["errors"]), times[0])
    errors = first["errors"]
    if not errors or errors["median"] is None:
        why = first["why"] or "no time is told"
        yield ProbeLine(name="error of times", value="could not be told", more=why, mark="maybe")
        return
    more = f"largest {errors['largest']:.1f} s, video of {first['seconds']:g} s"
    mark: Mark = "ok" if errors["median"] <= 2.5 else "no"
    yield ProbeLine(name="error of times", value=f"{errors['median']:.1f} s (median)", more=more,
                    mark=mark)  # fmt: skip


def _sound_lines(record: Mapping[str, Any]) -> Iterator[ProbeLine]:
    faults = [f for f in record["faults"] if f["about"] == "sound"]
    for kind, name in (("digits", "spoken digits heard"), ("tones", "tones heard")):
        results = [r for r in record["sounds"] if r["kind"] == kind]
        if not results:
            continue
        first = results[0]
        sounds = first["sounds"]
        if not sounds:
            yield ProbeLine(name=name, value=STATES[first["state"]], more=first["why"],
                            mark="maybe")  # fmt: skip
        else:
            whole = sounds["heard"] == sounds["sent"]
            mark: Mark = "ok" if whole else "no" if faults and kind == "digits" else "maybe"
            yield ProbeLine(name=name, value=f"{sounds['heard']} of {sounds['sent']}", mark=mark)


def count_lines(record: Mapping[str, Any]) -> Iterator[ProbeLine]:
    """Yield tokens and prices."""
    tokens, price = record["tokens"], record["price"]
    for key, name, rule in (
        ("image", "tokens of an image", "image_rule"),
        ("second", "tokens of a second of video", "second_rule"),
        ("frame", "tokens of a frame of it", None),
        ("sound_second", "tokens of a second of sound", None),
        ("characters", "characters of a token of text", None),
    ):
        value = tokens[key]
        by_rule = f"by the family's rule {_figure(tokens[rule])}" if rule and tokens[rule] else ""
        if key == "frame" and record["rate_is_least"] and value is not None:
            by_rule = "at most"
        shown = "not measured" if value is None else _figure(value)
        yield ProbeLine(name=name, value=shown, more=by_rule)
    if price["per_million"] is None:
        yield ProbeLine(name="price of a video hour", value="not known", more=price["source"])
        return
    source = f"{price['per_million']:g} USD a million tokens ({price['source']})"
    for key, name, unit in (
        ("video", "as a video", "second"), ("images", "as an image a second", "image"),
    ):  # fmt: skip
        value = "not known" if price[key] is None else f"{money(price[key])} USD"
        by_rule = "" if tokens[unit] is not None else "; tokens by the family's rule"
        yield ProbeLine(
            name=f"price of a video hour {name}", value=value, more=f"{source}{by_rule}"
        )


def server_lines(record: Mapping[str, Any]) -> Iterator[ProbeLine]:
    """Yield what the server keeps to, refuses, caches and allows."""
    mark, value = STRUCTURED.get(record["structured"], ("maybe", STATES["untold"]))
    yield ProbeLine(name="structured output", value=value, mark=mark)
    refused = ", ".join(p["name"] for p in record["parameters"])
    yield ProbeLine(name="refused parameters", value=refused or "none",
                    more=f"tried: {', '.join(record['parameters_tried'])}",
                    mark="maybe" if refused else "ok")  # fmt: skip
    words = {"given": "given", "none": "not given"}.get(record["logprobs"], "could not be told")
    yield ProbeLine(name="log-probabilities", value=words)
    yield _cache_line(record)
    yield from _ramp_lines(record)
    yield ProbeLine(name="shutdown date", value=record["shutdown"] or "not known")
    for note in record["served"]:
        yield ProbeLine(name="this model", value=note, mark="maybe")


def _cache_line(record: Mapping[str, Any]) -> ProbeLine:
    again = [c for c in record["cached"][1:] if c is not None]
    name, tokens = "cache of a prefix", record["prefix_tokens"]
    if not record["cached"]:
        return ProbeLine(name=name, value="could not be told")
    if not again:
        return ProbeLine(name=name, value="not reported by usage")
    if not max(again):
        return ProbeLine(name=name, value=f"no hit on {tokens} tokens", mark="maybe")
    share = f"{100 * max(again) / tokens:.0f} % of " if tokens else ""
    return ProbeLine(name=name, value=f"hit: {share}{tokens} tokens", mark="ok")


def _ramp_lines(record: Mapping[str, Any]) -> Iterator[ProbeLine]:
    ramp = record["ramp"]
    if not ramp:
        yield ProbeLine(name="calls a second", value="not tried")
        return
    best = max(step["answered"] / step["seconds"] if step["seconds"] else 0.0 for step in ramp)
    last = ramp[-1]
    mark: Mark = "maybe"
    if last["refused"]:
        wait = f", Retry-After {last['retry_after']:g} s" if last["retry_after"] else ""
        more = f"refused with {last['in_flight']} at once{wait}"
    elif last["failed"]:
        more = f"{last['failed']} of {last['in_flight']} at once failed"
    else:
        more, mark = f"none refused of {last['in_flight']} at once", "ok"
    if limits := record["limits"]:
        more += "; it reports " + ", ".join(f"{v:g} {k} a minute" for k, v in limits.items())
    least = "" if last["refused"] else "at least "
    yield ProbeLine(name="calls a second", value=f"{least}{_figure(best)}", more=more, mark=mark)


def _figure(value: float) -> str:
    return f"{value:.1f}" if 0 < value < 10 else f"{value:.0f}"


def summary_lines(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (text, style of rich) of what the terminal shows."""
    yield headline(record), "bold red" if record["faults"] else "bold"
    for fault in record["faults"]:
        yield f"  {fault['about']}: {fault['kind']}: {fault['says']}", "red"
    for note in record["notes"]:
        yield f"  note: {note}", ""
    for line in (*seen_lines(record), *count_lines(record), *server_lines(record)):
        more = f"  ({line.more})" if line.more else ""
        yield f"  {line.name:<38} {line.value}{more}", ""
    yield f"{record['calls']} calls, {money(record['usd'])} USD", ""


EXAMPLE = 47  # numeral of the card that the page shows


@dataclass(frozen=True, kw_only=True)
class SentRow:
    """One request with numerals, as the page shows it: shares of what was sent, 0 to 1."""

    name: str
    sent: int
    seen: int
    misread: int
    missing: int
    order: str
    says: str
    tokens: int | None
    again: bool


def render(record: Mapping[str, Any]) -> str:
    """Return the page of a `probe.json`."""
    card = base64.b64encode(draw_card(EXAMPLE)).decode()
    return environment().get_template("probe.html.j2").render(
        probe=record,
        headline=headline(record),
        seen=list(seen_lines(record)),
        counts=list(count_lines(record)),
        server=list(server_lines(record)),
        rows=list(_rows([*record["images"], *record["videos"]])),
        card=f"data:image/jpeg;base64,{card}",
    )  # fmt: skip


def _rows(results: Sequence[Mapping[str, Any]]) -> Iterator[SentRow]:
    for result in results:
        length = f" of {result['seconds']:g} s" if result["seconds"] else ""
        counts = result["frames"] or {"sent": result["count"]}
        kept = counts.get("in_order")
        yield SentRow(
            name=f"{NAMES[result['kind']]}{length}",
            **{name: counts.get(name, 0) for name in ("sent", "seen", "misread", "missing")},
            order="–" if kept is None else f"{100 * kept:.0f} %",
            says="" if result["frames"] else f"{result['state']}: {result['why']}",
            tokens=result["tokens"], again=result["draw"] > 0,
        )  # fmt: skip
