"""What was sent for a reply is kept in few bytes, and differs where prompt or frames differ."""

from actors.answer.look import AnswererFrames, describe_sent
from mustsee.calls.llm import Message, Reply, Request, VideoClip
from mustsee.records import Span

REPLY = Reply(text="B", model="m", tokens_in=90, tokens_out=2)


def request(text: str, role: str = "user") -> Request:
    return Request(prompt="p", digest="d", messages=(Message(role, text),))


def test_frames_have_times_and_hashes() -> None:
    seen = AnswererFrames((b"one", b"two"), times=(0.51234, 3.0))
    sent = describe_sent(request("Why?"), seen, REPLY)
    assert sent["tokens"] == [90, 2]
    assert sent["frames"]["times"] == [0.512, 3.0]
    assert len({*sent["frames"]["hashes"]}) == 2
    assert sent["frames"]["decoder"].startswith("PyAV ")
    other = describe_sent(request("Why?"), AnswererFrames((b"one", b"2"), times=(0.5, 3)), REPLY)
    same = [
        a == b for a, b in zip(sent["frames"]["hashes"], other["frames"]["hashes"], strict=True)
    ]
    assert same == [True, False]


def test_the_hash_of_the_text_is_that_of_roles_and_texts() -> None:
    blind = AnswererFrames()
    words = (("Why?",), ("Why?",), ("How?",), ("Why?", "system"), ("\ud800",))
    hashes = [describe_sent(request(*given), blind, REPLY)["text"] for given in words]
    assert hashes[0] == hashes[1]
    assert len({*hashes}) == 4
    assert "frames" not in describe_sent(request("Why?"), blind, REPLY)


def test_clips_have_their_spans_and_digests() -> None:
    seen = AnswererFrames(videos=(VideoClip(span=Span(1.0, 2.0), digest="abc"),))
    assert describe_sent(request("Why?"), seen, REPLY)["videos"] == [[1.0, 2.0, "abc"]]
