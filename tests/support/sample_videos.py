"""Small videos drawn for tests."""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

WIDTH, HEIGHT, FPS = 160, 120, 24
SPEED = {"preset": "ultrafast", "crf": "18"}
B_FRAMES = {"preset": "veryfast", "crf": "23", "g": "12", "bf": "3", "b-pyramid": "normal"}


def scene(seed: int, number: int = 0, width: int = WIDTH, height: int = HEIGHT) -> np.ndarray:
    """Return an image of coloured blocks that drift with `number`; each seed looks different."""
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 255, (height // 20 + 1, width // 20 + 1, 3)).astype(np.uint8)
    image = np.kron(blocks, np.ones((20, 20, 1), np.uint8))[:height, :width]
    return np.roll(image, number, axis=1)


def cuts(lengths: Sequence[int], **size: int) -> list[np.ndarray]:
    """Return the frames of consecutive scenes with these numbers of frames."""
    return [scene(seed, number, **size) for seed, n in enumerate(lengths, 1) for number in range(n)]


def write(
    path: Path,
    images: Iterable[np.ndarray],
    *,
    codec: str = "libx264",
    fps: int = FPS,
    options: dict[str, str] = SPEED,
    times: Sequence[float] | None = None,
    aspect: Fraction | None = None,
    turn: int = 0,
    tone: float | None = None,
    late: float = 0.0,
) -> Path:
    """Write a video of RGB images. `times`: of the frames in seconds, if uneven. `tone`: seconds of
    a sine that begins `late` seconds after the first frame.
    """
    images = list(images)
    base = Fraction(1, 24_000)
    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=fps, options=options)
        stream.height, stream.width = images[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        stream.codec_context.time_base = base
        if aspect is not None:
            stream.codec_context.sample_aspect_ratio = aspect
        if turn:
            stream.set_display_rotation(turn)
        sound = out.add_stream("aac", rate=16_000, layout="mono") if tone is not None else None
        for number, image in enumerate(images):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            time = number / fps if times is None else times[number]
            frame.pts, frame.time_base = round(time / base), base
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
        if sound is not None:
            out_sound(out, sound, tone or 0.0, late)
    return path


def out_sound(
    out: av.container.OutputContainer, stream: av.AudioStream, seconds: float, late: float
) -> None:
    for first in range(0, int(seconds * 16_000), 1024):
        wave = 0.5 * np.sin(2 * np.pi * 440 * (first + np.arange(1024)) / 16_000)
        frame = av.AudioFrame.from_ndarray(wave.astype(np.float32)[None], "fltp", "mono")
        frame.sample_rate = 16_000
        frame.pts, frame.time_base = first + round(late * 16_000), Fraction(1, 16_000)
        out.mux(stream.encode(frame))
    out.mux(stream.encode(None))


def damaged(source: Path, target: Path, spoil: Callable[[bytearray], None]) -> Path:
    """Copy a file with some of its bytes spoilt."""
    data = bytearray(source.read_bytes())
    spoil(data)
    target.write_bytes(data)
    return target
