"""The certificate of a question: the shortest clip that a model answers it from."""

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from actors.part import LlmConfig
from actors.stages.certify import LOOKS, Certify
from mustsee.calls.llm import Llm, Reply, Request
from mustsee.evaluate.answers import answers
from mustsee.evaluate.certificate import (
    Certificate,
    CertificateClip,
    CertificateSteps,
    certificate_table,
    draw_certificates,
    read_certificates,
    write_certificates,
)
from mustsee.records import Line, Span, Video
from mustsee.verify.conditions.seen import Condition
from mustsee.verify.look_replies import OPEN, RIGHT, WRONG, OptionVerdict, say
from tests.support import sample_videos
from tests.support.bench import Bench
from tests.support.evaluation import questions


def said(right: int | None, count: int) -> Reply:
    """A reply that one of `count` options is right, or that all of them are open."""
    verdicts = [OptionVerdict(OPEN if right is None else WRONG)] * count
    if right is not None:
        verdicts[right] = OptionVerdict(RIGHT, (Span(0.0, 1.0),))
    return Reply(text=say(verdicts, "so."), model="said")


class CountingVerifier:
    """A model that is right once it is shown enough frames."""

    identity = "counts frames"

    def __init__(self, enough: int) -> None:
        self.enough = enough
        self.asked: list[int] = []

    def open(self) -> Llm:
        return self

    async def complete(self, request: Request) -> Reply:
        self.asked.append(len(request.messages[-1].images))
        options = request.variables["options"]
        right = self.asked[-1] >= self.enough
        place = next(i for i, o in enumerate(options) if o.endswith(" 0"))
        return said(place if right else None, len(options))


def part(llm: LlmConfig, steps: CertificateSteps, *, transcript: bool = False) -> Certify:
    return Certify(verifier=llm, see=Condition(longest=64, transcript=transcript), steps=steps)


def test_the_certificate_of_a_question_that_needs_four_frames(tmp_path: Path) -> None:
    video = sample_videos.write(tmp_path / "v0.mp4", sample_videos.cuts([96, 96]))
    question = replace(questions(1)[0], answer_index=0)
    video = Video(video_id="v0", uri=str(video), duration=8.0, questions=(question,))
    llm = CountingVerifier(4)
    (certified,) = Bench(tmp_path / "s").run(
        part(llm, CertificateSteps(shortest=0.5, rates=(1.0, 2.0))), video
    )
    (certificate,) = read_certificates(certified.questions or ())
    assert certificate.clip is not None
    assert certificate.clip.frames == 4
    assert (certificate.clip.span.start + certificate.clip.span.end) / 2 == pytest.approx(4.0)
    assert certificate.effort == pytest.approx(3 / 4)
    assert llm.asked[0] == 0  # the first look is without the video
    (with_verdicts,) = certified.questions or ()
    assert with_verdicts.metrics["min_frames"] == 4
    assert with_verdicts.metrics["min_seconds"] == certificate.clip.span.seconds
    looks = [v for v in with_verdicts.verdicts if v.filter == LOOKS]
    assert len(looks) == certificate.calls == len(llm.asked)
    assert all(v.reply and json.loads(v.detail)["condition"] for v in looks)
    assert answers(with_verdicts) == []
    write_certificates(tmp_path, [certificate])
    assert pq.read_table(tmp_path / "certificates.parquet")["frames"].to_pylist() == [4]
    assert draw_certificates(tmp_path, [certificate]) is None
    assert (tmp_path / "pictures/certificate.png").exists()


def test_clips_tried_in_turn_end_at_the_smallest_that_suffices(tmp_path: Path) -> None:
    video = sample_videos.write(tmp_path / "v0.mp4", sample_videos.cuts([96, 96]))
    question = replace(questions(1)[0], answer_index=0)
    video = Video(video_id="v0", uri=str(video), duration=8.0, questions=(question,))
    llm = CountingVerifier(4)
    steps = CertificateSteps(shortest=0.5, rates=(1.0, 2.0), in_turn=True)
    (certified,) = Bench(tmp_path / "s").run(part(llm, steps), video)
    (certificate,) = read_certificates(certified.questions or ())
    assert certificate.clip is not None
    assert certificate.clip.frames == 4
    assert certificate.effort == pytest.approx(3 / 4)
    assert llm.asked == sorted(llm.asked)
    assert max(llm.asked) == 4


def test_a_question_that_needs_no_video_has_a_certificate_of_no_frames(tmp_path: Path) -> None:
    video = sample_videos.write(tmp_path / "v0.mp4", sample_videos.cuts([24]))
    question = replace(questions(1)[0], answer_index=0)
    video = Video(video_id="v0", uri=str(video), duration=1.0, questions=(question,))
    llm = CountingVerifier(0)
    (certified,) = Bench(tmp_path / "s").run(part(llm, CertificateSteps()), video)
    (certificate,) = read_certificates(certified.questions or ())
    assert certificate.clip is not None
    assert (certificate.clip.frames, certificate.effort, llm.asked) == (0, None, [0, 0, 0])
    (with_verdicts,) = certified.questions or ()
    assert with_verdicts.metrics["min_frames"] == 0


class ListeningVerifier:
    """A model that is right once the transcript mentions the bell."""

    identity = "hears a bell"

    def open(self) -> Llm:
        return self

    async def complete(self, request: Request) -> Reply:
        has_line = any("the bell" in line.text for line in request.variables["lines"])
        options = request.variables["options"]
        place = next(i for i, o in enumerate(options) if o.endswith(" 0"))
        return said(place if has_line else None, len(options))


def test_a_certificate_shows_only_the_transcript_of_its_clip(tmp_path: Path) -> None:
    video = sample_videos.write(tmp_path / "v0.mp4", sample_videos.cuts([96, 96]))
    lines = (Line(start=6.4, end=6.8, text="Hear the bell."),)
    question = replace(questions(1)[0], answer_index=0)
    video = Video(video_id="v0", uri=str(video), duration=8.0, lines=lines, questions=(question,))
    listens = part(
        ListeningVerifier(), CertificateSteps(shortest=0.5, rates=(1.0,)), transcript=True
    )
    (certified,) = Bench(tmp_path / "s").run(listens, video)
    (certificate,) = read_certificates(certified.questions or ())
    assert certificate.clip is not None
    assert certificate.clip.span.end > 6.6
    (repeated,) = Bench(tmp_path / "s").run(listens, certified)
    assert read_certificates(repeated.questions or ()) == [certificate]


def test_a_question_that_no_clip_answers_has_no_certificate(tmp_path: Path) -> None:
    video = sample_videos.write(tmp_path / "v0.mp4", sample_videos.cuts([24]))
    question = replace(questions(1)[0], answer_index=0)
    video = Video(video_id="v0", uri=str(video), duration=1.0, questions=(question,))
    (certified,) = Bench(tmp_path / "s").run(part(CountingVerifier(99), CertificateSteps()), video)
    certificates = read_certificates(certified.questions or ())
    assert [c.clip for c in certificates] == [None]
    write_certificates(tmp_path, certificates)
    assert json.loads((tmp_path / "certificate.json").read_text())["without"] == 1
    assert draw_certificates(tmp_path, certificates) is None
    assert not (tmp_path / "pictures").exists()
    shown = printed(certificates)
    assert "mean" not in shown
    assert "answered with none of the clips that were tried  1" in shown


def test_counts_do_not_stand_under_the_head_mean() -> None:
    clip = CertificateClip(span=Span(0.0, 4.0), fps=1.0, frames=4)
    one = Certificate(
        question_id="q", video_id="v", duration=8.0, clip=clip, most_wrong=3, calls=6, unanswered=0
    )
    means, counts = printed([one]).split("questions")
    assert "mean" in means
    assert [word for word in means.split() if "." in word] == ["4.00", "4.00", "0.75"]
    assert "mean" not in counts


def printed(certificates: Sequence[Certificate]) -> str:
    shown = io.StringIO()
    Console(width=100, file=shown).print(certificate_table(certificates))
    return shown.getvalue()
