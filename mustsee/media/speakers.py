"""Which transcript lines one person speaks, by the vectors of their voices.

Lines are clustered by the similarity of their vectors (average linkage). A line gets a speaker only
where its voice is much more like one cluster than like the others; the other lines stay without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mustsee.records import Line

Floats = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class SpeakerRules:
    """When a line's speaker is sure."""

    similarity: float = 0.4
    """Mean cosine of two clusters of voices from which they are one speaker."""
    margin: float = 0.2
    """Least lead of a line's cosine to its speaker over that to any other."""
    seconds: float = 4.0
    """Least speech of a speaker."""
    shortest: float = 1.0
    """Seconds below which a line gets no speaker."""
    longest: float = 6.0
    """Seconds of a line that are listened to, at most."""


def name_speakers(
    lines: Sequence[Line], vectors: Sequence[Floats | None], rules: SpeakerRules
) -> tuple[Line, ...]:
    """Return the lines with "speaker 1", "speaker 2", ... where sure, in the order in which they
    first speak.

    `vectors`: of length 1, one for each line, null for a line without. No line gets a speaker where
    fewer than two voices are found, because a single cluster may hold several similar voices.
    """
    from scipy.cluster.hierarchy import fcluster, linkage  # Takes 0.1 s of each start.
    from scipy.spatial.distance import pdist, squareform

    voices = {i: vector for i, vector in enumerate(vectors) if vector is not None}
    places = list(voices)
    if len(places) < 2:
        return tuple(lines)
    distances = pdist(np.stack(list(voices.values())), "cosine")
    labels = fcluster(linkage(distances, "average"), 1 - rules.similarity, "distance")
    members = np.eye(labels.max())[labels - 1]  # one row a line, one column a cluster
    seconds = np.array([lines[i].end - lines[i].start for i in places])
    counts = members.sum(axis=0)
    members = members[:, (counts > 1) & (seconds @ members >= rules.seconds)]
    if members.shape[1] < 2:
        return tuple(lines)
    cosines = 1 - squareform(distances)
    np.fill_diagonal(cosines, 0)  # a line is not compared with itself
    means = (cosines @ members) / (members.sum(axis=0) - members)
    own = np.where(members > 0, means, -np.inf).max(axis=1)
    others = np.where(members > 0, -np.inf, means).max(axis=1)
    speakers: dict[int, str] = {}
    named = list(lines)
    for row in np.flatnonzero(own - others >= rules.margin):
        cluster = int(members[row].argmax())
        speaker = speakers.setdefault(cluster, f"speaker {len(speakers) + 1}")
        named[places[row]] = replace(lines[places[row]], speaker=speaker)
    return tuple(named) if len(speakers) > 1 else tuple(lines)
