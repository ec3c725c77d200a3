"""The served report in a browser, at two widths, by keyboard: evidence plays as frames and as
video, transcoded where browsers do not play the file.
"""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import reported
from tests.support.chromium import Person, browser, needs_browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    needs_browser()
    with browser() as made:
        yield made


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    out = reported.write(tmp_path_factory.mktemp("run"))
    command = [sys.executable, "-m", "ray_jobs.report", f"out={out}", "serve=true", "port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        for line in job.stdout:
            if found := re.search(r"http://\S+/r/\S+", line):
                yield found[0]
                break
        else:
            raise AssertionError("it did not start")
        job.send_signal(signal.SIGINT)  # killed, it would leave a folder behind


TIME = "Number(document.querySelector('.watch:has(video) output').textContent.split(':')[1])"


@pytest.mark.parametrize("width", [1280, 390])
def test_the_evidence_plays(chromium: Any, link: str, width: int) -> None:
    one = Person(chromium, link, width)
    first = one.page.get_by_role("button", name="Play the evidence from 0:01.0 to 0:02.0")
    first.wait_for()
    assert one.serious() == []
    assert one.page.locator("video").count() == 0  # nothing is fetched before it is played
    first.focus()
    one.keys("Enter")
    one.until("document.querySelector('video')?.paused === false")
    one.until(f"document.querySelector('video').paused && {TIME} >= 2")  # it stops at its end
    assert one.run(TIME) < 3
    one.page.get_by_role("button", name="Play the evidence from 0:05.0 to 0:06.5").click()
    one.until(f"{TIME} >= 5")
    frame = one.page.locator("[data-id=q1] .strip").get_by_role("button", name="Play from 0:01.0")
    frame.focus()
    one.keys("Enter")
    one.until(f"{TIME} >= 2.5 && {TIME} < 5")  # a frame's video goes on
    assert one.page.locator("video").count() == 1
    one.keys("Tab")
    one.page.get_by_role("button", name="Loop the evidence").first.click()
    one.page.get_by_role("button", name="Play the evidence from 0:01.0 to 0:02.0").click()
    one.until(f"{TIME} >= 1.5")
    one.until(f"{TIME} < 1.5 && !document.querySelector('video').paused")
    assert one.serious() == []
    assert one.said == []
    one.leaves()


@pytest.mark.parametrize("width", [1280, 390])
def test_a_video_that_browsers_do_not_play_continues_over_its_clips(
    chromium: Any, link: str, width: int
) -> None:
    one = Person(chromium, link, width)
    one.page.get_by_text("What of b.mkv?").click()
    one.page.get_by_role("button", name="Play the evidence from 0:18.0 to 0:31.5").click()
    one.until("document.querySelector('video')?.paused === false")
    one.run("document.querySelector('video').defaultPlaybackRate = 4")
    one.run("document.querySelector('video').playbackRate = 4")
    one.until(f"document.querySelector('video').paused && {TIME} >= 31.5")
    assert one.run("document.querySelector('video').currentSrc").endswith("/5")
    one.page.get_by_text("What of c.mp4?").click()
    one.page.get_by_role("button", name="Play the evidence from 0:00.0 to 0:01.0").click()
    one.page.get_by_text("the video cannot be read").wait_for()
    assert one.page.locator("video").count() == 0  # one plays at a time, and this one cannot
    assert one.serious() == []
    assert one.said == []
    one.leaves()


@pytest.mark.parametrize("width", [1280, 390])
def test_a_question_is_edited_and_taken_back(chromium: Any, link: str, width: int) -> None:
    one = Person(chromium, link, width)
    question = one.page.locator("[data-id=q1]")
    edit = question.get_by_role("button", name="Edit this question")
    edit.wait_for()
    edit.focus()
    one.keys("Enter")
    one.page.get_by_label("Question", exact=True).fill("What is it now?")
    one.page.get_by_label("Option A").fill("something else")
    assert one.serious() == []
    question.get_by_role("button", name="Save").click()
    question.locator(".edited", has_text="What is it now?").wait_for()
    assert question.locator(".edited li").first.text_content() == "something else"
    edit.click()
    assert one.page.get_by_label("Question", exact=True).input_value() == "What is it now?"
    question.get_by_role("button", name="Take back").click()
    one.until("document.querySelector('[data-id=q1] .edited').childElementCount === 0")
    assert one.serious() == []
    assert one.said == []
    one.leaves()
