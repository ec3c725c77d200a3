"""Where a clip lies in its video's audio description.

from mustsee.align import align
"""

from mustsee.align.place import Alignment, MatchOptions, align

__all__ = ["Alignment", "MatchOptions", "align"]
