"""Others measured beside `look`: what cannot run is a row with the reason."""

from pathlib import Path

import yaml

from benchmarks.peers import PROGRAMS, Peer, PeersBench

CONF = Path(__file__).parents[2] / "conf/what/peers.yaml"


def test_each_peer_has_its_program() -> None:
    named = yaml.safe_load(CONF.read_text())["peers"]
    assert set(named) == {path.stem for path in PROGRAMS.glob("*.py")}


def test_a_failing_peer_is_a_row_with_its_reason(tmp_path: Path) -> None:
    video = Path(__file__).parents[2] / "examples/videos/pancakes.mp4"
    bench = PeersBench(
        videos=[str(video)],
        peers={
            "pyav": Peer(does="decode"),
            "nobody": Peer(does="nothing"),
            "daft": Peer(does="frames", packages=[f"nothing @ file://{tmp_path}/not-here.whl"]),
        },
        folder=str(tmp_path / "peers"),
        rounds=1,
    )
    made = bench()
    decode, nobody, daft = (dict(zip(made.columns, row, strict=True)) for row in made.rows)
    assert decode["of decoding"] == 1
    assert decode["what came of it"] == "1369 pictures decoded"
    assert str(nobody["what came of it"]).startswith("not run: ")
    assert str(daft["what came of it"]).startswith("not installed: ")
    assert nobody["CPU s"] is None
    assert daft["CPU s"] is None
