"""The report of a cleaned training set, and the forecast before it: `clean.json`, `clean.txt`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mustsee.clean.rule import DECIDED, GRADERS, BlindRule, ReaderScores
from mustsee.clean.work import CleanWork
from mustsee.text import printable

GROUPS = {"source": 0, "type": 1, "kind": 2, "length": 3}  # places in a tally's key
KIND, VERDICT = GROUPS["kind"], 4  # further places in it
MAX_LISTED = 40  # groups in the text; clean.json has all
Z90 = 1.645
GAP_LIMIT = 0.2  # difference of forecast and bill from which the report warns


@dataclass(frozen=True, kw_only=True)
class CleanForecast:
    """What a run will cost and keep, from `sampled` of `rows` rows. Each figure is [expected, low,
    high], a 90 % interval. `made_up`: a scripted model stood in for the models, so that `known`
    counts what the learned guess knows alone.
    """

    rows: int
    sampled: int
    calls: float
    tokens_in: float
    tokens_out: float
    usd: tuple[float, float, float]
    known: tuple[float, float, float]
    made_up: bool = False

    def lines(self, rule: BlindRule) -> list[str]:
        """The forecast in words."""
        usd, low, high = self.usd
        known, fewest, most = self.known
        fate = {"drop": "kept", "weigh": "of full weight", "mark": "unmarked"}[rule.then]
        lines = [
            f"forecast from {self.sampled} of {self.rows:,} rows, in brackets 90 % intervals:",
            f"  {self.calls:,.0f} calls, {self.tokens_in:,.0f} tokens in, "
            f"{self.tokens_out:,.0f} out: {usd:.4g} USD [{low:.4g}, {high:.4g}]",
            f"  {self.rows - known:,.0f} rows {fate} "
            f"[{self.rows - most:,.0f}, {self.rows - fewest:,.0f}]",
        ]
        if self.made_up:
            lines.append(
                "  not known: what the models know; dry_run_usd=1 asks them about the sample for "
                "at most 1 USD and keeps the replies for the run"
            )
        return lines


def extrapolate(values: Sequence[float], rows: int) -> tuple[float, float, float]:
    """Return the sum over all `rows`, with a 90 % interval, from the values of some of them."""
    count = len(values)
    mean = sum(values) / count
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / max(1, count - 1))
    beyond = math.sqrt(max(0.0, 1 - count / rows))  # None, where all rows are in the sample.
    half = Z90 * spread / math.sqrt(count) * beyond
    return rows * mean, rows * max(0.0, mean - half), rows * (mean + half)


def make_record(
    work: CleanWork,
    tallies: Iterable[Mapping[str, Any]],
    scores: Mapping[str, ReaderScores],
    *,
    judge: str,
    forecast: CleanForecast | None,
    bill: Mapping[str, float],
    failed: Mapping[str, int],
) -> dict[str, Any]:
    """Return `clean.json`. `tallies`: of the parts. `judge`: the name of that of open answers.
    `failed`: failed calls by their message.
    """
    totals, known_by = Counter[tuple[str, ...]](), Counter[str]()
    for tally in tallies:
        for *key, count in tally["tally"]:
            totals[tuple(key)] += count
        for names in tally["known_by"]:
            known_by.update(names)
    by_verdict, left = Counter[str](), Counter[str]()
    for key, count in totals.items():
        is_left = key[VERDICT] not in DECIDED
        by_verdict["left alone" if is_left else key[VERDICT]] += count
        left[key[VERDICT]] += count if is_left else 0
    rows = sum(by_verdict.values())
    dropped = by_verdict["known"] if work.rule.then == "drop" else 0
    kinds = {key[KIND] for key in totals if key[KIND]}
    graders = {kind: text for kind, text in GRADERS.items() if kind in kinds and work.readers}
    if "open" in graders:
        graders["open"] = graders["open"].replace("the judge", f"the judge {judge}")
    return {
        "rows": rows,
        "kept": rows - dropped,
        "dropped": dropped,
        "rule": work.rule.sentence,
        "rule_keys": asdict(work.rule),
        "columns": asdict(work.columns),
        "verdicts": dict(by_verdict),
        "left_alone": {k: n for k, n in left.most_common() if n},
        "readers": [_reader(name, scores[name], known_by[name]) for name in work.names],
        "graded_by": graders,
        "by": {name: _groups(totals, place) for name, place in GROUPS.items()},
        "forecast": asdict(forecast) if forecast is not None else None,
        "bill": dict(bill),
        "failed_calls": dict(failed),
    }


def _reader(name: str, scores: ReaderScores, known: int) -> dict[str, Any]:
    shares, beats = scores.share(), scores.beats_chance()
    right, chance = shares if shares is not None else (None, None)
    return {
        "name": name, "right": right, "chance": chance, "knows": known,
        "beats_chance": "" in beats, "beats_chance_in_types": sorted(beats - {""}),
    }  # fmt: skip


def _groups(totals: Mapping[tuple[str, ...], int], place: int) -> list[dict[str, Any]]:
    groups: dict[str, Counter[str]] = {}
    for key, count in totals.items():
        what = key[VERDICT] if key[VERDICT] in DECIDED else "left alone"
        groups.setdefault(key[place], Counter())[what] += count
    return [
        {"name": name, "rows": sum(counts.values()), **{d: counts[d] for d in DECIDED}}
        for name, counts in sorted(groups.items(), key=lambda item: -sum(item[1].values()))
    ]


def lines(record: Mapping[str, Any]) -> list[str]:
    """Return the report as text: the counts, the readers, and a table by source, type and so on."""
    rows = record["rows"]
    text = [
        f"{rows:,} rows: {record['kept']:,} kept, {record['dropped']:,} dropped "
        f"({_share(record['dropped'], rows)})",
        record["rule"],
        "  " + ", ".join(f"{d} {record['verdicts'].get(d, 0):,}" for d in DECIDED),
    ]
    if record["left_alone"]:
        reasons = (f"{reason} {count:,}" for reason, count in record["left_alone"].items())
        text.append(f"  left alone: {', '.join(reasons)}")
    for reader in record["readers"]:
        text.append(_reader_line(reader))
    for kind, grader in record["graded_by"].items():
        text.append(f"  graded, {kind}: {grader}")
    text += _bill_lines(record)
    text += [f"  failed, {count}: {message}" for message, count in record["failed_calls"].items()]
    for name, groups in record["by"].items():
        text += ["", f"{'by ' + name:<28}{'rows':>10}{'known':>10}{'':>7}{'not decided':>13}"]
        for group in groups[:MAX_LISTED]:
            label = (group["name"] or "(none)")[:26]
            text.append(
                f"{label:<28}{group['rows']:>10,}{group['known']:>10,}"
                f"{_share(group['known'], group['rows']):>7}{group['not decided']:>13,}"
            )
        if len(groups) > MAX_LISTED:
            text.append(f"... {len(groups) - MAX_LISTED} more in clean.json")
    return [printable(line) for line in text]


def _reader_line(reader: Mapping[str, Any]) -> str:
    if reader["right"] is None:
        return f"  reader {reader['name']}: guessed at nothing"
    types = reader["beats_chance_in_types"]
    if reader["beats_chance"]:
        belief = "beats chance"
    elif types:
        belief = f"beats chance in {len(types)} types only, where it is believed"
    else:
        belief = "does not beat chance, so none of it is believed"
    return (
        f"  reader {reader['name']}: right {reader['right']:.1%}, by chance "
        f"{reader['chance']:.1%}, {belief}; knows {reader['knows']:,}"
    )


def _bill_lines(record: Mapping[str, Any]) -> list[str]:
    bill, forecast = record["bill"], record["forecast"]
    if not bill.get("calls"):
        return []
    text = f"  {bill['calls']:,.0f} calls, {bill['usd']:.4g} USD over all runs of this folder"
    if forecast is not None and forecast["usd"][0]:
        expected = forecast["usd"][0]
        gap = expected / bill["usd"] - 1 if bill["usd"] else 0.0
        text += f"; forecast {expected:.4g} ({gap:+.0%})"
        text += ": far off" if abs(gap) > GAP_LIMIT else ""
    return [text]


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"
