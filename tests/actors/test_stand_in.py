"""Facts that are made up in a dry run: as many as a model lists, seen where they are claimed. So
the calls that follow are counted although the rules would list none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mustsee.calls.llm import Asker
from mustsee.facts.extract import Window, facts_form
from mustsee.facts.forms.after import AfterForm
from mustsee.facts.forms.at import AtForm
from mustsee.facts.recipe import Seats, ask_facts
from mustsee.facts.settings import FactSettings
from mustsee.prompts import Prompts
from mustsee.records import Span, Video
from ray_jobs.runtime.rehearse import open_rules_session
from ray_jobs.runtime.stand_in import MADE_UP
from tests.actors.test_rehearse import MODEL

MOMENTS = tuple(Span(6.0 * n, 6.0 * n + 6) for n in range(5))


class Frames:
    """No frames: rules that look at them would list nothing."""

    async def jpegs(self, times: Sequence[float], see: Any) -> tuple[bytes, ...]:
        return ()


def encode(texts: Sequence[str]) -> NDArray[np.float32]:
    return np.random.default_rng(0).normal(size=(len(texts), 8)).astype(np.float32)


@pytest.mark.parametrize("kinds", [("event", "place", "state"), ("cause",), ("sound", "person")])
@pytest.mark.parametrize("moments", [MOMENTS, ()])
def test_made_up_facts_have_the_form_of_a_model_s(
    kinds: tuple[str, ...], moments: tuple[Span, ...]
) -> None:
    window = Window(span=Span(0.0, 30.0), moments=moments)
    text = MADE_UP["facts/extract"]({"window": window, "kinds": kinds, "most": 12})
    facts = facts_form(window.span, kinds, 12).read(text)
    assert 8 <= len(facts) <= 12
    assert {fact.kind for fact in facts} <= set(kinds)
    if moments:
        touched = {n for n, m in enumerate(moments) for f in facts if m.start <= f.spans[0].start}
        assert touched == set(range(5))


def test_calls_on_a_video_of_which_the_rules_ask_nothing_are_counted(tmp_path: Path) -> None:
    session = open_rules_session(str(tmp_path), 1.0)
    asker = Asker(llm=session.context().llm(MODEL), prompts=Prompts())
    seats = Seats(writer=asker, verifier=asker, guesser=asker)
    forms = {"after": AfterForm(), "holds": AtForm(of="object"), "where": AtForm(of="place")}
    frames: Any = Frames()
    video = Video(video_id="v", uri="v.mp4", duration=120.0)
    settings = FactSettings(forms=forms)
    done = asyncio.run(ask_facts(video, seats, frames, encode, settings, lambda name, n: None))
    assert done.questions
    assert all(fact.drop is None for fact in done.facts or ())
    calls = {name: c.calls for name, c in session.coordinator.snapshot().llm.by_prompt.items()}
    assert calls["facts/look"] == 14  # moments of less than nine seconds
    assert calls["facts/rank"] >= 2
