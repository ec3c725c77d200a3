"""No message shows keys, in whatever encoding, or the accounts in addresses."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mustsee import errors
from mustsee.errors import UserError, hide_secrets, secret, secrets_in
from mustsee.files.store import resolve

KEY = "sk-üb/er+geheim?~17"


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "_secrets", set[str]())


@pytest.mark.parametrize("form", [
    KEY, quote(KEY), quote(KEY, safe=""), quote_plus(KEY), quote(KEY, safe="").replace("%2F", "%2f")
    .replace("%2B", "%2b").replace("%3F", "%3f").replace("%C3%BC", "%c3%bc"),
    b64encode(KEY.encode()).decode(), urlsafe_b64encode(KEY.encode()).decode(),
    b64encode(KEY.encode()).decode().rstrip("="),
])  # fmt: skip
def test_a_key_is_hidden_in_every_encoding(form: str) -> None:
    secret(KEY)
    assert hide_secrets(f"before {form} behind") == "before (key) behind"


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=9), st.binary(max_size=9), st.sampled_from([b64encode, urlsafe_b64encode])
)
def test_a_key_within_a_longer_base64_is_hidden(
    before: bytes, behind: bytes, encode: object
) -> None:
    assert callable(encode)
    secret(KEY)
    assert "(key)" in hide_secrets(encode(before + KEY.encode() + behind).decode())


@pytest.mark.parametrize(("address", "shown"), [
    ("http://user:pw@host/x.mp4", "http://(key)@host/x.mp4"),
    ("s3://AKIAEXAMPLE:a/b+c/d@bucket/x", "s3://(key)@bucket/x"),
    ("postgresql://u:p@h:5432/db", "postgresql://(key)@h:5432/db"),
    ("http://host:8080/@user/x", "http://host:8080/@user/x"),
    ("https://host/a:b@c", "https://host/a:b@c"),
])  # fmt: skip
def test_the_account_in_an_address_is_hidden(address: str, shown: str) -> None:
    assert str(UserError(f"cannot open {address!r}: no")) == f"cannot open {shown!r}: no"


def test_the_account_of_a_seen_address_is_hidden_in_other_messages() -> None:
    secrets_in("base_url=http://somebody:a%2Fsecret%21@host/v1")
    assert hide_secrets("denied to somebody with a/secret!") == "denied to (key) with (key)"


def test_a_web_address_is_refused_without_its_account() -> None:
    with pytest.raises(UserError) as refused:
        resolve("http://user:secretpw123@host/x.mp4")
    assert "secretpw123" not in str(refused.value)
    assert "host/x.mp4" in str(refused.value)
