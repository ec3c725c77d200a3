"""Which option a reply to a multiple-choice question picks, for other tools.

    from mustsee.extract import extract

`extract(reply, options)` returns an `Extraction` with `letter` ("A", ..., or None) and `rule`. The
rules are in `mustsee.replies.extract`.
"""

from __future__ import annotations

from mustsee.replies.extract import Extraction, extract

__all__ = ["Extraction", "extract"]
