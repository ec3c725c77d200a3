"""EgoSchema (arXiv 2308.09126): questions on egocentric clips from their narrations."""

from mustsee.papers import Paper

PAPER = Paper(
    layout="mustsee.recipes.egoschema.layout",
    rules="mustsee.recipes.egoschema.offline.rules",
    rules_need="narrations that name several things",
    choice_prompt="evaluate/egoschema",
)
