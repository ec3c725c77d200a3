"""`prompt=FILE`: a model writes the questions that the user's words ask for."""

from pathlib import Path

import pytest

from loopback.endpoint import Loopback
from mustsee.errors import UserError
from ray_jobs.cli.build import build
from ray_jobs.cli.compose import compose

WORDS = 'Ask what is "cooked", and how.\nNothing of colours: $ { } %'

WRITTEN = "\n\n".join(
    f"QUESTION {n}: (other) What is put into the bowl {times}?\nCORRECT ANSWER: {right}\n"
    + "\n".join(f"WRONG ANSWER {k}: {wrong} {times}" for k, wrong in enumerate(others, 1))
    + f"\nEVIDENCE: {20 * n}.0-{20 * n + 8}.0"
    for n, (times, right, *others) in enumerate(
        [("first", "three eggs first", "two lemons", "some rice", "a cup", "five nuts"),
         ("next", "white flour next", "red paint", "wet sand", "old bread", "clear soup"),
         ("last", "cold milk last", "warm tea", "black ink", "grey oil", "sour wine")], 1)
)  # fmt: skip


def composed(folder: Path, *overrides: str, text: str = WORDS):
    (folder / "my.txt").write_text(f"{text}\n")
    given = [f"videos={folder}", f"out={folder}/o", f"prompt={folder}/my.txt", *overrides]
    return compose("make", given)


def test_a_prompt_chooses_the_writer_and_its_checks(tmp_path: Path) -> None:
    config = composed(tmp_path, "llm=openai")
    assert config.ask.settings.wish == WORDS
    assert "sight" in config.vet.filters
    with pytest.raises(UserError, match="ask=facts"):
        composed(tmp_path, "ask=facts")
    plain = compose("make", [f"videos={tmp_path}", f"out={tmp_path}/o"])
    assert plain.ask._target_.endswith("AskFacts")


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(UserError, match=r"nowhere\.txt: .*No such file"):
        compose("make", ["videos=v", "out=o", "prompt=nowhere.txt"])


def test_an_empty_file_and_rules_are_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is empty"):
        composed(tmp_path, text=" ")
    with pytest.raises(UserError, match="leave a space"):
        composed(tmp_path, text="costs ${out} and ${x")
    with pytest.raises(UserError, match="llm=offline"):
        build(composed(tmp_path))()
    assert not (tmp_path / "o").exists()


@pytest.mark.slow
def test_the_words_reach_the_model_and_its_questions_are_checked(tmp_path: Path) -> None:
    asked: list[str] = []

    def reply(payload) -> str:
        text = str(payload["messages"])
        asked.append(text)
        return WRITTEN if "Ask what is" in text else "NONE"

    video = Path(__file__).parents[3] / "examples" / "videos" / "pancakes.mp4"
    with Loopback(reply=reply) as server:
        config = composed(
            tmp_path, f"videos={video}", "llm=openai", f"llm.base_url={server.url}",
            "llm.key_env=null", "vet.filters.sight=null", "vet.tries=1",
        )  # fmt: skip
        assert build(config)() == 0
    import mustsee

    made = mustsee.Dataset(str(tmp_path / "o"))
    assert len([*made.questions, *made.dropped_questions]) == 3
    assert sum("Nothing of colours: $ { } %" in text for text in asked) == 1
    assert len(asked) > 1
