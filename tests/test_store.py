"""The store: what is put is got, half a value never, and identity is what decides a result."""

import dataclasses
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.part import hardware
from mustsee import errors
from mustsee.errors import MustseeError, UserError
from mustsee.store import Store, digest, identity, resolve


@dataclasses.dataclass(frozen=True, kw_only=True)
class Model:
    version = "1"
    name: str = "small"
    device: str = hardware("cpu")


def test_the_last_value_put_is_got(tmp_path: Path) -> None:
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
    """A process that overwrites one key for ever is killed; what is there is one whole value."""
    code = (
        "import sys\n"
        "from mustsee.store import Store\n"
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


def test_an_address_tells_its_secret_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "_secrets", set[str]())
    with pytest.raises(UserError) as caught:
        resolve("s3://AKIAEXAMPLE:a%2Fsecret-of-mine@bucket/store?no_such_option=1")
    assert "AKIAEXAMPLE" not in str(caught.value)
    assert "secret-of-mine" not in str(caught.value)
    assert "bucket/store" in str(caught.value)
    assert errors.hidden("config: s3://AKIAEXAMPLE:a/secret-of-mine@bucket") == (
        "config: s3://(key)@bucket"
    )
    with pytest.raises(UserError):
        resolve("s3://bucket/longname@home?no_such_option=1")  # no account
    assert errors.hidden("longname") == "longname"
