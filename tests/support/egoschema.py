"""EgoSchema's recipe for its tests."""

import asyncio

from hydra.utils import instantiate
from omegaconf import OmegaConf

from actors.llm.scripted import ScriptedLlm
from mustsee.calls.llm import Asker
from mustsee.prompts import Prompts
from mustsee.recipes.egoschema import ask as egoschema
from mustsee.recipes.egoschema.ask import Keywords
from mustsee.records import Video


def keywords() -> Keywords:
    return instantiate(OmegaConf.load("conf/egoschema.yaml").keywords, _convert_="all")


def asked(rows, settings, llm=None) -> list[Video]:
    """Return the clips with their questions, by the scripted model unless another is given."""
    asker = Asker(llm=llm or ScriptedLlm(), prompts=Prompts())

    async def ask_all() -> list[Video]:
        return await asyncio.gather(*(egoschema.ask(r, asker, settings) for r in rows))

    return asyncio.run(ask_all())
