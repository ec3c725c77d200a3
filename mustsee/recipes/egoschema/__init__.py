"""EgoSchema (arXiv 2308.09126): questions on egocentric clips from their narrations."""

from mustsee.papers import Paper

PAPER = Paper(layout="mustsee.recipes.egoschema.layout", choice_prompt="evaluate/egoschema")
