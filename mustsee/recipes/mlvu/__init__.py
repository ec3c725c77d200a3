"""MLVU (arXiv 2406.04264): questions on long videos that are assembled from clips or annotated."""

from mustsee.papers import Paper

PAPER = Paper(
    layout="mustsee.recipes.mlvu.layout",
    shares_signs=True,
    clean="mustsee.recipes.mlvu.layout:write_clean",
    rules="mustsee.recipes.mlvu.offline",
    rules_need="captions of the inserted clips",
    choice_prompt="evaluate/mlvu",
)
