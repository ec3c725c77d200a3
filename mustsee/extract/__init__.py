"""Which option a reply to a multiple-choice question picks.

from mustsee.extract import extract
"""

from mustsee.extract.choice import Extraction, extract

__all__ = ["Extraction", "extract"]
