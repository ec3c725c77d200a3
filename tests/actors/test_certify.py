"""The certificate of a question: the shortest clip that a model answers it from."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from actors.answer.llm import AnswerLlm
from actors.certify import Certify
from actors.part import LlmConfig
from mustsee.conditions.seen import Seen
from mustsee.evaluate import certificate_show
from mustsee.evaluate.answers import answers
from mustsee.evaluate.certificate import Steps
from mustsee.llm import Llm, Reply, Request
from mustsee.records import Line, Video
from mustsee.text import LETTERS
from tests.support import films
from tests.support.bench import Bench
from tests.support.evaluation import questions


class Counts:
    """A model that is right once it sees enough pictures."""

    identity = "counts pictures"

    def __init__(self, enough: int) -> None:
        self.enough = enough

    def open(self) -> Llm:
        return self

    async def complete(self, request: Request) -> Reply:
        wanted = request.variables["options"]
        right = len(request.messages[-1].images) >= self.enough
        index = next(i for i, o in enumerate(wanted) if o.endswith(" 0"))
        return Reply(text=LETTERS[index if right else (index + 1) % 5], model="counts")


def test_the_certificate_of_a_question_that_needs_four_pictures(tmp_path: Path) -> None:
    film = films.write(tmp_path / "v0.mp4", films.cuts([96, 96]))
    question = replace(questions(1)[0], answer_index=0)
    video = Video(video_id="v0", uri=str(film), duration=8.0, questions=(question,))
    llm: LlmConfig = Counts(4)
    part = Certify(
        answer=AnswerLlm(llm=llm, see=Seen(frames=1, longest=64)),
        steps=Steps(shortest=0.5, rates=(1.0, 2.0)),
    )
    (done,) = Bench(tmp_path / "s").run(part, video)
    (found,) = certificate_show.certificates(done.questions or ())
    assert found.clip is not None
    assert found.clip.frames == 4
    assert (found.clip.span.start + found.clip.span.end) / 2 == pytest.approx(4.0)
    assert found.effort == pytest.approx(3 / 4)
    assert answers((done.questions or ())[0]) == []
    certificate_show.write(tmp_path, [found])
    assert pq.read_table(tmp_path / "certificates.parquet")["frames"].to_pylist() == [4]
    assert (tmp_path / "pictures/certificate.png").exists()


class Listens:
    """A model that is right once it was told of the bell."""

    identity = "hears a bell"

    def open(self) -> Llm:
        return self

    async def complete(self, request: Request) -> Reply:
        heard = "the bell" in request.variables["transcript"]
        return Reply(text="A" if heard else "B", model="hears")


def test_a_certificate_tells_what_is_said_in_its_clip_alone(tmp_path: Path) -> None:
    film = films.write(tmp_path / "v0.mp4", films.cuts([96, 96]))
    lines = (Line(start=6.4, end=6.8, text="Hear the bell."),)
    question = replace(questions(1)[0], answer_index=0)
    video = Video(video_id="v0", uri=str(film), duration=8.0, lines=lines, questions=(question,))
    answer = AnswerLlm(llm=Listens(), see=Seen(frames=1, longest=64, transcript=True))
    part = Certify(answer=answer, steps=Steps(shortest=0.5, rates=(1.0,)))
    (done,) = Bench(tmp_path / "s").run(part, video)
    (found,) = certificate_show.certificates(done.questions or ())
    assert found.clip is not None
    assert found.clip.span.end > 6.6
    (again,) = Bench(tmp_path / "s").run(part, done)
    assert certificate_show.certificates(again.questions or ()) == [found]


def test_a_question_that_no_clip_answers_has_no_certificate(tmp_path: Path) -> None:
    film = films.write(tmp_path / "v0.mp4", films.cuts([24]))
    question = replace(questions(1)[0], answer_index=0)
    video = Video(video_id="v0", uri=str(film), duration=1.0, questions=(question,))
    llm: LlmConfig = Counts(99)
    part = Certify(answer=AnswerLlm(llm=llm, see=Seen(frames=1, longest=64)))
    (done,) = Bench(tmp_path / "s").run(part, video)
    found = certificate_show.certificates(done.questions or ())
    assert [c.clip for c in found] == [None]
    certificate_show.write(tmp_path, found)
    assert json.loads((tmp_path / "certificate.json").read_text())["without"] == 1
