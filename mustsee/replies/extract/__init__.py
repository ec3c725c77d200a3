"""Which option a reply to a multiple-choice question picks.

    from mustsee.replies.extract import extract

`choice` has the table of rules, `rules` the rules, `words` and `languages` their phrases. The
evaluation, the filters and the exported tasks use it.
"""

from mustsee.replies.extract.choice import extract
from mustsee.replies.extract.rules import Extraction

__all__ = ["Extraction", "extract"]
