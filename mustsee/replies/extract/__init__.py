"""Which option a reply to a multiple-choice question picks.

from mustsee.replies.extract import extract
"""

from mustsee.replies.extract.choice import extract
from mustsee.replies.extract.extraction import Extraction

__all__ = ["Extraction", "extract"]
