"""Clips of real narrations, cut once."""

import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from mustsee.recipes.egoschema import clips, narrations
from mustsee.records import Video
from tests.support.material import material

EPIC = "narrations/epic-kitchens+epic-kitchens-55-annotations/"


@pytest.fixture(scope="module")
def real_clips() -> list[Video]:
    columns = instantiate(OmegaConf.load("conf/columns/epic.yaml"))
    read = narrations.read(str(material(EPIC + "EPIC_train_action_narrations.csv")), columns)
    lengths = narrations.durations(str(material(EPIC + "EPIC_video_info.csv")), video="video")
    return clips.clips(read.lines, lengths, [clips.ClipGrid()])[:50]
