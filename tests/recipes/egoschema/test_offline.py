"""EgoSchema's questions by rules: handled objects, and options that the narrations refute."""

import re

import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from mustsee.calls.llm import Request
from mustsee.recipes.egoschema import clips, narrations
from mustsee.recipes.egoschema.offline.narrated import object_of, read_narrations
from mustsee.recipes.egoschema.offline.rules import RULES
from tests.support.material import material

EPIC = "narrations/epic-kitchens+epic-kitchens-55-annotations/"


@pytest.mark.parametrize(
    ("sentence", "thing"),
    [
        ("C open fridge", "fridge"),
        ("C picks up the wooden spoon with his right hand", "spoon"),
        ("C put knife in drawer", "knife"),
        ("C put away mincing knife", "mincing knife"),
        ("C still stirring onion", "onion"),
        ("C continue washing the chopping board", "chopping board"),
        ("C take the lid off the pan", "lid"),
        ("C cut a piece of white bread", "bread"),
        ("C put down down rag", "rag"),
        ("C open and close drawer", "drawer"),
        ("C pours washed rice into the pot", "rice"),
        # none of these names a thing
        ("C throw away", ""),
        ("C pick up the white", ""),
        ("C move the cut", ""),
        ("C takes the wooden", ""),
        ("C turn the back", ""),
        ("C put in pan", ""),
        ("C put on table", ""),
        ("C rinse hands", ""),
        ("C looks around the room", ""),
        ("C put something into bin", ""),
        ("C stop washing", ""),
        ("a man X opens the door", ""),
        ("The picture is dim, mostly turquoise.", ""),
    ],
)
def test_the_object_of_a_narration(sentence: str, thing: str) -> None:
    assert " ".join(object_of(sentence)) == thing


def asked(text: str, count: int = 6, seed: int = 0) -> list[tuple[str, str, list[str]]]:
    """Return questions with their answers and decoys."""
    variables = {"narrations": text, "count": count, "wrong": 4}
    request = Request(
        prompt="egoschema/one_shot", digest="", messages=(), variables=variables, seed=seed
    )
    questions = list[tuple[str, str, list[str]]]()
    for block in RULES["egoschema/one_shot"](request).split("\n\n"):
        if not block.endswith(": none"):
            question, answer, *wrong = (line.partition(": ")[2] for line in block.splitlines())
            questions.append((question, answer, wrong))
    return questions


def test_halves_are_by_time_and_decoys_are_never_true() -> None:
    """Most narrations lie in the first third: the middle one is not the middle of the video."""
    lines = [(n, f"C wash the plate {n}") for n in range(0, 50, 2)]
    lines += [(60, "C takes the bowl"), (75, "C washes the bowl"), (80, "C washes the spoon")]
    lines += [(140, "C opens the jar"), (150, "C closes the jar"), (170, "C takes the pot")]
    text = "\n".join(f"{second} - {said}" for second, said in lines)
    made = {question: (answer, wrong) for question, answer, wrong in asked(text)}
    answer, wrong = made["Comparing the two halves of the video, what sets the second one apart?"]
    assert answer == "C handles the jar in the second half only."
    for option in wrong:  # the bowl and the spoon are seen before; the pot only afterwards
        assert not re.search(r"\b(pot|jar)\b", option)


def test_alternating_things_have_no_order() -> None:
    turns = ["milk", "bottle"] * 10
    lines = [f"{70 + 3 * n} - C takes the {thing}" for n, thing in enumerate(turns)]
    text = "\n".join(["0 - C opens the cupboard", "4 - C closes the cupboard", *lines])
    assert not [a for _, a, _ in asked(text) if "milk" in a and "bottle" in a and "after that" in a]


def test_captions_of_colours_name_no_object() -> None:
    caption = "The picture is dim, mostly turquoise; the text on screen reads 'PARTS LIST'."
    assert not asked("\n".join(f"{n} - {caption}" for n in range(0, 60, 4)))


def test_answers_on_real_narrations_are_right() -> None:
    """The check counts again, by the words of the lines alone."""
    columns = instantiate(OmegaConf.load("conf/columns/epic55.yaml"))
    read = narrations.read(str(material(EPIC + "EPIC_train_action_narrations.csv")), columns)
    lengths = narrations.durations(str(material(EPIC + "EPIC_video_info.csv")), video="video")
    halves = 0
    for clip in clips.clips(read.lines, lengths, [clips.ClipGrid()])[::4]:
        text = narrations.prompt_lines(clip.lines or (), clip.start or 0.0)
        times = {t.name: t.handled for t in read_narrations(text).things}
        for _, answer, wrong in asked(text):
            assert len({answer, *wrong}) == 5
            match = re.fullmatch(r"C handles the (.*) in the (first|second) half only\.", answer)
            if match:
                halves += 1
                inside = [(second >= 90) == (match[2] == "second") for second in times[match[1]]]
                assert all(inside)
                for option in wrong:
                    other = times.get(option.split(" the ")[1].removesuffix(" in"), ())
                    assert not other or any((s >= 90) != (match[2] == "second") for s in other)
    assert halves > 100
