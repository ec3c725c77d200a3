"""EgoSchema's recipe as its tests run it."""

import asyncio

from hydra.utils import instantiate
from omegaconf import OmegaConf

from actors.llm.offline import Offline
from mustsee.calls.llm import Asker
from mustsee.prompts import Prompts
from mustsee.recipes.egoschema import ask as egoschema
from mustsee.recipes.egoschema.keywords import Keywords
from mustsee.records import Video


def keywords() -> Keywords:
    return instantiate(OmegaConf.load("conf/keywords/egoschema.yaml"), _convert_="all")


def asked(rows, settings, llm=None) -> list[Video]:
    """The clips with their questions, by the rules unless a model is given."""
    asker = Asker(llm=llm or Offline().open(), prompts=Prompts())

    async def all_() -> list[Video]:
        return await asyncio.gather(*(egoschema.ask(r, asker, settings) for r in rows))

    return asyncio.run(all_())
