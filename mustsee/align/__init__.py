"""Alignment of a clip's transcript with its video's audio description.

`place` finds the clip in the description, `description` indexes the description, and `sentences`
separates the narrator's lines from dialogue. The `align` stage and the CinePile recipe use it:

    from mustsee.align import align
"""

from mustsee.align.place import Alignment, MatchOptions, align

__all__ = ["Alignment", "MatchOptions", "align"]
