"""Recorded transcripts, from a JSON-lines file, for tests and demonstrations: what a recogniser
hears differs with the processor (docs/outputs.md).

hear@hear.engine=replay hear.engine.path=FILE     where there are no subtitles, lines from the file
python -m actors.hear.replay RUN FILE             write the transcripts of a run to a file
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from actors.part import Opened, RunContext
from mustsee.errors import BadRow, UserError
from mustsee.files.parquet import check_digests, read_parquet
from mustsee.files.schemas import load
from mustsee.media import transcript
from mustsee.media.sound import has_sound
from mustsee.records import Video

COLUMNS = ("lines", "language", "transcribed_by", "unheard")
DECIMALS = 3  # digits of seconds and scores


@dataclass(frozen=True, kw_only=True)
class RecordedTranscripts:
    """Gives a video the transcript that a file holds for its content. A video without sound needs
    none.
    """

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ("digest", "start", "end")
    needs: ClassVar[tuple[str, ...]] = ("uri",)
    writes: ClassVar[tuple[str, ...]] = COLUMNS

    path: str
    """JSON lines that python -m actors.hear.replay wrote of an earlier run."""

    @property
    def identity(self) -> str:
        """The hash of the file's transcripts."""
        content = json.dumps(self._transcripts, sort_keys=True)
        return "transcripts " + hashlib.sha256(content.encode()).hexdigest()[:16]

    def check(self, budget_usd: float | None = None) -> None:
        """Raise UserError if the file is missing or invalid."""
        _ = self._transcripts

    def open(self, run: RunContext) -> Opened:
        def hear(video: Video) -> Video:
            recorded = self._transcripts.get(video.digest or "")
            if recorded is None and has_sound(video.uri):
                raise BadRow(
                    f"{self.path!r} has no transcript of {video.uri!r} as it is now: hear it with "
                    "hear=auto, and record it with python -m actors.hear.replay"
                )
            heard = load(Video, {"video_id": video.video_id, "uri": video.uri, **(recorded or {})})
            lines = transcript.lines_between(heard.lines or (), video.start, video.end)
            return replace(
                video,
                lines=lines,
                language=heard.language,
                transcribed_by=heard.transcribed_by,
                unheard=heard.unheard,
            )

        return hear

    @cached_property
    def _transcripts(self) -> Mapping[str, Mapping[str, Any]]:
        """Digest of a video -> its columns."""
        try:
            rows = [json.loads(row) for row in Path(self.path).read_text("utf-8").splitlines()]
            return {row["digest"]: {name: row[name] for name in COLUMNS} for row in rows}
        except FileNotFoundError:
            raise UserError(f"no transcripts at {self.path!r}: set hear.engine.path") from None
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{self.path!r} is not a file of transcripts: {error!r}") from None


def write_transcripts(run: str, path: str) -> None:
    """Write the transcripts of a run's recogniser, a video a row; times to the millisecond."""
    check_digests(Path(run), "videos.parquet")
    table = read_parquet(Path(run) / "videos.parquet", columns=["video_id", "digest", *COLUMNS])
    rows = [
        json.dumps(_rounded(row), ensure_ascii=False)
        for row in table.to_pylist()
        if row["transcribed_by"] and not row["transcribed_by"].startswith("subtitles")
    ]
    Path(path).write_text("".join(f"{row}\n" for row in rows), "utf-8")


def _rounded(value: Any) -> Any:
    """A row with numbers of `DECIMALS` decimals."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [_rounded(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return round(value, DECIMALS) if isinstance(value, float) else value


if __name__ == "__main__":
    write_transcripts(*sys.argv[1:])
