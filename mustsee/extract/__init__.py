"""Which option a reply to a multiple-choice question picks.

from mustsee.extract import extract
"""

from mustsee.extract.choice import extract
from mustsee.extract.extraction import Extraction

__all__ = ["Extraction", "extract"]
