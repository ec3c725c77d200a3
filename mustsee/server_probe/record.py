"""What a probe found: the content of `probe.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from mustsee.server_probe.measures import HeardSounds, SeenNumerals, TimeErrors

VERSION = 1  # version of the form of probe.json
FILE = "probe.json"
PAGE = "probe.html"
OTHER_NAME = "video dropped"  # kind of the fault of a video that is seen under another name only

# answered: the reply was read. untold: there is a reply that could not be read. refused: the
# endpoint refuses the content. failed: there was no reply. unasked: the budget was reached, or
# an earlier step made it needless.
State = Literal["answered", "untold", "refused", "failed", "unasked"]
Kind = Literal["images", "video", "video_as_image_url", "file_url", "fast_video"]


@dataclass(frozen=True, kw_only=True)
class ReportedUsage:
    """The tokens that a reply counts, as it says them; None: it does not. `cached`: of `prompt`.
    `thought`: of `reply`.
    """

    prompt: int | None = None
    reply: int | None = None
    total: int | None = None
    cached: int | None = None
    thought: int | None = None


NO_USAGE = ReportedUsage()


@dataclass(frozen=True, kw_only=True)
class ServerFault:
    """A fault of the server. `kind`: a short name. `about`: images, video, sound, times or usage.
    `says`: one sentence with its figures. `share`: of what was sent, what is affected, 0 to 1.
    `confirmed`: whether a second draw of the same request shows it, too; None: not asked again.
    """

    kind: str
    about: str
    says: str
    share: float = 1.0
    confirmed: bool | None = None


@dataclass(frozen=True, kw_only=True)
class NumeralsResult:
    """One request with numerals. `count`: numerals sent; `seconds`: of the video. `why`: why there
    is no figure. `frames`: what was seen; None: not told.
    """

    kind: Kind
    count: int
    seconds: float | None = None
    draw: int = 0
    state: State
    why: str = ""
    frames: SeenNumerals | None = None
    tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class TimesResult:
    """The request for times. `scale`: the told times as a multiple of the true ones."""

    seconds: float
    draw: int = 0
    state: State
    why: str = ""
    errors: TimeErrors | None = None
    scale: float | None = None


@dataclass(frozen=True, kw_only=True)
class SoundResult:
    """One request with sound. `kind`: digits, silent (the same clip without sound) or tones."""

    kind: Literal["digits", "silent", "tones"]
    seconds: float
    draw: int = 0
    state: State
    why: str = ""
    sounds: HeardSounds | None = None
    tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class TokenCounts:
    """Tokens by the endpoint's `usage`; None: not measured. `image`: of one image. `image_rule`,
    `second_rule`: by the rule of the model's family (`mustsee.calls.image_tokens`). `second`: of
    a second of video without sound. `frame`: of one of the frames that the server takes of it.
    `sound_second`: of a second of sound. `characters`: of plain text, per token.
    """

    image: float | None = None
    image_rule: float | None = None
    second: float | None = None
    second_rule: float | None = None
    frame: float | None = None
    sound_second: float | None = None
    characters: float | None = None


@dataclass(frozen=True, kw_only=True)
class RefusedParameter:
    """`instead`: the name under which its value is sent; "": it is left out. `says`: the endpoint's
    words.
    """

    name: str
    instead: str
    says: str


@dataclass(frozen=True, kw_only=True)
class RampStep:
    """Calls that were sent at once. `refused`: of them, the ones told to wait. `failed`: the ones
    that failed otherwise.
    """

    in_flight: int
    answered: int
    refused: int
    failed: int
    seconds: float
    retry_after: float | None = None


@dataclass(frozen=True, kw_only=True)
class HourPrice:
    """What an hour of video costs as input, in USD; None: not known. `video`: as a video. `images`:
    as images, one a second. `source`: where the price of a token comes from.
    """

    video: float | None = None
    images: float | None = None
    per_million: float | None = None
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class ProbeRecord:
    """All of it. `taken`: date and time, ISO, UTC. `replied`: models that the replies name. `part`:
    the name under which the server takes a video; "": none. `rate`: frames that it sees of a second
    of video; `rate_is_least`: it may be more. `longest`: seconds of the longest video of which
    all was seen; `longest_is_least`: no longer one was sent. `structured`: kept, around (JSON with
    words around it), wrong (its content), ignored, refused, off or untold. `logprobs`: given, none,
    or untold. `cached`: tokens from the cache in each of several calls with one long prefix; None:
    not reported.
    `shutdown`: day on which the model stops, by its maker. `served`: what is wrong with it by the
    server's list of models and the table. `calls`, `usd`: made by this probe.
    """

    version: int = VERSION
    model: str
    base_url: str
    taken: str
    mustsee: str
    seed: int
    replied: Sequence[str] = ()
    faults: Sequence[ServerFault] = ()
    notes: Sequence[str] = ()
    images: Sequence[NumeralsResult] = ()
    videos: Sequence[NumeralsResult] = ()
    part: str = ""
    rate: float | None = None
    rate_is_least: bool = False
    longest: float | None = None
    longest_is_least: bool = False
    times: Sequence[TimesResult] = ()
    sounds: Sequence[SoundResult] = ()
    tokens: TokenCounts = TokenCounts()
    structured: str = "untold"
    logprobs: str = "untold"
    parameters: Sequence[RefusedParameter] = ()
    parameters_tried: Sequence[str] = ()
    prefix_tokens: int | None = None
    cached: Sequence[int | None] = ()
    ramp: Sequence[RampStep] = ()
    limits: Mapping[str, float] | None = None
    price: HourPrice = HourPrice()
    shutdown: str | None = None
    served: Sequence[str] = ()
    calls: int = 0
    usd: float = 0.0

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    def dump(self) -> str:
        """Return the text of `probe.json`."""
        return json.dumps(self.plain(), indent=2, ensure_ascii=False) + "\n"
