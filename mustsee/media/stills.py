"""Images as a video in which each is shown for a second."""

from __future__ import annotations

import io
from collections.abc import Sequence
from fractions import Fraction

CRF = 18  # quality of the encoder: near that of the images


def encode_stills(images: Sequence[bytes], fps: int = 2) -> bytes:
    """Return an MP4 file that shows each image (JPEG) for one second, as `fps` equal frames: a
    model that takes one frame a second sees each, and so does one that merges two frames.

    All are scaled into the first one's size. Raises OSError for what is no image.
    """
    import av
    from PIL import Image, ImageOps

    pictures = [Image.open(io.BytesIO(image)).convert("RGB") for image in images]
    width, height = (side + side % 2 for side in pictures[0].size)
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as out:
        options = {"preset": "veryfast", "crf": str(CRF), "bf": "0", "g": str(fps)}
        stream = out.add_stream("libx264", rate=fps, options=options)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.codec_context.time_base, stream.codec_context.thread_count = Fraction(1, fps), 1
        for number in range(fps * len(pictures)):
            padded = ImageOps.pad(pictures[number // fps], (width, height))
            frame = av.VideoFrame.from_image(padded)
            frame.pts, frame.time_base = number, Fraction(1, fps)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return file.getvalue()
