"""One run at a time holds an output folder, on any file system and after any kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from loopback import s3
from mustsee.errors import MustseeError, UserError
from mustsee.run.lease import (
    DEAD_S,
    FOLDER,
    Lease,
    LeaseClaim,
    command_line,
    hold_lease,
    process_start,
)


class Clock:
    """A clock that advances only by `sleep`; `each` is called after every sleep."""

    def __init__(self) -> None:
        self.now = 0.0
        self.each: Any = lambda: None

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.each()


leases: list[Lease] = []


@pytest.fixture(autouse=True)
def released() -> Iterator[None]:
    """Release all leases after the test, so that their threads end."""
    yield
    while leases:
        leases.pop().release()


def lease(out: object, machine: str | None = None, clock: Clock | None = None) -> Lease:
    timed = {} if clock is None else {"clock": clock, "sleep": clock.sleep}
    leases.append(
        Lease(
            str(out), "mustsee neptune", say=lambda line: None, lost=lambda claim: None,
            machine=machine, **timed,
        )
    )  # fmt: skip
    return leases[-1]


def killed(out: object) -> Lease:
    """Return a lease of another machine that holds the folder and is not renewed any more."""
    dead = lease(out, machine="far away")
    dead.acquire()
    dead._over.set()
    return dead


@pytest.fixture(params=["folder", "s3"])
def out(request: pytest.FixtureRequest, tmp_path: Path, released: None) -> Iterator[str]:
    if request.param == "folder":
        yield str(tmp_path)
        return
    with s3.serve_objects() as (_, address):
        yield address.format("out")


def test_a_second_run_gets_an_error_with_the_holder_and_the_folder_after_its_release(
    out: str,
) -> None:
    first, second = lease(out), lease(out)
    first.acquire()
    with pytest.raises(UserError) as caught:
        second.acquire()
    for part in ("mustsee neptune", f"process {os.getpid()}", os.uname().nodename, "UTC", "join="):
        assert part in str(caught.value)
    first.release()
    second.acquire()
    second.release()
    lease(out).acquire()


@pytest.mark.parametrize("machines", ["one machine", "a machine each"])
def test_of_many_concurrent_runs_one_holds_the_folder_at_any_time(out: str, machines: str) -> None:
    inside, most, done = 0, 0, 0
    counting, together = threading.Lock(), threading.Barrier(4)

    def work(number: int) -> None:
        nonlocal inside, most, done
        own = None if machines == "one machine" else f"machine {number}"
        mine = Lease(
            out, "x", say=lambda line: None, lost=lambda claim: None, machine=own,
            sleep=lambda seconds: time.sleep(min(seconds, 0.01)),
        )  # fmt: skip
        together.wait()
        mine.acquire(join=True)
        with counting:
            inside, most = inside + 1, max(most, inside + 1)
        for _ in range(3):
            mine.renew()
        with counting:
            inside, done = inside - 1, done + 1
        mine.release()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert (done, most) == (4, 1)


def test_the_folder_of_a_killed_run_on_this_machine_is_free_at_once(tmp_path: Path) -> None:
    code = (
        "import sys, time\n"
        "from mustsee.run.lease import hold_lease\n"
        "with hold_lease(sys.argv[1], 'neptune'):\n"
        "    print('holds', flush=True)\n"
        "    time.sleep(600)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, cwd=Path.cwd()
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"holds\n"
    with pytest.raises(UserError, match=f"process {process.pid}"):
        lease(tmp_path).acquire()
    process.kill()
    while process_start(process.pid):  # the process is a zombie until `wait`
        pass
    began = time.monotonic()
    lease(tmp_path).acquire()
    assert time.monotonic() - began < 1
    process.wait()
    process.stdout.close()


def test_a_process_with_the_number_of_a_dead_holder_does_not_hold_its_folder(
    tmp_path: Path,
) -> None:
    dead = lease(tmp_path)
    dead.acquire()
    (path,) = (tmp_path / FOLDER).iterdir()
    dead.release()
    claim = {**json.loads(json.dumps(vars(dead._claim))), "process": "17", "holds": True}
    path.parent.mkdir()
    path.write_text(json.dumps(claim))
    lease(tmp_path).acquire()


def test_the_folder_of_a_dead_run_on_another_machine_is_free_after_a_timeout(out: str) -> None:
    killed(out)
    clock = Clock()
    lease(out, clock=clock).acquire()
    assert DEAD_S <= clock.now < DEAD_S + 1


@pytest.mark.parametrize("jump", [-1e8, 1e8])
def test_a_run_on_another_machine_lives_whatever_its_clock_shows(
    tmp_path: Path, jump: float
) -> None:
    far, clock = lease(tmp_path, machine="far away"), Clock()
    far.acquire()
    (path,) = (tmp_path / FOLDER).iterdir()

    def beat() -> None:
        if clock.now % 10 < 0.5:
            far.renew()
            os.utime(path, (time.time() + jump + clock.now,) * 2)

    clock.each = beat
    with pytest.raises(UserError, match="in use"):
        lease(tmp_path, clock=clock).acquire()
    assert clock.now < 11


def test_a_joining_run_gets_the_folder_after_the_end_of_the_first(out: str) -> None:
    first, clock, lines = lease(out), Clock(), list[str]()
    first.acquire()

    def over() -> None:
        if clock.now > 60:
            first.release()

    clock.each = over
    second = Lease(
        out, "x", say=lines.append, lost=lambda claim: None, clock=clock, sleep=clock.sleep
    )
    second.acquire(join=True)
    assert clock.now > 60
    assert len(lines) == 1
    assert "waiting for the end" in lines[0]
    second.release()


def test_a_run_that_counted_as_dead_gets_the_claim_of_its_successor(out: str) -> None:
    far = killed(out)
    near = lease(out, clock=Clock())
    near.acquire()
    taker = far.renew()
    assert isinstance(taker, LeaseClaim)
    assert taker.machine == near._claim.machine
    assert near.renew() is None


def test_a_holder_keeps_its_folder_after_the_lease_folder_was_cleared(tmp_path: Path) -> None:
    first = lease(tmp_path)
    first.acquire()
    (path,) = (tmp_path / FOLDER).iterdir()
    path.unlink()
    (tmp_path / FOLDER).rmdir()
    assert first.renew() is None
    with pytest.raises(UserError, match="in use"):
        lease(tmp_path).acquire()


def test_the_folder_is_released_however_the_run_ends(tmp_path: Path) -> None:
    for error in (KeyboardInterrupt, ValueError, SystemExit):
        with pytest.raises(error), hold_lease(str(tmp_path), "neptune"):
            raise error
        assert not list(tmp_path.iterdir())


def test_a_run_that_wrote_nothing_leaves_no_folders(tmp_path: Path) -> None:
    out = tmp_path / "runs" / "new"
    with hold_lease(str(out), "neptune"):
        assert (out / FOLDER).is_dir()
    assert not list(tmp_path.iterdir())
    with hold_lease(str(out), "neptune"):
        (out / "run.json").write_text("{}")
    assert [path.name for path in out.iterdir()] == ["run.json"]


@pytest.mark.parametrize("ignored", [False, True], ids=["", "in the background of a script"])
def test_a_run_that_lost_its_folder_ends_and_names_its_successor(
    ignored: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.setattr("mustsee.run.lease.BEAT_S", 0.05)
    handler = signal.SIG_IGN if ignored else signal.default_int_handler
    before = signal.signal(signal.SIGINT, handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))

    def work() -> None:
        with hold_lease(str(tmp_path), "neptune"):
            (own,) = (tmp_path / FOLDER).iterdir()
            other = lease(tmp_path, machine="far away")
            (tmp_path / FOLDER / "z.json").write_text(json.dumps(asdict(other._claim)))
            own.rename(tmp_path / "taken")
            threading.Event().wait(30)

    with pytest.raises(MustseeError, match="was taken over by mustsee neptune"):
        work()


def test_of_two_that_write_their_claims_at_one_time_only_one_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = lease(tmp_path), lease(tmp_path, machine="far away")
    first.acquire()
    (own,) = (tmp_path / FOLDER).iterdir()
    own.unlink()
    write = first._write

    def write_after_the_other() -> None:
        second.acquire()
        write()

    monkeypatch.setattr(first, "_write", write_after_the_other)
    taken = first.renew()
    assert taken is not None
    assert taken.machine == "far away"
    (left,) = (tmp_path / FOLDER).iterdir()
    assert left.stem == taken.name


def test_an_unreadable_claim_counts_until_the_timeout(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "x.json").write_text("{")
    clock = Clock()
    lease(tmp_path, clock=clock).acquire()
    assert clock.now >= DEAD_S


def test_a_command_line_hides_the_credentials_of_addresses() -> None:
    line = command_line(["mustsee", "neptune", "videos=s3://KEYOFMINE:SECRET@bucket/x", "out=a b"])
    assert line == "mustsee neptune videos=s3://(key)@bucket/x 'out=a b'"
    assert len(command_line(["mustsee", "x" * 5000])) < 400


def test_a_lease_costs_little(tmp_path: Path) -> None:
    def once() -> float:
        began = time.perf_counter()
        mine = lease(tmp_path)
        mine.acquire()
        mine.release()
        return time.perf_counter() - began

    assert min(once() for _ in range(5)) < 0.05


def test_a_file_in_the_place_of_the_leases_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "lease").write_text("")
    with pytest.raises(MustseeError, match="lease"), hold_lease(str(tmp_path), "x"):
        pass
