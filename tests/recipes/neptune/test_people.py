"""Perceived age and gender: off by default, one call for a video, strata, and the card."""

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from actors.llm.openai import OpenAI
from actors.part import RunContext
from actors.stages.people import People
from mustsee.calls.llm import Reply, Request
from mustsee.errors import Unparsed, UserError
from mustsee.files.schemas import table
from mustsee.files.store import Store
from mustsee.layouts import card
from mustsee.recipes.neptune.diversity import Diversity, impression
from mustsee.records import Keyframe, Video
from ray_jobs.cli.build import build
from ray_jobs.cli.compose import compose
from ray_jobs.runtime.run import RunningJob
from tests.layouts.test_exports import made


@dataclass
class Sees:
    """Replies with the text in the last image."""

    identity: str = "viewer 7"
    asked: list[Request] = field(default_factory=list[Request])

    def open(self) -> "Sees":
        return self

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        return Reply(text=request.messages[-1].images[-1].decode(), model="m")


def look(video: Video, sees: Sees, tmp_path: Path) -> Video:
    context = RunContext(store=Store(str(tmp_path)), llm=lambda c: c, count=lambda n, k: None)  # type: ignore[arg-type,return-value]
    return asyncio.run(People(llm=sees, frames=2, tries=1).open(context)(video))  # type: ignore[arg-type]


def shown(*texts: str) -> Video:
    frames = tuple(Keyframe(time=float(n), shot=n, jpeg=t.encode()) for n, t in enumerate(texts))
    return Video(video_id="v", uri="v.mp4", keyframes=frames)


def test_a_video_is_perceived_in_one_call_with_spread_frames(tmp_path: Path) -> None:
    sees = Sees()
    video = shown("a", "b", "c", "AGE: old\n**GENDER:** Women", "d")
    perceived = look(video, sees, tmp_path)
    assert [r.messages[-1].images for r in sees.asked] == [(b"b", b"AGE: old\n**GENDER:** Women")]
    columns = (perceived.perceived_age, perceived.perceived_gender, perceived.perceived_by)
    assert columns == ("old", "women", "viewer 7")
    empty = look(shown(), sees, tmp_path)
    assert (empty.perceived_age, len(sees.asked)) == ("none", 1)
    muddled = look(shown("x"), sees, tmp_path)
    assert (muddled.perceived_age, muddled.perceived_gender) == ("unclear", "unclear")


def test_only_known_values_are_parsed() -> None:
    assert impression().read('{"age": "mixed", "gender": "NONE"}').gender == "none"
    for reply in ("AGE: 34\nGENDER: MEN", "AGE: OLD", "They are old men."):
        with pytest.raises(Unparsed):
            impression().read(reply)


@pytest.mark.parametrize(
    ("given", "perceived"),
    [
        (["diversity.size=9"], False),
        (["diversity.size=9", "diversity.strata=[perceived_age]"], True),
        (["diversity.strata=[perceived_age]"], False),
    ],
)
def test_people_are_perceived_only_for_the_strata_of_a_sample(
    given: list[str], perceived: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "v.mp4").touch()
    queued: list[str] = []
    monkeypatch.setattr(RunningJob, "stage", lambda run, name, part, **_: queued.append(name))
    monkeypatch.setattr(RunningJob, "publish", lambda *_, **__: 0)
    job = build(compose("neptune", [f"videos={tmp_path}", f"out={tmp_path}/o", *given]))
    assert job() == 0
    assert ("people" in queued) == perceived


def test_people_are_perceived_by_the_run_s_model_which_must_take_images() -> None:
    given = ["videos=v", "out=o", "llm=openai", "key_env=null"]
    assert build(compose("neptune", given)).people.llm.model == "gpt-6-luna"
    with pytest.raises(UserError, match="takes no images"):
        People(llm=OpenAI(model="m", base_url="http://x", looks=False)).check()


def test_strata_of_perceived_people_balance_the_sample() -> None:
    rows = [replace(shown(), video_id=f"v{n}", perceived_gender="men" if n % 8 else "women")
            for n in range(64)]  # fmt: skip
    even = Diversity(size=16, clusters=1, boost=0.0, strata=("perceived_gender",))
    dropped = even(table(rows, Video)).drops
    assert sum(n % 8 == 0 for n in range(64) if f"v{n}" not in dropped) == 8


def test_the_card_names_the_model_that_perceived_people() -> None:
    rows = [Video(video_id=f"v{n}", uri="", perceived_age="old", perceived_gender="men",
                  perceived_by="viewer 7") for n in range(6)]  # fmt: skip
    questions = made()
    tally = card.CardCounts()
    for question in questions:
        tally.keep(question, "test")
    text = card.card_text(card.Card(), tally, rows, files="{}")
    for part in ("`viewer 7` perceived", "old 6", "impressions of a model"):
        assert part in text
    plain = [replace(row, perceived_by=None) for row in rows]
    assert "perceived" not in card.card_text(card.Card(), tally, plain, files="{}")
