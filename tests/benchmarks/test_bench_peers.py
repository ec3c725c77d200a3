"""Other tools measured beside `look`: one that cannot run is a row with the reason."""

from pathlib import Path

import pytest
import yaml

from benchmarks.bench import CONF
from benchmarks.peers import PROGRAMS, Peer, PeersBench


def test_each_peer_has_its_program() -> None:
    peers = yaml.safe_load((CONF / "what/peers.yaml").read_text())["peers"]
    assert set(peers) == {path.stem for path in PROGRAMS.glob("*.py")}


@pytest.mark.slow  # It makes an environment.
def test_a_peer_that_fails_is_a_row_with_the_reason(tmp_path: Path) -> None:
    video = Path(__file__).parents[2] / "examples/videos/pancakes.mp4"
    bench = PeersBench(
        videos=[str(video)],
        peers={
            "pyav": Peer(does="decode"),
            "missing": Peer(does="nothing"),
            "daft": Peer(does="frames", packages=[f"nothing @ file://{tmp_path}/not-here.whl"]),
        },
        folder=str(tmp_path / "peers"),
        rounds=1,
    )
    table = bench()
    decode, missing, daft = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    assert decode["of decoding"] == 1
    assert decode["what came of it"] == "1369 frames decoded"
    assert str(missing["what came of it"]).startswith("not run: ")
    assert str(daft["what came of it"]).startswith("not installed: ")
    assert missing["CPU s"] is None
    assert daft["CPU s"] is None
