"""The call log has the spending of all runs after any kill, on a disk and an object store."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs

from mustsee.calls import call_log, call_log_files
from mustsee.calls.budget import CallCost
from mustsee.calls.call_log import FOLDER, CallLog, run_name
from mustsee.calls.usage import CallOutcome, UsageTotals
from mustsee.errors import MustseeError
from mustsee.files.store import Store


def end(key: str, outcome="done", usd: float = 0.5, **more) -> CallOutcome:
    return CallOutcome(
        outcome=outcome, model="m", prompt="p", tokens_in=7, tokens_out=3, usd=usd, key=key,
        account="a", **more,
    )  # fmt: skip


def cost(usd: float) -> CallCost:
    return CallCost(model="m", prompt="p", usd=usd)


@pytest.fixture(params=["disk", "object store"])
def out(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An output folder on a disk, or on an object store, whose files are written whole."""
    if request.param == "object store":
        (tmp_path / "out" / FOLDER).mkdir(parents=True)
        store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
        monkeypatch.setattr(call_log, "resolve", lambda path: (store, "out"))
        monkeypatch.setattr(call_log_files, "LARGE_FILE_BYTES", 300)
    return str(tmp_path / "out")


def entered(out: str, *work) -> CallLog:
    """Enter and write each of `work` as a run does; return its call log."""
    log = CallLog(out)
    for each in work:
        if isinstance(each, CallOutcome):
            log.record_end(each)
        else:
            key, usd = each
            log.record_sent(key, cost(usd))
        log.keep()
    return log


def test_money_and_lost_calls_of_earlier_runs_count(out):
    log = entered(out, ("a", 1.0), ("b", 1.0), end("a"), ("c", 2.0))
    assert log.spent().plain() == {
        "runs": 1, "calls": 1, "batched": 0, "retries": 0, "failed": 0, "tokens_in": 7,
        "tokens_out": 3, "usd": 0.5, "by_stage": {"": 0.5}, "unknown": 0, "unknown_usd": 0.0,
        "unanswered": 0, "unanswered_usd": 0.0, "damaged": 0, "missing_usd": 0.0,
    }  # fmt: skip
    killed = CallLog(out)
    assert killed.usd == pytest.approx(3.5)
    spent = killed.spent()
    assert (spent.runs, spent.total.calls, spent.unknown, spent.unknown_usd) == (1, 1, 2, 3.0)
    log = entered(out, ("b", 1.0), end("b", usd=0.25))
    spent = log.spent()
    assert (spent.runs, spent.total.calls, spent.total.usd) == (2, 2, 0.75)
    assert (spent.unknown, spent.unknown_usd) == (2, 3.0)  # b was sent twice
    assert CallLog(out).usd == pytest.approx(3.75)


def test_a_call_that_is_awaited_again_is_not_lost(out):
    entered(out, ("a", 1.0), ("b", 2.0))
    log = CallLog(out)
    log.record_found("a")
    assert log.usd == pytest.approx(2.0)
    log.record_sent("a", cost(1.0))
    log.record_end(end("a", batched=True))
    log.keep()
    spent = CallLog(out).spent()
    assert (spent.total.calls, spent.total.batched) == (1, 1)
    assert (spent.unknown, spent.unknown_usd) == (1, 2.0)


def test_a_late_reply_ends_a_lost_call():
    log = CallLog()
    log.record_sent("a", cost(1.0))
    log.record_lost("a")
    assert log.usd == 1.0
    log.record_end(end("a"))
    assert log.usd == 0.0


def test_cached_replies_have_no_entry_and_failed_calls_are_not_lost(out):
    log = entered(out, ("a", 1.0), end("a", "cached"), ("b", 1.0), end("b", "retry"))
    assert log.entry_count == 4
    log = entered(out, end("c", "cached"))
    assert log.entry_count == 0
    spent = CallLog(out).spent()
    assert (spent.runs, spent.total.calls, spent.total.retries, spent.unknown) == (1, 0, 1, 0)


def test_a_line_that_a_kill_cut_off_is_ignored(out):
    entered(out, ("a", 1.0), end("a"), ("b", 1.0))
    (*_, last) = sorted(Path(out, FOLDER).iterdir())
    last.write_bytes(last.read_bytes()[:-9])
    assert CallLog(out).spent().plain()["usd"] == 0.5


def test_entries_have_no_default_values_and_no_account(out):
    entered(out, ("a", 1.0), end("a", again="it is empty"), end("b", tokens_thought=2))
    files = sorted(Path(out, FOLDER).iterdir())
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert all(len(line.pop("sum")) == 16 for line in lines)
    assert {"sent": "a", "by": "", **vars(cost(1.0))} in lines
    assert [line.get("again") for line in lines] == [None, "it is empty", None]
    assert not any("account" in line for line in lines)


def test_a_folder_that_cannot_be_written_stops_the_run(tmp_path):
    (tmp_path / FOLDER).write_text("a file, not a folder")
    with pytest.raises(MustseeError, match="call_log"):
        entered(str(tmp_path), ("a", 1.0))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["sent", "done", "failed"]))))
def test_every_sent_call_is_paid_ended_or_unknown(tmp_path_factory, steps):
    """The next run reads the same sums."""
    out = str(tmp_path_factory.mktemp("run") / "out")
    log, usage, in_flight = CallLog(out), UsageTotals(), set[str]()
    for key, what in steps:
        if what == "sent":
            in_flight.add(key)
            log.record_sent(key, cost(1.0))
        else:
            in_flight.discard(key)
            usage.add(end(key, what))
            log.record_end(end(key, what))
    log.keep()
    assert log.now.total == usage.total
    spent = CallLog(out).spent()
    assert spent.unknown_usd == spent.unknown == len(in_flight)
    assert spent.total.plain() | {"asked_again_for": {}} == usage.total.plain()


def test_a_call_without_an_answer_counts_until_the_bills_say_what_it_cost(out):
    entered(out, ("a", 1.0), end("a", "retry", usd=0.0), ("a", 1.0), end("a", usd=3.0))
    spent = CallLog(out).spent()
    assert (spent.total.calls, spent.total.usd, spent.unknown) == (1, 3.0, 0)
    assert (spent.unanswered, spent.unanswered_usd) == (
        1,
        3.0,
    )  # as dear as the one that was billed


def test_a_refused_reply_counts_with_its_bill(out):
    entered(out, ("a", 1.0), end("a", "retry", usd=0.25, bill_known=True))
    entered(out, ("b", 1.0), end("b", "failed", usd=0.0, bill_known=True))
    spent = CallLog(out).spent()
    assert (spent.total.usd, spent.unanswered) == (0.25, 0)


@pytest.mark.parametrize("harm", ["emptied", "zeros", "half", "a middle line"])
@pytest.mark.parametrize("knows", ["run.json", "the store"])
def test_money_that_a_damaged_log_lacks_counts_once(tmp_path, harm, knows):
    """The next runs count it, too, and no sound log lacks any."""
    out, store = str(tmp_path / "out"), f"{tmp_path}/out/store"
    keys = [f"k{n}" for n in range(20)]
    log = entered(out, *(each for key in keys for each in ((key, 1.0), end(key))))
    if knows == "run.json":
        record = {"llm": {"all_runs": log.spent().plain()}}
        (tmp_path / "out" / "run.json").write_text(json.dumps(record))
    else:
        for key in keys:
            Store(store).put("llm", key, json.dumps({"usd": 0.5}).encode())
        Store(store).put("llm", "rules", b'{"usd": 0.0}')
    assert CallLog(out, store=store).spent().damaged == 0
    assert CallLog(out, store=store).usd == pytest.approx(10.0)
    (file,) = (tmp_path / "out" / FOLDER).iterdir()
    sound = file.read_bytes()
    lines = sound.splitlines(keepends=True)
    file.write_bytes(
        {
            "emptied": b"",
            "zeros": bytes(len(sound)),
            "half": sound[: len(sound) // 2 + 9],
            "a middle line": b"".join([*lines[:20], b"#" + lines[20], *lines[21:]]),
        }[harm]
    )
    for _ in range(3):
        log = CallLog(out, store=store)
        assert log.spent().damaged == 1
        assert 10.0 - 1e-6 <= log.usd <= 10.5 + 1e-6
        log.keep()


def test_a_log_that_was_deleted_counts_from_zero(tmp_path):
    log = entered(str(tmp_path), ("a", 1.0), end("a"))
    record = {"llm": {"all_runs": log.spent().plain()}}
    (tmp_path / "run.json").write_text(json.dumps(record))
    for file in (tmp_path / FOLDER).iterdir():
        file.unlink()
    assert CallLog(str(tmp_path)).usd == 0.0


def test_replies_in_a_shared_store_are_not_taken_for_this_folders(tmp_path):
    out, store = str(tmp_path / "out"), str(tmp_path / "shared")
    entered(out, ("a", 1.0), end("a"))
    Store(store).put("llm", "of another", json.dumps({"usd": 7.0}).encode())
    (file,) = (tmp_path / "out" / FOLDER).iterdir()
    file.write_bytes(file.read_bytes() + b"damaged\n")
    log = CallLog(out, store=store)
    assert (log.usd, log.spent().damaged) == (0.5, 1)


def test_entries_are_synced_about_once_a_second(tmp_path, monkeypatch):
    now, synced = [0.0], list[float]()
    monkeypatch.setattr(call_log_files.os, "fsync", lambda handle: synced.append(now[0]))
    place = fs.LocalFileSystem(), str(tmp_path)
    file = call_log_files.RunFile(*place, "run", clock=lambda: now[0])
    for tenth in range(30):
        now[0] = tenth / 10
        file.write(b"a line\n" if tenth < 25 else b"")
    assert synced == [0.0, 0.0, 1.0, 2.0]  # the folder once, then the entries
    now[0] = 3.0
    file.write(b"")
    file.write(b"")
    assert synced[4:] == [3.0]


def test_a_slow_disk_is_synced_less_often(tmp_path, monkeypatch):
    now, synced = [0.0], list[float]()

    def sync(handle: int) -> None:
        synced.append(now[0])
        now[0] += 0.5

    file = call_log_files.RunFile(fs.LocalFileSystem(), str(tmp_path), "run", clock=lambda: now[0])
    file.write(b"a line\n")
    monkeypatch.setattr(call_log_files.os, "fsync", sync)
    while now[0] < 100.0:
        now[0] += 0.25
        file.write(b"a line\n")
    assert len(synced) <= 100 / 25 + 1


def test_a_pipe_in_the_folder_is_refused(tmp_path):
    (tmp_path / FOLDER).mkdir()
    os.mkfifo(tmp_path / FOLDER / "20300101T000000000000-abcdef01.jsonl")
    with pytest.raises(MustseeError, match="named pipe"):
        CallLog(str(tmp_path))


def test_names_of_runs_are_in_order_even_if_the_clock_is_set_back(out):
    noon, names = datetime(2026, 11, 22, 12, tzinfo=UTC), []
    for hours in (0, 1, -24, 400 * 24, -1):
        names.append(run_name(out, noon + timedelta(hours=hours)))
        log = CallLog(out, names[-1])
        log.record_sent(f"call {hours}", cost(1.0))
        log.keep()
    assert names == sorted(names)
    assert len({name.partition("-")[0] for name in names}) == 5
    assert CallLog(out).runs == 5


def test_a_damaged_line_is_ignored(tmp_path: Path) -> None:
    """If any bit flips, the call counts with its cost or its estimate."""
    out = str(tmp_path / "out")
    entered(out, ("a", 1.0), end("a"))
    (file,) = (tmp_path / "out" / FOLDER).iterdir()
    sound = file.read_bytes()
    for bit in range(8 * len(sound)):
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        if sound[bit // 8] != ord(
            "\n"
        ):  # without a line end, two entries become one unreadable line
            file.write_bytes(damaged)
            assert CallLog(out).usd in (0.5, 1.0), bytes(damaged)
    for line in (b"0", b"[]", b'"sent"', bytes(100)):
        file.write_bytes(sound + line + b"\n")
        assert CallLog(out).usd == 0.5
