"""The store returns what was stored, never a half-written value; identity decides the key."""

import dataclasses
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopback import s3
from mustsee import errors
from mustsee.errors import MustseeError, UserError
from mustsee.files.schemas import table
from mustsee.files.store import (
    DAMAGED,
    HEADER_BYTES,
    MAX_DAMAGED,
    ReadOnlyStore,
    Store,
    StoreDamage,
    digest,
    hardware,
    identity,
    resolve,
)
from mustsee.records import Keyframe, Line, Problem, Video


@dataclasses.dataclass(frozen=True, kw_only=True)
class Model:
    version = "1"
    name: str = "small"
    device: str = hardware("cpu")


def test_the_last_stored_value_is_returned(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store"))
    assert store.get("look", "ab12") is None
    store.put("look", "ab12", b"one")
    store.put("look", "ab12", b"two")
    assert store.get("look", "ab12") == b"two"
    assert store.get("hear", "ab12") is None


def test_hardware_is_not_identity_and_everything_else_is() -> None:
    base = identity(Model())
    assert identity(Model(device="gpu")) == base
    assert identity(Model(name="large")) != base
    newer = type("Model", (Model,), {"version": "2"})
    assert identity(newer()) != base


@given(st.dictionaries(st.text(max_size=4), st.integers() | st.binary(max_size=4), max_size=4))
def test_digests_ignore_order(values: dict[str, object]) -> None:
    turned = dict(reversed(list(values.items())))
    assert digest(values) == digest(turned)


def test_a_kill_between_writes_leaves_whole_values_only(tmp_path: Path) -> None:
    """A process that overwrites one key is killed; the store then holds one whole value."""
    code = (
        "import sys\n"
        "from mustsee.files.store import Store\n"
        "store = Store(sys.argv[1])\n"
        "print('go', flush=True)\n"
        "while True:\n"
        "    for letter in b'ab':\n"
        "        store.put('llm', 'k0', bytes([letter]) * 400_000)\n"
    )
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, cwd=Path.cwd()
        )
        assert process.stdout is not None
        process.stdout.readline()
        while Store(str(tmp_path)).get("llm", "k0") is None:
            pass
        process.kill()
        process.wait()
        process.stdout.close()
        value = Store(str(tmp_path)).get("llm", "k0")
        assert value in (b"a" * 400_000, b"b" * 400_000)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_a_store_that_cannot_be_written_says_which_and_what_to_do(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(MustseeError, match=r"cannot read the store .*store="):
        Store(str(blocked)).get("llm", "k")
    with pytest.raises(MustseeError, match=r"cannot write to the store .*store="):
        Store(str(blocked)).put("look", "k0", b"x")


def test_an_unknown_scheme_names_the_ones_that_work() -> None:
    with pytest.raises(UserError, match="s3://bucket"):
        resolve("ftp://host/path")


def test_keys_of_a_kind_since_a_time(tmp_path):
    store = Store(str(tmp_path))
    assert store.keys("batches") == []
    store.put("batches", "b" * 8, b"1")
    store.put("batches", "a" * 8, b"2")
    store.put("llm", "c" * 8, b"3")
    (tmp_path / "batches" / "aa" / ".half").write_bytes(b"")
    assert store.keys("batches") == ["a" * 8, "b" * 8]
    assert store.keys("batches", since=time.time() + 60) == []


def test_the_secret_in_an_address_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "_secrets", set[str]())
    with pytest.raises(UserError) as caught:
        resolve("s3://AKIAEXAMPLE:a%2Fsecret-of-mine@bucket/store?no_such_option=1")
    assert "AKIAEXAMPLE" not in str(caught.value)
    assert "secret-of-mine" not in str(caught.value)
    assert "bucket/store" in str(caught.value)
    assert errors.hide_secrets("config: s3://AKIAEXAMPLE:a/secret-of-mine@bucket") == (
        "config: s3://(key)@bucket"
    )
    with pytest.raises(UserError):
        resolve("s3://bucket/longname@home?no_such_option=1")  # no account
    assert errors.hide_secrets("longname") == "longname"


def test_keys_leave_out_damaged_objects(tmp_path: Path) -> None:
    reported: list[StoreDamage] = []
    store = Store(str(tmp_path), reported.append)
    store.put("batches", "a" * 8, b"1")
    store.put("batches", "b" * 8, b"2")
    damage(store, "batches", "a" * 8, b"")
    assert store.get("batches", "a" * 8) is None
    assert store.keys("batches") == ["b" * 8]


def damage(store: Store, kind: str, key: str, content: bytes) -> None:
    Path(store._path(kind, key)).write_bytes(content)


def results() -> dict[tuple[str, str], bytes]:
    """Return objects of each kind: tables with numbers, words and frames, a failure, replies, a
    clip.
    """
    rng = random.Random(0)
    frames = tuple(Keyframe(shot=n, time=n / 3, jpeg=rng.randbytes(900)) for n in range(6))
    lines = tuple(Line(start=n, end=n + 0.5, text=f"the {n}th thing said") for n in range(40))
    problem = Problem(stage="look", error="BadRow", message="unreadable")
    rows = {
        "look": Video(video_id="v", uri="v.mp4", keyframes=frames),
        "hear": Video(video_id="v", uri="v.mp4", lines=lines, duration=61.5),
        "embed": Video(video_id="v", uri="v.mp4", embedding=tuple(rng.random() for _ in range(90))),
        "probe": Video(video_id="v", uri="v.mp4", problem=problem),
    }
    reply = json.dumps({"model": "m", "text": "* ANSWER: B", "tokens_in": 12, "usd": 0.004})
    made: dict[tuple[str, str], bytes] = {("llm", "9" * 64): reply.encode()}
    made["clip", "8" * 64] = b"\0\0\0 ftypisom" + rng.randbytes(3000)
    with_tables = ReadOnlyStore("/nowhere")
    for kind, row in rows.items():
        with_tables.put_table(kind, digest(kind), table([row], Video))
    return {**made, **with_tables.own}


def flips(size: int, many: int) -> list[int]:
    """Bits of an object: each of its header, and others spread over the rest."""
    rest = range(8 * HEADER_BYTES, 8 * size)
    drawn = random.Random(size).sample(rest, min(many, len(rest)))
    return [*range(8 * HEADER_BYTES), *drawn]


def test_every_flipped_bit_is_a_cache_miss(tmp_path: Path) -> None:
    reported: list[StoreDamage] = []
    store = Store(str(tmp_path), reported.append)
    tried = 0
    for (kind, key), value in results().items():
        store.put(kind, key, value)
        whole = Path(store._path(kind, key)).read_bytes()
        for bit in flips(len(whole), 30):
            flipped = bytearray(whole)
            flipped[bit // 8] ^= 1 << bit % 8
            damage(store, kind, key, bytes(flipped))
            assert (store.get(kind, key) if bit % 2 else store.get_table(kind, key)) is None
            tried += 1
        store.put(kind, key, value)
        assert store.get(kind, key) == value
    assert tried >= 840
    assert len(reported) == tried


@pytest.mark.parametrize("length", [0, 1, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 1, -1])
def test_a_truncated_object_is_a_cache_miss_and_is_kept(tmp_path: Path, length: int) -> None:
    reported: list[StoreDamage] = []
    store = Store(str(tmp_path), reported.append)
    store.put_table("look", "ab12", pa.table({"a": [1, 2]}))
    path = Path(store._path("look", "ab12"))
    cut = path.read_bytes()[:length]
    path.write_bytes(cut)
    assert store.get_table("look", "ab12") is None
    assert [each.path for each in reported] == ["look/ab/ab12.1"]
    assert (tmp_path / DAMAGED / "look.ab12").read_bytes() == cut
    assert store.get_table("look", "ab12") is None
    assert len(reported) == 1  # it is gone, so no other reader meets it
    store.put_table("look", "ab12", pa.table({"a": [1, 2]}))
    assert store.get_table("look", "ab12") == pa.table({"a": [1, 2]})


def test_an_object_under_a_wrong_name_is_a_cache_miss(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.put("llm", "ab12", b"yes")
    store.put("llm", "ab34", b"no")
    damage(store, "llm", "ab12", Path(store._path("llm", "ab34")).read_bytes())
    assert store.get("llm", "ab12") is None


def test_a_limited_number_of_damaged_objects_is_kept(tmp_path: Path) -> None:
    reported: list[StoreDamage] = []
    store = Store(str(tmp_path), reported.append)
    for number in range(MAX_DAMAGED + 5):
        store.put("llm", f"{number:08}", b"yes")
        damage(store, "llm", f"{number:08}", b"no")
        assert store.get("llm", f"{number:08}") is None
    assert len(reported) == MAX_DAMAGED + 5
    assert len(list((tmp_path / DAMAGED).iterdir())) == MAX_DAMAGED
    assert store.keys("llm") == []


def test_a_read_only_store_leaves_damaged_objects_in_place(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.put("llm", "ab12", b"yes")
    damage(store, "llm", "ab12", b"no")
    assert ReadOnlyStore(str(tmp_path)).get("llm", "ab12") is None
    assert Path(store._path("llm", "ab12")).read_bytes() == b"no"


def test_objects_in_an_object_store_have_a_checksum(tmp_path: Path) -> None:
    reported: list[StoreDamage] = []
    with s3.serve_objects() as (objects, address):
        store = Store(address.format("store"), reported.append)
        store.put("llm", "ab12", b"yes")
        assert objects.asked["PUT"] == 1
        assert store.get("llm", "ab12") == b"yes"
        (name,) = objects.kept
        objects.kept[name] = objects.kept[name][:-1] + b"t"
        assert store.get("llm", "ab12") is None
        assert [each.path for each in reported] == ["llm/ab/ab12.1"]
        kept = [n for n in objects.kept if not n.endswith("/")]
        assert kept == ["store/damaged/llm.ab12"]


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no file here that gives an EIO")
def test_an_unreadable_object_is_a_cache_miss_and_is_reported_once(
    tmp_path: Path,
) -> None:
    found: list[StoreDamage] = []
    store = Store(str(tmp_path), on_damage=found.append)
    store.put("llm", "ab12", b"value")
    path = Path(store._path("llm", "ab12"))
    path.unlink()
    path.symlink_to("/proc/self/mem")  # opened like any file, and its first byte is an EIO
    assert store.get("llm", "ab12") is None
    assert found == [StoreDamage("llm/ab/ab12.1", "cannot be read: Input/output error")]
    store.put("llm", "ab12", b"value")
    assert store.get("llm", "ab12") == b"value"
    assert len(found) == 1
