"""Which option a reply to a multiple-choice question picks.

from mustsee.extract import extract
"""

from mustsee.extract.choice import LETTERS, Extraction, extract

__all__ = ["LETTERS", "Extraction", "extract"]
